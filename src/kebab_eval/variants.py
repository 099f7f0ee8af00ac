"""Paraphrases of one intent: does a system find the same documents whatever the words?

kebab's report, over the groups of a golden set: recall of the expected documents among the first
``NARROW`` documents and among the first ``POOL``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from kebab_eval.errors import NotComparableError
from kebab_eval.metrics.answers import groundedness
from kebab_eval.metrics.ranktable import first_places, normalise_id
from kebab_eval.records import EvalRun, GoldenQuery, QueryResult

VARIANTS_SCHEMA = "kebab_eval.variants.v1"
NARROW, POOL = 10, 50

State = Literal["ok", "mis_ranked", "missing", "no_expected"]
STATES: Mapping[State, str] = {
    "ok": "every expected document is among the first 10",
    "mis_ranked": "the first 50 hold more of them than the first 10: found, and ranked out",
    "missing": "not even the first 50 hold more of them",
    "no_expected": "nothing is expected of it",
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One wording: recall of the expected documents, narrow and in the pool; None without any."""

    query_id: str
    query: str
    language: str | None
    narrow: float | None
    pool: float | None
    state: State
    documents: tuple[str, ...]
    """The first ``NARROW`` documents."""


@dataclass(frozen=True, slots=True)
class Group:
    """The wordings of one intent.

    Attributes:
        spread: highest minus lowest narrow recall; None where nothing is expected.
        worst: the lowest narrow recall.
        dominant: ``a`` where more wordings are mis-ranked than missing (a matter of ranking), ``b``
            where more are missing (a matter of retrieval), None elsewhere.
        overlap: mean share of common documents (Jaccard) of two wordings' first ``NARROW``.
        across: the same over pairs of a Korean and an English wording; None without such a pair.
        answers_consistent: whether all wordings were answered alike; None without answers.
    """

    name: str
    variants: tuple[Variant, ...]
    spread: float | None
    worst: float | None
    dominant: Literal["a", "b"] | None
    overlap: float | None
    across: float | None
    answers_consistent: bool | None


@dataclass(frozen=True, slots=True)
class VariantReport:
    """Every group, the widest spread first."""

    run_id: str
    name: str
    groups: tuple[Group, ...]

    @property
    def states(self) -> dict[State, int]:
        counts = Counter(variant.state for group in self.groups for variant in group.variants)
        return {state: counts[state] for state in STATES}

    @property
    def mean_spread(self) -> float | None:
        return _mean([group.spread for group in self.groups])

    @property
    def mean_overlap(self) -> float | None:
        return _mean([group.overlap for group in self.groups])

    @property
    def mean_across(self) -> float | None:
        return _mean([group.across for group in self.groups])

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": VARIANTS_SCHEMA,
            "run_id": self.run_id,
            "name": self.name,
            "narrow": NARROW,
            "pool": POOL,
            "states": self.states,
            "mean_spread": self.mean_spread,
            "mean_overlap": self.mean_overlap,
            "mean_overlap_ko_en": self.mean_across,
            "a_dominant": [group.name for group in self.groups if group.dominant == "a"],
            "b_dominant": [group.name for group in self.groups if group.dominant == "b"],
            "groups": [
                {
                    "group": group.name,
                    "spread": group.spread,
                    "worst": group.worst,
                    "dominant": group.dominant,
                    "overlap": group.overlap,
                    "overlap_ko_en": group.across,
                    "answers_consistent": group.answers_consistent,
                    "variants": [
                        {
                            "query_id": variant.query_id,
                            "query": variant.query,
                            "language": variant.language,
                            "narrow": variant.narrow,
                            "pool": variant.pool,
                            "state": variant.state,
                        }
                        for variant in group.variants
                    ],
                }
                for group in self.groups
            ],
        }


def variant_report(run: EvalRun) -> VariantReport:
    """Return how consistent a run is over the paraphrases of each group.

    Raises:
        NotComparableError: the run was asked for fewer than ``POOL`` hits, or has no groups.
    """
    asked = run.config["search"]["k"]
    if asked < POOL:
        raise NotComparableError(
            f"{run.name} was asked for {asked} hits a query, and variants are told by the first "
            f"{POOL}: evaluate again with --k {POOL}"
        )
    results = {result.query_id: result for result in run.results}
    members: dict[str, list[tuple[GoldenQuery, QueryResult]]] = {}
    for query in run.golden.queries:
        if query.group is not None and query.query_id in results:
            members.setdefault(query.group, []).append((query, results[query.query_id]))
    groups = [
        _group(name, held, run.golden.min_relevance)
        for name, held in members.items()
        if len(held) > 1
    ]
    if not groups:
        raise NotComparableError(
            f"{run.golden.name} has no group of two queries or more: give the paraphrases of one "
            "intent the same 'group'"
        )
    ordered = sorted(groups, key=lambda group: (-(group.spread or 0.0), group.worst or 0.0))
    return VariantReport(run.run_id, run.name, tuple(ordered))


def _group(name: str, held: Sequence[tuple[GoldenQuery, QueryResult]], least: float) -> Group:
    variants = tuple(_variant(query, result, least) for query, result in held)
    narrow = [variant.narrow for variant in variants if variant.narrow is not None]
    counts = Counter(variant.state for variant in variants)
    dominant: Literal["a", "b"] | None = None
    if counts["mis_ranked"] != counts["missing"]:
        dominant = "a" if counts["mis_ranked"] > counts["missing"] else "b"
    pairs = list(combinations(variants, 2))
    across = [pair for pair in pairs if {one.language for one in pair} == {"ko", "en"}]
    return Group(
        name,
        variants,
        spread=max(narrow) - min(narrow) if narrow else None,
        worst=min(narrow) if narrow else None,
        dominant=dominant,
        overlap=_mean(list(_overlaps(pairs))),
        across=_mean(list(_overlaps(across))),
        answers_consistent=_consistent(held),
    )


def _variant(query: GoldenQuery, result: QueryResult, least: float) -> Variant:
    hits = () if result.error is not None else result.hits
    documents = list(first_places([hit.doc_id for hit in hits]))
    wanted = {normalise_id(doc) for doc, grade in query.judgments.doc.items() if grade >= least}
    narrow = pool = None
    state: State = "no_expected"
    if wanted:
        narrow = len(wanted & set(documents[:NARROW])) / len(wanted)
        pool = len(wanted & set(documents[:POOL])) / len(wanted)
        state = "ok" if narrow == 1 else "mis_ranked" if pool > narrow else "missing"
    return Variant(
        query.query_id,
        query.query,
        query.language,
        narrow,
        pool,
        state,
        tuple(documents[:NARROW]),
    )


def _overlaps(pairs: Sequence[tuple[Variant, Variant]]) -> Iterator[float]:
    for one, other in pairs:
        held = set(one.documents) | set(other.documents)
        if held:
            yield len(set(one.documents) & set(other.documents)) / len(held)


def _consistent(held: Sequence[tuple[GoldenQuery, QueryResult]]) -> bool | None:
    """Say whether all wordings were answered alike: all refused, or all grounded alike."""
    answers = [(query, result.answer) for query, result in held if result.answer is not None]
    if len(answers) < 2:
        return None
    kinds = {
        (
            answer.refused,
            None
            if answer.refused
            else groundedness(answer.text, query.must_contain, query.forbidden),
        )
        for query, answer in answers
        if answer.error is None
    }
    return len(kinds) <= 1


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
