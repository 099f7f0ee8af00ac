"""Who waits for a store gives up when it does not answer, and the work notices."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from kebab_eval.errors import TrackerError
from kebab_eval.tracking import pulse as module
from kebab_eval.tracking.pulse import Pulse, side_by_side
from kebab_eval.tracking.store import Store

SERVER = Store("http://user:pw@127.0.0.1:9")


def test_work_that_is_done_is_returned_however_late() -> None:
    done: Future[int] = Future()
    done.set_result(7)
    assert Pulse(SERVER).attend(done) == 7


def test_a_request_without_an_answer_ends_the_wait_and_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_SERVER_S", 0.02)
    pulse = Pulse(SERVER)
    pulse.beat()
    with pytest.raises(TrackerError, match=r"http://127\.0\.0\.1:9: no answer within 0\.02 s"):
        pulse.attend(Future())
    with pytest.raises(TrackerError, match="given up"):
        pulse.beat()


def test_slow_work_that_goes_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SERVER_S", 0.3)
    pulse, work = Pulse(SERVER), Future[str]()
    pause = threading.Event()

    def steps() -> None:
        for _ in range(5):
            pulse.beat()
            pause.wait(0.1)
        work.set_result("whole")

    threading.Thread(target=steps, daemon=True).start()
    assert pulse.attend(work) == "whole"


def test_what_the_work_raises_is_raised_also_a_timeout_of_its_own() -> None:
    failed: Future[None] = Future()
    failed.set_exception(TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        Pulse(SERVER).attend(failed)


def test_tasks_side_by_side_are_all_run_and_the_first_failure_ends_them() -> None:
    seen: list[int] = []
    side_by_side((lambda n=n: seen.append(n) for n in range(50)), 4)  # type: ignore[misc]
    assert sorted(seen) == list(range(50))
    side_by_side((), 4)

    def fail() -> None:
        raise ValueError("third")

    begun: list[int] = []
    tasks = [lambda: begun.append(1), lambda: begun.append(2), fail, lambda: begun.append(4)]
    with pytest.raises(ValueError, match="third"):
        side_by_side(tasks, 1)
    assert begun == [1, 2]
