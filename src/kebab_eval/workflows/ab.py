"""Several evaluations below one parent run: two addresses of one config, or several configs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kebab_eval.comparison import compare
from kebab_eval.config_file import LoadedConfig, load_config
from kebab_eval.errors import (
    ConfigError,
    Fault,
    InputError,
    Interrupted,
    NotComparableError,
    TrackerError,
    UsageError,
)
from kebab_eval.records import EvalRun
from kebab_eval.reports.ab import Standing, render_ab, standings
from kebab_eval.reports.compare import comparison_files
from kebab_eval.tracking.keys import key_part
from kebab_eval.tracking.parents import ParentRun
from kebab_eval.tracking.store import resolve_store
from kebab_eval.workflows.evaluate import Outcome, Request, evaluate

Progress = Callable[[str, int, int], None]
_CONFIG = "CONFIG"  # stands in a command for the file of each
_ADDRESS = {"docserver": "backend.base_url", "http": "backend.url"}


@dataclass(frozen=True, slots=True)
class Trial:
    """The evaluations, the baseline's first, and what came of comparing the others with it."""

    outcomes: tuple[Outcome, ...]
    standings: tuple[Standing, ...]
    ui_url: str | None = None
    warning: str = ""
    """What went wrong with the parent run alone: the answer is there all the same."""

    @property
    def runs(self) -> tuple[EvalRun, ...]:
        return tuple(outcome.run for outcome in self.outcomes)


def evaluate_addresses(
    request: Request, baseline_url: str, candidate_url: str, progress: Progress, *, track: bool
) -> Trial:
    """Evaluate the baseline's address, then the candidate's, each as a run of its own.

    Raises:
        UsageError: the config's system has no address, or the two are one.
        NotComparableError: the two systems answered in ways that cannot be compared.
        InputError, BackendError, RecordError, TrackerError, Interrupted: as an evaluation does.
    """
    loaded = load_config(request.config_path, request.overrides)
    key = _ADDRESS.get(loaded.config.backend.type)
    if key is None:
        message = (
            f"the config's system is {loaded.config.backend.type}, which has no address; take a "
            "config of docserver or http"
        )
        raise UsageError(Fault("--config", message))
    if baseline_url == candidate_url:
        message = "both addresses are the same: nothing would be compared"
        raise UsageError(Fault("--candidate-url", message))
    name = loaded.snapshot["name"]
    requests = []
    for side, url in (("baseline", baseline_url), ("candidate", candidate_url)):
        settings = (f"{key}={json.dumps(url)}", f"name={json.dumps(f'{name} {side}')}")
        requests.append(replace(request, overrides=(*request.overrides, *settings)))
    return _try(requests, loaded, f"ab of {name}", progress, track=track)


def evaluate_configs(
    request: Request, paths: Sequence[Path], progress: Progress, *, track: bool
) -> Trial:
    """Evaluate several configs, the first being the baseline, each as a run of its own.

    Args:
        request: what all of them have in common; its own config is not looked at.

    Raises:
        ConfigError: a config is wrong; every fault of all of them, before anything runs.
        NotComparableError: they ask other queries or another number of hits; nothing was run.
        BackendError, RecordError, TrackerError, Interrupted: as an evaluation does.
    """
    loaded: list[LoadedConfig] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            loaded.append(load_config(path, request.overrides))
        except InputError as wrong:
            faults += wrong.faults
    if faults:
        raise ConfigError(list({str(fault): fault for fault in faults}.values()))
    for key, what in (("golden", "golden set"), ("search.k", "number of hits")):
        told = [_at(one.snapshot, key) for one in loaded]
        for path, value in zip(paths[1:], told[1:], strict=True):
            if value != told[0]:
                message = f"{path}: another {what} ({key}) than {paths[0]}: {value}, not {told[0]}"
                raise NotComparableError(message)
    requests = [
        replace(request, config_path=path, command=request.command.replace(_CONFIG, str(path)))
        for path in paths
    ]
    names = " against ".join(str(one.snapshot["name"]) for one in (loaded[-1], loaded[0]))
    name = f"ab of {names}" if len(loaded) == 2 else f"ab of {len(loaded) - 1} candidates"
    return _try(requests, loaded[0], name, progress, track=track)


def _at(snapshot: Mapping[str, Any], key: str) -> Any:
    node: Any = snapshot
    for step in key.split("."):
        node = node[step]
    return node


def _try(
    requests: Sequence[Request],
    loaded: LoadedConfig,
    name: str,
    progress: Progress,
    *,
    track: bool,
) -> Trial:
    """Evaluate all, compare each with the first, and keep it all in the parent run."""
    parent = None
    if track:
        store = resolve_store(requests[0].tracking_uri, loaded.config.tracking.uri)
        tags = {"kebab_eval.ab": str(len(requests) - 1)}
        parent = ParentRun(store, str(loaded.snapshot["experiment"]), name, tags)
    try:
        outcomes = []
        for request in requests:
            nested = {**request.tags, **(parent.child_tags if parent else {})}
            outcomes.append(evaluate(replace(request, tags=nested), progress, track=track))
        first, *others = (outcome.run for outcome in outcomes)
        found = standings([compare(first, run) for run in others])
    except BaseException as failure:
        if parent is not None:
            stopped = isinstance(failure, KeyboardInterrupt | Interrupted)
            parent.abandon("KILLED" if stopped else "FAILED")
        raise
    warning = ""
    if parent is not None:
        try:
            parent.finish("FINISHED", note=render_ab(found, "md"), files=_files(found))
        except TrackerError as failure:
            warning = f"the table is not in MLflow: {failure}"
    url = None if parent is None else parent.ui_url
    return Trial(tuple(outcomes), found, url, warning)


def _files(found: Sequence[Standing]) -> dict[str, str]:
    files = {f"ab.{form}": render_ab(found, form) for form in ("md", "json", "csv")}
    for number, one in enumerate(found, 1):
        for name, text in comparison_files(one.comparison).items():
            files[f"compare/{number}-{key_part(one.name).replace(' ', '_')}/{name}"] = text
    return files
