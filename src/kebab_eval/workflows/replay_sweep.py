"""A sweep over a recorded run: every combination from its candidates, without a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from kebab_eval.config import Fusion, Search
from kebab_eval.engine.recorded import Hits, RecordedCandidates, Settings
from kebab_eval.errors import Fault, MetricError, UsageError, nearest
from kebab_eval.grids import Grid
from kebab_eval.metrics import default_registry
from kebab_eval.metrics.registry import Metric
from kebab_eval.records import EvalRun
from kebab_eval.sweeping import Measured
from kebab_eval.workflows.lookup import locate_run, with_candidates

Combination = tuple[Any, ...]
Progress = Callable[[str, int, int], None]
REPLAYED = (
    "search.mode",
    "search.k",
    "search.depth",
    "fusion.method",
    "fusion.depth",
    "fusion.normalize",
    "fusion.rrf_k",
    "fusion.weights.lexical",
    "fusion.weights.vector",
    "score_gate",
)
"""The levers behind the channels; every other one changes what a search would find."""
_MODES = ("hybrid", "lexical", "vector")
_RANKINGS = 64  # kept at once, a few MB each at 10,000 queries
_GATE: TypeAdapter[float | None] = TypeAdapter(
    Annotated[float, Field(allow_inf_nan=False)] | None, config={"strict": True}
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay measured; ``base`` is the place of the run's own combination."""

    run: EvalRun
    combinations: tuple[Combination, ...]
    base: int
    measured: Measured
    notes: tuple[str, ...]


def replay(
    reference: str,
    grid: Grid,
    metrics: Sequence[str],
    progress: Progress,
    tracking_uri: str | None = None,
) -> Replayed:
    """Compute every combination of a grid from the candidates that a run recorded.

    The run's own combination comes first where the grid does not hold it.

    Args:
        reference: what names the run.
        metrics: which ones; the run's primary metric is always there.

    Raises:
        UsageError: with every fault: no such run, no candidates in it, a key that needs a search, a
            value that is none, more depth than was recorded.
        MetricError: a metric that does not follow from the hits.
        RecordError: the record is damaged.
    """
    found = locate_run(reference, tracking_uri)
    run = with_candidates(found.run, found.folder)
    if not any(result.candidates for result in run.results):
        message = (
            f"{run.name} has no candidates on record; the embedded engine and kebab record them, "
            "in runs that are here as a record"
        )
        raise UsageError(Fault("--replay", message))
    base = _base(run)
    settings = _checked(run, grid, base)
    own = tuple(base[key] for key in grid.keys)
    combinations = [*grid.combinations()]
    if own not in combinations:
        combinations.insert(0, own)
    chosen = [settings(dict(zip(grid.keys, values, strict=True))) for values in combinations]
    pruned = max(one.k for one in chosen) if all(_is_rrf(one) for one in chosen) else None
    results = {result.query_id: result for result in run.results}
    recorded = RecordedCandidates(run.golden, results, pruned)
    wanted = _metrics(run, metrics)
    measured = _measure(recorded, chosen, wanted, progress)
    notes = _differs(run, recorded, settings({}))
    return Replayed(run, tuple(combinations), combinations.index(own), measured, notes)


def _is_rrf(settings: Settings) -> bool:
    return settings.mode != "hybrid" or settings.fusion.method == "rrf"


def _base(run: EvalRun) -> dict[str, Any]:
    """Return the run's own value of each lever; a system's own snapshot goes before the config."""
    config = run.config
    values: dict[str, Any] = {}
    for key in REPLAYED:
        node: Any = config
        for step in key.split("."):
            node = node.get(step) if isinstance(node, Mapping) else None
        values[key] = node
    told = run.info["system"].get("rrf_k")
    if run.config["backend"]["type"] != "embedded" and isinstance(told, int | float):
        values["fusion.rrf_k"] = told
    return values


def _checked(
    run: EvalRun, grid: Grid, base: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], Settings]:
    """Return a function that makes the settings of a combination, every value being right.

    Raises:
        UsageError: with every fault.
    """
    faults = [
        Fault(f"--grid {axis.key}", _not_replayed(axis.key))
        for axis in grid.axes
        if axis.key not in REPLAYED
    ]
    known = Grid(tuple(axis for axis in grid.axes if axis.key in REPLAYED))
    faults += _impossible(known, base)
    channels = {name for result in run.results for name in result.candidates}
    limit = _recorded_depth(run)
    for axis in known.axes:
        for value in axis.values:
            place = f"--grid {axis.key}={_shown(value)}"
            if axis.key in ("search.depth", "fusion.depth") and _above(value, limit):
                message = (
                    f"the run recorded {limit} candidates of each channel; record one with "
                    f"-S search.depth={value} and replay that"
                )
                faults.append(Fault(place, message))
            needed = {"hybrid": {"lexical", "vector"}}.get(value, {value})
            if axis.key == "search.mode" and value in _MODES and not needed <= channels:
                message = (
                    f"the run recorded no {' or '.join(sorted(needed - channels))} candidates; "
                    "replay a run in hybrid mode"
                )
                faults.append(Fault(place, message))
    if faults:
        raise UsageError(faults)
    return lambda values: _settings({**base, **values})


def _not_replayed(key: str) -> str:
    hint = nearest(key, REPLAYED) or f"; a replay moves {', '.join(REPLAYED)}"
    return f"needs a search{hint}; leave --replay out to run each value"


def _above(value: Any, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > limit


def _impossible(grid: Grid, base: Mapping[str, Any]) -> list[Fault]:
    """Return the values that can be none, and the combinations of others that are none."""
    good: set[tuple[str, str]] = set()
    bad: dict[tuple[tuple[str, str], ...], str] = {}
    for values in grid.combinations():
        given = dict(zip(grid.keys, values, strict=True))
        named = tuple((key, _shown(value)) for key, value in given.items())
        said = _wrong({**base, **given})
        if said is None:
            good.update(named)
        else:
            bad[named] = said
    faults = []
    guilty: set[tuple[str, str]] = set()
    for axis in grid.axes:
        for value in axis.values:
            one = (axis.key, _shown(value))
            # Beside the run's own values it may be wrong, and right beside others of the grid.
            said = None if one in good else _wrong({**base, axis.key: value})
            if said is not None:
                guilty.add(one)
                faults.append(Fault(f"--grid {axis.key}={one[1]}", said))
    for named, said in bad.items():
        if guilty.isdisjoint(named):
            place = ", ".join(f"--grid {key}={value}" for key, value in named)
            faults.append(Fault(place, said))
    return faults


def _wrong(values: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the values of a combination, None where nothing is."""
    try:
        _settings(values)
    except ValidationError as wrong:
        said = wrong.errors()[0]["msg"].removeprefix("Value error, ")
        return f"{said[:1].lower()}{said[1:]}"
    return None


def _recorded_depth(run: EvalRun) -> int:
    if run.config["backend"]["type"] == "embedded":
        return int(run.config["search"]["depth"])
    lengths = (len(r) for result in run.results for r in result.candidates.values())
    return max(lengths, default=0)


def _settings(values: Mapping[str, Any]) -> Settings:
    """Return the settings of a combination.

    Raises:
        ValidationError: a value is none that the config would take.
    """
    search = Search.model_validate({key: values[f"search.{key}"] for key in ("mode", "k", "depth")})
    weights = {
        name: 1.0 if (given := values[f"fusion.weights.{name}"]) is None else given
        for name in ("lexical", "vector")
    }
    fusion = Fusion.model_validate(
        {
            "method": values["fusion.method"] or "rrf",
            "depth": values["fusion.depth"],
            "normalize": values["fusion.normalize"],
            "rrf_k": values["fusion.rrf_k"],
            "weights": weights,
        }
    )
    gate = _GATE.validate_python(values["score_gate"])
    return Settings(search.mode, search.k, search.depth, fusion, gate)


def check_ranked(names: Sequence[str]) -> None:
    """Hold that metrics follow from a ranking.

    Raises:
        MetricError: with every one that does not.
    """
    wrong = [
        Fault(f"--metric {metric.name}", f"say {metric.name}_chunk or {metric.name}_doc")
        if metric.family.kernel is not None
        else Fault(f"--metric {metric.name}", "does not follow from a ranking")
        for metric in default_registry().parse_all(names)
        if metric.level is None and metric.family.name != "span_recall"
    ]
    if wrong:
        raise MetricError(wrong)


def _metrics(run: EvalRun, names: Sequence[str]) -> dict[str, Metric]:
    registry = default_registry()
    primary = str(run.config["metrics"]["primary"])
    chosen = registry.parse_all([primary, *names])
    return {metric.name: metric for metric in chosen}


def _measure(
    recorded: RecordedCandidates,
    chosen: Sequence[Settings],
    metrics: Mapping[str, Metric],
    progress: Progress,
) -> Measured:
    shape = (len(chosen), len(recorded.queries))
    columns = {name: np.full(shape, np.nan) for name in metrics}
    found, empty = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    by_chunk = np.array([bool(q.judgments.chunk or q.spans) for q in recorded.queries], dtype=bool)
    answered = recorded.answered
    # Settings that differ in the gate alone have one ranking.
    ranked: dict[tuple[Any, ...], Hits] = {}
    for place, one in enumerate(chosen):
        key = (one.mode, one.k, one.depth, one.fusion.model_dump_json())
        if key not in ranked:
            if len(ranked) >= _RANKINGS:
                ranked.clear()
            ranked[key] = recorded.hits(one)
        hits = ranked[key].gated(one.score_gate)
        tables = {level: recorded.rank_table(hits, level) for level in ("chunk", "doc")}
        for name, metric in metrics.items():
            columns[name][place] = (
                metric.compute(tables[metric.level])
                if metric.level is not None
                else recorded.values(hits, metric)
            )
        least = recorded.golden.min_relevance
        relevant = {
            level: table.per_query((table.rank > 0) & (table.grade >= least)) > 0
            for level, table in tables.items()
        }
        found[place] = np.where(by_chunk, relevant["chunk"], relevant["doc"])
        empty[place] = (hits.count == 0) & answered
        progress("combinations", place + 1, len(chosen))
    return Measured(recorded.queries, columns, found, empty)


def _differs(run: EvalRun, recorded: RecordedCandidates, own: Settings) -> tuple[str, ...]:
    """Hold the replay of the run's own settings against what it returned."""
    hits = recorded.hits(own).gated(own.score_gate)
    results = {result.query_id: result for result in run.results}
    wrong = 0
    for number, query in enumerate(recorded.queries):
        result = results[query.query_id]
        if result.error is None:
            count = int(hits.count[number])
            ids = [recorded.ids[number][item] for item in hits.order[number, :count]]
            wrong += ids != [hit.chunk_id for hit in result.hits]
    if not wrong:
        return ()
    return (
        f"replaying the run's own settings gives other hits than it returned for {wrong} of "
        f"{len(recorded.queries)} queries: the system does more than this fusion, and the values "
        "are those of the fusion alone",
    )


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)
