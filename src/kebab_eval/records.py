"""What flows through an evaluation: golden queries in, hits and query results out.

Frozen dataclasses without I/O. ``to_json``/``from_json`` of :class:`QueryResult` are the wire form
``kebab_eval.query_result.v1`` (one line of ``per_query.jsonl``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Level = Literal["chunk", "doc"]
LEVELS: tuple[Level, ...] = ("chunk", "doc")
QUERY_RESULT_SCHEMA = "kebab_eval.query_result.v1"

_EMPTY: Mapping[str, Any] = MappingProxyType({})


def _empty() -> Mapping[str, Any]:
    # Python 3.11 takes the proxy for a mutable default, because it cannot be hashed there.
    return _EMPTY


@dataclass(frozen=True, slots=True)
class Judgments:
    """The grade of each judged item of one query, for each level.

    An item in neither mapping is *unjudged*, which is not the same as irrelevant. Grades are whole
    numbers as a rule; fractional gains are kept.
    """

    chunk: Mapping[str, float] = field(default_factory=_empty)
    doc: Mapping[str, float] = field(default_factory=_empty)

    def at(self, level: Level) -> Mapping[str, float]:
        return self.chunk if level == "chunk" else self.doc


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """One entry of a golden set.

    ``place`` is the ``file:line:column`` where it stands; it is no part of its meaning.
    ``tags`` holds every other field that a slice may be cut by.
    """

    query_id: str
    query: str
    judgments: Judgments = Judgments()
    language: str | None = None
    category: str | None = None
    difficulty: str | None = None
    group: str | None = None
    ocr_derived: bool | None = None
    failure_expected: bool = False
    must_contain: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=_empty)
    place: str = ""

    @property
    def should_refuse(self) -> bool:
        """No answer is the right answer: so declared, or nothing at all is expected."""
        nothing_expected = not (self.judgments.chunk or self.judgments.doc or self.must_contain)
        return self.failure_expected or nothing_expected

    def to_json(self) -> dict[str, Any]:
        """Return its meaning as plain data, every mapping and set in sorted order."""
        return {
            "query_id": self.query_id,
            "query": self.query,
            "judgments": {
                level: dict(sorted(self.judgments.at(level).items())) for level in LEVELS
            },
            "language": self.language,
            "category": self.category,
            "difficulty": self.difficulty,
            "group": self.group,
            "ocr_derived": self.ocr_derived,
            "failure_expected": self.failure_expected,
            "must_contain": sorted(self.must_contain),
            "forbidden": sorted(self.forbidden),
            "tags": dict(sorted(self.tags.items())),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GoldenQuery:
        judgments = data["judgments"]
        return cls(
            query_id=str(data["query_id"]),
            query=str(data["query"]),
            judgments=Judgments(**{level: dict(judgments[level]) for level in LEVELS}),
            language=data["language"],
            category=data["category"],
            difficulty=data["difficulty"],
            group=data["group"],
            ocr_derived=data["ocr_derived"],
            failure_expected=bool(data["failure_expected"]),
            must_contain=tuple(data["must_contain"]),
            forbidden=tuple(data["forbidden"]),
            tags=dict(data["tags"]),
        )


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """The evaluation set: its queries in file order, its name, version, and digest of its meaning.

    ``min_relevance`` is the grade from which an item is relevant for the binary metrics.
    """

    name: str
    version: str
    digest: str
    queries: tuple[GoldenQuery, ...]
    min_relevance: float = 1
    path: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """One returned item. ``rank`` starts at 1; ``score`` is the system's own number.

    ``channels`` holds what each retrieval channel said of the item (``lexical_rank``,
    ``lexical_score``, ``vector_rank``, …); a channel that did not return it has no key.
    """

    rank: int
    chunk_id: str
    doc_id: str
    score: float
    score_kind: str
    snippet: str = ""
    channels: Mapping[str, float] = field(default_factory=_empty)

    def to_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "chunk_id": self.chunk_id,
            "doc_id": self.doc_id,
            "score": self.score,
            "score_kind": self.score_kind,
            "snippet": self.snippet,
            "channels": dict(self.channels),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Hit:
        return cls(
            rank=int(data["rank"]),
            chunk_id=str(data["chunk_id"]),
            doc_id=str(data["doc_id"]),
            score=float(data["score"]),
            score_kind=str(data["score_kind"]),
            snippet=str(data.get("snippet", "")),
            channels=_numbers(data.get("channels")),
        )


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What the system returned for one golden query, and how it was judged.

    ``latency_ms`` is the wall time of the search call, None when it failed; ``error`` is then
    cause in one line. ``metrics`` holds each per-query value by metric name; an undefined value has
    no key.
    """

    query_id: str
    query: str
    mode: str
    hits: tuple[Hit, ...] = ()
    latency_ms: float | None = None
    error: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    miss_stage: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": QUERY_RESULT_SCHEMA,
            "query_id": self.query_id,
            "query": self.query,
            "mode": self.mode,
            "hits": [hit.to_json() for hit in self.hits],
            "answer": None,
            "latency_ms": self.latency_ms,
            "error": self.error,
            "metrics": dict(self.metrics),
            "miss_stage": self.miss_stage,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> QueryResult:
        schema = data.get("schema_version", QUERY_RESULT_SCHEMA)
        if schema != QUERY_RESULT_SCHEMA:
            raise ValueError(f"schema_version {schema!r}, expected {QUERY_RESULT_SCHEMA!r}")
        latency = data.get("latency_ms")
        return cls(
            query_id=str(data["query_id"]),
            query=str(data["query"]),
            mode=str(data["mode"]),
            hits=tuple(Hit.from_json(hit) for hit in data["hits"]),
            latency_ms=None if latency is None else float(latency),
            error=_text_or_none(data.get("error")),
            metrics=_numbers(data.get("metrics")),
            miss_stage=_text_or_none(data.get("miss_stage")),
        )


def _numbers(data: Mapping[str, Any] | None) -> dict[str, float]:
    return {str(name): float(value) for name, value in (data or {}).items()}


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


@dataclass(frozen=True, slots=True)
class EvalRun:
    """One evaluation as its record holds it: ``run.json``, config, golden set, results, metrics."""

    info: Mapping[str, Any]
    config: Mapping[str, Any]
    golden: GoldenSet
    results: tuple[QueryResult, ...]
    aggregate: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        return str(self.info["id"])

    @property
    def name(self) -> str:
        return str(self.info["name"])
