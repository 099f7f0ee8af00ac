"""The objects of kebab's wire, one at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kebab_eval.backends.base import SearchResponse
from kebab_eval.backends.kebab_wire import (
    check_schema,
    fatal_error,
    read_answer,
    read_chunk_text,
    read_documents,
    read_error,
    read_item,
    read_items,
    read_object,
    read_response,
    read_snapshot,
    shown,
)
from kebab_eval.errors import BackendError
from kebab_eval.records import Candidate, Citation, Hit

HIT: dict[str, Any] = {
    "rank": 1,
    "score": 0.5,
    "chunk_id": "c1",
    "doc_id": "9f",
    "doc_path": "a.md",
}
NONE = {"hits": []}


def response(**fields: Any) -> dict[str, Any]:
    return {"schema_version": "search_response.v1", "truncated": False, **fields}


def read(k: int = 10, naming: Any = "path", **fields: Any) -> SearchResponse:
    return read_response(response(**fields), k, naming)


def said(data: Any) -> str:
    """Return why an object is refused, with every message beginning by who printed it."""
    with pytest.raises(BackendError) as told:
        read_response(data, 10, "path")
    return str(told.value).removeprefix("kebab printed ")


# --- schemas -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["answer.v1", "answer.v1.7"])
def test_a_minor_version_is_read(version: str) -> None:
    check_schema({"schema_version": version}, "answer")


@pytest.mark.parametrize("version", ["answer.v2", "answer.v10", "answer.v0", "answers.v1", "v1"])
def test_another_major_or_schema_is_refused(version: str) -> None:
    with pytest.raises(BackendError) as told:
        check_schema({"schema_version": version}, "answer")
    assert str(told.value) == (
        f"kebab speaks {version} where answer.v1 was due; this version of kebab-eval reads v1"
    )


def test_an_object_is_found_among_noise() -> None:
    whole = {"schema_version": "answer.v1", "x": 1}
    for out in (
        json.dumps(whole),
        json.dumps(whole, indent=2),
        f"WARN not json\n[1]\n\n{json.dumps(whole)}\n3\n",
        f'{{"schema_version": "log.v1"}}\n{json.dumps(whole)}',
    ):
        assert read_object(out, "answer") == whole


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("", "kebab printed nothing where answer.v1 was due"),
        ("[1]", "kebab printed a list where answer.v1 was due"),
        ("<html>\n</html>", "kebab printed no JSON (<html> </html>) where answer.v1 was due"),
        ("{" * 100_000, "kebab printed no JSON ({{"),
        ("{}", "kebab speaks no schema_version where answer.v1 was due"),
        ('{"schema_version": "answer.v2"}', "kebab speaks answer.v2 where answer.v1 was due"),
        ('x\n{"schema_version": "answer.v2"}', "kebab speaks answer.v2 where answer.v1 was due"),
    ],
)
def test_what_is_no_object_is_told(out: str, message: str) -> None:
    with pytest.raises(BackendError) as told:
        read_object(out, "answer")
    assert str(told.value).startswith(message)


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "again"),
    [
        ("config_invalid", False),
        ("not_indexed", False),
        ("model_unreachable", True),
        ("model_not_pulled", False),
        ("timeout", True),
        ("io_error", True),
        ("generic", False),
        ("a_code_of_tomorrow", False),
    ],
)
def test_which_errors_are_worth_another_attempt(code: str, again: bool) -> None:
    error = read_error(
        {"schema_version": "error.v1", "code": code, "message": "m\nn", "hint": "h", "x": 1}
    )
    assert (str(error), error.retry) == (f"kebab: {code}; m n; h", again)


def test_the_last_error_on_stderr_is_the_cause() -> None:
    first, last = (
        json.dumps({"schema_version": "error.v1", "code": code, "message": "m"})
        for code in ("io_error", "not_indexed")
    )
    error = fatal_error(f"loading\n{first}\n{last}\n{{}}\nbulk_summary: total=1\n")
    assert str(error) == "kebab: not_indexed; m"
    assert fatal_error("thread 'main' panicked\n{\n") is None


def test_errors_that_are_none_are_told_too() -> None:
    assert str(read_error([1])) == "kebab printed an error that is none: [1]"
    other = read_error({"schema_version": "error.v2", "code": "x"})
    assert str(other).startswith("kebab speaks error.v2 where error.v1 was due")


def test_a_foreign_text_is_one_short_line_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-PLANTED-77")
    monkeypatch.setenv("SHORT_TOKEN", "true")  # an ordinary word is no secret
    assert shown("a\n\tb \x1b[31mc") == "a b  [31mc"
    assert shown("key sk-PLANTED-77, true") == "key ${env:MY_API_KEY}, true"
    assert shown("x" * 999) == "x" * 300 + "…"


# --- search ------------------------------------------------------------------------------------


def test_hits_are_ordered_by_rank_and_cut_at_k() -> None:
    hits = [{**HIT, "rank": rank, "chunk_id": f"c{rank}"} for rank in (3, 1, 7, 2)]
    found = read(k=3, hits=hits).hits
    assert [(hit.rank, hit.chunk_id) for hit in found] == [(1, "c1"), (2, "c2"), (3, "c3")]


def test_a_hit_with_everything() -> None:
    hit = {
        **HIT,
        "schema_version": "search_hit.v1",
        "score_kind": "bm25",
        "snippet": "s",
        "retrieval": {
            "method": "hybrid",
            "fusion_score": 0.5,
            "lexical_rank": 2,
            "lexical_score": 11.5,
            "vector_rank": None,
        },
        "field_of_tomorrow": {},
    }
    channels = {"lexical_rank": 2.0, "lexical_score": 11.5}
    assert read(hits=[hit]).hits == (Hit(1, "c1", "a.md", 0.5, "bm25", "s", channels),)
    assert read(hits=[hit], naming="id").hits[0].doc_id == "9f"


def test_an_absent_score_kind_is_rrf() -> None:
    assert read(hits=[HIT]).hits[0].score_kind == "rrf"


def test_the_trace_tells_candidates_and_timings() -> None:
    candidate = {"chunk_id": "c1", "doc_id": "9f", "doc_path": "a.md", "score": 3}
    trace = {
        "lexical": [
            {**candidate, "rank": 2, "chunk_id": "c2"},
            {**candidate, "rank": 1},
        ],
        "vector": [],
        "rrf_inputs": [],
        "timing": {"lexical_ms": 2, "vector_ms": None, "fusion_ms": 0.5, "total_ms": 7},
    }
    found = read(**NONE, trace=trace)
    assert found.candidates == {
        "lexical": (Candidate("c1", "a.md", 3.0), Candidate("c2", "a.md", 3.0))
    }
    assert found.timings_ms == {"lexical": 2.0, "fusion": 0.5, "total": 7.0}
    assert found.latency_ms == 7.0
    assert read(**NONE, trace=None) == read(**NONE) == SearchResponse(())


def test_an_answer_that_was_cut_short_is_a_failure() -> None:
    assert len(read(k=1, hits=[HIT], truncated=True).hits) == 1
    assert said(response(hits=[HIT], truncated=True)) == (
        "kebab cut its answer short: 1 of 10 hits (truncated)"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "a search_response whose hits is no list"),
        ({"hits": None}, "a search_response whose hits is no list"),
        ({"hits": [None]}, "a search_hit that is no object: None"),
        ({"hits": [{**HIT, "rank": None}]}, "a hit whose rank is missing"),
        ({"hits": [{**HIT, "rank": True}]}, "a hit whose rank is no number: True"),
        ({"hits": [{**HIT, "score": "1"}]}, "a hit whose score is no number: 1"),
        ({"hits": [{**HIT, "score": float("nan")}]}, "a hit whose score is no number: nan"),
        ({"hits": [{**HIT, "score": 10**400}]}, f"a hit whose score is no number: 1{'0' * 299}…"),
        ({"hits": [{**HIT, "chunk_id": None}]}, "a hit whose chunk_id is missing"),
        ({"hits": [{**HIT, "chunk_id": ""}]}, "a hit whose chunk_id is no text: empty"),
        ({"hits": [{**HIT, "doc_path": 7}]}, "a hit whose doc_path is no text: 7"),
        ({"hits": [{**HIT, "retrieval": 3}]}, "a retrieval that is no object: 3"),
        (
            {"hits": [{**HIT, "retrieval": {"lexical_rank": "x"}}]},
            "a retrieval whose lexical_rank is no number: x",
        ),
        ({**NONE, "trace": 3}, "a trace that is no object: 3"),
        ({**NONE, "trace": {"lexical": 3}}, "a trace whose lexical is no list"),
        ({**NONE, "trace": {"lexical": [{}]}}, "a candidate whose chunk_id is missing"),
        ({**NONE, "trace": {"timing": {"total_ms": "7"}}}, "a timing whose total_ms is no number"),
    ],
)
def test_what_is_no_response_is_told(fields: dict[str, Any], message: str) -> None:
    assert said(response(**fields)).startswith(message)


def test_a_hit_of_another_major_is_refused() -> None:
    hit = {**HIT, "schema_version": "search_hit.v2"}
    assert said(response(hits=[hit])).startswith("kebab speaks search_hit.v2")


def item(query: Any, **fields: Any) -> str:
    echo = {"query": query, "k": 3}
    return json.dumps({"schema_version": "bulk_search_item.v1", "query": echo, **fields})


def numbers(out: list[str], *asked: str) -> list[Any]:
    """Return the number that each query's item carries."""
    return [None if one is None else one["n"] for one in read_items("\n".join(out), asked)]


def test_each_query_has_its_own_item() -> None:
    out = [item("a", n=1), item("b", n=2), item("a", n=3), ""]
    assert numbers(out, "a", "b", "a") == [1, 2, 3]
    assert numbers(out[:2], "a", "b", "a") == [1, 2, None]
    assert numbers(["WARN", out[0], "[]", "{}", out[1], out[2][:20]], "a", "b", "a") == [1, 2, None]
    assert numbers([out[1], out[2]], "a", "b", "a") == [None, 2, 3]  # the first one is missing
    assert numbers([out[1], out[0]], "a", "b") == [None, 2]  # out of order: who knows whose
    assert numbers([item("other", n=9), out[0]], "a") == [1]
    assert numbers([item(7, n=9), '{"schema_version": "bulk_search_item.v1"}'], "a") == [None]


def test_items_of_another_major_are_refused() -> None:
    with pytest.raises(BackendError, match=r"speaks bulk_search_item\.v2"):
        read_items('{"schema_version": "bulk_search_item.v2"}', ["a"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"error": {"schema_version": "error.v1", "code": "timeout"}}, "kebab: timeout"),
        ({}, "kebab printed an item without exactly one of response and error"),
        ({"response": {}, "error": {}}, "kebab printed an item without exactly one of"),
        ({"response": [1], "error": None}, "kebab printed a list where a response was due"),
        ({"response": {"hits": []}}, "kebab speaks no schema_version where search_response.v1"),
    ],
)
def test_an_item_without_a_response_is_an_error(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BackendError) as told:
        read_item(fields, 10, "path")
    assert str(told.value).startswith(message)


def test_an_item_with_a_response() -> None:
    assert read_item({"response": response(**NONE), "error": None}, 10, "path").hits == ()


# --- the rest ----------------------------------------------------------------------------------


def test_a_chunk_has_a_text() -> None:
    assert read_chunk_text({"text": "t"}) == "t"
    with pytest.raises(BackendError, match="a chunk_inspection whose text is missing"):
        read_chunk_text({})


def test_documents() -> None:
    summary = {"schema_version": "doc_summary.v1", "doc_id": "9f", "doc_path": "a.md", "lang": "ko"}
    assert read_documents(json.dumps([summary, {**summary, "doc_path": "b.md"}])) == {
        "a.md": "9f",
        "b.md": "9f",
    }
    assert read_documents("[]") == {}


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("", "kebab list docs printed nothing where a list was due"),
        ("{}", "kebab list docs printed a dict where a list was due"),
        ("oh", "kebab list docs printed no JSON (oh) where a list was due"),
        ("[1]", "kebab printed a doc_summary that is no object: 1"),
        ('[{"schema_version": "doc_summary.v2"}]', "kebab speaks doc_summary.v2"),
        ('[{"doc_id": "x"}]', "kebab printed a doc_summary whose doc_path is missing"),
    ],
)
def test_what_is_no_list_of_documents_is_told(out: str, message: str) -> None:
    with pytest.raises(BackendError) as told:
        read_documents(out)
    assert str(told.value).startswith(message)


def test_a_snapshot_has_what_is_told_and_no_more() -> None:
    assert read_snapshot({"kebab_version": "0.32.0"}) == {"kebab_version": "0.32.0"}
    models = {"corpus_revision": 0, "rrf_k": 60, "score_gate": 0.3, "active_chunkers": []}
    assert read_snapshot({"kebab_version": "1", "models": models, "stats": {"doc_count": 0}}) == {
        "kebab_version": "1",
        "corpus_fingerprint": "0",
        "rrf_k": 60,
        "score_gate": 0.3,
        "doc_count": 0,
    }
    for wrong in ({}, {"kebab_version": "1", "models": [1]}, {"kebab_version": "1", "stats": 3}):
        with pytest.raises(BackendError):
            read_snapshot(wrong)


ANSWER: dict[str, Any] = {"answer": "a [1]", "citations": [], "grounded": True, "model": "m"}


def test_an_answer() -> None:
    citation = {"marker": "[1]", "citation": {"kind": "line", "path": "a.md", "uri": "a.md#L1"}}
    code = {"citation": {"kind": "code", "path": "b.rs", "chunk_id": "c9"}}
    answer = read_answer(
        {
            **ANSWER,
            "citations": [citation, code],
            "model": {"id": "gemma", "provider": "ollama"},
            "usage": {"prompt_tokens": 11, "completion_tokens": 4, "latency_ms": 3},
        },
        {"a.md": "9f"},
    )
    assert answer.citations == (Citation("", "9f", "[1]"), Citation("c9", "b.rs", ""))
    assert (answer.model, answer.tokens) == ("gemma", {"prompt": 11, "completion": 4})
    assert (answer.refused, answer.refusal_reason) == (False, None)
    assert read_answer(ANSWER).model == "m"


def test_an_answer_with_a_reason_is_a_refusal() -> None:
    answer = read_answer({**ANSWER, "grounded": False, "refusal_reason": "no_chunks"})
    assert (answer.refused, answer.refusal_reason, answer.grounded) == (True, "no_chunks", False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"grounded": None}, "an answer whose grounded is neither true nor false"),
        ({"citations": None}, "an answer whose citations is no list"),
        ({"citations": [{}]}, "a citation that is no object: None"),
        ({"citations": [{"citation": {}}]}, "a citation whose path is missing"),
        ({"usage": {"prompt_tokens": "x"}}, "a usage whose prompt_tokens is no number: x"),
    ],
)
def test_what_is_no_answer_is_told(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BackendError) as told:
        read_answer({**ANSWER, **fields})
    assert str(told.value) == f"kebab printed {message}"
