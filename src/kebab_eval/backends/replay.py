"""The backend ``replay``: what was recorded, asked again without a system.

A record of this project, its per_query.jsonl, a frozen baseline, or a TREC run file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from kebab_eval import config as config_models
from kebab_eval.backends.base import SearchResponse, SingleSearch, SystemInfo
from kebab_eval.baseline import thaw
from kebab_eval.config import Config
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.formats.files import read_rankings
from kebab_eval.records import Candidate, Hit, QueryResult

# What reading JSON of any shape can raise: wrong types, wrong values, missing keys, too deep.
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


class ReplayBackend(SingleSearch):
    """Answers by query id from a recording; a query that it does not hold is a failed one.

    A recorded failure fails again, with its cause. Latency is the recorded one.
    """

    def __init__(
        self, results: Mapping[str, QueryResult], snapshot: Mapping[str, Any], k: int
    ) -> None:
        self._results = results
        self._k = k
        self._info = SystemInfo("replay", "recorded", snapshot)

    def describe(self) -> SystemInfo:
        return self._info

    async def search(self, query: str, query_id: str) -> SearchResponse:
        result = self._results.get(query_id)
        if result is None:
            raise BackendError("the recording does not hold this query")
        if result.error is not None:
            raise BackendError(f"recorded: {result.error}")
        return SearchResponse(
            result.hits[: self._k],
            result.timings_ms,
            result.candidates,
            latency_ms=result.latency_ms,
        )


def open_replay(config: Config) -> ReplayBackend:
    """Read a recording.

    Raises:
        UsageError: it is not there, or damaged.
        FormatError: a TREC file is malformed.
    """
    section = cast("config_models.ReplayBackend", config.backend)
    source = section.source
    if not source.exists():
        raise UsageError(f"backend.source: {source} does not exist")
    snapshot: dict[str, Any] = {}
    if source.is_dir():
        results = _lines(source / "per_query.jsonl")
        snapshot = _system(source / "run.json")
        results = _with_candidates(results, source / "candidates.jsonl")
    elif source.suffix == ".jsonl":
        results = _lines(source)
    elif source.suffix == ".json":
        results, snapshot = _frozen(source)
    else:
        results = read_trec_run(source)
    return ReplayBackend(results, {**snapshot, **section.versions}, config.search.k)


def _lines(path: Path) -> dict[str, QueryResult]:
    results = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        if line.strip():
            try:
                result = QueryResult.from_json(json.loads(line))
            except _DAMAGE as reason:
                said = " ".join(str(reason).split())[:200]
                raise UsageError(f"{path}:{number}: not a query result ({said})") from reason
            results[result.query_id] = replace(result, metrics={})
    return results


def _system(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(_text(path))["system"])
    except _DAMAGE as reason:
        raise UsageError(f"{path}: not the run.json of a record") from reason


def _frozen(path: Path) -> tuple[dict[str, QueryResult], dict[str, Any]]:
    try:
        _, run = thaw(json.loads(_text(path)))
        system = dict(run.info["system"])
    except _DAMAGE as reason:
        message = f"{path}: not a frozen baseline ('kebab-eval baseline freeze' writes such files)"
        raise UsageError(message) from reason
    return {result.query_id: replace(result, metrics={}) for result in run.results}, system


def _with_candidates(results: dict[str, QueryResult], path: Path) -> dict[str, QueryResult]:
    if not path.exists():
        return results
    for number, line in enumerate(_text(path).splitlines(), 1):
        try:
            data = json.loads(line)
            channels = {
                str(name): tuple(Candidate(str(c), str(d), float(s)) for c, d, s in ranking)
                for name, ranking in data["channels"].items()
            }
            query_id = str(data["query_id"])
        except _DAMAGE as reason:
            raise UsageError(f"{path}:{number}: not the candidates of a query") from reason
        if query_id in results:
            results[query_id] = replace(results[query_id], candidates=channels)
    return results


def read_trec_run(path: Path) -> dict[str, QueryResult]:
    """Return query id -> its result, best score first; of equal scores the last id comes first.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    results = {}
    for query_id, scores in read_rankings(path).items():
        ordered = sorted(scores, key=lambda item: (scores[item], item), reverse=True)
        hits = tuple(
            Hit(rank, item, item, scores[item], "trec") for rank, item in enumerate(ordered, 1)
        )
        results[query_id] = QueryResult(query_id, "", "recorded", hits)
    return results


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as reason:
        raise UsageError(f"{path}: cannot be read ({reason})") from reason
