"""A golden set meets the system that it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kebab_eval.backends.base import ItemIds, Progress, SearchResponse, SystemInfo
from kebab_eval.errors import GoldenError
from kebab_eval.golden import load_golden
from kebab_eval.records import Listing, Passage, QueryResult
from kebab_eval.workflows.golden_source import held_against
from kebab_eval.workflows.judging import settled

TEXT = "the first answer and the second answer"


class System:
    """A system of one document in two chunks, which it may or may not list."""

    def __init__(self, *, lists: bool) -> None:
        self.lists = lists

    def item_ids(self) -> ItemIds | None:
        return ItemIds(frozenset({"one", "two"}), frozenset({"d"})) if self.lists else None

    def list_chunks(self) -> Listing | None:
        if not self.lists:
            return None
        chunks = (Passage("one", "d", TEXT[:16], 0, 16), Passage("two", "d", TEXT[17:], 17, 38))
        return Listing(chunks, {"d": TEXT})

    def describe(self) -> SystemInfo:
        raise NotImplementedError

    def prepare(self, progress: Progress | None = None) -> None: ...

    async def search(self, query: str, query_id: str) -> SearchResponse:
        raise NotImplementedError

    async def close(self) -> None: ...


def held(folder: Path, text: str, *, lists: bool = True) -> Any:
    (folder / "g.yaml").write_text(text, encoding="utf-8")
    return held_against(load_golden(folder / "g.yaml"), System(lists=lists)).golden


SPANNED = """\
- id: q
  query: t
  expected_chunk_ids: [of another chunker]
  expected_spans: [{doc: d, quote: second answer}]
"""


def test_spans_become_the_chunks_of_the_system(tmp_path: Path) -> None:
    (query,) = held(tmp_path, SPANNED).queries
    assert query.judgments.chunk == {"two": 1.0}  # the stale chunk id is no fault
    assert query.judgments.doc == {"d": 1.0}


def test_ids_and_spans_are_told_together_in_file_order(tmp_path: Path) -> None:
    text = """\
- {id: a, query: t, expected_spans: [{doc: d, quote: third answer}]}
- {id: b, query: t, expected_chunk_ids: [three]}
- {id: c, query: t, expected_spans: [{doc: dd, quote: x}]}
"""
    with pytest.raises(GoldenError) as told:
        held(tmp_path, text)
    assert [fault.code for fault in told.value.faults] == ["anchor", "unknown-id", "unknown-id"]
    assert "quote 'third answer' is not in 'd'" in told.value.faults[0].message


def test_without_a_listing_spans_wait_for_the_hits(tmp_path: Path) -> None:
    golden = held(tmp_path, SPANNED, lists=False)
    assert golden.queries[0].spans[0].chunk_ids is None
    after = settled(golden, [QueryResult("q", "t", "hybrid")])
    assert after.queries[0].judgments.chunk == {"d#span-1": 1.0}  # nothing came back: a miss
    assert settled(after, []) is after
