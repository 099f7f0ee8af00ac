"""Telling a store that is slow from one that is dead: by its next answer, not by the whole work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

from kebab_eval.errors import TrackerError
from kebab_eval.tracking.store import Store

T = TypeVar("T")

_SERVER_S, _EMBEDDED_S = 7.0, 60.0
_SLOWEST_BYTES_S = 500_000
_IMPORT_S = 120.0  # of work that has asked nothing yet: MLflow is imported before


class Pulse:
    """The work says :meth:`beat` before each request; who waits for it gives up when none follows.

    An embedded store may be locked by another process for a while, and never hangs; a server gets
    so little that a dead one costs less than ten seconds.
    """

    def __init__(self, store: Store) -> None:
        self._shown = store.shown
        self._patience_s = _SERVER_S if store.database is None else _EMBEDDED_S
        self._stopped = False
        self._due = time.monotonic() + _IMPORT_S

    def beat(self, size: int = 0) -> None:
        """Say that a request begins, of so many bytes.

        Raises:
            TrackerError: nobody waits for the work any more; it must not go on.
        """
        if self._stopped:
            raise TrackerError(f"{self._shown}: given up")
        self._due = time.monotonic() + self._patience_s + size / _SLOWEST_BYTES_S

    def stop(self) -> None:
        """End the work at its next beat."""
        self._stopped = True

    def attend(self, work: Future[T]) -> T:
        """Return what the work gives.

        Raises:
            TrackerError: a request got no answer; the work ends when it notices.
        """
        try:
            while True:
                try:
                    return work.result(timeout=max(0.01, self._due - time.monotonic()))
                except TimeoutError:
                    if work.done():
                        raise
                    if time.monotonic() >= self._due:
                        message = f"no answer within {self._patience_s:g} s; is the server well?"
                        raise TrackerError(f"{self._shown}: {message}") from None
        except BaseException:
            self.stop()
            raise


def in_background(task: Callable[[], T]) -> Future[T]:
    """Run a task in a daemon thread: nobody waits for one that hangs when the program ends."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(task())
        except BaseException as reason:
            future.set_exception(reason)

    threading.Thread(target=work, daemon=True, name="kebab-eval-tracking").start()
    return future


def side_by_side(tasks: Iterable[Callable[[], object]], workers: int) -> None:
    """Run tasks, so many at a time; the first that fails is raised, and no further one is begun."""
    waiting, taking, failed = iter(tasks), threading.Lock(), threading.Event()

    def work() -> None:
        while not failed.is_set():
            with taking:
                task = next(waiting, None)
            if task is None:
                return
            try:
                task()
            except BaseException:
                failed.set()
                raise

    for running in [in_background(work) for _ in range(workers)]:
        running.result()
