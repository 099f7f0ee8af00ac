"""What every report says of a comparison, in words, once: the renderers only give it a form.

Names, config keys and values are foreign texts. Each function that puts one into a sentence takes
``quote``, which makes it fit for the format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kebab_eval.comparison import (
    ALPHA,
    Comparison,
    Delta,
    ItemMove,
    JudgmentChange,
    QueryDelta,
    SliceDelta,
)
from kebab_eval.reports.summary import DASH, milliseconds, number, version_text

Quote = Callable[[str], str]

MOVES = {"entered": "entered", "left": "left", "up": "↑", "down": "↓", "same": "="}
_TOP = 5


@dataclass(frozen=True, slots=True)
class Head:
    """The first screen.

    Attributes:
        title: which run against which.
        lever: what was moved.
        warnings: why a reader should hold back.
        verdict: better, worse, or no difference that so many queries can tell.
        belief: what so many queries can tell at all.
        beside: other metrics that moved beyond chance; empty if none did.
        counts: queries that rose and fell.
    """

    title: str
    lever: str
    warnings: tuple[str, ...]
    verdict: str
    belief: str
    beside: str
    counts: tuple[str, ...]


def head(comparison: Comparison, quote: Quote = str) -> Head:
    """Return the first screen of a comparison."""
    before, after = (quote(name) for name in labels(comparison))
    lever, warnings = _levers(comparison, quote)
    if comparison.counts["regression"]:
        lost = plural(comparison.counts["regression"], "query", "queries")
        warnings.append(
            f"{lost} found what was expected before and no longer: the regressions are below."
        )
    return Head(
        title=f"{after} against {before}",
        lever=lever,
        warnings=tuple(warnings),
        verdict=_verdict(comparison, before, after),
        belief=_belief(comparison.deltas[comparison.primary]),
        beside=_beside(comparison),
        counts=_counts(comparison),
    )


def labels(comparison: Comparison) -> tuple[str, str]:
    """Return how the two runs are called: by name, or by id where they share it."""
    before, after = comparison.baseline, comparison.candidate
    if before.name != after.name:
        return before.name, after.name
    return before.run_id, after.run_id


def _levers(comparison: Comparison, quote: Quote) -> tuple[str, list[str]]:
    moved = [
        f"{quote(change.key)} {quote(version_text(change.baseline))} → "
        f"{quote(version_text(change.candidate))}"
        for change in comparison.levers
    ]
    declared = comparison.declared_lever
    warnings = []
    if not moved:
        same = comparison.baseline.run_id == comparison.candidate.run_id
        line = "No lever moved: " + ("this is one and the same run." if same else "same config.")
        if not same:
            warnings.append(
                "No lever moved: a difference is chance, or comes from what no config shows "
                "(code, data, load)."
            )
    elif len(moved) == 1:
        line = f"One lever moved: {moved[0]}"
    else:
        line = f"{len(moved)} levers moved: {'; '.join(moved)}"
        warnings.append(
            f"{len(moved)} levers moved at once: nothing below can be put down to one of them."
        )
    if moved and declared and not any(change.declared for change in comparison.levers):
        warnings.append(
            f"The candidate's config says that it moves {quote(declared)}; "
            "that is the same in both runs."
        )
    return line, warnings


def _verdict(comparison: Comparison, before: str, after: str) -> str:
    delta = comparison.deltas[comparison.primary]
    if delta.delta is None:
        return (
            f"Nothing can be said: no query is scored for {delta.metric} in both runs; "
            "choose another with --metric."
        )
    if identical(delta):
        return (
            f"No difference: {delta.metric} {number(delta.baseline)} in both runs, "
            f"the same on each of {plural(delta.n, 'query', 'queries')}."
        )
    numbers = (
        f"{delta.metric} {number(delta.baseline)} → {number(delta.candidate)}, "
        f"{signed(delta.delta)}{_within(delta)}, {p_text(delta.p_value)}, n = {delta.n}"
    )
    if comparison.verdict == "no difference":
        return f"No difference that {plural(delta.n, 'query', 'queries')} can tell: {numbers}."
    return f"{after} is {comparison.verdict} than {before}: {numbers}."


def _within(delta: Delta) -> str:
    return f" (95 % interval {interval_text(delta)})" if delta.ci95 else ""


def _belief(delta: Delta) -> str:
    if delta.detectable is None or delta.delta is None:
        return ""
    if delta.n < 2:
        return "One query says nothing."
    limit = (
        f"{delta.n} queries that vary like these show a true difference of "
        f"{delta.detectable:.3f} four times out of five; smaller ones are easily noise."
    )
    if delta.significant:
        if abs(delta.delta) < delta.detectable:
            limit += " This one is smaller: believe its direction more than its size."
        return limit
    needed = delta.queries_needed
    if needed is None or needed <= delta.n:
        return limit
    return f"{limit} To tell a difference of {abs(delta.delta):.3f} takes about {needed:,} queries."


def _beside(comparison: Comparison) -> str:
    moved = [
        f"{delta.metric} {signed(delta.delta)} ({p_text(delta.p_holm)})"
        for delta in comparison.deltas.values()
        if delta.metric != comparison.primary and delta.p_holm < ALPHA
    ]
    if not moved:
        return ""
    return (
        f"Also beyond chance, corrected for {len(comparison.deltas)} metrics: {', '.join(moved)}."
    )


def _counts(comparison: Comparison) -> tuple[str, ...]:
    counts, primary = comparison.counts, comparison.primary_counts
    levels = {line.level for line in comparison.per_query if line.expected}
    item = "chunk" if levels == {"chunk"} else "document" if levels == {"doc"} else "item"
    kinds = (
        plural(counts["win"], "win"),
        plural(counts["loss"], "loss", "losses"),
        plural(counts["regression"], "regression"),
        plural(counts["draw"], "draw"),
    )
    return (
        f"By the rank of the first expected {item}: {', '.join(kinds)}.",
        f"By {comparison.primary}: {primary['win']} better, {primary['loss']} worse, "
        f"{primary['draw']} the same.",
    )


def says(delta: Delta, *, primary: bool) -> str:
    """Return better, worse, equal or unclear: the primary metric by p, the others after Holm."""
    if delta.gain is None:
        return DASH
    if identical(delta):
        return "equal"
    if (delta.p_value if primary else delta.p_holm) >= ALPHA:
        return "unclear"
    return "better" if delta.gain > 0 else "worse"


def note_text(line: QueryDelta, comparison: Comparison) -> str:
    """Return what happened; with its level, where the primary metric goes by another one."""
    if line.kind == "draw" or comparison.primary.endswith(f"_{line.level}"):
        return line.note
    return f"{line.note} by {'chunk' if line.level == 'chunk' else 'document'}"


def against(part: SliceDelta) -> str:
    """Say that a slice moves against the whole, and whether that is beyond chance."""
    if not part.against_whole:
        return ""
    return "against the whole" if part.delta.p_holm < ALPHA else "against the whole (chance?)"


def identical(delta: Delta) -> bool:
    """Whether both runs have the same value on every query."""
    return delta.delta == 0.0 and delta.detectable is None


def shown_items(line: QueryDelta) -> tuple[ItemMove, ...]:
    """Return the items worth showing: the first five of either run, and what is relevant."""
    return tuple(
        item
        for item in line.items
        if item.relevance in ("relevant", "right document")
        or min(item.baseline_rank or _TOP + 1, item.candidate_rank or _TOP + 1) <= _TOP
    )


def move_text(item: ItemMove) -> str:
    if item.baseline_rank is None or item.candidate_rank is None or item.movement == "same":
        return MOVES[item.movement]
    return f"{MOVES[item.movement]}{abs(item.candidate_rank - item.baseline_rank)}"


def rank_text(rank: int | None) -> str:
    return DASH if rank is None else str(rank)


def judgment_text(change: JudgmentChange) -> str:
    """Return how much of a metric's change comes from the judgments, and how much from retrieval.

    The records show the total; the two parts add up to it.
    """
    return (
        f"{change.metric} by the records {number(change.baseline_by_old)} → "
        f"{number(change.candidate_by_new)}, {signed(change.total)}: "
        f"{signed(change.from_judgments)} from changed judgments, "
        f"{signed(change.from_retrieval)} from retrieval (n = {change.n})"
    )


def latency_text(comparison: Comparison) -> str:
    old, new = comparison.baseline.latency_ms, comparison.candidate.latency_ms
    parts = [f"{n} {milliseconds(old.get(n))} → {milliseconds(new.get(n))}" for n in ("p50", "p95")]
    return f"Latency {', '.join(parts)} (each run by itself; load decides too)."


def failed_text(comparison: Comparison, quote: Quote = str) -> str:
    sides = (comparison.baseline, comparison.candidate)
    text = "Failed queries: " + " → ".join(f"{len(s.failed)} of {s.queries}" for s in sides)
    named = [
        f"{quote(label)}: {', '.join(map(quote, side.failed[:10]))}"
        + (f" and {len(side.failed) - 10} more" if len(side.failed) > 10 else "")
        for label, side in zip(labels(comparison), sides, strict=True)
        if side.failed
    ]
    return f"{text} ({'; '.join(named)}); they score 0." if named else f"{text}."


def signed(value: float | None, digits: int = 3) -> str:
    """Return a difference with its sign; a dash where nothing was measured."""
    if value is None:
        return DASH
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return text
    return ("+" if value > 0 else "−") + text


def interval_text(delta: Delta) -> str:
    return DASH if delta.ci95 is None else " to ".join(map(signed, delta.ci95))


def p_text(p: float) -> str:
    """Return a p-value as ``p = 0.046``; more digits where three would hide the side of 0.05."""
    return f"p {p_value(p)}" if p_value(p).startswith("<") else f"p = {p_value(p)}"


def p_value(p: float) -> str:
    if p < 0.001:
        return "< 0.001"
    if p == 1:
        return "1"
    return f"{p:.4f}" if abs(p - ALPHA) < 0.0005 else f"{p:.3f}"


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
