"""Any file gives a golden set or a list of faults, and what a format holds comes back from it."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
import unicodedata
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval.errors import GoldenError
from kebab_eval.golden import ReadOptions, docserver, jsonl_set, kebab, load_golden
from kebab_eval.golden.entries import SPAN_FIELDS
from kebab_eval.golden.losses import Loss
from kebab_eval.golden.write import WRITERS, write_golden
from kebab_eval.records import (
    BinaryJudgments,
    GoldenQuery,
    GoldenSet,
    Judgments,
    Span,
)

SETTINGS = settings(max_examples=120, deadline=None)
ENDINGS = [".yaml", ".json", ".jsonl", ".csv", ".tsv", ".trec", ".txt", ""]
FORMATS = ["auto", "kebab", "docserver", "trec", "mapped", "jsonl", "beir"]
KEYS = st.sampled_from(
    sorted(
        kebab.FIELDS
        | docserver.FIELDS
        | jsonl_set.FIELDS
        | SPAN_FIELDS
        | {"version", "queries", "question", "question_type", "sources", "doc_id", "gain"}
    )
)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(),
    ANY_TEXT,
    KEYS,
    st.sampled_from(["02142", "negative", "standards", "[x]", "a;b|c", "*.md", "a.md#b", "0x1F"]),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
ENTRIES = st.lists(st.dictionaries(KEYS, TREES, max_size=6), max_size=3)
MAPS = st.none() | st.dictionaries(
    KEYS | st.sampled_from(["tags.x", "quote_doc"]),
    KEYS | st.sampled_from(["a.b", "sources[].doc", "question_type=negative", "=", "", ".", "[]"]),
    max_size=4,
)


def set_or_faults(content: bytes, ending: str, options: ReadOptions) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"g{ending}"
        path.write_bytes(content)
        try:
            golden = load_golden(path, options=options).golden
        except GoldenError as caught:
            told = caught.faults
        else:
            told = ()
            assert golden.queries
            for target in WRITERS:  # whatever could be read can be written, or is refused
                with suppress(GoldenError):
                    write_golden(golden, target)
        assert all(fault.place and len(str(fault).splitlines()) == 1 for fault in told)


@given(
    st.binary(max_size=120) | ANY_TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(ENDINGS),
    st.sampled_from(FORMATS),
)
@SETTINGS
def test_any_bytes_give_a_set_or_faults(content: bytes, ending: str, name: str) -> None:
    set_or_faults(content, ending, ReadOptions(format=name))


@given(TREES | ENTRIES, st.sampled_from(["auto", "kebab", "docserver"]))
@SETTINGS
def test_any_yaml_gives_a_set_or_faults(tree: Any, name: str) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True)
    set_or_faults(text.encode("utf-8", "surrogatepass"), ".yaml", ReadOptions(format=name))


@given(TREES | ENTRIES, MAPS, st.sampled_from(["auto", "mapped", "jsonl"]))
@SETTINGS
def test_any_json_gives_a_set_or_faults(tree: Any, given_map: Any, name: str) -> None:
    set_or_faults(json.dumps(tree).encode(), ".json", ReadOptions(format=name, map=given_map))


@given(ENTRIES, MAPS, st.sampled_from(["auto", "mapped", "jsonl"]))
@SETTINGS
def test_any_json_lines_give_a_set_or_faults(rows: Any, given_map: Any, name: str) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    set_or_faults(text.encode(), ".jsonl", ReadOptions(format=name, map=given_map))


@given(st.lists(st.lists(ANY_TEXT | KEYS, max_size=3), max_size=4), MAPS)
@SETTINGS
def test_any_table_gives_a_set_or_faults(rows: list[list[str]], given_map: Any) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["question", "relevance", "sources"], *rows])
    content = text.getvalue().encode("utf-8", "surrogatepass")
    set_or_faults(content, ".csv", ReadOptions(map=given_map))


# --- round trips ----------------------------------------------------------------------------


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


TEXT = st.text(max_size=20).map(_composed).filter(str.strip)
# Words that some YAML reader takes for something else, and signs that mean something in one.
HARD = st.sampled_from(
    [
        "no",
        "~",
        "02142",
        "1e5",
        "0x1F",
        "2026-01-01",
        "1:30",
        "- a",
        "a: b",
        "#x",
        "'",
        '"',
        "&amp;",
        "<top>",
        "Topic: x",
        "Number:",
        "a\u2028b",
        "a\x85b",
        "a\tb",
        "\ufeffx",
        "질의",
        "x" * 1100,
    ]
)
WORDS = TEXT | HARD
GRADES = st.sampled_from([0.0, 1.0, 2.0, 3.0])


@st.composite
def spans(draw: st.DrawFn) -> Span:
    span = Span(draw(WORDS), grade=draw(GRADES))
    kind = draw(st.sampled_from(["quote", "section", "offsets"]))
    if kind == "section":
        return replace(span, section=draw(WORDS))
    if kind == "offsets":
        return replace(span, start=3, end=draw(st.integers(4, 9)))
    occurrence = draw(st.none() | st.integers(1, 3))
    return replace(span, quote=draw(WORDS), occurrence=occurrence, before=draw(WORDS | st.just("")))


@st.composite
def golden_queries(draw: st.DrawFn) -> GoldenQuery:
    query = GoldenQuery(
        draw(WORDS),
        draw(WORDS),
        language=draw(st.sampled_from([None, "ko", "en", "mixed", "ja"])),
        category=draw(st.none() | st.sampled_from(["exam", "other"])),
        difficulty=draw(st.sampled_from([None, "easy", "hard"])),
        ocr_derived=draw(st.none() | st.booleans()),
        must_contain=tuple(draw(st.lists(WORDS, max_size=2, unique=True))),
        forbidden=tuple(draw(st.lists(WORDS, max_size=2, unique=True))),
        tags=draw(st.dictionaries(st.sampled_from(["intent", "team", "legacy_category"]), WORDS)),
        notes=draw(st.just("") | WORDS),
    )
    query = replace(query, group=query.query_id if draw(st.booleans()) else None)
    if draw(st.booleans()):
        return replace(query, failure_expected=draw(st.booleans()))
    return replace(
        query,
        judgments=Judgments(
            chunk=draw(st.dictionaries(WORDS, GRADES, max_size=2)),
            doc=draw(st.dictionaries(WORDS, GRADES, min_size=1, max_size=3)),
        ),
        spans=tuple(draw(st.lists(spans(), max_size=2))),
        v01=draw(
            st.none()
            | st.frozensets(WORDS, max_size=2).map(lambda ids: BinaryJudgments(ids, frozenset()))
        ),
    )


GOLDEN_SETS = st.builds(
    lambda queries, least: GoldenSet("g", "1", "", tuple(queries), least),
    st.lists(golden_queries(), min_size=1, max_size=3, unique_by=lambda query: query.query_id),
    st.sampled_from([1, 2]),
)


def through(golden: GoldenSet, target: str) -> tuple[GoldenSet, list[Loss]]:
    """Return a set written in a format and read again, and what was told to be lost.

    Raises:
        GoldenError: the format has no place for one of its ids.
    """
    written = write_golden(golden, target)
    endings = WRITERS[target].endings
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in written.files.items():
            path = folder / (file or f"g{endings[0]}")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        options, path = ReadOptions(), folder / f"g{endings[0]}" if endings else folder
        if target == "trec":
            options, path = ReadOptions(qrels=folder / "qrels.txt"), folder / "topics.trec"
        if target.startswith("docserver"):
            options = ReadOptions(format="docserver")
        return load_golden(path, options=options).golden, written.losses.kinds


def said(golden: GoldenSet) -> list[dict[str, Any]]:
    return [query.to_json() for query in golden.queries]


@given(GOLDEN_SETS)
@SETTINGS
def test_our_own_lines_hold_everything(golden: GoldenSet) -> None:
    again, losses = through(golden, "jsonl")
    assert said(again) == said(golden)
    assert {loss.what for loss in losses} <= {"min_relevance"}


@pytest.mark.parametrize("target", WRITERS)
@given(golden=GOLDEN_SETS)
@SETTINGS
def test_what_a_format_holds_comes_back(target: str, golden: GoldenSet) -> None:
    """Once in a format, a set goes through it again without a change."""
    refused: set[str] = set()
    try:
        first, losses = through(golden, target)
    except GoldenError as caught:
        refused = {fault.code for fault in caught.faults}
    if refused:
        assert target in ("beir", "trec")
        assert refused <= {"id", "query", "empty"}
        return
    asked = {query.query_id for query in first.queries}
    expected = [query for query in golden.queries if query.query_id in asked]
    assert [query.query_id for query in first.queries] == [query.query_id for query in expected]
    dropped = sum(loss.count for loss in losses if (loss.what, loss.unit) == ("", "queries"))
    assert len(golden.queries) - len(expected) == dropped
    for query, kept in zip(expected, first.queries, strict=True):
        if target == "trec":
            blank = re.compile(r"[\s\x00-\x1f\x7f\ufeff]+")
            assert kept.query == blank.sub(" ", query.query).strip()
        else:
            assert kept.query == query.query
        relevant = {i for i, grade in query.judgments.doc.items() if grade >= golden.min_relevance}
        # BEIR and TREC files have no min_relevance: they say so, and keep the grades.
        least = golden.min_relevance if target in ("beir", "trec", "jsonl") else first.min_relevance
        # Each is told: old ids win in v0.1, and spans where kebab's list would be empty.
        by_spans = target == "kebab" and query.spans and not relevant
        if not by_spans and (target != "docserver-v0.1" or query.v01 is None):
            assert {i for i, grade in kept.judgments.doc.items() if grade >= least} == relevant
    second, more = through(first, target)
    assert said(second) == said(first)
    assert not [loss for loss in more if loss.what not in ("min_relevance", "document id")]


@pytest.mark.parametrize("target", ["kebab", "docserver-v0.2", "docserver-v0.1"])
@given(golden=GOLDEN_SETS)
@SETTINGS
def test_what_is_written_reads_the_same_elsewhere(target: str, golden: GoldenSet) -> None:
    """PyYAML's own loader, which knows more words than ours, sees the same texts."""
    document = yaml.safe_load(write_golden(golden, target).files[""])
    entries = document["queries"] if isinstance(document, dict) else document
    assert [entry["id"] for entry in entries] == [query.query_id for query in golden.queries]
    assert [entry["query"] for entry in entries] == [query.query for query in golden.queries]


@given(GOLDEN_SETS)
@SETTINGS
def test_what_is_told_is_what_is_lost(golden: GoldenSet) -> None:
    """A field of the set that does not come back from kebab's format has been told."""
    again, losses = through(golden, "kebab")
    told = {loss.what for loss in losses}
    names = {"v01": "v0.1 ids"}
    for query, kept in zip(said(golden), said(again), strict=True):
        for field in query.keys() | kept.keys():
            if query.get(field) == kept.get(field):
                continue
            if field in ("judgments", "spans"):
                assert told & {"grade", "", "expected documents"}
            else:
                assert names.get(field, field) in told, field
