"""A function or a class of the user's as the system under test."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend, SearchResponse
from kebab_eval.backends.python import read_hits
from kebab_eval.config import Config
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.records import Hit

MODULE = """
import asyncio, threading

def plain(query, k, suffix=""):
    second = {"id": "c2", "doc_id": "d2", "text": "words", "score": 0.25}
    return [(f"{query}{suffix}", 0.5), second][:k]

async def waiting(query, k):
    await asyncio.sleep(0)
    return [query.upper()]

class System:
    def __init__(self, index):
        self.index = index
        self.closed = False
    def describe(self):
        return {"chunker_version": self.index, "nested": {"left": "out"}}
    def search(self, query, k):
        return [{"chunk_id": f"{self.index}#{n}", "doc_id": self.index} for n in range(k)]
    def close(self):
        self.closed = True

class Refuses:
    def __init__(self):
        raise RuntimeError("no index")

number = 7

def broken(query, k):
    raise KeyError("x")
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[str]:
    name = f"system_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(MODULE))
    yield name
    sys.modules.pop(name, None)


def opened(folder: Path, target: str, **options: Any) -> Backend:
    section = {"type": "python", "target": target, "path": folder, "options": options}
    data = {"name": "x", "golden": {"path": Path("g")}, "backend": section, "search": {"k": 2}}
    return open_backend(Config.model_validate(data))


def ask(backend: Backend, query: str = "q") -> SearchResponse:
    async def run() -> SearchResponse:
        try:
            return await backend.search(query, "id")
        finally:
            await backend.close()

    return asyncio.run(run())


def test_functions_plain_and_waiting(tmp_path: Path, module: str) -> None:
    hits = ask(opened(tmp_path, f"{module}:plain", suffix="!")).hits
    assert [(hit.chunk_id, hit.doc_id, hit.score, hit.snippet) for hit in hits] == [
        ("q!", "q!", 0.5, ""),
        ("c2", "d2", 0.25, "words"),
    ]
    assert ask(opened(tmp_path, f"{module}:waiting")).hits[0].chunk_id == "Q"


def test_a_class_is_made_once_asked_k_times_and_closed(tmp_path: Path, module: str) -> None:
    backend = opened(tmp_path, f"{module}:System", index="i1")
    assert backend.describe().snapshot["chunker_version"] == "i1"
    assert "nested" not in backend.describe().snapshot
    assert [hit.chunk_id for hit in ask(backend).hits] == ["i1#0", "i1#1"]
    assert backend._owner.closed  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nowhere_at_all:f", "nowhere_at_all cannot be imported (ModuleNotFoundError"),
        ("{}:plian", "has no 'plian' (did you mean 'plain'?)"),
        ("{}:number", "neither a function nor a class with search"),
        ("{}:Refuses", "Refuses(…) failed (RuntimeError: no index)"),
        ("{}:System", "System(…) failed (TypeError"),
    ],
)
def test_what_cannot_be_opened_is_told(tmp_path: Path, module: str, target: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        opened(tmp_path, target.format(module))
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("abc", "must return a list of hits, found str"),
        (None, "found NoneType"),
        ({"a": 1}, "found dict"),
        ([{"score": 1}], "hit 1 has no chunk_id, id or doc_id"),
        ([("a", 1.0), ("b", "high")], "the score of hit 2 is no number: 'high'"),
    ],
)
def test_what_is_no_list_of_hits_is_told(returned: Any, said: str) -> None:
    with pytest.raises(BackendError) as told:
        read_hits(returned, 10)
    assert said in str(told.value)


def test_hits_of_every_shape() -> None:
    class Found:
        doc_id = "d"
        score = 0.9

    own = Hit(4, "c", "d", 1.0, "bm25")
    hits = read_hits(["a", ("b", 2), {"id": 7, "path": "p.md"}, Found(), own], 10)
    assert [(hit.chunk_id, hit.doc_id) for hit in hits] == [
        ("a", "a"), ("b", "b"), ("7", "p.md"), ("d", "d"), ("c", "d")
    ]  # fmt: skip
    assert [hit.score for hit in hits] == [1.0, 2.0, 1 / 3, 0.9, 1.0]
    assert len(read_hits((str(n) for n in range(99)), 3)) == 3
