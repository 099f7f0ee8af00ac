"""Any file gives findings or none, and what the linter calls alike is what brute force calls so."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval.golden.lint import ERRORS, WARNINGS, LintReport, lint
from kebab_eval.golden.lint_texts import PART, SIMILAR, _similar
from kebab_eval.records import LEVELS, Level, Listing, Passage
from kebab_eval.reports.lint import render_lint, summary_line

SETTINGS = settings(max_examples=150, deadline=None)

NOTE = "---\nocr_derived: true\n---\n\n# k\n\nThe constant is 60. It was 600 once.\n"
LISTING = Listing((Passage("n#1", "n", NOTE, 0, len(NOTE)),), {"n": NOTE, "m": ""})
DOCS, CHUNKS = frozenset({"n", "m"}), frozenset({"n#1"})

TEXT = st.text(st.characters(exclude_categories=()))
KEYS = st.sampled_from(
    [
        *("id", "query", "lang", "language", "category", "group", "difficulty", "notes"),
        *("expected_doc_ids", "expected_chunk_ids", "expected_spans", "must_contain", "forbidden"),
        *("graded_relevance", "relevant_ids", "top3_ids", "failure_expected", "ocr_derived"),
        *("doc", "quote", "occurrence", "before", "after", "start", "end", "section", "grade"),
        *("queries", "version", "<<", "=", "~", "null", "1e5", "2026-11-30"),
    ]
)
WORDS = st.sampled_from(
    ["n", "m", "n#1", "The constant is 60", "60", "600", "ko", "en", "mixed", "k", "02142", "1_000"]
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), TEXT, WORDS, KEYS
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | TEXT, inner, max_size=5),
    max_leaves=20,
)
# What is nearly right reaches the rules behind the readers.
IDS = st.lists(WORDS, max_size=3)
SPANS = st.lists(
    st.fixed_dictionaries({"doc": WORDS}, optional={"quote": WORDS, "grade": st.integers(0, 3)}),
    max_size=2,
)
ENTRIES = st.fixed_dictionaries(
    {"id": WORDS | TEXT, "query": WORDS | TEXT},
    optional={
        "lang": WORDS,
        "group": WORDS,
        "expected_doc_ids": IDS,
        "expected_chunk_ids": IDS,
        "expected_spans": SPANS | TREES,
        "must_contain": IDS,
        "forbidden": IDS,
        "graded_relevance": st.dictionaries(WORDS, st.integers(-1, 4), max_size=4),
        "ocr_derived": st.booleans(),
        "failure_expected": st.booleans(),
        "surprise": TREES,
    },
)


def linted(
    content: bytes, name: str = "f.yaml", levels: tuple[Level, ...] = LEVELS
) -> list[LintReport]:
    """Return what is found without and with a corpus, after each form was seen to hold it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        reports = [
            lint(path),
            lint(path, None, LISTING, docs=DOCS, chunks=CHUNKS, levels=levels),
        ]
    for report in reports:
        assert {finding.code for finding in report.findings} <= {*ERRORS, *WARNINGS}
        for form in ("text", "github"):
            rendered = render_lint(report, form)
            rendered.encode()
            assert len(rendered.splitlines()) == len(report.findings)
        document = render_lint(report, "json")
        document.encode()
        assert len(json.loads(document)["findings"]) == report.errors + report.warnings
        assert len(summary_line(report).splitlines()) == 1
    return reports


def as_yaml(tree: Any) -> bytes:
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False).encode("utf-8", "replace")


@pytest.mark.parametrize("name", ["f.yaml", "f.jsonl", "f.json", "f.csv", "f.topics"])
@given(content=st.binary(max_size=120) | TEXT.map(lambda text: text.encode("utf-8", "replace")))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_linted(name: str, content: bytes) -> None:
    linted(content, name)


@given(TREES)
@SETTINGS
def test_any_yaml_is_linted(tree: Any) -> None:
    linted(as_yaml(tree))


@given(st.lists(ENTRIES | TREES, max_size=5), st.sampled_from([LEVELS, ("doc",), ("chunk",)]))
@SETTINGS
def test_any_entries_are_linted(entries: list[Any], levels: tuple[Level, ...]) -> None:
    alone, held_against = linted(as_yaml(entries), levels=levels)
    # A corpus only ever adds findings.
    assert set(alone.findings) <= set(held_against.findings)


OWN_LINES = st.fixed_dictionaries(
    {
        "query_id": WORDS | TEXT,
        "query": WORDS | TEXT,
        "judgments": st.fixed_dictionaries(
            {level: st.dictionaries(WORDS, st.floats(-1, 4), max_size=3) for level in LEVELS}
        ),
    },
    optional={"language": WORDS | TREES, "notes": TREES, "spans": SPANS | TREES, "tags": TREES},
)


@pytest.mark.parametrize("name", ["f.jsonl", "f.json"])
@given(objects=st.lists(OWN_LINES | TREES, max_size=4))
@settings(max_examples=80, deadline=None)
def test_any_json_is_linted(name: str, objects: list[Any]) -> None:
    whole = json.dumps(objects) if name == "f.json" else "\n".join(map(json.dumps, objects))
    linted(whole.encode(), name)


@given(TREES, st.booleans())
@SETTINGS
def test_a_broken_entry_hides_nothing_of_its_neighbour(broken: Any, first: bool) -> None:
    neighbour = {"id": "z", "query": "what is it", "lang": "kr", "expected_doc_ids": ["nowhere"]}
    entries = [{"id": "y", "query": "?", "surprise": broken}, neighbour]
    _, report = linted(as_yaml(entries if first else entries[::-1]))
    codes = [finding.code for finding in report.findings]
    # A key that stands twice, as YAML sees it, leaves no tree whose entries could be looked at.
    if codes != ["unreadable"] * len(codes):
        assert {"unknown-field", "unknown-value", "unknown-id"} <= set(codes)


@given(st.lists(st.text("abc가", max_size=30), max_size=12, unique=True))
@SETTINGS
def test_alike_texts_are_those_that_brute_force_finds(texts: list[str]) -> None:
    parts = [{text[i : i + PART] for i in range(max(1, len(text) - PART + 1))} for text in texts]

    def alike(one: int, other: int) -> bool:
        common = len(parts[one] & parts[other])
        return common >= SIMILAR * len(parts[one] | parts[other])

    expected = [
        (found[0], later)
        for later in range(len(texts))
        if (found := [earlier for earlier in range(later) if alike(earlier, later)])
    ]
    assert list(_similar(texts, lambda _: [])) == expected
