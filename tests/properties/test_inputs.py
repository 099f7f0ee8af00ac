"""Any input gives a value or a fault with its place, and whatever text is in it survives."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval.config_file import load_config
from kebab_eval.errors import ConfigError, GoldenError, InputError
from kebab_eval.golden import load_golden
from kebab_eval.records import EvalRun, GoldenQuery, GoldenSet, Hit, Judgments, QueryResult
from kebab_eval.reports import render
from kebab_eval.reports.html import render_html
from kebab_eval.tracking import spool
from kebab_eval.yaml_source import parse_yaml

SETTINGS = settings(max_examples=150, deadline=None)

ANY_TEXT = st.text(st.characters(exclude_categories=()))
# Two halves of a pair are one character once they have been through JSON.
TEXT = ANY_TEXT.filter(lambda text: json.loads(json.dumps(text)) == text)
YAML_SIGNS = st.text(
    st.sampled_from("abé가 \n\t-:,?[]{}#&*!|>'\"%@`~<=.0123456789\\\r\ufeff\x85\u2028\0\x1b")
)
WORDS = st.sampled_from(
    [
        "id",
        "query",
        "lang",
        "group",
        "expected_doc_ids",
        "must_contain",
        "search",
        "k",
        "mode",
        "fusion",
        "weights",
        "rrf_k",
        "golden",
        "path",
        "backend",
        "corpus",
        "type",
        "metrics",
        "cutoffs",
        "primary",
        "extends",
        "tags",
        "suites",
        "name",
        "score_gate",
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    TEXT,
    WORDS,
    st.sampled_from(["${env:SECRET}", "${env:UNSET}", "${env:", "ko", "embedded", ".", "1e999"]),
)
TREES = st.recursive(
    SCALARS,
    lambda children: (
        st.lists(children, max_size=4) | st.dictionaries(WORDS | TEXT, children, max_size=4)
    ),
    max_leaves=20,
)
SECRET = "s3cr3t-value-that-is-in-no-example"  # noqa: S105


def value_or_fault(path: Path, load: Callable[[Path], Any], error: type[InputError]) -> Any:
    """Return what was loaded, or None after every fault was seen to be one line with the file."""
    told: InputError | None = None
    try:
        return load(path)
    except InputError as caught:
        told = caught
    assert type(told) is error
    assert told.faults
    for fault in told.faults:
        assert fault.place
        assert len(str(fault).splitlines()) == 1
        assert SECRET not in str(fault)
    return None


def load_any(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        environ = {"SECRET": SECRET}
        loaded = value_or_fault(path, lambda path: load_config(path, (), environ), ConfigError)
        if loaded is not None:
            assert SECRET not in json.dumps(dict(loaded.snapshot))
        value_or_fault(path, load_golden, GoldenError)


@given(st.one_of(ANY_TEXT, YAML_SIGNS))
@SETTINGS
def test_any_text_is_parsed_or_told_where_it_is_wrong(text: str) -> None:
    places = []
    try:
        node = parse_yaml(text, "f", ConfigError)
        places = [node.place] if node else []
    except ConfigError as told:
        places = [fault.place for fault in told.faults]
    assert all(re.fullmatch(r"f:[1-9]\d*:[1-9]\d*", place) for place in places)


@given(st.one_of(st.binary(max_size=200), YAML_SIGNS.map(str.encode)))
@SETTINGS
def test_any_bytes_as_a_file_give_a_value_or_a_fault(content: bytes) -> None:
    load_any(content, "f.yaml")


@given(TREES)
@SETTINGS
def test_any_yaml_as_a_file_gives_a_value_or_a_fault(tree: Any) -> None:
    load_any(yaml.safe_dump(tree, allow_unicode=True).encode("utf-8", "surrogatepass"), "f.yaml")


@given(st.dictionaries(WORDS, TREES, max_size=6))
@SETTINGS
def test_any_sections_of_a_config_give_a_value_or_a_fault(sections: dict[str, Any]) -> None:
    config = {"golden": "g", "backend": {"corpus": "c"}, **sections}
    load_any(yaml.safe_dump(config).encode("utf-8", "surrogatepass"), "f.yaml")


@given(st.lists(st.dictionaries(WORDS, TREES, max_size=6), max_size=4))
@SETTINGS
def test_any_entries_of_a_golden_set_give_a_value_or_a_fault(entries: list[Any]) -> None:
    load_any(yaml.safe_dump(entries).encode("utf-8", "surrogatepass"), "f.yaml")


@given(st.one_of(ANY_TEXT, st.builds("{}={}".format, WORDS, st.one_of(ANY_TEXT, YAML_SIGNS))))
@SETTINGS
def test_any_override_gives_a_value_or_a_fault(override: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.yaml"
        path.write_text("golden: g\nbackend: {corpus: c}\n")
        environ = {"SECRET": SECRET}
        value_or_fault(path, lambda path: load_config(path, [override], environ), ConfigError)


@given(ANY_TEXT)
@SETTINGS
def test_any_value_of_a_variable_is_taken_or_told_and_never_shown(value: str) -> None:
    secret = SECRET + value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.yaml"
        path.write_text(
            "golden: g\nbackend: {corpus: '${env:S}'}\ntags: {a: 'x${env:S}'}\n"
            "tracking: {uri: '${env:S}'}\n"
        )
        loaded = value_or_fault(
            path, lambda path: load_config(path, (), {"S": secret}), ConfigError
        )
        if loaded is not None:
            assert loaded.config.tags == {"a": "x" + secret}
            assert SECRET not in json.dumps(dict(loaded.snapshot))


def result(text: str, number: float) -> QueryResult:
    hit = Hit(1, text, text, number, "rrf", text, {"lexical_score": number})
    return QueryResult(text, text, "hybrid", (hit,), None, text, {"mrr_at_10_doc": number}, text)


@given(TEXT, st.floats(allow_nan=False, allow_infinity=False))
@SETTINGS
def test_any_text_and_number_survive_the_line_of_a_record(text: str, number: float) -> None:
    kept = result(text, number)
    line = spool.dump_line(kept.to_json())
    assert len(line.encode("utf-8", "backslashreplace").split(b"\n")) == 1
    stored = (line + "\n").encode("utf-8", "backslashreplace")
    assert QueryResult.from_json(json.loads(stored)) == kept


@given(TEXT, TEXT)
@SETTINGS
def test_any_text_survives_in_a_golden_query(one: str, two: str) -> None:
    query = GoldenQuery(
        one,
        two,
        Judgments({one: 1.0}, {two: 2.0}),
        group=two,
        must_contain=(one,),
        forbidden=(two,),
        tags={one: two},
    )
    assert GoldenQuery.from_json(json.loads(json.dumps(query.to_json()))) == query


@given(st.lists(TEXT, min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_any_text_survives_a_record_on_disk(texts: list[str]) -> None:
    golden = {"name": "g", "version": "1", "digest": "", "path": "", "min_relevance": 1}
    with tempfile.TemporaryDirectory() as folder:
        writer = spool.RecordWriter.create(
            Path(folder),
            "run",
            {"golden": golden, "system": {}},
            {"config.json": '{"search": {}, "metrics": {}}', "golden.jsonl": ""},
        )
        results = tuple(result(text, 0.5) for text in texts)
        for kept in results:
            writer.append(kept)
        assert spool.read_record(writer.folder).results == results
        writer.write_results(results)
        assert spool.read_record(writer.folder).results == results


def run_with(text: str) -> EvalRun:
    query = GoldenQuery(text, text, Judgments(doc={text: 1.0}), group=text)
    primary = "ndcg_at_10_doc"
    answered = QueryResult(text, text, "hybrid", (Hit(1, text, "x", 1.0, "rrf", text),), 1.0)
    failed = QueryResult(text + "2", text, "hybrid", error=text)
    judged = [
        QueryResult(r.query_id, r.query, r.mode, r.hits, r.latency_ms, r.error, {primary: 0.0})
        for r in (answered, failed)
    ]
    aggregate = {
        "metrics": {primary: {"value": 0.0, "n": 2, "ci95": None}},
        "slices": {"group": {text: {"n": 2, primary: 0.0}}},
        "latency_ms": {"p50": 1.0, "p95": 1.0},
        "failed_queries": 1,
        "total_queries": 2,
        "duplicate_hits": 0,
    }
    info = {
        "id": "i",
        "name": text,
        "status": "FINISHED",
        "created_at": "2026",
        "golden": {"name": text, "version": "1", "digest": "d", "queries": 2},
        "lever": {"key": "k", "value": text},
        "system": {"version": text},
        "git": {},
        "versions": {},
        "command": f"run {text}",
    }
    config = {
        "search": {"mode": "hybrid", "k": 10},
        "metrics": {"primary": primary, "cutoffs": [1]},
    }
    golden = GoldenSet(text, "1", "d", (query, GoldenQuery(text + "2", text)))
    return EvalRun(info, config, golden, tuple(judged), aggregate)


NO_PLOTS = {"plots/ranks.svg": "", "plots/metrics.svg": ""}
PLAIN = run_with("x")


@given(st.one_of(TEXT, st.text(st.sampled_from("<>&\"'`|=+-@[]()*_#\\ \n\r\t\x1b\0a\u2028"))))
@settings(max_examples=60, deadline=None)
def test_any_text_is_only_text_in_every_report(text: str) -> None:
    run = run_with(text)
    html, markdown = render_html(run, NO_PLOTS), render(run, "md")
    assert html.count("<") == render_html(PLAIN, NO_PLOTS).count("<")
    rows = list(csv.reader(io.StringIO(render(run, "csv"), newline="")))
    assert len(rows) == 3
    assert not any(cell.startswith(tuple("=+-@\t\r\n")) for row in rows[1:] for cell in row)
    shape = [line[:2] for line in render(PLAIN, "md").split("\n")]
    assert [line[:2] for line in markdown.split("\n")] == shape
    for report in (html, markdown, *map(",".join, rows)):
        report.encode("utf-8")
    assert json.loads(render(run, "json"))["per_query"][0]["query"] == text
