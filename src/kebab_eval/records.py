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
class Span:
    """A passage of a document that answers a query: truth that no chunker makes invalid.

    Either ``quote`` is given, the passage's own words, or ``start`` and ``end``, characters of the
    document's text as the system under test lists it (both, when the offsets say which of several
    places of the quote is meant), or ``section``.

    Args:
        doc: id of the document.
        quote: the words; matched as :mod:`kebab_eval.golden.spans` says.
        occurrence: which place of the quote is meant, from 1; None means every place.
        before, after: words that stand directly before and behind the quote, to tell places apart.
        section: a heading of the document, by its text or slug: all that stands under it.
        grade: of each chunk that holds it.
        chunk_ids: the chunks of this run's chunker that hold it, in the document's order, once it
            is resolved; None before. No part of its meaning.
        place: the ``file:line:column`` where it stands; no part of its meaning.
    """

    doc: str
    quote: str = ""
    occurrence: int | None = None
    before: str = ""
    after: str = ""
    start: int | None = None
    end: int | None = None
    section: str = ""
    grade: float = 1.0
    chunk_ids: tuple[str, ...] | None = None
    place: str = ""

    def meaning(self) -> dict[str, Any]:
        """Return what it says as plain data, without what is at its default."""
        given = {
            "doc": self.doc,
            "quote": self.quote or None,
            "occurrence": self.occurrence,
            "before": self.before or None,
            "after": self.after or None,
            "start": self.start,
            "end": self.end,
            "section": self.section or None,
            "grade": None if self.grade == 1 else self.grade,
        }
        return {key: value for key, value in given.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        resolved = {} if self.chunk_ids is None else {"chunk_ids": list(self.chunk_ids)}
        return {**self.meaning(), **resolved}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Span:
        chunk_ids = data.get("chunk_ids")
        return cls(
            doc=str(data["doc"]),
            quote=str(data.get("quote", "")),
            occurrence=_whole_or_none(data.get("occurrence")),
            before=str(data.get("before", "")),
            after=str(data.get("after", "")),
            start=_whole_or_none(data.get("start")),
            end=_whole_or_none(data.get("end")),
            section=str(data.get("section", "")),
            grade=float(data.get("grade", 1)),
            chunk_ids=None if chunk_ids is None else tuple(map(str, chunk_ids)),
        )


@dataclass(frozen=True, slots=True)
class BinaryJudgments:
    """The document ids of a Document Server v0.1 case, which its old scores are computed from.

    Args:
        relevant: every relevant document.
        top3: those that must be among the first three hits; they are relevant too.
    """

    relevant: frozenset[str] = frozenset()
    top3: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """One entry of a golden set.

    ``place`` is the ``file:line:column`` where it stands; it is no part of its meaning.
    ``tags`` holds every other field that a slice may be cut by. ``notes`` are the judge's reasons,
    which change no score and are no part of its meaning either.

    A query with ``spans`` is judged at chunk level by them alone: its judged chunks are those that
    hold a span, and are found anew for each run's chunker. ``v01`` holds the binary judgments of a
    Document Server set, None for all others.
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
    spans: tuple[Span, ...] = ()
    v01: BinaryJudgments | None = None
    notes: str = ""
    place: str = ""

    @property
    def should_refuse(self) -> bool:
        """No answer is the right answer: so declared, or nothing at all is expected."""
        judged = self.judgments.chunk or self.judgments.doc or self.spans
        return self.failure_expected or not (judged or self.must_contain)

    def meaning(self) -> dict[str, Any]:
        """Return what it asks and expects as plain data: what the digest is taken over.

        Where spans say which chunks are relevant, the chunk ids belong to one chunker and say
        nothing more.
        """
        data = self.to_json()
        data.pop("notes", None)
        if self.spans:
            data["judgments"]["chunk"] = {}
            data["spans"] = sorted(
                (span.meaning() for span in self.spans),
                key=lambda span: [(key, str(value)) for key, value in sorted(span.items())],
            )
        return data

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, every mapping and set in sorted order.

        ``spans``, ``v01`` and ``notes`` have a key only where there is something to say.
        """
        further: dict[str, Any] = {}
        if self.spans:
            further["spans"] = [span.to_json() for span in self.spans]
        if self.v01 is not None:
            further["v01"] = {
                "relevant": sorted(self.v01.relevant),
                "top3": sorted(self.v01.top3),
            }
        if self.notes:
            further["notes"] = self.notes
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
            **further,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GoldenQuery:
        judgments, v01 = data["judgments"], data.get("v01")
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
            spans=tuple(Span.from_json(span) for span in data.get("spans", ())),
            v01=None
            if v01 is None
            else BinaryJudgments(frozenset(v01["relevant"]), frozenset(v01["top3"])),
            notes=str(data.get("notes", "")),
        )


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """The evaluation set: its queries in file order, its name, version, and digest of its meaning.

    ``min_relevance`` is the grade from which an item is relevant for the binary metrics. ``format``
    is the name of the golden format that it was read from.
    """

    name: str
    version: str
    digest: str
    queries: tuple[GoldenQuery, ...]
    min_relevance: float = 1
    path: str = ""
    format: str = "kebab"

    @property
    def linear_gain(self) -> bool:
        """Whether a grade is a gain already: so are fractional ones (``gain: 0.5``)."""
        return any(
            not float(grade).is_integer()
            for query in self.queries
            for level in LEVELS
            for grade in query.judgments.at(level).values()
        )


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as its system lists it.

    ``start`` and ``end`` are characters of the document's text, where the system tells them.
    """

    chunk_id: str
    doc_id: str
    text: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a system holds: its chunks in reading order, and its documents' texts by id.

    A system that lists chunks without document texts leaves ``documents`` empty.
    """

    passages: tuple[Passage, ...]
    documents: Mapping[str, str] = field(default_factory=_empty)


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
class Citation:
    """What an answer points at: ids as far as the system tells them, and the mark in the text."""

    chunk_id: str = ""
    doc_id: str = ""
    marker: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"chunk_id": self.chunk_id, "doc_id": self.doc_id, "marker": self.marker}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Citation:
        return cls(str(data["chunk_id"]), str(data["doc_id"]), str(data.get("marker", "")))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system said to a query, on top of its hits.

    Args:
        text: the answer; empty for a refusal without words.
        refused: whether it declined to answer, and ``refusal_reason`` in the system's own word.
        grounded: whether the system calls its answer grounded; None where it does not say.
        model: what wrote it, and ``prompt_version`` the version of the template it was asked with.
        latency_ms: wall time of the answer alone, the search not counted; None when it failed.
        tokens: ``prompt`` and ``completion``, where the system counts them.
        error: the cause in one line when there is no answer.
    """

    text: str = ""
    citations: tuple[Citation, ...] = ()
    refused: bool = False
    refusal_reason: str | None = None
    grounded: bool | None = None
    model: str = ""
    prompt_version: str = ""
    latency_ms: float | None = None
    tokens: Mapping[str, int] = field(default_factory=_empty)
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "citations": [citation.to_json() for citation in self.citations],
            "refused": self.refused,
            "refusal_reason": self.refusal_reason,
            "grounded": self.grounded,
            "model": self.model,
            "prompt_version": self.prompt_version,
            "latency_ms": self.latency_ms,
            "tokens": dict(self.tokens),
            "error": self.error,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Answer:
        latency, grounded = data.get("latency_ms"), data.get("grounded")
        return cls(
            text=str(data.get("text", "")),
            citations=tuple(Citation.from_json(one) for one in data.get("citations", ())),
            refused=bool(data.get("refused", False)),
            refusal_reason=_text_or_none(data.get("refusal_reason")),
            grounded=None if grounded is None else bool(grounded),
            model=str(data.get("model", "")),
            prompt_version=str(data.get("prompt_version", "")),
            latency_ms=None if latency is None else float(latency),
            tokens={str(name): int(n) for name, n in data.get("tokens", {}).items()},
            error=_text_or_none(data.get("error")),
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """One item of a retrieval channel's own ranking, before fusion, rerank and gate."""

    chunk_id: str
    doc_id: str
    score: float


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What the system returned for one golden query, and how it was judged.

    ``latency_ms`` is the wall time of the search call, None when it failed; ``error`` is then the
    cause in one line. ``attempts`` is how often it was asked. ``timings_ms`` is what the stages of
    the system took by its own clock. ``metrics`` holds each per-query value by metric name; an
    undefined value has no key. ``started_at`` is when the search call that counts began (UTC, RFC
    3339); None where nothing was asked just now, or in a record that is older than the field.

    ``candidates`` maps a channel (``lexical``, ``vector``) to its ranking, best first, where the
    system shows it. They are recorded in a file of their own and no part of the wire form.
    """

    query_id: str
    query: str
    mode: str
    hits: tuple[Hit, ...] = ()
    latency_ms: float | None = None
    error: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    miss_stage: str | None = None
    answer: Answer | None = None
    attempts: int = 1
    timings_ms: Mapping[str, float] = field(default_factory=_empty)
    candidates: Mapping[str, tuple[Candidate, ...]] = field(default_factory=_empty)
    started_at: str | None = None

    def to_json(self) -> dict[str, Any]:
        further: dict[str, Any] = {}
        if self.attempts != 1:
            further["attempts"] = self.attempts
        if self.timings_ms:
            further["timings_ms"] = dict(self.timings_ms)
        if self.started_at is not None:
            further["started_at"] = self.started_at
        return {
            "schema_version": QUERY_RESULT_SCHEMA,
            "query_id": self.query_id,
            "query": self.query,
            "mode": self.mode,
            "hits": [hit.to_json() for hit in self.hits],
            "answer": None if self.answer is None else self.answer.to_json(),
            "latency_ms": self.latency_ms,
            "error": self.error,
            "metrics": dict(self.metrics),
            "miss_stage": self.miss_stage,
            **further,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> QueryResult:
        schema = data.get("schema_version", QUERY_RESULT_SCHEMA)
        if schema != QUERY_RESULT_SCHEMA:
            raise ValueError(f"schema_version {schema!r}, expected {QUERY_RESULT_SCHEMA!r}")
        latency, answer = data.get("latency_ms"), data.get("answer")
        return cls(
            query_id=str(data["query_id"]),
            query=str(data["query"]),
            mode=str(data["mode"]),
            hits=tuple(Hit.from_json(hit) for hit in data["hits"]),
            latency_ms=None if latency is None else float(latency),
            error=_text_or_none(data.get("error")),
            metrics=_numbers(data.get("metrics")),
            miss_stage=_text_or_none(data.get("miss_stage")),
            answer=None if answer is None else Answer.from_json(answer),
            attempts=int(data.get("attempts", 1)),
            timings_ms=_numbers(data.get("timings_ms")),
            started_at=_text_or_none(data.get("started_at")),
        )


def _numbers(data: Mapping[str, Any] | None) -> dict[str, float]:
    return {str(name): float(value) for name, value in (data or {}).items()}


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def _whole_or_none(value: Any) -> int | None:
    return None if value is None else int(value)


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
