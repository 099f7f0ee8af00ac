"""Answers kept on disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.backends.base import SearchResponse, SingleSearch, SystemInfo
from kebab_eval.backends.cache import CachedBackend
from kebab_eval.errors import BackendError
from kebab_eval.records import Candidate, Hit

HIT = Hit(1, "c", "d", 0.5, "rrf", "가나", {"lexical_rank": 1.0})
CONFIG: dict[str, Any] = {"name": "x", "search": {"k": 10}, "backend": {"token": "${env:T}"}}


class Counting(SingleSearch):
    def __init__(self, **snapshot: Any) -> None:
        self.snapshot = snapshot
        self.asked = 0

    def describe(self) -> SystemInfo:
        return SystemInfo("fake", "rrf", self.snapshot, batch_size=100)

    async def search(self, query: str, query_id: str) -> SearchResponse:
        self.asked += 1
        if query == "fails":
            raise BackendError("down")
        return SearchResponse((HIT,), {"total": 3.0}, {"lexical": (Candidate("c", "d", 2.0),)}, 7.0)


def ask(system: Counting, folder: Path, query: str = "q", **config: Any) -> SearchResponse:
    cached = CachedBackend(system, folder, {**CONFIG, **config})
    assert cached.describe().batch_size == 1
    return asyncio.run(cached.search(query, "id"))


def test_the_second_time_nobody_is_asked_and_nothing_is_timed(tmp_path: Path) -> None:
    system = Counting()
    first, second = ask(system, tmp_path), ask(system, tmp_path)
    assert system.asked == 1
    assert (first.timed, first.latency_ms) == (True, 7.0)
    assert (second.timed, second.latency_ms, second.timings_ms) == (False, None, {})
    assert (second.hits, second.candidates) == (first.hits, first.candidates)


def test_another_query_lever_or_system_is_another_answer(tmp_path: Path) -> None:
    system = Counting()
    ask(system, tmp_path)
    ask(system, tmp_path, "other")
    ask(system, tmp_path, search={"k": 20})
    ask(Counting(chunker_version="v2"), tmp_path)
    assert system.asked == 3
    ask(system, tmp_path, name="another name")  # a run's name is no lever
    assert system.asked == 3


def test_failures_and_damage_are_not_kept(tmp_path: Path) -> None:
    system = Counting()
    for _ in range(2):
        with pytest.raises(BackendError):
            ask(system, tmp_path, "fails")
    assert system.asked == 2
    ask(system, tmp_path)
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text("{")
    ask(system, tmp_path)
    assert system.asked == 4


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BackendError, match="cannot be written"):
        ask(Counting(), tmp_path / "file")
