"""A sweep: one lever, or several, over many values, each held against one base value.

Everything is told and nothing is chosen: the best of many values looks better on the queries that
chose it than it is. A holdout says how much.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kebab_eval.diagnosis import relevant_items
from kebab_eval.metrics import default_registry
from kebab_eval.records import GoldenQuery
from kebab_eval.stats import detectable_difference, holm, mean_intervals, randomisation_test

SWEEP_SCHEMA = "kebab_eval.sweep.v1"
MAX_TESTED = 50
"""Of more values none is tested: a sweep of hundreds is a curve to look at, and Holm's correction
for them would leave nothing."""

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values, and what it scored.

    Attributes:
        values: of each key, in the order of the sweep's keys.
        metrics: metric -> mean over the scored queries.
        n: how many queries the primary metric scores here and at the base.
        delta, ci95: mean difference from the base over those, and its 95 % interval.
        p_value, p_holm: of the paired test, None where too many values were swept, and at the base.
        detectable: the difference that so many queries show four times out of five.
        answered, refused: the two sides of a gate, None where the set has no such query.
        run_id: the run behind it, empty for a replay.
    """

    values: tuple[Any, ...]
    metrics: Mapping[str, float | None]
    n: int
    delta: float | None
    ci95: tuple[float, float] | None
    p_value: float | None = None
    p_holm: float | None = None
    detectable: float | None = None
    answered: float | None = None
    refused: float | None = None
    run_id: str = ""

    @property
    def better(self) -> bool | None:
        """Whether the difference is beyond chance upwards (True), downwards (False), or neither."""
        if self.p_holm is None or self.p_holm > 0.05 or not self.delta:
            return None
        return self.delta > 0


@dataclass(frozen=True, slots=True)
class Gate:
    """A threshold that answers and refuses rightly most often, over both kinds of queries.

    ``balanced`` is the mean of both rates. ``ci95`` is where the best threshold lies when the
    queries are drawn anew.
    """

    threshold: float
    answered: float
    refused: float
    balanced: float
    ci95: tuple[float, float]
    n_answerable: int
    n_refusable: int


@dataclass(frozen=True, slots=True)
class Holdout:
    """What the choice on one part of the queries is worth on the other."""

    fraction: float
    values: tuple[Any, ...]
    chosen_on: int
    gain_there: float
    held_out: int
    gain: float
    ci95: tuple[float, float] | None
    p_value: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """Every point of a grid, in its order; ``base`` is the place of what they are held to."""

    name: str
    keys: tuple[str, ...]
    points: tuple[Point, ...]
    base: int
    base_said: str
    primary: str
    direction: str
    queries: int
    golden: Mapping[str, Any]
    gate: Gate | None = None
    holdout: Holdout | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def tested(self) -> bool:
        return len(self.points) - 1 <= MAX_TESTED

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SWEEP_SCHEMA,
            "name": self.name,
            "keys": list(self.keys),
            "primary": self.primary,
            "queries": self.queries,
            "golden": dict(self.golden),
            "base": self._values(self.points[self.base].values),
            "points": [
                {
                    "values": self._values(point.values),
                    "metrics": dict(point.metrics),
                    "n": point.n,
                    "delta": point.delta,
                    "ci95": None if point.ci95 is None else list(point.ci95),
                    "p_value": point.p_value,
                    "p_holm": point.p_holm,
                    "detectable": point.detectable,
                    "answered_rightly": point.answered,
                    "refused_rightly": point.refused,
                    "run_id": point.run_id or None,
                }
                for point in self.points
            ],
            "gate": self.gate
            and {
                "threshold": self.gate.threshold,
                "answered_rightly": self.gate.answered,
                "refused_rightly": self.gate.refused,
                "balanced": self.gate.balanced,
                "ci95": list(self.gate.ci95),
                "answerable": self.gate.n_answerable,
                "without_an_answer": self.gate.n_refusable,
            },
            "holdout": self.holdout
            and {
                "fraction": self.holdout.fraction,
                "values": self._values(self.holdout.values),
                "chosen_on": self.holdout.chosen_on,
                "gain_there": self.holdout.gain_there,
                "held_out": self.holdout.held_out,
                "gain": self.holdout.gain,
                "ci95": None if self.holdout.ci95 is None else list(self.holdout.ci95),
                "p_value": self.holdout.p_value,
            },
            "notes": list(self.notes),
        }

    def _values(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.keys, values, strict=True))


@dataclass(frozen=True, slots=True)
class Measured:
    """What each point did on each query, in the order of ``queries``.

    Args:
        columns: metric -> float64, (n_points, n_queries), NaN where it is not scored.
        found: bool, (n_points, n_queries), something relevant came back.
        empty: bool, (n_points, n_queries), nothing came back, and not by a failure.
    """

    queries: Sequence[GoldenQuery]
    columns: Mapping[str, FloatArray]
    found: BoolArray
    empty: BoolArray


def points_of(
    combinations: Sequence[tuple[Any, ...]],
    measured: Measured,
    primary: str,
    base: int,
    *,
    seed: int = 0,
    run_ids: Sequence[str] = (),
    min_relevance: float = 1.0,
) -> tuple[Point, ...]:
    """Return the points of a sweep, each held against the one at ``base``.

    Points that scored alike on every query share their statistics, so that a lever that does
    nothing over a wide range costs nothing there.
    """
    column = measured.columns[primary]
    changes: dict[bytes, dict[str, Any]] = {}
    keys = []
    for row in column:
        scored = ~(np.isnan(row) | np.isnan(column[base]))
        change = (row - column[base])[scored]
        key = change.tobytes()
        changes.setdefault(key, {"change": change, "n": len(change)})
        keys.append(key)
    _intervals(list(changes.values()), seed)
    distinct = {key for place, key in enumerate(keys) if place != base}
    if len(combinations) - 1 <= MAX_TESTED:
        for key in distinct:
            changes[key]["p"] = randomisation_test(changes[key]["change"], seed=seed)
    tested = [place for place in range(len(keys)) if place != base and "p" in changes[keys[place]]]
    corrected = dict(
        zip(tested, holm([changes[keys[place]]["p"] for place in tested]), strict=True)
    )
    answered, refused = _rates(measured, min_relevance)
    points = []
    for place, values in enumerate(combinations):
        found = changes[keys[place]]
        n = found["n"]
        points.append(
            Point(
                values=values,
                metrics={name: _mean(rows[place]) for name, rows in measured.columns.items()},
                n=n,
                delta=math.fsum(found["change"].tolist()) / n if n else None,
                ci95=found.get("ci95"),
                p_value=found["p"] if place in corrected else None,
                p_holm=corrected.get(place),
                detectable=None if place == base else found["detectable"],
                answered=None if answered is None else answered[place],
                refused=None if refused is None else refused[place],
                run_id=run_ids[place] if run_ids else "",
            )
        )
    return tuple(points)


def _intervals(changes: Sequence[dict[str, Any]], seed: int) -> None:
    """Add the interval and the detectable difference of each distinct change."""
    by_n: dict[int, list[dict[str, Any]]] = {}
    for one in changes:
        one["detectable"] = detectable_difference(one["change"]) or None
        by_n.setdefault(one["n"], []).append(one)
    for n, several in by_n.items():
        if n >= 2:
            columns = np.column_stack([one["change"] for one in several])
            for one, (low, high) in zip(
                several, mean_intervals(columns, seed=seed).tolist(), strict=True
            ):
                one["ci95"] = (low, high)


def _mean(row: FloatArray) -> float | None:
    scored = row[~np.isnan(row)].tolist()
    return math.fsum(scored) / len(scored) if scored else None


def _kinds(queries: Sequence[GoldenQuery], min_relevance: float) -> tuple[BoolArray, BoolArray]:
    """Return which queries are answerable, and which ones should be refused."""
    answerable = [bool(relevant_items(query, min_relevance)[1]) for query in queries]
    refusable = [query.should_refuse for query in queries]
    return np.array(answerable, dtype=bool), np.array(refusable, dtype=bool)


def _rates(
    measured: Measured, min_relevance: float
) -> tuple[list[float] | None, list[float] | None]:
    answerable, refusable = _kinds(measured.queries, min_relevance)
    answered = measured.found[:, answerable].mean(axis=1).tolist() if answerable.any() else None
    refused = measured.empty[:, refusable].mean(axis=1).tolist() if refusable.any() else None
    return answered, refused


def best_gate(
    thresholds: Sequence[float | None],
    measured: Measured,
    *,
    min_relevance: float = 1.0,
    seed: int = 0,
    draws: int = 1000,
) -> Gate | None:
    """Return the threshold of the highest balanced rate; of equal ones the lowest.

    Its interval is the middle 95 % of the best thresholds of resamples, each kind of query drawn by
    itself. None where a set has not both kinds.

    Args:
        thresholds: of each point; None is no gate, and no candidate.
    """
    answerable, refusable = _kinds(measured.queries, min_relevance)
    places = sorted(
        (place for place, one in enumerate(thresholds) if one is not None),
        key=lambda place: float(thresholds[place] or 0.0),
    )
    if not answerable.any() or not refusable.any() or not places:
        return None
    numbers = [float(thresholds[place] or 0.0) for place in places]
    right = [
        measured.found[places][:, answerable].astype(np.float64),
        measured.empty[places][:, refusable].astype(np.float64),
    ]
    rates = [one.mean(axis=1) for one in right]
    balanced = (rates[0] + rates[1]) / 2
    best = int(balanced.argmax())
    source = np.random.PCG64(seed)
    bests = []
    for _ in range(draws):
        drawn = [one[:, _draw(source, one.shape[1])].mean(axis=1) for one in right]
        bests.append(int(((drawn[0] + drawn[1]) / 2).argmax()))
    low, high = np.quantile([numbers[place] for place in bests], (0.025, 0.975)).tolist()
    return Gate(
        threshold=numbers[best],
        answered=float(rates[0][best]),
        refused=float(rates[1][best]),
        balanced=float(balanced[best]),
        ci95=(low, high),
        n_answerable=int(answerable.sum()),
        n_refusable=int(refusable.sum()),
    )


def _draw(source: np.random.PCG64, n: int) -> NDArray[np.int64]:
    words = np.asarray(source.random_raw(n), dtype=np.uint64) >> np.uint64(32)
    drawn: NDArray[np.int64] = (words * np.uint64(n) >> np.uint64(32)).astype(np.int64)
    return drawn


def hold_out(
    combinations: Sequence[tuple[Any, ...]],
    measured: Measured,
    primary: str,
    base: int,
    fraction: float,
    *,
    seed: int = 0,
) -> Holdout | None:
    """Choose the best point on one part of the queries, and say what it is worth on the other.

    Paraphrases of one intent stay together. None where a part has no scored query.
    """
    held = np.array([_held_out(query, fraction, seed) for query in measured.queries], dtype=bool)
    column = measured.columns[primary]
    scored = ~np.isnan(column).any(axis=0)
    choosing, rest = column[:, scored & ~held], column[:, scored & held]
    if not choosing.shape[1] or not rest.shape[1]:
        return None
    lower = default_registry().parse(primary).direction == "lower"
    means = choosing.mean(axis=1)
    best = int((-means if lower else means).argmax())
    change = rest[best] - rest[base]
    interval = None
    if len(change) >= 2:
        low, high = mean_intervals(change.reshape(-1, 1), seed=seed)[0].tolist()
        interval = (low, high)
    return Holdout(
        fraction=fraction,
        values=combinations[best],
        chosen_on=choosing.shape[1],
        gain_there=float(means[best] - means[base]),
        held_out=rest.shape[1],
        gain=math.fsum(change.tolist()) / len(change),
        ci95=interval,
        p_value=randomisation_test(change, seed=seed),
    )


def _held_out(query: GoldenQuery, fraction: float, seed: int) -> bool:
    """Decide by a hash of the group: the same part in every sweep of a golden set."""
    name = f"{seed}:{query.group or query.query_id}".encode("utf-8", "backslashreplace")
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") < fraction * 2**64
