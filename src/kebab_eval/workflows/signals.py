"""What stops a run from outside, and what of it must not be cut short."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kebab_eval.errors import Interrupted

# What stops a run: Ctrl-C, a polite kill, a terminal that closes (which Windows does not tell).
_STOPPING = [
    number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))
]
Handler = Any  # signal.signal takes and returns functions, numbers and None


@contextmanager
def signals_raise() -> Iterator[None]:
    """Make SIGTERM stop the run the way Ctrl-C does: by KeyboardInterrupt, with the record kept."""

    def stop(_signum: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = {}
    for number in _STOPPING:
        try:
            previous[number] = signal.signal(number, stop)
        except ValueError:
            break  # not the main thread: the caller owns the signals
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted before the first answer; nothing was written") from None
    finally:
        restore_signals(previous)


def ignore_signals() -> dict[int, Handler]:
    """Let no signal cut short what is being closed; return the handlers there were."""
    previous = {}
    for number in _STOPPING:
        try:
            previous[number] = signal.signal(number, signal.SIG_IGN)
        except ValueError:
            break  # not the main thread: the caller owns the signals
    return previous


def restore_signals(previous: Mapping[int, Handler]) -> None:
    for number, handler in previous.items():
        signal.signal(number, handler)
