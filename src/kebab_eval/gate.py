"""A gate: two runs and rules in, a verdict out.

Each rule is judged by its point value first. Where it requires significance, a value that misses
the bound fails only when the paired test believes that the truth misses it too; otherwise the rule
is undecided, and says how many queries would decide it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from kebab_eval.comparability import Difference
from kebab_eval.comparison import ChunkerMatch, Comparison
from kebab_eval.gate_rules import PAIRED_COUNTS, Rule, check_scopes, with_defaults
from kebab_eval.metrics import evaluate_run
from kebab_eval.metrics.slices import slice_values
from kebab_eval.records import EvalRun, QueryResult
from kebab_eval.stats import detectable_difference, holm, randomisation_test

RuleVerdict = Literal["pass", "fail", "warn", "undecided"]
Outcome = Literal["pass", "fail", "undecided"]
VERDICTS: tuple[RuleVerdict, ...] = ("fail", "undecided", "warn", "pass")
EXIT_CODES: Mapping[Outcome, int] = {"pass": 0, "fail": 1, "undecided": 4}
GATE_SCHEMA = "kebab_eval.gate.v1"

ALPHA = 0.05
MAX_NEEDED = 1_000_000
_SIDES = {">=": "below", ">": "not above", "<=": "above", "<": "not below", "==": "off"}


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What became of one rule.

    Args:
        value: what the candidate has; None where it could not be measured.
        bound: what the rule asks for, the baseline filled in.
        baseline: the baseline's value, where the rule refers to it.
        n: the queries that both are means of, or that were counted.
        slice: the slice that was judged; of ``worst(…)`` the one that decided.
        missed: the value misses the bound.
        p_value: of the paired test that the truth misses the bound, corrected for the slices looked
            at and, where rules require significance, for their number (Holm). None without a test.
        detectable: the smallest difference that so many queries could have shown.
        needed: about how many queries it takes to tell this miss from noise.
        reason: one line for people.
    """

    rule: Rule
    verdict: RuleVerdict
    reason: str
    value: float | None = None
    bound: float | None = None
    baseline: float | None = None
    n: int = 0
    slice: str = ""
    missed: bool = False
    p_value: float | None = None
    detectable: float | None = None
    needed: int | None = None


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The verdict over all rules.

    Args:
        candidate, baseline: the runs' ids and names, for people; no baseline where none was given.
        not_comparable: why the two runs must not be compared; empty when they may.
        notes: what differs between the runs and was allowed.
        counts: rules by verdict.
    """

    results: tuple[RuleResult, ...]
    candidate: tuple[str, str]
    baseline: tuple[str, str] | None = None
    not_comparable: str = ""
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """A failed rule wins over an undecided one; a warning decides nothing."""
        if self.counts.get("fail"):
            return "fail"
        if self.counts.get("undecided") or self.not_comparable:
            return "undecided"
        return "pass"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": GATE_SCHEMA,
            "verdict": self.outcome,
            "exit_code": self.exit_code,
            "candidate": dict(zip(("id", "name"), self.candidate, strict=True)),
            "baseline": self.baseline and dict(zip(("id", "name"), self.baseline, strict=True)),
            "comparable": not self.not_comparable,
            "not_comparable": self.not_comparable or None,
            "notes": list(self.notes),
            "counts": {verdict: self.counts.get(verdict, 0) for verdict in VERDICTS},
            "rules": [
                {
                    "rule": result.rule.text,
                    "verdict": result.verdict,
                    "on_fail": result.rule.on_fail,
                    "require": result.rule.require,
                    "place": result.rule.place,
                    "value": result.value,
                    "bound": result.bound,
                    "baseline": result.baseline,
                    "n": result.n,
                    "slice": result.slice or None,
                    "p_value": result.p_value,
                    "detectable": result.detectable,
                    "queries_needed": result.needed,
                    "reason": result.reason,
                }
                for result in self.results
            ],
        }


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one rule sees of one slice: differences from the bound, one a query, or one number."""

    value: float | None
    bound: float | None
    baseline: float | None
    n: int
    slice: str
    slack: tuple[float, ...] = ()


def judge(
    rules: Iterable[Rule],
    candidate: EvalRun,
    baseline: EvalRun | None = None,
    comparison: Comparison | None = None,
    *,
    not_comparable: str = "",
) -> GateVerdict:
    """Return the verdict of rules over a candidate.

    Args:
        rules: as :mod:`kebab_eval.gate_rules` reads them.
        baseline: the other run; without it a rule that refers to it is undecided.
        comparison: of the two; None when they are not comparable.
        not_comparable: why not.

    Raises:
        RuleError: a rule names a slice that the candidate's golden set does not have.
        MetricError: a rule names a metric that does not follow from a ranking.
    """
    rules = with_defaults(rules)
    check_scopes(rules, candidate.golden)
    not_comparable = not_comparable or _incomplete(candidate, baseline)
    names = sorted({rule.subject for rule in rules if rule.kind == "metric"})
    gate = _Gate(
        _Side(candidate, names),
        _Side(baseline, names) if baseline is not None and not not_comparable else None,
        None if comparison is None else {row.query_id: row.kind for row in comparison.per_query},
        "the two cannot be compared" if not_comparable else "no baseline was given",
        "same" if comparison is None else comparison.chunker_version_match,
    )
    tested = sum(rule.require == "significant" for rule in rules)
    results = [gate.result(rule, max(1, tested)) for rule in rules]
    results = _corrected(results)
    decided = [_decided(result) for result in results]
    return GateVerdict(
        tuple(decided),
        (candidate.run_id, candidate.name),
        None if baseline is None else (baseline.run_id, baseline.name),
        not_comparable,
        () if comparison is None else tuple(map(_allowed, comparison.differences)),
        Counter(result.verdict for result in decided),
    )


def _allowed(one: Difference) -> str:
    return f"allowed though it differs: {one.what}, {one.baseline} against {one.candidate}"


def _incomplete(*runs: EvalRun | None) -> str:
    """Say which run was cut off: its numbers cover only what was answered, so nothing is proven."""
    said = [
        f"{run.name} is incomplete, {len(run.results)} of {len(run.golden.queries)} queries"
        for run in runs
        if run is not None and len(run.results) < len(run.golden.queries)
    ]
    return "; ".join(said)


class _Side:
    """One run: the values of each query by metric, and what its slices hold."""

    def __init__(self, run: EvalRun, names: Sequence[str]) -> None:
        self.run = run
        self.slices = {query.query_id: slice_values(query) for query in run.golden.queries}
        self.results = {result.query_id: result for result in run.results}
        recorded = run.aggregate["metrics"]
        missing = [name for name in names if name not in recorded]
        self.more: dict[str, Mapping[str, float]] = {}
        if missing:  # a rule may ask for what the run was not scored with
            scores = evaluate_run(
                run.golden, run.results, cutoffs=run.config["metrics"]["cutoffs"], metrics=missing
            )
            ids = [query.query_id for query in run.golden.queries]
            self.more = dict(zip(ids, scores.per_query, strict=True))

    def values(self, name: str) -> dict[str, float]:
        """Return query id -> value of each query that the metric scores."""
        found = {}
        for query_id, result in self.results.items():
            value = result.metrics.get(name, self.more.get(query_id, {}).get(name))
            if value is not None:
                found[query_id] = value
        return found

    def number(self, rule: Rule, ids: set[str] | None) -> float | None:
        """Return a latency or a count, over all queries or some."""
        chosen = [r for i, r in self.results.items() if ids is None or i in ids]
        return _latency(rule.subject, chosen) if rule.kind == "latency" else _count(rule, chosen)


def _latency(subject: str, results: Sequence[QueryResult]) -> float | None:
    times = [r.latency_ms for r in results if r.error is None and r.latency_ms is not None]
    if not times:
        return None
    name = subject.removesuffix("_ms")
    return max(times) if name == "max" else float(np.percentile(times, int(name[1:])))


def _count(rule: Rule, results: Sequence[QueryResult]) -> float:
    if rule.subject == "total_queries":
        return len(results)
    if rule.subject == "failed_queries":
        return sum(result.error is not None for result in results)
    names = [[h.chunk_id for h in r.hits if h.chunk_id] for r in results if r.error is None]
    return sum(len(found) - len(set(found)) for found in names)


@dataclass(slots=True)
class _Gate:
    candidate: _Side
    baseline: _Side | None
    kinds: Mapping[str, str] | None
    why_not: str
    match: ChunkerMatch = "same"

    def result(self, rule: Rule, tested: int) -> RuleResult:
        """Return what a rule comes to, its verdict still open."""
        if rule.relative and self.baseline is None:
            said = f"it needs a comparison with the baseline, and {self.why_not}"
            return RuleResult(rule, "undecided", said)
        if rule.relative and rule.subject.endswith("_chunk") and (why := self.unmatched(rule)):
            return RuleResult(rule, "undecided", why)
        readings = [self.reading(rule, value) for value in self.slice_names(rule)]
        measured = [
            (reading, reading.value, reading.bound)
            for reading in readings
            if reading.value is not None and reading.bound is not None
        ]
        if not measured:
            return RuleResult(rule, "undecided", self.unmeasured(rule), slice=readings[0].slice)
        # The worst slice is the one that misses the bound by most.
        worst, value, bound = max(measured, key=lambda one: rule.beyond(one[1] - one[2]))
        result = RuleResult(
            rule,
            "pass",
            "",
            value,
            bound,
            worst.baseline,
            worst.n,
            worst.slice,
            missed=not rule.holds(value, bound),
        )
        return _tested(result, worst.slack, len(measured), tested)

    def unmatched(self, rule: Rule) -> str:
        """Return why a metric of chunks cannot be compared, or an empty text."""
        if self.match == "fallback_doc":
            return "the chunkers differ, so that chunks cannot be compared; take the same with _doc"
        if self.match == "span" and not rule.subject.startswith(("hit_", "mrr_")):
            return (
                "the chunkers differ and cut another number of chunks from the same spans; take "
                "hit, mrr or span_recall_at_10, which compare, or the same with _doc"
            )
        return ""

    def slice_names(self, rule: Rule) -> Sequence[str | None]:
        if rule.field is None:
            return [None]
        if rule.value is not None:
            return [rule.value]
        values = {fields.get(rule.field) for fields in self.candidate.slices.values()}
        return sorted(value for value in values if value is not None)

    def reading(self, rule: Rule, value: str | None) -> _Reading:
        ids = None
        if value is not None:
            ids = {i for i, f in self.candidate.slices.items() if f.get(rule.field or "") == value}
        shown = "" if value is None else f"{rule.field}={value}"
        return (self.mean if rule.kind == "metric" else self.single)(rule, ids, shown)

    def mean(self, rule: Rule, ids: set[str] | None, shown: str) -> _Reading:
        """Read a metric; against a baseline only over the queries that both runs scored."""
        own = self.candidate.values(rule.subject)
        others: Mapping[str, float] = {}
        if rule.relative and self.baseline is not None:
            others = self.baseline.values(rule.subject)
            own = {i: value for i, value in own.items() if i in others}
        own = {i: value for i, value in own.items() if ids is None or i in ids}
        if not own:
            return _Reading(None, None, None, 0, shown)
        value = math.fsum(own.values()) / len(own)
        before = math.fsum(others[i] for i in own) / len(own) if others else None
        slack = tuple(own[i] - rule.factor * others.get(i, 0.0) - rule.offset for i in own)
        bound = rule.factor * (before or 0.0) + rule.offset
        return _Reading(value, bound, before, len(own), shown, slack)

    def single(self, rule: Rule, ids: set[str] | None, shown: str) -> _Reading:
        """Read a latency or a count: one number a run."""
        if rule.subject in PAIRED_COUNTS:
            assert self.kinds is not None  # noqa: S101  # a rule without comparison is told before
            wanted = PAIRED_COUNTS[rule.subject]
            rows = [kind for i, kind in self.kinds.items() if ids is None or i in ids]
            return _Reading(rows.count(wanted), rule.offset, None, len(rows), shown)
        value = self.candidate.number(rule, ids)
        before = None
        if rule.relative and self.baseline is not None:
            before = self.baseline.number(rule, ids)
            if before is None:
                return _Reading(None, None, None, 0, shown)
        bound = rule.factor * (before or 0.0) + rule.offset
        n = len(self.candidate.results if ids is None else ids & self.candidate.results.keys())
        return _Reading(value, bound, before, n, shown)

    def unmeasured(self, rule: Rule) -> str:
        if rule.kind == "latency":
            return "no query was answered, so there is no latency"
        where = f" in {rule.scope}" if rule.scope else ""
        both = "both runs" if rule.relative else "the run"
        return f"no query{where} is scored for {rule.subject} in {both}; are its judgments there?"


def _tested(result: RuleResult, slack: Sequence[float], slices: int, tested: int) -> RuleResult:
    """Add what the paired test says of a miss.

    The test is of the differences from the bound itself, so that a margin of three points is not
    spent on noise; looking at the worst of several slices is paid for.
    """
    if not slack:
        return result
    together = slices * (tested if result.rule.require == "significant" else 1)
    detectable = detectable_difference(slack, alpha=ALPHA / together)
    if not result.missed:
        return replace(result, detectable=detectable)
    p_value = min(1.0, randomisation_test(slack) * slices)
    needed = _needed(len(slack), detectable, math.fsum(slack) / len(slack))
    return replace(result, p_value=p_value, detectable=detectable, needed=needed)


def _needed(n: int, detectable: float | None, miss: float) -> int | None:
    """Return how many queries tell a miss of this size: n falls with its inverse square."""
    if not detectable or not miss:
        return None
    ratio = detectable / abs(miss)
    return min(MAX_NEEDED, max(n + 1, math.ceil(n * ratio * ratio)))


def _corrected(results: Sequence[RuleResult]) -> list[RuleResult]:
    """Correct the p-values of the rules that require significance for their number."""
    family = [i for i, r in enumerate(results) if r.rule.require == "significant"]
    # A rule that holds cannot fail: it counts in the family with nothing to show.
    adjusted = holm([p if (p := results[i].p_value) is not None else 1.0 for i in family])
    corrected = list(results)
    for index, p_value in zip(family, adjusted, strict=True):
        if results[index].p_value is not None:
            corrected[index] = replace(results[index], p_value=p_value)
    return corrected


def _decided(result: RuleResult) -> RuleResult:
    """Give the verdict and its reason."""
    rule = result.rule
    if result.value is None or result.bound is None:
        verdict: RuleVerdict = "undecided"
        reason = result.reason
    elif not result.missed:
        return replace(result, reason=_held(result))
    elif rule.require == "significant" and (result.p_value or 1.0) >= ALPHA:
        verdict, reason = "undecided", f"{_missed(result)}; {_noise(result)}"
    else:
        verdict, reason = "fail", _missed(result)
        if result.p_value is not None and result.p_value < ALPHA:
            reason += f"; more than noise (p {_p(result.p_value)})"
        elif result.p_value is not None:
            reason += f"; {_noise(result)}; 'require: significant' would leave this undecided"
    if rule.on_fail == "warn":
        reason = f"{verdict}: {reason}" if verdict == "undecided" else reason
        verdict = "warn"
    return replace(result, verdict=verdict, reason=reason)


def _held(result: RuleResult) -> str:
    return f"{_number(result, result.value)}{_asked(result)}{_where(result)}"


def _missed(result: RuleResult) -> str:
    value, bound = result.value or 0.0, result.bound or 0.0
    if result.rule.op in (">", "<") and math.isclose(value, bound, rel_tol=1e-9, abs_tol=1e-9):
        return f"{_held(result)}, not {'above' if result.rule.op == '>' else 'below'} it"
    side = "below" if value < bound else "above"
    gap = _number(result, abs(value - bound))
    return f"{_number(result, value)} is {gap} {side}{_asked(result)}{_where(result)}"


def _asked(result: RuleResult) -> str:
    """Say the bound, and the baseline that it comes from."""
    bound = _number(result, result.bound)
    text = f" the {bound} asked for" if result.missed else f", asked for {result.rule.op} {bound}"
    if result.baseline is not None and result.rule.factor:
        text += f" (baseline {_number(result, result.baseline)})"
    return text


def _where(result: RuleResult) -> str:
    worst = result.rule.field is not None and result.rule.value is None
    return (f", worst in {result.slice}" if worst else "") + f", n={result.n}"


def _noise(result: RuleResult) -> str:
    text = f"{result.n} queries cannot tell that from noise (p {_p(result.p_value or 1.0)}"
    if result.detectable:
        text += f", they show a difference of {result.detectable:.3f} or more"
    text += ")"
    if result.needed is None:
        return text
    if result.needed >= MAX_NEEDED:
        return f"{text}; it would take more than {MAX_NEEDED:,} queries like these"
    return f"{text}; it would take about {result.needed:,} queries like these"


def _number(result: RuleResult, value: float | None) -> str:
    """Return a value with the digits of its kind."""
    if value is None:
        return "–"
    if result.rule.kind == "count":
        return f"{value:g}"
    return f"{value:,.1f} ms" if result.rule.kind == "latency" else f"{value:.3f}"


def _p(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
