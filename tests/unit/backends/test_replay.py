"""What was recorded, asked again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend, SearchResponse
from kebab_eval.config import Config
from kebab_eval.errors import BackendError, FormatError, UsageError
from kebab_eval.records import Candidate, Hit, QueryResult

HITS = (Hit(1, "d#1", "d", 0.5, "rrf", "text"), Hit(2, "e#1", "e", 0.25, "rrf"))
RESULT = QueryResult("q1", "text", "hybrid", HITS, 7.5, metrics={"map_doc": 1.0})
FAILED = QueryResult("q2", "text", "hybrid", error="timeout")


def opened(source: Path, k: int = 10) -> Backend:
    section = {"type": "replay", "source": source}
    data = {"name": "x", "golden": {"path": Path("g")}, "backend": section, "search": {"k": k}}
    return open_backend(Config.model_validate(data))


def ask(backend: Backend, query_id: str) -> SearchResponse:
    return asyncio.run(backend.search("anything", query_id))


def lines(folder: Path) -> Path:
    path = folder / "per_query.jsonl"
    path.write_text("".join(json.dumps(r.to_json()) + "\n" for r in (RESULT, FAILED)))
    return path


def test_a_record(tmp_path: Path) -> None:
    lines(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"system": {"chunker_version": "v9"}}))
    row = {"query_id": "q1", "channels": {"lexical": [["d#1", "d", 3.5]]}}
    (tmp_path / "candidates.jsonl").write_text(json.dumps(row) + "\n")
    backend = opened(tmp_path)
    assert backend.describe().snapshot == {"chunker_version": "v9"}
    response = ask(backend, "q1")
    assert (response.hits, response.latency_ms) == (HITS, 7.5)
    assert response.candidates == {"lexical": (Candidate("d#1", "d", 3.5),)}


def test_its_lines_alone(tmp_path: Path) -> None:
    backend = opened(lines(tmp_path), k=1)
    assert ask(backend, "q1").hits == HITS[:1]
    with pytest.raises(BackendError, match="recorded: timeout"):
        ask(backend, "q2")
    with pytest.raises(BackendError, match="does not hold this query"):
        ask(backend, "q3")


def test_a_trec_run_is_ordered_as_trec_eval_does(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("q1 Q0 a 1 0.5 t\nq1 Q0 c 9 2 t\nq1 Q0 b 2 2 t\n")
    hits = ask(opened(path), "q1").hits
    # By score, then by id downwards; the rank column is not read.
    assert [(hit.rank, hit.doc_id, hit.score) for hit in hits] == [
        (1, "c", 2.0), (2, "b", 2.0), (3, "a", 0.5)
    ]  # fmt: skip


def test_what_is_no_recording_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        opened(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"per_query\.jsonl: cannot be read"):
        opened(tmp_path)
    path = lines(tmp_path)
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(UsageError, match=r"per_query\.jsonl:3: not a query result"):
        opened(path)
    (tmp_path / "b.json").write_text("[]")
    with pytest.raises(UsageError, match="not a frozen baseline"):
        opened(tmp_path / "b.json")
    (tmp_path / "bad.run").write_text("q1 Q0 a\n")
    with pytest.raises(FormatError):
        opened(tmp_path / "bad.run")
