"""Which slices are weak, and why, as far as a run's hits and judgments tell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kebab_eval.metrics.ranktable import normalise_id
from kebab_eval.metrics.slices import FIELDS, slice_values
from kebab_eval.records import EvalRun, GoldenQuery, Level, QueryResult

WEAK_BELOW = 0.70

Cause = Literal[
    "failed", "ocr", "crosslingual", "mixed text", "candidate recall", "ranked out", "ranked low"
]
CAUSES: Mapping[Cause, str] = {
    "failed": "the search call failed, so that the query scores 0",
    "candidate recall": "nothing relevant was among the candidates, as far as they are recorded",
    "ranked out": "something relevant was among the candidates and was ranked behind the hits",
    "crosslingual": "nothing relevant came back; the expected documents are in the other language",
    "mixed text": "nothing relevant came back; the query mixes Korean with English or hanja",
    "ocr": "nothing relevant came back; the query is about text that was read by OCR",
    "ranked low": "something relevant came back, but not where it counts in full",
}

_HANGUL = re.compile(r"[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]")
_HANJA = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN = re.compile(r"[A-Za-z]")
_MIN_LETTERS = 20
_READ_LETTERS = 5_000


@dataclass(frozen=True, slots=True)
class Miss:
    """One query that the primary metric does not score in full, with its one cause."""

    query_id: str
    query: str
    score: float
    cause: Cause
    rank: int | None
    """Place of the first relevant hit."""


@dataclass(frozen=True, slots=True)
class WeakSlice:
    """A slice whose primary metric is below ``WEAK_BELOW``; n counts the queries it scores."""

    field: str
    value: str
    score: float
    n: int
    misses: tuple[Miss, ...]

    def by_cause(self) -> dict[Cause, list[Miss]]:
        """Return its misses by cause, the most frequent first."""
        return group_by_cause(self.misses)


def group_by_cause(misses: Sequence[Miss]) -> dict[Cause, list[Miss]]:
    groups: dict[Cause, list[Miss]] = {}
    for miss in misses:
        groups.setdefault(miss.cause, []).append(miss)
    order = list(CAUSES)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), order.index(item[0]))))


def find_misses(run: EvalRun) -> list[Miss]:
    """Return the queries below 1 by the run's primary metric, in golden order."""
    primary = run.config["metrics"]["primary"]
    level: Level = "chunk" if primary.endswith("_chunk") else "doc"
    results = {result.query_id: result for result in run.results}
    languages = document_languages(run)
    misses = []
    for query in run.golden.queries:
        result = results.get(query.query_id)
        score = None if result is None else result.metrics.get(primary)
        if result is None or score is None or score >= 1:
            continue
        rank = _first_rank(query, result, level, run.golden.min_relevance)
        cause = cause_of(query, result, level, run.golden.min_relevance, languages)
        misses.append(Miss(query.query_id, query.query, score, cause, rank))
    return misses


def find_weak_slices(run: EvalRun) -> list[WeakSlice]:
    """Return the weak slices, the lowest first.

    Groups of paraphrases are left out, and tags with nearly as many values as queries.
    """
    primary = run.config["metrics"]["primary"]
    misses = {miss.query_id: miss for miss in find_misses(run)}
    values = {r.query_id: r.metrics[primary] for r in run.results if primary in r.metrics}
    members: dict[tuple[str, str], list[str]] = {}
    kinds: dict[str, set[str]] = {}
    for query in run.golden.queries:
        if query.query_id in values:
            for field, value in slice_values(query).items():
                members.setdefault((field, value), []).append(query.query_id)
                kinds.setdefault(field, set()).add(value)
    order = {field: place for place, field in enumerate(FIELDS)}
    weak = []
    for (field, value), ids in members.items():
        crowded = field not in FIELDS and len(kinds[field]) > max(2, len(values) // 2)
        if field == "group" or crowded:
            continue
        score = sum(values[i] for i in ids) / len(ids)
        if score < WEAK_BELOW:
            found = tuple(misses[i] for i in ids if i in misses)
            weak.append(WeakSlice(field, value, score, len(ids), found))
    return sorted(weak, key=lambda w: (w.score, order.get(w.field, len(order)), w.field, w.value))


def document_languages(run: EvalRun) -> dict[str, str]:
    """Return document id -> ko, en or mixed, judged by the snippets that came back anywhere."""
    texts: dict[str, list[str]] = {}
    lengths: dict[str, int] = {}
    for result in run.results:
        for hit in result.hits:
            name = normalise_id(hit.doc_id)
            if lengths.get(name, 0) < _READ_LETTERS:
                texts.setdefault(name, []).append(hit.snippet)
                lengths[name] = lengths.get(name, 0) + len(hit.snippet)
    found = {name: _language(" ".join(parts)) for name, parts in texts.items()}
    return {name: language for name, language in found.items() if language is not None}


def _language(text: str, least: int = _MIN_LETTERS) -> str | None:
    hangul, latin = len(_HANGUL.findall(text)), len(_LATIN.findall(text))
    if hangul + latin < least:
        return None
    # A syllable of Hangul says what two or three Latin letters do.
    share = 2.5 * hangul / (2.5 * hangul + latin)
    return "ko" if share > 0.5 else "en" if share < 0.1 else "mixed"


def _first_rank(query: GoldenQuery, result: QueryResult, level: Level, least: float) -> int | None:
    """Return the place of the first relevant item among the hits."""
    wanted = _relevant(query, level, least)
    for place, hit in enumerate(result.hits if result.error is None else (), 1):
        if normalise_id(hit.chunk_id if level == "chunk" else hit.doc_id) in wanted:
            return place
    return None


def _relevant(query: GoldenQuery, level: Level, least: float) -> set[str]:
    grades = query.judgments.at(level)
    return {normalise_id(item) for item, grade in grades.items() if grade >= least}


def cause_of(
    query: GoldenQuery,
    result: QueryResult,
    level: Level,
    least: float,
    languages: Mapping[str, str],
) -> Cause:
    """Return the one cause of a query that is not answered in full.

    Args:
        level: what has to come back, a chunk or a document.
        least: the grade from which an item is relevant.
        languages: document id -> language, by :func:`document_languages`.
    """
    if result.error is not None:
        return "failed"
    if _first_rank(query, result, level, least) is not None:
        return "ranked low"
    if query.ocr_derived:
        return "ocr"
    asked = query.language or _language(query.query, least=1)
    expected = {languages.get(name) for name in _relevant(query, "doc", least)} - {None}
    if asked in ("ko", "en") and expected == {"en" if asked == "ko" else "ko"}:
        return "crosslingual"
    hanja = _HANJA.search(query.query) and (asked in ("ko", "mixed", None))
    if asked == "mixed" or hanja:
        return "mixed text"
    wanted = _relevant(query, level, least)
    among = any(
        normalise_id(one.chunk_id if level == "chunk" else one.doc_id) in wanted
        for ranking in result.candidates.values()
        for one in ranking
    )
    return "ranked out" if among else "candidate recall"
