"""Running the kebab binary to its end, or ending it: no shell, no child left, no endless output."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from kebab_eval.errors import BackendError

_PIECE = 2**16
_MOST_PRINTED = 2**28  # a hundred answers of a thousand whole chunks are a tenth of it
_MOST_SAID = 2**16


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Args:
        out: what it printed.
        err: the end of what it wrote to stderr.
        code: its exit code, below 0 for a signal; None when it was ended for its silence.
    """

    out: str
    err: str
    code: int | None


async def run(
    command: Sequence[str],
    given: str = "",
    first_s: float | None = None,
    later_s: float | None = None,
) -> Ended:
    """Run a program; whatever interrupts it, it is gone with its children afterwards.

    Args:
        given: its stdin, which is closed behind it.
        first_s: how long it may take until it prints anything, None for as long as it likes.
        later_s: how long it may be silent after that.

    Raises:
        OSError, ValueError: it cannot be started.
        BackendError: it printed without an end.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE if given else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,  # a group of its own, which can be ended as a whole
    )
    out, err = bytearray(), bytearray()
    helpers = [
        asyncio.create_task(_feed(process, given)),
        asyncio.create_task(_listen(process, err)),
    ]
    code = None
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(first_s) as patience:
                while piece := await _stdout(process).read(_PIECE):
                    out += piece
                    if len(out) > _MOST_PRINTED:
                        raise BackendError(f"{command[0]} printed over {_MOST_PRINTED >> 20} MiB")
                    patience.reschedule(_from_now(later_s))
                code = await process.wait()
    finally:
        if code is None:
            await _end(process)
        # What it wrote before its end is read at once; a child of its own may hold stderr open.
        await asyncio.wait(helpers, timeout=1)
        for helper in helpers:
            helper.cancel()
    return Ended(out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), code)


def _stdout(process: Process) -> asyncio.StreamReader:
    assert process.stdout is not None  # noqa: S101  # it was asked for
    return process.stdout


def _from_now(seconds: float | None) -> float | None:
    return None if seconds is None else asyncio.get_running_loop().time() + seconds


async def _feed(process: Process, given: str) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it may end without reading it all
            process.stdin.write(given.encode("utf-8", "replace"))
            await process.stdin.drain()
        process.stdin.close()


async def _listen(process: Process, err: bytearray) -> None:
    while process.stderr is not None and (piece := await process.stderr.read(_PIECE)):
        err += piece
        del err[:-_MOST_SAID]


async def _end(process: Process) -> None:
    """Kill a process with its children, and wait until it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
