"""The backend ``kebab`` against a strict stand-in of the binary, as a real process."""

from __future__ import annotations

import asyncio
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend, SearchResponse
from kebab_eval.backends.kebab_wire import check_schema, parse_line, read_answer, read_response
from kebab_eval.config import Config
from kebab_eval.errors import BackendError
from kebab_eval.records import Answer, Candidate, Citation, GoldenQuery, QueryResult
from kebab_eval.workflows.fanout import fan_out

STAND_IN = Path(__file__).with_name("kebab_stand_in.py")
NOTES = {
    "pumps.md": "# Pumps\n\nThe first pump runs at sixty bar.\n",
    "valves.md": "# Valves\n\nThe main valve is closed on Sundays.\n",
    "펌프.md": "# 펌프\n\n펌프 압력은 육십 바이다.\n",
}


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in NOTES.items():
        path = tmp_path / "notes" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("KEBAB_STAND_IN_CORPUS", str(tmp_path / "notes"))
    script = tmp_path / "kebab"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def opened(binary: Path | str, **more: Any) -> Backend:
    section = {"type": "kebab", "binary": str(binary), **more.pop("backend", {})}
    data = {
        "name": "x",
        "golden": {"path": Path("g")},
        "backend": section,
        "search": {"mode": "lexical", "k": 2},
        **more,
    }
    return open_backend(Config.model_validate(data))


def run_all(backend: Backend, *texts: str, **settings: Any) -> list[QueryResult]:
    data = {
        "name": "x",
        "golden": {"path": Path("g")},
        "backend": {"corpus": Path("c")},
        "execution": {"warmup": 0, "retries": 0, **settings},
    }
    execution = Config.model_validate(data).execution
    queries = [GoldenQuery(f"q{n}", text) for n, text in enumerate(texts)]
    found: dict[int, QueryResult] = {}

    async def run() -> None:
        await fan_out(backend, queries, execution, "lexical", found.__setitem__)
        await backend.close()

    asyncio.run(run())
    return [found[n] for n in range(len(texts))]


def test_what_it_says_of_itself(binary: Path) -> None:
    info = opened(binary).describe()
    assert info.snapshot == {
        "kebab_version": "0.32.0",
        "chunker_version": "md-heading-v1",
        "embedding_model": "multilingual-e5-large",
        "index_version": "i1",
        "corpus_fingerprint": "c9",
        "parser_version": "p1",
        "prompt_template_version": "t3",
        "doc_count": 3,
        "chunk_count": 5,
    }
    assert (info.batch_size, info.answers) == (100, True)
    ids = opened(binary).item_ids()
    assert ids is not None
    assert (ids.chunks, ids.docs) == (None, frozenset(NOTES))


def test_a_batch_with_its_trace(binary: Path) -> None:
    results = run_all(
        opened(binary), "pump pressure", "펌프 압력", "--k 9 -x\nvalve", "refuse this"
    )
    assert [result.error for result in results] == [None, None, None, "kebab: generic; refused"]
    first = results[0].hits[0]
    assert (first.rank, first.doc_id, first.score_kind) == (1, "pumps.md", "bm25")
    assert first.channels["lexical_rank"] == 1
    assert "vector_rank" not in first.channels
    assert results[0].latency_ms == 7.5  # the system's own: the call was four searches
    assert results[0].timings_ms["lexical"] == 2.0
    assert results[0].candidates["lexical"][0] == Candidate(first.chunk_id, "pumps.md", first.score)
    assert results[1].hits[0].doc_id == "펌프.md"
    assert results[2].hits[0].doc_id == "valves.md"


@pytest.mark.parametrize("fault", ["crash", "half", "fatal"])
def test_what_a_broken_batch_left_is_asked_singly(
    binary: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    backend = opened(binary)
    monkeypatch.setenv("KEBAB_STAND_IN_FAULT", fault)
    results = run_all(backend, "pump", "valve", "pump bar", "sixty")
    assert [result.error for result in results] == [None] * 4
    assert all(result.hits for result in results)


def test_noise_and_another_major_are_the_cause(
    binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opened(binary)
    monkeypatch.setenv("KEBAB_STAND_IN_FAULT", "noise")
    results = run_all(backend, "pump", "valve")
    assert results[0].error is None
    assert results[1].error is not None
    assert "printed no JSON where bulk_search_item was due: WARN not json" in results[1].error
    monkeypatch.setenv("KEBAB_STAND_IN_FAULT", "major")
    (result,) = run_all(backend, "pump")
    assert result.error is not None
    assert "speaks search_response.v2 where search_response.v1 was due" in result.error


def test_a_process_that_hangs_is_ended(binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = opened(binary)
    monkeypatch.setenv("KEBAB_STAND_IN_FAULT", "hang")
    (result,) = run_all(backend, "pump", timeout_s=1.0)
    assert result.error == "timeout: no answer within 1 s"


def test_a_hundred_and_one_queries_are_two_calls(binary: Path) -> None:
    results = run_all(opened(binary), *["pump"] * 101)  # the stand-in refuses more than 100
    assert [result.error for result in results] == [None] * 101


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("not_indexed", "kebab: not_indexed; nothing is indexed; see the manual"),
        ("schema", "speaks schema.v3 where schema.v1 was due"),
    ],
)
def test_what_it_cannot_open_is_told(
    binary: Path, monkeypatch: pytest.MonkeyPatch, fault: str, said: str
) -> None:
    monkeypatch.setenv("KEBAB_STAND_IN_FAULT", fault)
    with pytest.raises(BackendError) as told:
        opened(binary)
    assert said in str(told.value)


def test_a_binary_that_is_not_there_or_may_not_run(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"set backend\.binary to where kebab is"):
        opened("no-such-kebab-anywhere")
    (tmp_path / "kebab").write_text("x")
    with pytest.raises(BackendError, match="cannot be started"):
        opened(tmp_path / "kebab")


def test_answers(binary: Path) -> None:
    backend = opened(binary)

    async def ask(query: str) -> Answer:
        return await backend.answer(query, "id", ())

    answer = asyncio.run(ask("how many bar?"))
    assert (answer.text, answer.grounded, answer.refused) == ("Sixty bar [1].", True, False)
    assert answer.citations == (Citation("", "pumps.md", "[1]"),)
    assert (answer.model, answer.prompt_version) == ("m", "t3")
    assert answer.tokens == {"prompt": 11, "completion": 4}
    refusal = asyncio.run(ask("-the unknowable"))
    assert (refusal.refused, refusal.refusal_reason) == (True, "score_gate")


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"hits": None},
        {"hits": [{}]},
        {"hits": [{"rank": "x", "chunk_id": "c", "doc_id": "d", "score": 1}]},
        {"hits": [], "trace": {"lexical": [{}]}},
        {"hits": [], "trace": {"lexical": 3}},
    ],
)
def test_what_is_no_response_is_told(data: dict[str, Any]) -> None:
    with pytest.raises(BackendError, match="that is none"):
        read_response(data, 10)


def test_small_print_of_the_wire() -> None:
    minimal = {"rank": 1, "chunk_id": "c", "doc_id": "d", "score": 0.5}
    assert read_response({"hits": [minimal]}, 10) == SearchResponse(
        read_response({"hits": [minimal]}, 10).hits
    )
    hit = read_response({"hits": [minimal]}, 10).hits[0]
    assert (hit.doc_id, hit.score_kind) == ("d", "rrf")
    check_schema({"schema_version": "answer.v1.7"}, "answer")
    for line in ("", "[]", '{"schema_version": "answer.v2"}', "{" * 9999):
        with pytest.raises(BackendError):
            parse_line(line, "answer")
    with pytest.raises(BackendError, match="without 'grounded'"):
        read_answer({"answer": "x"})
