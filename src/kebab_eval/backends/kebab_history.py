"""kebab's own eval history: its SQLite database, and the per_query.jsonl of one of its runs.

The database is opened read only. Every fault of a source is told at once, with its place.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kebab_eval.backends.kebab_wire import Naming, read_answer, read_hit
from kebab_eval.errors import BackendError, Fault, FormatError
from kebab_eval.records import Answer, QueryResult

# What reading JSON of any shape can raise: wrong types, wrong values, missing keys, too deep.
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
_TABLES = {
    "eval_runs": {"run_id", "suite", "config_snapshot_json", "aggregate_json", "created_at"},
    "eval_query_results": {"run_id", "query_id", "result_json"},
}


@dataclass(frozen=True, slots=True)
class PastRun:
    """One evaluation of long ago.

    Attributes:
        past_id: what it was called there.
        source: the file that it stands in.
        started: when it was run.
        snapshot: its config, as it was written down; empty where nobody did.
        stored: its aggregate, as it was written down.
    """

    past_id: str
    name: str
    source: Path
    started: datetime
    results: tuple[QueryResult, ...]
    commit: str = ""
    snapshot: Mapping[str, Any] = field(default_factory=dict)
    stored: Mapping[str, Any] = field(default_factory=dict)


def read_database(path: Path, naming: Naming) -> list[PastRun]:
    """Return the runs of kebab's SQLite history, the oldest first.

    Raises:
        FormatError: it is no such database, is locked, or a run in it is damaged: all of them.
    """
    if not path.is_file():
        raise FormatError(Fault(str(path), "there is no such file"))
    faults: list[Fault] = []
    runs = []
    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as database:
            _check_tables(database, path)
            columns = "run_id, suite, config_snapshot_json, aggregate_json, created_at"
            commits = _commits(database)
            for row in database.execute(f"SELECT {columns} FROM eval_runs"):  # noqa: S608  # ours
                found = _database_run(database, row, path, naming, faults)
                if found is not None:
                    runs.append(replace(found, commit=commits.get(found.past_id, "")))
    except sqlite3.Error as reason:
        raise FormatError(Fault(str(path), f"cannot be read as a database ({reason})")) from None
    if faults:
        raise FormatError(faults)
    return sorted(runs, key=lambda run: (run.started, run.past_id))


def _check_tables(database: sqlite3.Connection, path: Path) -> None:
    faults = []
    for table, needed in _TABLES.items():
        found = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        if not found:
            faults.append(Fault(str(path), f"has no table {table}: it is no history of kebab"))
        elif missing := sorted(needed - found):
            faults.append(Fault(f"{path}: {table}", f"has no column {', '.join(missing)}"))
    if faults:
        raise FormatError(faults)


def _commits(database: sqlite3.Connection) -> dict[str, str]:
    """Return run id -> commit, where the column is there: it is not needed."""
    try:
        rows = database.execute("SELECT run_id, commit_hash FROM eval_runs").fetchall()
    except sqlite3.Error:
        return {}
    return {str(run_id): str(commit) for run_id, commit in rows if commit}


def _database_run(
    database: sqlite3.Connection,
    row: tuple[Any, ...],
    path: Path,
    naming: Naming,
    faults: list[Fault],
) -> PastRun | None:
    """Return a run; what is wrong with it is added to ``faults``, and it is None."""
    past_id, suite, snapshot, aggregate, created_at = row
    place = f"{path}: run {past_id}"
    before = len(faults)
    parsed: dict[str, dict[str, Any]] = {}
    for name, text in (("config_snapshot_json", snapshot), ("aggregate_json", aggregate)):
        try:
            parsed[name] = dict(json.loads(text)) if text else {}
        except _DAMAGE as reason:
            faults.append(Fault(place, f"{name} is no JSON object ({_said(reason)})"))
    started = datetime.now(UTC)
    try:
        started = moment(created_at)
    except _DAMAGE:
        faults.append(Fault(place, f"created_at is no time: {created_at!r:.40}"))
    results = []
    asked = (
        "SELECT query_id, result_json FROM eval_query_results WHERE run_id = ? ORDER BY query_id"
    )
    for query_id, text in database.execute(asked, (past_id,)):
        try:
            results.append(read_result(json.loads(text), naming))
        except (*_DAMAGE, BackendError) as reason:
            faults.append(Fault(f"{place}, query {query_id}", f"is damaged ({_said(reason)})"))
    if len(faults) == before and not results:
        faults.append(Fault(place, "has no query results"))
    if len(faults) > before:
        return None
    return PastRun(
        past_id=str(past_id),
        name=f"{suite or 'kebab'} {past_id}",
        source=path,
        started=started,
        results=tuple(results),
        snapshot=parsed["config_snapshot_json"],
        stored=parsed["aggregate_json"],
    )


def read_jsonl(path: Path, naming: Naming) -> PastRun:
    """Return the run of a per_query.jsonl; its folder names it, its file says when.

    Raises:
        FormatError: it cannot be read, or lines of it are damaged: all of them.
    """
    try:
        lines = path.read_bytes().split(b"\n")
        at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as reason:
        raise FormatError(Fault(str(path), f"cannot be read ({reason.strerror})")) from None
    faults: list[Fault] = []
    results: dict[str, QueryResult] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            result = read_result(json.loads(line), naming)
        except (*_DAMAGE, BackendError) as reason:
            faults.append(Fault(f"{path}:{number}", f"is no query result ({_said(reason)})"))
            continue
        if result.query_id in results:
            faults.append(Fault(f"{path}:{number}", f"query {result.query_id} stands here again"))
        results[result.query_id] = result
    if not faults and not results:
        faults.append(Fault(str(path), "holds no query result"))
    if faults:
        raise FormatError(faults)
    past_id = path.resolve().parent.name if path.name == "per_query.jsonl" else path.stem
    return PastRun(past_id, f"kebab {past_id}", path, at, tuple(results.values()))


def read_result(data: Mapping[str, Any], naming: Naming) -> QueryResult:
    """Return a QueryResult of kebab's record; its hits stand in the order of their ranks.

    Raises:
        BackendError, or what damaged JSON raises.
    """
    hits = [read_hit(one, naming) for one in map(_whole, data["hits_top_k"])]
    hits.sort(key=lambda hit: hit.rank)
    elapsed = data.get("elapsed_ms")
    error = data.get("error")
    return QueryResult(
        query_id=str(data["query_id"]),
        query=str(data["query"]),
        mode=str(data["mode"]),
        hits=tuple(hits),
        latency_ms=None if elapsed is None or error is not None else float(elapsed),
        error=None if error is None else _error(error),
        answer=_answer(data.get("answer")),
    )


def _whole(hit: Any) -> dict[str, Any]:
    """Return a hit with what its record leaves out: the schema, and the score."""
    found = dict(hit)
    retrieval = dict(found.get("retrieval") or {})
    score = retrieval.get("fusion_score")
    found.setdefault("score", 1 / float(found["rank"]) if score is None else score)
    return {"schema_version": "search_hit.v1", **found}


def _error(error: Any) -> str:
    said = error.get("message") or error.get("code") if isinstance(error, Mapping) else error
    return " ".join(str(said).split())[:500] or "failed"


def _answer(data: Any) -> Answer | None:
    return None if data is None else read_answer(dict(data))


def moment(value: Any) -> datetime:
    """Return a time that is written as RFC 3339, as SQLite does, or as seconds since 1970.

    Raises:
        ValueError, OverflowError: it is none.
    """
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000 if value > 10**11 else value, UTC)
    found = datetime.fromisoformat(str(value).strip())
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _said(reason: Exception) -> str:
    return " ".join(f"{type(reason).__name__}: {reason}".split())[:200]


def snapshot_params(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the standard names of a config snapshot, with their values."""
    embedding, llm = (dict(snapshot.get(name) or {}) for name in ("embedding", "llm"))
    for name in ("chunker_version", "prompt_template_version", "rrf_k", "score_gate"):
        if name in snapshot:
            yield name, snapshot[name]
    if "index_version" in snapshot:
        yield "index_version", snapshot["index_version"]
    for name in ("model", "version", "dimensions", "provider"):
        if name in embedding:
            yield f"embedding_{name}", embedding[name]
    for name, ours in (("model_id", "llm_model"), ("provider", "llm_provider")):
        if name in llm:
            yield ours, llm[name]
