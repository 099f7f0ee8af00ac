"""The backend ``kebab`` against a strict stand-in of the binary, as a real process."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend
from kebab_eval.config import Config
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.records import Answer, Candidate, Citation, GoldenQuery, QueryResult
from kebab_eval.workflows.fanout import fan_out

ROOT = Path(__file__).parents[2]
STAND_IN = Path(__file__).with_name("kebab_stand_in.py")
NOTES = {
    "pumps.md": "# Pumps\n\nThe first pump runs at sixty bar. "
    + "Its seal is looked at on Mondays. " * 9
    + "The spare stands in hall nine.\n",
    "valves.md": "# Valves\n\nThe main valve is closed on Sundays.\n",
    "펌프.md": "# 펌프\n\n펌프 압력은 육십 바이다.\n",
}

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("KEBAB_STAND_IN_CORPUS", str(notes))
    monkeypatch.setenv("KEBAB_STAND_IN_LOG", str(tmp_path / "starts"))
    script = tmp_path / "kebab"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let every start from now on meet a misfortune."""
    return lambda name: monkeypatch.setenv("KEBAB_STAND_IN_FAULT", name)


Fault = Callable[[str], None]


def opened(binary: Path | str, **more: Any) -> Backend:
    own = {"type": "kebab", "binary": str(binary), "texts": "snippet", **more.pop("backend", {})}
    data = {
        "name": "x",
        "golden": {"path": Path("g")},
        "backend": own,
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


def starts(binary: Path, *command: str) -> list[list[Any]]:
    """Return process id and arguments of each start of a command, in their order."""
    lines = binary.with_name("starts").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [one for one in found if one[1 : 1 + len(command)] == list(command)]


def errors(results: list[QueryResult]) -> list[str | None]:
    return [result.error for result in results]


# --- what it is --------------------------------------------------------------------------------


def test_what_it_says_of_itself(binary: Path, tmp_path: Path) -> None:
    own = tmp_path / "kebab.toml"
    own.write_text("rrf_k = 60\n")
    backend = opened(binary, backend={"config": own})
    info = backend.describe()
    assert info.snapshot == {
        "kebab_version": "0.32.0",
        "parser_version": "p1",
        "chunker_version": "md-heading-v1",
        "active_chunkers": "md-heading-v1, pdf-page-v1",
        "embedding_version": "multilingual-e5-large",
        "embedding_model": "multilingual-e5-large",
        "index_version": "v1",
        "corpus_fingerprint": "7",
        "prompt_template_version": "rag-v4",
        "doc_count": 3,
        "chunk_count": 5,
        "config_fingerprint": "48ef8d19f175d7bf",  # sha256sum kebab.toml | cut -c1-16
    }
    assert (info.score_kind, info.batch_size, info.answers) == ("bm25", 100, True)
    ids = backend.item_ids()
    assert ids is not None
    assert (ids.chunks, ids.docs) == (None, frozenset(NOTES))
    assert backend.list_chunks() is None
    assert starts(binary, "--config", str(own), "list", "docs", "--json")


def test_listed_paths_are_compared_in_nfc(binary: Path) -> None:
    name = unicodedata.normalize("NFD", "노트.md")
    (binary.with_name("notes") / name).write_text("# 노트\n\n글\n", encoding="utf-8")
    ids = opened(binary).item_ids()
    assert ids is not None
    assert unicodedata.normalize("NFC", name) in ids.docs


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("not-indexed", "kebab: not_indexed; nothing is indexed; run kebab ingest"),
        ("schema-major", "kebab speaks schema.v3 where schema.v1 was due; this version of"),
        ("schema-noise", "kebab printed no JSON (<html>it works</html>) where schema.v1 was due"),
    ],
)
def test_what_it_cannot_open_is_told(binary: Path, fault: Fault, name: str, said: str) -> None:
    fault(name)
    with pytest.raises(BackendError) as told:
        opened(binary)
    assert str(told.value).startswith(said)


def test_a_binary_that_hangs_while_it_is_opened(binary: Path, fault: Fault) -> None:
    fault("schema-hang")
    with pytest.raises(BackendError, match="timeout: kebab schema was silent for too long"):
        opened(binary, execution={"timeout_s": 0.5})
    assert all_gone(starts(binary))


def test_a_binary_that_is_not_there_or_may_not_run(tmp_path: Path) -> None:
    with pytest.raises(BackendError) as told:
        opened("no-such-kebab-anywhere")
    assert str(told.value) == (
        "no-such-kebab-anywhere cannot be started (No such file or directory); set backend.binary "
        "to where kebab is"
    )
    (tmp_path / "kebab").write_text("x")
    with pytest.raises(BackendError, match=r"cannot be started \(Permission denied\); set backend"):
        opened(tmp_path / "kebab")
    with pytest.raises(UsageError, match=r"backend\.config: nowhere\.toml: No such file"):
        opened("kebab", backend={"config": Path("nowhere.toml")})


# --- searches ----------------------------------------------------------------------------------


def test_a_batch_with_its_trace(binary: Path) -> None:
    results = run_all(
        opened(binary), "pump pressure", "펌프 압력", "--k 9 -x\nvalve", "refuse this"
    )
    refused = "kebab: retrieval_error; refused [31m for good"  # no control character is left
    assert errors(results) == [None, None, None, refused]
    first = results[0].hits[0]
    assert (first.rank, first.doc_id, first.score_kind) == (1, "pumps.md", "bm25")
    assert first.channels == {"lexical_rank": 1, "lexical_score": first.score}
    assert results[0].latency_ms == 7.0  # the system's own: the call was four searches
    assert results[0].timings_ms == {"lexical": 2, "vector": 0, "fusion": 1, "total": 7}
    assert results[0].candidates == {
        "lexical": (Candidate(first.chunk_id, "pumps.md", first.score),)
    }
    assert results[1].hits[0].doc_id == "펌프.md"
    assert results[2].hits[0].doc_id == "valves.md"
    assert len(starts(binary, "search")) == 1


def test_hits_are_in_the_order_of_their_ranks(binary: Path) -> None:
    """The stand-in prints the last hit first."""
    (result,) = run_all(opened(binary), "sixty sundays pump valve")
    assert [hit.rank for hit in result.hits] == [1, 2]
    assert result.hits[0].score > result.hits[1].score


def test_a_single_query_is_an_argument_and_what_is_none_a_line(binary: Path) -> None:
    backend = opened(binary, backend={"lang": "en", "path_glob": "p*"})
    hostile = ["-x", "--bulk", "two\nlines", "nul\0in it", "\ud800 pump", "한" * 40_000]
    for query in ("pump 'n' $(valve)", *hostile):
        asyncio.run(backend.search(query, "id"))
    shown = [start[1:] for start in starts(binary, "search")]
    options = ["--mode", "lexical", "--k", "2", "--trace", "--snippet-chars", "4000"]
    filters = ["--lang", "en", "--path-glob", "p*"]
    assert shown == [
        ["search", "pump 'n' $(valve)", *options, *filters, "--json"],
        *[["search", "--bulk", "--json"]] * 4,
        ["search", "\ufffd pump", *options, *filters, "--json"],
        ["search", "--bulk", "--json"],
    ]


def test_a_blank_query_fails_alone(binary: Path) -> None:
    results = run_all(opened(binary), "pump", " ", "valve")
    assert errors(results) == [None, "kebab: invalid_input; query is empty", None]


def test_without_a_trace_the_wall_time_is_the_latency(binary: Path, fault: Fault) -> None:
    fault("untraced")
    backend = opened(binary)
    started = time.perf_counter()
    response = asyncio.run(backend.search("pump", "id"))
    wall_ms = (time.perf_counter() - started) * 1000
    assert response.latency_ms is not None
    assert wall_ms / 3 < response.latency_ms <= wall_ms
    assert (response.candidates, response.timings_ms) == ({}, {})


def test_what_is_printed_counts_whatever_the_exit_code(binary: Path, fault: Fault) -> None:
    fault("code")
    assert errors(run_all(opened(binary), "pump")) == [None]
    assert errors(run_all(opened(binary), "pump", "valve")) == [None, None]


def test_a_hundred_and_one_queries_are_two_calls(binary: Path) -> None:
    results = run_all(opened(binary), *["pump"] * 101)  # the stand-in refuses more than 100
    assert errors(results) == [None] * 101
    assert [start[2] for start in starts(binary, "search")] == ["--bulk", "pump"]


def test_a_hit_carries_its_whole_chunk_which_is_asked_for_once(binary: Path) -> None:
    backend = opened(binary, backend={"texts": "chunk"})
    results = run_all(backend, "pump", "pump bar", "spare pump")
    for result in results:
        assert result.hits[0].snippet.endswith("The spare stands in hall nine.")
        assert result.latency_ms == 7.0  # the texts are no part of it
    assert len(starts(binary, "inspect", "chunk")) == 1
    snippet = run_all(opened(binary), "pump")[0].hits[0].snippet
    assert "hall nine" not in snippet


def test_a_chunk_without_its_text_fails_the_query(binary: Path, fault: Fault) -> None:
    fault("no-chunk")
    results = run_all(opened(binary, backend={"texts": "chunk"}), "pump", "nothing-has-this")
    assert results[0].error is not None
    assert results[0].error.startswith("kebab: not_indexed; no chunk pumps.md")
    assert results[0].error.endswith("(the text of a hit; backend.texts: snippet does without)")
    assert results[1].error is None


def test_documents_may_be_named_by_kebabs_own_ids(binary: Path) -> None:
    backend = opened(binary, backend={"document_id": "id"})
    ids = backend.item_ids()
    assert ids is not None
    (result,) = run_all(backend, "pump")
    assert result.hits[0].doc_id in ids.docs
    assert len(result.hits[0].doc_id) == 32  # hex, as the stand-in makes them of the path
    assert result.candidates["lexical"][0].doc_id == result.hits[0].doc_id
    answer = asyncio.run(backend.answer("how many bar?", "id", ()))
    assert answer.citations == (Citation("", result.hits[0].doc_id, "[1]"),)


# --- misfortunes -------------------------------------------------------------------------------


def all_gone(started: list[list[Any]]) -> bool:
    """Say whether nothing of the process groups is left, not even a zombie."""
    assert started
    for process, *_ in started:
        for _ in range(100):  # a killed orphan is reaped by init, in its own time
            try:
                os.killpg(process, 0)
            except (ProcessLookupError, PermissionError):
                break
            time.sleep(0.02)
        else:
            return False
    return True


@pytest.mark.parametrize(
    ("name", "singly"),
    [
        ("crash:0", 3),
        ("crash:1", 2),
        ("half:1", 2),
        ("fatal:2", 1),
        ("skip:1", 1),
        ("backwards", 2),  # only the last one's answer comes in order
        ("noise", 0),
    ],
)
def test_what_a_broken_batch_left_is_asked_singly(
    binary: Path, fault: Fault, name: str, singly: int
) -> None:
    backend = opened(binary)
    fault(name)
    texts = ["pump", "valve", "압력"]
    results = run_all(backend, *texts)
    assert errors(results) == [None] * 3
    expected = ["pumps.md", "valves.md", "펌프.md"]
    assert [result.hits[0].doc_id for result in results] == expected  # nobody has another's
    asked = [start[2] for start in starts(binary, "search")]
    assert asked[0] == "--bulk"
    assert len(asked[1:]) == singly
    assert set(asked[1:]) <= set(texts)


def test_the_rest_of_a_broken_batch_may_be_asked_again(binary: Path, fault: Fault) -> None:
    backend = opened(binary)
    fault("crash:1")
    one, two = asyncio.run(backend.search_many([("a", "pump"), ("b", "valve")]))
    assert not isinstance(one, BackendError)
    assert isinstance(two, BackendError)
    assert two.retry
    said = "kebab search --bulk was ended by signal 6; 1 of 2 queries unanswered"
    assert str(two).startswith(said)


def test_a_batch_that_stalls_is_ended_with_its_children(binary: Path, fault: Fault) -> None:
    backend = opened(binary, execution={"timeout_s": 4.0})
    fault("stall:1")
    started = time.perf_counter()
    one, two = asyncio.run(backend.search_many([("a", "pump"), ("b", "valve")]))
    assert time.perf_counter() - started < 20  # the stand-in would sleep for 60 s
    assert not isinstance(one, BackendError)
    assert isinstance(two, BackendError)
    assert two.retry
    assert str(two).startswith("timeout: kebab search --bulk was silent for too long")
    assert all_gone(starts(binary, "search"))


def test_a_search_that_hangs_is_ended_with_its_children(binary: Path, fault: Fault) -> None:
    backend = opened(binary)
    fault("hang")
    assert errors(run_all(backend, "pump", timeout_s=0.5)) == ["timeout: no answer within 0.5 s"]
    assert all_gone(starts(binary, "search"))


def test_a_slow_start_is_no_failure(binary: Path, fault: Fault) -> None:
    backend = opened(binary, execution={"timeout_s": 20.0})
    fault("slow:1")
    assert errors(run_all(backend, "pump", "valve")) == [None, None]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("major", "kebab speaks search_response.v2 where search_response.v1 was due"),
        ("truncated", "kebab cut its answer short: 1 of 2 hits (truncated)"),
        ("dies", "kebab search was ended by signal 6"),
        ("plain", "kebab search ended with exit code 101; at a loss"),
    ],
)
def test_what_fails_for_good_tells_its_cause(
    binary: Path, fault: Fault, name: str, said: str
) -> None:
    backend = opened(binary)
    fault(name)
    for texts in (["pump"], ["pump", "pump"]):
        for result in run_all(backend, *texts):
            assert result.error is not None
            assert result.error.startswith(said)


def test_items_of_another_major_are_refused(binary: Path, fault: Fault) -> None:
    backend = opened(binary)
    fault("item-major:1")
    with pytest.raises(BackendError, match=r"speaks bulk_search_item\.v2 where"):
        asyncio.run(backend.search_many([("a", "pump"), ("b", "valve")]))


def test_a_secret_of_the_environment_is_not_repeated(
    binary: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opened(binary)
    for name in list(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("A_TOKEN", "tok-PLANTED-1f7c9a")  # the first, so that it is not cut off
    fault("gossip")
    (result,) = run_all(backend, "pump")
    assert result.error is not None
    assert result.error.startswith("kebab: generic; asked by")
    assert "'A_TOKEN': '${env:A_TOKEN}'" in result.error
    assert "PLANTED" not in result.error


# --- answers -----------------------------------------------------------------------------------


def test_answers(binary: Path, fault: Fault) -> None:
    backend = opened(binary)

    def ask(query: str) -> Answer:
        return asyncio.run(backend.answer(query, "id", ()))

    answer = ask("how many bar?")
    assert (answer.text, answer.grounded, answer.refused) == ("Sixty bar [1].", True, False)
    assert answer.citations == (Citation("", "pumps.md", "[1]"),)
    assert (answer.model, answer.prompt_version) == ("gemma", "rag-v4")
    assert answer.tokens == {"prompt": 11, "completion": 4}
    refusal = ask("-the unknowable")  # the stand-in ends a refusal with exit code 1
    assert (refusal.refused, refusal.refusal_reason, refusal.grounded) == (
        True,
        "score_gate",
        False,
    )
    settings = ["--k", "2", "--mode", "lexical", "--temperature", "0", "--seed", "0", "--json"]
    assert [start[2:] for start in starts(binary, "ask")] == [
        ["how many bar?", *settings],
        [" -the unknowable", *settings],
    ]
    with pytest.raises(BackendError, match="too long for a command line"):
        ask("x" * 200_000)
    fault("no-model")
    with pytest.raises(BackendError, match="kebab: model_not_pulled; gemma is missing; ollama pu"):
        ask("how many bar?")


# --- the whole program -------------------------------------------------------------------------


def test_a_run_of_the_config_in_the_repository(
    binary: Path, program: Program, tmp_path: Path
) -> None:
    done = program(
        *["run", "--config", str(ROOT / "configs" / "kebab.yaml"), "--limit", "3", "--json"],
        *["-S", f"backend.binary={binary}", "-S", "backend.texts=snippet", "--mode", "lexical"],
        *["-S", "answer.type=system"],
        env={"KEBAB_STAND_IN_CORPUS": str(ROOT / "fixtures" / "corpus")},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["aggregate"]["failed_queries"] == 0
    record = tmp_path / told["record_dir"]
    assert json.loads((record / "run.json").read_text())["system"]["kebab_version"] == "0.32.0"
    results = recorded(record)
    assert [result["answer"]["text"] for result in results] == ["Sixty bar [1]."] * 3
    assert {result["latency_ms"] for result in results} == {7.0}
    candidates = (record / "candidates.jsonl").read_text(encoding="utf-8")
    assert len(candidates.splitlines()) == 3
    # The stand-in searches with the embedded engine: the way through the wire changes nothing.
    done = program(
        *["run", "--config", str(ROOT / "configs" / "base.yaml"), "--limit", "3", "--json"],
        *["--mode", "lexical"],
    )
    embedded = recorded(tmp_path / json.loads(done.stdout)["record_dir"])
    for ours, theirs in zip(embedded, results, strict=True):
        kept = ("rank", "chunk_id", "doc_id", "score", "score_kind", "channels")
        assert [[hit[name] for name in kept] for hit in theirs["hits"]] == [
            [hit[name] for name in kept] for hit in ours["hits"]
        ]


def recorded(record: Path) -> list[Any]:
    lines = (record / "per_query.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_spans_are_resolved_from_the_hits_whole_chunks(
    binary: Path, program: Program, tmp_path: Path
) -> None:
    quote = "The spare stands in hall nine."  # at the chunk's end, which no snippet shows
    (tmp_path / "golden.yaml").write_text(
        "- {id: q1, query: pump, expected_doc_ids: [pumps.md], "
        f'expected_spans: [{{doc: pumps.md, quote: "{quote}"}}]}}\n'
    )
    (tmp_path / "c.yaml").write_text(
        f"golden: golden.yaml\nbackend: {{type: kebab, binary: {binary}}}\n"
        "search: {mode: lexical, k: 2}\nexecution: {warmup: 0}\n"
    )

    def hit_of_a_chunk(*more: str) -> float:
        done = program("run", "--config", "c.yaml", "--json", *more)
        assert done.returncode == 0, done.stderr
        value: float = json.loads(done.stdout)["aggregate"]["metrics"]["hit_at_1_chunk"]["value"]
        return value

    assert hit_of_a_chunk() == 1.0
    assert hit_of_a_chunk("-S", "backend.texts=snippet") == 0.0


def test_a_document_that_the_index_lacks_stops_the_run_before_it_begins(
    binary: Path, program: Program, tmp_path: Path
) -> None:
    (tmp_path / "golden.yaml").write_text(
        "- {id: q1, query: pump, expected_doc_ids: [pump.md], expected_chunk_ids: [unknown]}\n"
    )
    (tmp_path / "c.yaml").write_text(
        f"golden: golden.yaml\nbackend: {{type: kebab, binary: {binary}}}\n"
    )
    done = program("run", "--config", "c.yaml")
    assert done.returncode == 2
    assert "golden.yaml:1:" in done.stderr
    assert "document 'pump.md' is not in the corpus (did you mean 'pumps.md'?)" in done.stderr
    assert not starts(binary, "search")
    assert not (tmp_path / "mlruns").exists()
