"""Answers kept on disk: the same query to the same system under the same config is asked once.

For going over a set again while its judgments are worked on. An answer from here has no latency.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kebab_eval.backends.base import Backend, ItemIds, Progress, SearchResponse, SystemInfo
from kebab_eval.errors import BackendError
from kebab_eval.levers import flatten
from kebab_eval.records import Answer, Candidate, Hit, Listing
from kebab_eval.redaction import redact

_SCHEMA = "kebab_eval.cached_response.v1"
# What reading JSON of any shape can raise: wrong types, wrong values, missing keys, too deep.
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, OSError)


class CachedBackend:
    """A system before which a folder of its answers stands. Failures are never kept.

    Args:
        config: the recorded config: every lever of it is part of a key, and no secret is in it.
    """

    def __init__(self, backend: Backend, folder: Path, config: Mapping[str, Any]) -> None:
        self._backend = backend
        self._folder = folder
        info = backend.describe()
        said = [_SCHEMA, info.name, dict(info.snapshot), dict(flatten(config))]
        self._system = json.dumps(said, sort_keys=True, default=str)

    def describe(self) -> SystemInfo:
        # Batches would be asked for again because of one query in them that is not kept.
        return replace(self._backend.describe(), batch_size=1)

    def prepare(self, progress: Progress | None = None) -> None:
        self._backend.prepare(progress)

    async def search(self, query: str, query_id: str) -> SearchResponse:
        key = hashlib.sha256(f"{self._system}\n{query_id}\n{query}".encode("utf-8", "replace"))
        path = self._folder / key.hexdigest()[:2] / f"{key.hexdigest()}.json"
        kept = _read(path)
        if kept is not None:
            return kept
        response = await self._backend.search(query, query_id)
        _write(path, response)
        return response

    async def search_many(
        self, queries: Sequence[tuple[str, str]]
    ) -> Sequence[SearchResponse | BackendError]:
        return await self._backend.search_many(queries)

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        return await self._backend.answer(query, query_id, hits)

    def item_ids(self) -> ItemIds | None:
        return self._backend.item_ids()

    def list_chunks(self) -> Listing | None:
        return self._backend.list_chunks()

    async def close(self) -> None:
        await self._backend.close()


def _read(path: Path) -> SearchResponse | None:
    """Return a kept answer, marked as not timed; None when there is none that can be read."""
    try:
        data = json.loads(path.read_bytes())
        if data["schema_version"] != _SCHEMA:
            return None
        candidates = {
            str(name): tuple(Candidate(str(c), str(d), float(s)) for c, d, s in ranking)
            for name, ranking in data["candidates"].items()
        }
        hits = tuple(Hit.from_json(hit) for hit in data["hits"])
    except _DAMAGE:
        return None
    return SearchResponse(hits, candidates=candidates, timed=False)


def _write(path: Path, response: SearchResponse) -> None:
    data = {
        "schema_version": _SCHEMA,
        "hits": [hit.to_json() for hit in response.hits],
        "candidates": {
            name: [[one.chunk_id, one.doc_id, one.score] for one in ranking]
            for name, ranking in response.candidates.items()
        },
    }
    temporary = path.with_suffix(".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = redact(json.dumps(data, ensure_ascii=False))
        temporary.write_bytes(text.encode("utf-8", "backslashreplace"))
        temporary.replace(path)
    except OSError as reason:
        raise BackendError(f"the cache {path.parent} cannot be written: {reason}") from reason
