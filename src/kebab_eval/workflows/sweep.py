"""A sweep: every combination of a grid, run or replayed, held against one of them, and logged."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kebab_eval.config_file import LoadedConfig, load_config
from kebab_eval.diagnosis import relevant_items
from kebab_eval.errors import (
    ConfigError,
    Fault,
    InputError,
    Interrupted,
    TrackerError,
    UsageError,
)
from kebab_eval.grids import Grid, parse_grids
from kebab_eval.levers import NOT_LEVERS
from kebab_eval.metrics import default_registry, evaluate_run
from kebab_eval.metrics.ranktable import normalise_id
from kebab_eval.records import EvalRun, GoldenQuery, QueryResult
from kebab_eval.reports.sweep import render_sweep, sweep_files
from kebab_eval.sweeping import Measured, Sweep, best_gate, hold_out, points_of
from kebab_eval.tracking.keys import key_part
from kebab_eval.tracking.parents import ParentRun, Series
from kebab_eval.tracking.store import resolve_store
from kebab_eval.workflows.evaluate import Outcome, Request, evaluate
from kebab_eval.workflows.replay_sweep import Combination, Replayed, check_ranked, replay

Progress = Callable[[str, int, int], None]
MAX_RUNS = 50
"""Runs of a sweep that nobody confirmed: each asks the whole golden set."""


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """What the user asked for; ``request`` is what every run has in common."""

    grids: tuple[str, ...]
    request: Request | None = None
    replay: str | None = None
    metrics: tuple[str, ...] = ()
    holdout: float | None = None
    track: bool = True
    confirmed: bool = False
    experiment: str | None = None
    tracking_uri: str | None = None


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    """A sweep, and its MLflow run if it has one."""

    sweep: Sweep
    outcomes: tuple[Outcome, ...] = ()
    ui_url: str | None = None
    warning: str = ""
    """What went wrong with the sweep's own MLflow run: the table is there all the same."""


def run_sweep(asked: SweepRequest, progress: Progress) -> SweepOutcome:
    """Run or replay every combination.

    Raises:
        InputError: a grid, a value, a config or a run name is wrong; nothing was run.
        BackendError, RecordError, TrackerError, Interrupted: as an evaluation does; what was run
            stays.
    """
    grid = parse_grids(asked.grids)
    check_ranked(asked.metrics)
    if not grid.axes:
        raise UsageError(Fault("--grid", "missing; say what to move, as in fusion.rrf_k=1,10,60"))
    if asked.replay is not None:
        return _replayed(asked, grid, progress)
    if asked.request is None:
        message = "missing; name the config to run, or a recorded run with --replay"
        raise UsageError(Fault("--config", message))
    return _run(asked, asked.request, grid, progress)


# --- replayed ---------------------------------------------------------------------------------


def _replayed(asked: SweepRequest, grid: Grid, progress: Progress) -> SweepOutcome:
    done = replay(str(asked.replay), grid, asked.metrics, progress, asked.tracking_uri)
    sweep = _sweep(
        asked,
        grid,
        done.run,
        (done.combinations, done.base),
        done.measured,
        name=f"sweep of {done.run.name}, replayed",
        base_said=f"what {done.run.name} ran with",
        notes=done.notes,
    )
    return _log_replay(asked, done, sweep) if asked.track else SweepOutcome(sweep)


def _log_replay(asked: SweepRequest, done: Replayed, sweep: Sweep) -> SweepOutcome:
    tracking = done.run.config.get("tracking") or {}
    store = resolve_store(asked.tracking_uri, tracking.get("uri"))
    experiment = asked.experiment or str(done.run.config["experiment"])
    tags = {"kebab_eval.sweep": "replay", "kebab_eval.sweep_of": done.run.run_id}
    try:
        parent = ParentRun(store, experiment, sweep.name, tags)
    except TrackerError as failure:
        return SweepOutcome(sweep, warning=f"the table is not in MLflow: {failure}")
    return _finished(SweepOutcome(sweep), parent)


# --- run --------------------------------------------------------------------------------------


def _run(asked: SweepRequest, request: Request, grid: Grid, progress: Progress) -> SweepOutcome:
    combinations = list(grid.combinations())
    loaded = _checked(request, grid, combinations)
    if len(combinations) > MAX_RUNS and not asked.confirmed:
        message = (
            f"{len(combinations)} runs of the whole golden set; say --yes, narrow the grid, or "
            "--replay a recorded run, which takes no search"
        )
        raise UsageError(Fault("--grid", message))
    base = _own(loaded, grid, combinations)
    name = f"sweep of {loaded.snapshot['name']}"
    parent = None
    if asked.track:
        store = resolve_store(asked.tracking_uri, loaded.config.tracking.uri)
        tags = {"kebab_eval.sweep": "runs"}
        parent = ParentRun(store, str(loaded.snapshot["experiment"]), name, tags)
    outcomes: list[Outcome] = []
    try:
        for number, values in enumerate(combinations):
            progress("runs", number, len(combinations))
            one = replace(
                request,
                overrides=(*request.overrides, *_overrides(grid, values)),
                tags={**request.tags, **(parent.child_tags if parent else {})},
                command=_command(request, grid, values),
            )
            outcomes.append(evaluate(one, progress, track=asked.track))
        progress("runs", len(combinations), len(combinations))
        sweep = _of_runs(asked, grid, (combinations, base), outcomes, name)
    except BaseException as failure:
        if parent is not None:
            stopped = isinstance(failure, KeyboardInterrupt | Interrupted)
            parent.abandon("KILLED" if stopped else "FAILED")
        raise
    done = SweepOutcome(sweep, tuple(outcomes))
    return done if parent is None else _finished(done, parent)


def _checked(request: Request, grid: Grid, combinations: Sequence[Combination]) -> LoadedConfig:
    """Return the config as it is, every combination of it being a config too.

    Raises:
        ConfigError: with every fault, each once.
        UsageError: a key that is no lever.
    """
    loaded = load_config(request.config_path, request.overrides)
    faults: dict[str, Fault] = {}
    for key in grid.keys:
        if key in NOT_LEVERS or key.partition(".")[0] in (*NOT_LEVERS, "metrics"):
            message = "is no lever: it decides what a run is called, asked or judged by"
            faults[key] = Fault(f"--grid {key}", message)
    if faults:
        raise UsageError(list(faults.values()))
    for values in combinations:
        try:
            load_config(request.config_path, (*request.overrides, *_overrides(grid, values)))
        except InputError as wrong:
            for fault in wrong.faults:
                faults.setdefault(str(fault), fault)
    if faults:
        raise ConfigError(list(faults.values()))
    return loaded


def _overrides(grid: Grid, values: Combination) -> tuple[str, ...]:
    return tuple(
        f"{key}={json.dumps(value, ensure_ascii=False)}"
        for key, value in zip(grid.keys, values, strict=True)
    )


def _command(request: Request, grid: Grid, values: Combination) -> str:
    more = [word for override in _overrides(grid, values) for word in ("-S", override)]
    return f"{request.command} {shlex.join(more)}" if request.command else ""


def _own(loaded: LoadedConfig, grid: Grid, combinations: Sequence[Combination]) -> int:
    """Return the place of the config's own combination, else the first."""
    own = []
    for key in grid.keys:
        node: Any = loaded.snapshot
        for step in key.split("."):
            node = node.get(step) if isinstance(node, Mapping) else None
        own.append(node)
    return combinations.index(tuple(own)) if tuple(own) in combinations else 0


def _of_runs(
    asked: SweepRequest,
    grid: Grid,
    tried: tuple[Sequence[Combination], int],
    outcomes: Sequence[Outcome],
    name: str,
) -> Sweep:
    runs = [outcome.run for outcome in outcomes]
    first = runs[tried[1]]
    primary = str(first.config["metrics"]["primary"])
    names = [metric.name for metric in default_registry().parse_all([primary, *asked.metrics])]
    return _sweep(
        asked,
        grid,
        first,
        tried,
        _measured(runs, names),
        name=name,
        base_said="the base of the grid" if tried[1] else "the first of the grid",
        run_ids=[run.run_id for run in runs],
        notes=_failed(runs),
    )


def _measured(runs: Sequence[EvalRun], names: Sequence[str]) -> Measured:
    queries = runs[0].golden.queries
    shape = (len(runs), len(queries))
    columns = {name: np.full(shape, np.nan) for name in names}
    found, empty = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for place, run in enumerate(runs):
        scores = _scores(run, names)
        golden = {query.query_id: query for query in run.golden.queries}
        results = {result.query_id: result for result in run.results}
        for number, query in enumerate(queries):
            result = results.get(query.query_id)
            if result is None:
                continue
            for name in names:
                columns[name][place, number] = scores[query.query_id].get(name, np.nan)
            own = golden[query.query_id]  # its spans are those of this run's chunks
            found[place, number] = _found(own, result, run.golden.min_relevance)
            empty[place, number] = result.error is None and not result.hits
    return Measured(queries, columns, found, empty)


def _scores(run: EvalRun, names: Sequence[str]) -> Mapping[str, Mapping[str, float]]:
    """Return query id -> its metrics; those that the run was not scored with are computed."""
    if all(name in run.aggregate["metrics"] for name in names):
        return {result.query_id: result.metrics for result in run.results}
    rows = evaluate_run(run.golden, run.results, metrics=names).per_query
    return {query.query_id: row for query, row in zip(run.golden.queries, rows, strict=True)}


def _found(query: GoldenQuery, result: QueryResult, least: float) -> bool:
    level, wanted = relevant_items(query, least)
    ids = (normalise_id(hit.chunk_id if level == "chunk" else hit.doc_id) for hit in result.hits)
    return result.error is None and any(one in wanted for one in ids)


def _failed(runs: Sequence[EvalRun]) -> tuple[str, ...]:
    failed = sum(int(run.aggregate["failed_queries"]) for run in runs)
    return (f"{failed} queries failed over all runs and score 0",) if failed else ()


# --- both -------------------------------------------------------------------------------------


def _sweep(
    asked: SweepRequest,
    grid: Grid,
    run: EvalRun,
    tried: tuple[Sequence[Combination], int],
    measured: Measured,
    *,
    name: str,
    base_said: str,
    notes: tuple[str, ...] = (),
    run_ids: Sequence[str] = (),
) -> Sweep:
    combinations, base = tried
    settings = run.config["metrics"]
    primary, seed = str(settings["primary"]), int(settings["seed"])
    least = run.golden.min_relevance
    gate = None
    if grid.keys == ("score_gate",):
        thresholds = [values[0] for values in combinations]
        gate = best_gate(thresholds, measured, min_relevance=least, seed=seed)
    held = None
    if asked.holdout is not None:
        held = hold_out(combinations, measured, primary, base, asked.holdout, seed=seed)
        if held is None:
            notes = (*notes, "the holdout leaves a part without a scored query")
    return Sweep(
        name=name,
        keys=grid.keys,
        points=points_of(
            combinations,
            measured,
            primary,
            base,
            seed=seed,
            run_ids=run_ids,
            min_relevance=least,
        ),
        base=base,
        base_said=base_said,
        primary=primary,
        direction=default_registry().parse(primary).direction,
        queries=len(measured.queries),
        golden={"name": run.golden.name, "digest": run.golden.digest},
        gate=gate,
        holdout=held,
        notes=notes,
    )


def _finished(done: SweepOutcome, parent: ParentRun) -> SweepOutcome:
    """Return the outcome with the page of its run, or with what kept the table from it."""
    try:
        _finish(parent, done.sweep)
    except TrackerError as failure:
        return replace(done, warning=f"the table is not in MLflow: {failure}")
    return replace(done, ui_url=parent.ui_url)


def _finish(parent: ParentRun, sweep: Sweep) -> None:
    note = render_sweep(sweep, "md")
    params = {"sweep_keys": ", ".join(sweep.keys), "golden_digest": str(sweep.golden["digest"])}
    parent.finish(
        "FINISHED", note=note, files=sweep_files(sweep), series=_series(sweep), params=params
    )


def _series(sweep: Sweep) -> Series:
    """Return the metrics as curves: a step is the lever's value where all are whole numbers."""
    values = [point.values[0] for point in sweep.points]
    whole = len(sweep.keys) == 1 and all(
        isinstance(value, int | float) and float(value).is_integer() for value in values
    )
    steps = [int(value) if whole else place for place, value in enumerate(values)]
    names = list(sweep.points[0].metrics)
    series = {
        f"sweep/{key_part(name)}": [
            (step, value)
            for step, point in sorted(zip(steps, sweep.points, strict=True), key=lambda one: one[0])
            if (value := point.metrics[name]) is not None
        ]
        for name in names
    }
    if sweep.gate is not None:
        for side in ("answered", "refused"):
            series[f"sweep/{side}_rightly"] = [
                (step, value)
                for step, point in zip(steps, sweep.points, strict=True)
                if (value := getattr(point, side)) is not None
            ]
    return series
