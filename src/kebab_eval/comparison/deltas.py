"""The metrics of two runs: differences with their statistics, for the whole and for slices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kebab_eval.comparison.model import Delta, JudgmentChange, SliceDelta
from kebab_eval.comparison.pairs import Answer, Pair, judged_by, pair_up, paired_values
from kebab_eval.metrics import default_registry
from kebab_eval.metrics.slices import FIELDS, slice_values
from kebab_eval.records import EvalRun
from kebab_eval.stats import detectable_difference, holm, mean_intervals, randomisation_test


def metric_deltas(pairs: Sequence[Pair], names: Sequence[str], seed: int) -> dict[str, Delta]:
    """Return the delta of each metric, by its name."""
    columns = [paired_values(pairs, name) for name in names]
    return {delta.metric: delta for delta in _tested(names, columns, seed)}


def _tested(
    names: Sequence[str], columns: Sequence[Sequence[tuple[float, float]]], seed: int
) -> list[Delta]:
    """Return the delta of each column of paired values, Holm over all of them that have any."""
    arrays = [np.array(column, dtype=np.float64).reshape(-1, 2) for column in columns]
    changes = [array[:, 1] - array[:, 0] for array in arrays]
    intervals: dict[int, tuple[float, float]] = {}
    by_n: dict[int, list[int]] = {}
    for place, change in enumerate(changes):
        by_n.setdefault(len(change), []).append(place)
    for n, places in by_n.items():  # columns of one length share their resamples
        if n >= 2:
            bounds = mean_intervals(np.column_stack([changes[p] for p in places]), seed=seed)
            intervals |= {
                place: (low, high)
                for place, (low, high) in zip(places, bounds.tolist(), strict=True)
            }
    p_values = [randomisation_test(change, seed=seed) for change in changes]
    measured = [place for place, change in enumerate(changes) if len(change)]
    corrected = dict(zip(measured, holm([p_values[p] for p in measured]), strict=True))
    registry = default_registry()
    deltas = []
    for place, (name, array, change) in enumerate(zip(names, arrays, changes, strict=True)):
        n = len(change)
        before, after, mean = (
            (math.fsum(v.tolist()) / n if n else None) for v in (array[:, 0], array[:, 1], change)
        )
        deltas.append(
            Delta(
                metric=name,
                baseline=before,
                candidate=after,
                delta=mean,
                ci95=intervals.get(place),
                p_value=p_values[place],
                p_holm=corrected.get(place, 1.0),
                detectable=detectable_difference(change) or None,
                n=n,
                direction=registry.parse(name).direction,
            )
        )
    return deltas


def primary_kind(pair: Pair, primary: Delta) -> str | None:
    """Return win, loss or draw by the primary metric, None where it is not scored in both."""
    values = paired_values([pair], primary.metric)
    if not values:
        return None
    before, after = values[0]
    if before == after:
        return "draw"
    return "win" if (after > before) == (primary.direction == "higher") else "loss"


def slice_deltas(pairs: Sequence[Pair], whole: Delta, seed: int) -> tuple[SliceDelta, ...]:
    """Return the primary metric in each slice.

    Groups of paraphrases are left out, and tags that are nearly as many as queries: their slices
    hold too little to say anything.
    """
    members: dict[str, dict[str, list[Pair]]] = {}
    for pair in pairs:
        if paired_values([pair], whole.metric):
            for field, value in slice_values(pair[0].golden).items():
                members.setdefault(field, {}).setdefault(value, []).append(pair)
    fields = [field for field in FIELDS if field in members and field != "group"]
    fields += sorted(field for field in members if field not in FIELDS)
    cells = [
        (field, value, paired_values(members[field][value], whole.metric))
        for field in fields
        if 1 < len(members[field]) <= max(2, whole.n // 2)
        for value in sorted(members[field])
    ]
    deltas = _tested([whole.metric] * len(cells), [values for _, _, values in cells], seed)
    return tuple(
        SliceDelta(field, value, delta, (delta.delta or 0.0) * (whole.delta or 0.0) < 0)
        for (field, value, _), delta in zip(cells, deltas, strict=True)
    )


def judgment_changes(
    baseline: EvalRun, candidate: EvalRun, names: Sequence[str]
) -> tuple[JudgmentChange, ...]:
    """Return, for each metric, what the change of the golden set did and what retrieval did."""
    by_old = pair_up(baseline, judged_by(candidate, baseline), names)
    by_new = pair_up(judged_by(baseline, candidate), candidate, names)
    old = {pair[0].golden.query_id: pair for pair in by_old}
    quads = [
        (*old[pair[0].golden.query_id], *pair) for pair in by_new if pair[0].golden.query_id in old
    ]
    found = []
    for name in names:
        scored = [quad for quad in quads if all(name in answer.values for answer in quad)]
        if scored:
            found.append(_split(name, scored))
    return tuple(found)


def _split(name: str, scored: Sequence[tuple[Answer, ...]]) -> JudgmentChange:
    base_old, cand_old, base_new, cand_new = (
        math.fsum(quad[place].values[name] for quad in scored) / len(scored) for place in range(4)
    )
    return JudgmentChange(
        metric=name,
        n=len(scored),
        baseline_by_old=base_old,
        baseline_by_new=base_new,
        candidate_by_old=cand_old,
        candidate_by_new=cand_new,
        total=cand_new - base_old,
        from_judgments=((base_new - base_old) + (cand_new - cand_old)) / 2,
        from_retrieval=((cand_old - base_old) + (cand_new - base_new)) / 2,
    )
