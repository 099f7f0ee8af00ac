"""Evaluations of long ago as records and MLflow runs of today: kebab's history, TREC runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kebab_eval.backends.kebab_history import (
    PastRun,
    read_database,
    read_jsonl,
    snapshot_params,
)
from kebab_eval.backends.kebab_wire import Naming
from kebab_eval.backends.replay import read_trec_run
from kebab_eval.config import Config
from kebab_eval.config_file import portable_path
from kebab_eval.errors import Fault, FormatError, InputError, TrackerError
from kebab_eval.formats.files import read_judgments
from kebab_eval.golden import load_golden, select
from kebab_eval.golden.load import digest
from kebab_eval.metrics import primary_for
from kebab_eval.records import LEVELS, EvalRun, GoldenQuery, GoldenSet, Judgments, QueryResult
from kebab_eval.tracking import spool
from kebab_eval.workflows.evaluate import golden_lines, write_judged
from kebab_eval.workflows.judging import judge
from kebab_eval.workflows.provenance import versions
from kebab_eval.workflows.upload import upload

Progress = Callable[[str, int, int], None]
TOLERANCE = 1e-4
"""kebab rounds to four decimals and writes f32."""

_BY_CUTOFF = ("hit_at_k", "recall_at_k_doc", "precision_at_k_chunk")
_SINGLE = (
    "mrr",
    "citation_coverage",
    "groundedness",
    "empty_result_rate",
    "refusal_correctness",
)


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What the user asked for.

    Args:
        golden: what the runs are judged by anew; None takes the numbers that were stored.
        naming: what kebab's hits name documents by.
    """

    kind: str
    sources: tuple[Path, ...]
    golden: Path | None = None
    qrels: Path | None = None
    naming: Naming = "path"
    experiment: str | None = None
    tracking_uri: str | None = None
    track: bool = True
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one run: ``made``, ``already there``, or ``would be made``.

    ``differences`` are stored metrics that are not what the hits give, with both values.
    """

    name: str
    past_id: str
    started: str
    queries: int
    state: str
    folder: Path | None = None
    mlflow_run_id: str | None = None
    differences: tuple[str, ...] = field(default=())


def import_runs(asked: ImportRequest, progress: Progress) -> list[Imported]:
    """Import every run of the sources, the oldest first; what is there already is left as it is.

    Raises:
        InputError: a source or the golden set is wrong; nothing was imported.
        RecordError: a record could not be written; what was imported stays.
        TrackerError: MLflow failed; the records are there, and another import sends them.
    """
    past, golden = _read(asked)
    made = [_run(one, golden, asked) for one in past]
    there = {key: info for info in spool.list_records() if (key := _key_of(info))}
    done: list[Imported] = []
    for number, (one, run) in enumerate(zip(past, made, strict=True)):
        progress("runs", number, len(made))
        known = there.get(run.info["imported"]["key"])
        differences = () if golden is None else tuple(_differences(run.aggregate, one.stored))
        told = Imported(
            name=run.name,
            past_id=one.past_id,
            started=str(run.info["created_at"]),
            queries=len(run.results),
            state="already there" if known else "would be made" if asked.dry_run else "made",
            differences=differences,
        )
        if asked.dry_run:
            done.append(told)
            continue
        folder = Path(known["folder"]) if known else _written(run)
        mlflow = (known or {}).get("mlflow")
        run_id = mlflow.get("run_id") if isinstance(mlflow, Mapping) else None
        if asked.track and run_id is None:
            run_id = _uploaded(folder, asked, progress)
        done.append(replace(told, folder=folder, mlflow_run_id=run_id))
    progress("runs", len(made), len(made))
    return done


def _key_of(info: Mapping[str, Any]) -> str | None:
    imported = info.get("imported")
    return imported.get("key") if isinstance(imported, Mapping) else None


# --- reading ----------------------------------------------------------------------------------


def _read(asked: ImportRequest) -> tuple[list[PastRun], GoldenSet | None]:
    """Return the runs of all sources, and the golden set, which holds every one of their queries.

    Raises:
        FormatError, GoldenError: with every fault of every file.
    """
    faults: list[Fault] = []
    past: list[PastRun] = []
    golden: GoldenSet | None = None
    for source in asked.sources:
        try:
            past += _source(source, asked)
        except InputError as wrong:
            faults += wrong.faults
    try:
        golden = _golden(asked)
    except InputError as wrong:
        faults += wrong.faults
    if golden is not None and asked.kind != "trec":
        held = {query.query_id for query in golden.queries}
        for one in past:
            missing = sorted({result.query_id for result in one.results} - held)
            if missing:
                shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
                message = f"{len(missing)} queries of run {one.past_id} are not in it: {shown}"
                faults.append(Fault(str(asked.golden), message))
    if faults:
        raise FormatError(faults)
    return sorted(past, key=lambda one: (one.started, one.name, one.past_id)), golden


def _source(source: Path, asked: ImportRequest) -> list[PastRun]:
    if asked.kind == "kebab-db":
        return read_database(source, asked.naming)
    if asked.kind == "kebab-jsonl":
        return [read_jsonl(source, asked.naming)]
    results = read_trec_run(source)
    if not results:
        raise FormatError(Fault(str(source), "holds no ranking"))
    at = datetime.fromtimestamp(source.stat().st_mtime, UTC)
    return [PastRun(source.stem, source.stem, source, at, tuple(results.values()))]


def _golden(asked: ImportRequest) -> GoldenSet | None:
    if asked.qrels is not None:
        queries = tuple(
            GoldenQuery(query_id, query_id, Judgments(doc=dict(grades)))
            for query_id, grades in read_judgments(asked.qrels).items()
        )
        path = portable_path(asked.qrels)
        return GoldenSet(asked.qrels.stem, "1", digest(queries), queries, path=path, format="trec")
    return None if asked.golden is None else load_golden(asked.golden, None, LEVELS).golden


# --- one run ----------------------------------------------------------------------------------


def _run(one: PastRun, golden: GoldenSet | None, asked: ImportRequest) -> EvalRun:
    """Return a past run as one of today: judged anew, or with the numbers that were stored."""
    known = _judged_by(one, golden)
    config = _config(one, known, asked, judged=golden is not None)
    results = {result.query_id: result for result in one.results}
    answered = [results[q.query_id] for q in known.queries if q.query_id in results]
    # A query of the qrels that the run leaves out was asked, and found nothing.
    answered += [
        QueryResult(query.query_id, query.query, "recorded")
        for query in known.queries
        if query.query_id not in results
    ]
    judged, aggregate = judge(known, answered, config)
    if golden is None:
        aggregate = _as_stored(aggregate, one.stored)
    started = one.started.astimezone(UTC).isoformat(timespec="milliseconds")
    spent = sum(result.latency_ms or 0.0 for result in judged) / 1000
    info = {
        "id": "",
        "name": one.name,
        "created_at": started.replace("+00:00", "Z"),
        "status": "FINISHED" if not aggregate["failed_queries"] else "FAILED",
        "duration_s": round(spent, 3),
        "golden": {
            "name": known.name,
            "version": known.version,
            "digest": known.digest,
            "path": known.path,
            "queries": len(known.queries),
            "format": known.format,
            "min_relevance": known.min_relevance,
        },
        "lever": None,
        "system": dict(snapshot_params(one.snapshot)),
        "git": {"commit": one.commit, "branch": None, "dirty": False} if one.commit else {},
        "versions": versions(),
        "command": "",
        "tags": {"kebab_eval.imported": asked.kind, "kebab_eval.imported_id": one.past_id},
        "imported": {
            "kind": asked.kind,
            "source": portable_path(one.source),
            "id": one.past_id,
            "key": _key(one, known, asked.kind),
        },
        "tracking": None,
    }
    return EvalRun(info, config, known, judged, aggregate)


def _judged_by(one: PastRun, golden: GoldenSet | None) -> GoldenSet:
    """Return the part of the golden set that was asked; without one its queries, unjudged."""
    ids = [result.query_id for result in one.results]
    if golden is None:
        queries = tuple(GoldenQuery(result.query_id, result.query) for result in one.results)
        return GoldenSet("unknown", "1", digest(queries), queries)
    if golden.format == "trec":
        return golden
    asked = set(ids)
    order = tuple(query.query_id for query in golden.queries if query.query_id in asked)
    return select(golden, None, order)


def _config(
    one: PastRun, golden: GoldenSet, asked: ImportRequest, *, judged: bool
) -> dict[str, Any]:
    """Return the config of the record: a replay, of the k and the mode of the run."""
    modes = {result.mode for result in one.results} & {"lexical", "vector", "hybrid"}
    depth = max((len(result.hits) for result in one.results), default=1)
    # How deep a TREC run was asked to go is not told; one depth for all keeps them comparable.
    k = 1000 if asked.kind == "trec" else one.snapshot.get("eval_k")
    by_chunk = not judged or any(query.judgments.chunk for query in golden.queries)
    primary = "mrr_at_10_chunk" if not judged else "ndcg_at_10_doc"
    if judged and by_chunk and not any(query.judgments.doc for query in golden.queries):
        primary = "ndcg_at_10_chunk"
    config = Config.model_validate(
        {
            "name": one.name[:200],
            "experiment": asked.experiment or f"{asked.kind} history",
            "golden": {"path": Path(golden.path or "unknown")},
            "backend": {"type": "replay", "source": one.source},
            "search": {
                "mode": modes.pop() if len(modes) == 1 else "hybrid",
                "k": k if isinstance(k, int) and 1 <= k <= 1000 else min(1000, max(1, depth)),
            },
            "metrics": {"primary": primary_for(golden, primary)},
            "tracking": {"traces": "none"},
        }
    )
    snapshot = config.model_dump(mode="json")
    snapshot["backend"]["source"] = portable_path(one.source)
    return snapshot


def _key(one: PastRun, golden: GoldenSet, kind: str) -> str:
    """Return a digest of what is imported: the run, its hits, and what they are judged by."""
    said = json.dumps(
        [kind, one.past_id, golden.digest, [result.to_json() for result in one.results]],
        sort_keys=True,
    )
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _as_stored(aggregate: dict[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the aggregate with the stored numbers where nothing could be computed.

    What an old record does not have stays empty: it is not 0.
    """
    metrics = dict(aggregate["metrics"])
    total = aggregate["total_queries"]
    families = {"hit_at_k": "hit", "recall_at_k_doc": "recall", "precision_at_k_chunk": "precision"}
    for name, family in families.items():
        level = "doc" if name.endswith("_doc") else "chunk"
        for k, value in _by_cutoff(stored.get(name)).items():
            metrics[f"{family}_at_{k}_{level}"] = {"value": value, "n": total, "ci95": None}
    if (mrr := _number(stored.get("mrr"))) is not None:
        metrics["mrr_at_10_chunk"] = {"value": mrr, "n": total, "ci95": None}
    legacy = {name: stored[name] for name in (*_BY_CUTOFF, *_SINGLE) if name in stored}
    return {**aggregate, **legacy, "metrics": metrics}


def _differences(aggregate: Mapping[str, Any], stored: Mapping[str, Any]) -> list[str]:
    """Return where the stored numbers are not those that the hits and the golden set give."""
    pairs: list[tuple[str, float | None, float | None]] = []
    for name in _BY_CUTOFF:
        now = _by_cutoff(aggregate.get(name))
        pairs += [
            (f"{name}[{k}]", value, now.get(k)) for k, value in _by_cutoff(stored.get(name)).items()
        ]
    for name in ("mrr", "empty_result_rate"):
        pairs.append((name, _number(stored.get(name)), _number(aggregate.get(name))))
    return [
        f"{name}: stored {old:.4f}, computed {'nothing' if new is None else f'{new:.4f}'}"
        for name, old, new in pairs
        if old is not None and (new is None or abs(old - new) > TOLERANCE)
    ]


def _by_cutoff(values: Any) -> dict[str, float]:
    if not isinstance(values, Mapping):
        return {}
    found = {str(k): _number(value) for k, value in values.items() if str(k).isdecimal()}
    return {k: value for k, value in found.items() if value is not None}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


# --- keeping it -------------------------------------------------------------------------------


def _written(run: EvalRun) -> Path:
    """Write the record of a run whole, under the time when it was run."""
    import yaml

    text = yaml.safe_dump(dict(run.config), sort_keys=False, allow_unicode=True, width=100)
    files = {
        "config.yaml": text,
        spool.CONFIG_FILE: spool.dump_json(run.config),
        spool.GOLDEN_FILE: golden_lines(run.golden),
    }
    info = {key: value for key, value in run.info.items() if key not in ("id", "status")}
    at = datetime.fromisoformat(str(run.info["created_at"]))
    writer = spool.RecordWriter.create(spool.SPOOL, run.name, info, files, at)
    status = run.info["status"]
    write_judged(replace(run, info={**writer.info, "status": status}), writer)
    return writer.folder


def _uploaded(folder: Path, asked: ImportRequest, progress: Progress) -> str | None:
    try:
        outcome = upload(str(folder), progress, tracking_uri=asked.tracking_uri)
    except TrackerError as failure:
        message = f"{failure}\nwhat was imported is kept; the same import again sends the rest"
        raise TrackerError(message) from failure
    return None if outcome.tracked is None else outcome.tracked.run_id
