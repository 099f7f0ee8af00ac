"""The exception tree. Every class carries the exit code that the command line ends with.

KebabEvalError                     3  root; also an internal failure
├── InputError                     2  what the user wrote is wrong; holds every fault at once
│   ├── ConfigError                   a config file, an override or an environment reference
│   ├── GoldenError                   a golden set
│   ├── CorpusError                   a document of the embedded engine's corpus
│   ├── FormatError                   a TREC, BEIR or JSONL file
│   ├── RuleError                     a rule of a gate
│   ├── UsageError                    options, run names, a missing extra
│   └── MetricError                   a metric asked for with impossible parameters
├── BackendError                   3  the system under test
├── RecordError                    3  the local record could not be written or read
├── TrackerError                   3  MLflow
├── NotComparableError             4  two runs that must not be compared
└── Interrupted                  130  Ctrl-C or SIGTERM; partial results are kept
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where it stands, what was found, and what to do.

    Args:
        place: ``file:line:column``, ``file``, or an option such as ``-S fusion.rrf_k``; empty when
            the fault has no place.
        message: what was found, what is allowed and what to do, in one line.
        code: the short name of the kind of fault, where a linter tells it (``unknown-field``).
    """

    place: str
    message: str
    code: str = ""

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return " ".join(text.splitlines())


class KebabEvalError(Exception):
    """Root of everything this package raises on purpose."""

    exit_code = 3


class InputError(KebabEvalError):
    """What the user wrote is wrong; ``faults`` holds every one that was found, in file order."""

    exit_code = 2

    def __init__(self, faults: Fault | str | Iterable[Fault]) -> None:
        if isinstance(faults, str):
            faults = (Fault("", faults),)
        elif isinstance(faults, Fault):
            faults = (faults,)
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class ConfigError(InputError):
    """A config file, an override or an environment reference is wrong."""


class GoldenError(InputError):
    """A golden set is wrong."""


class CorpusError(InputError):
    """A document of the embedded engine's corpus cannot be used."""


class FormatError(InputError):
    """A TREC, BEIR or JSONL file is malformed."""


class RuleError(InputError):
    """A rule of a gate is wrong."""


class UsageError(InputError):
    """Options or a run name do not fit, or an optional package is missing."""


class MetricError(InputError):
    """A metric was asked for with impossible parameters, or is not known."""


class BackendError(KebabEvalError):
    """The system under test failed.

    Args:
        retry: whether the same query may well be answered when it is asked again: the connection
            broke, or the system said that it is busy.
        retry_after_s: how long the system asks to be left alone, in seconds.
    """

    def __init__(
        self, message: str = "", *, retry: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.retry_after_s = retry_after_s


class RecordError(KebabEvalError):
    """The local record could not be written or read."""


class TrackerError(KebabEvalError):
    """MLflow could not be reached or refused what was sent."""


class NotComparableError(KebabEvalError):
    """Two runs that must not be compared; the message says what differs."""

    exit_code = 4


class Interrupted(KebabEvalError):
    """Stopped by Ctrl-C or SIGTERM; what had been recorded is kept."""

    exit_code = 130


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the closest allowed word, or an empty string."""
    from difflib import get_close_matches  # only needed on the way out, and 4 ms to import

    close = get_close_matches(word, list(allowed), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""
