"""``kebab_eval.track``, ``compare`` and ``check_gate``: what the commands do, for programs.

>>> import kebab_eval
>>> outcome = kebab_eval.track("configs/rrf_k60.yaml", {"fusion.rrf_k": 20})  # doctest: +SKIP
>>> outcome.run.aggregate["metrics"]["ndcg_at_10_doc"]["value"]  # doctest: +SKIP
0.622...
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kebab_eval.comparison import Comparison
from kebab_eval.gate import GateVerdict
from kebab_eval.workflows import compare as comparing
from kebab_eval.workflows.evaluate import Outcome, Request, evaluate
from kebab_eval.workflows.gate import GateRequest, run_gate

if TYPE_CHECKING:
    from mlflow.entities import Run

T = TypeVar("T")


def track(
    config: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    run: Run | str | None = None,
    tracked: bool = True,
    limit: int | None = None,
    tags: Mapping[str, str] | None = None,
    tracking_uri: str | None = None,
) -> Outcome:
    """Evaluate a system and log one MLflow run, as ``kebab-eval track`` does.

    May be called where an event loop runs, as in a notebook.

    Args:
        config: the config file.
        overrides: config key, with dots -> its value (``{"fusion.rrf_k": 20}``).
        run: an MLflow run of yours, or its id: params, metrics, traces and files go there, and it
            is left open. None makes a run of its own, which is ended.
        tracked: False keeps the local record only, as ``kebab-eval run`` does.
        limit: only the first so many queries.
        tags: further tags of the run.
        tracking_uri: the store; None takes ``MLFLOW_TRACKING_URI``, else the config's.

    Returns:
        ``.run`` (its ``aggregate``, ``results``, ``config``), ``.folder`` (the record) and
        ``.tracked`` (``run_id``, ``ui_url``; None without MLflow). Failed queries raise nothing:
        see ``.too_many_failed``.

    Raises:
        InputError: config, golden set or corpus is wrong, every fault at once.
        BackendError: the system is down.
        RecordError, TrackerError: the disk or MLflow failed.
    """
    settings = [f"{key}={json.dumps(value)}" for key, value in (overrides or {}).items()]
    request = Request(
        config_path=Path(config),
        overrides=tuple(settings),
        limit=limit,
        tags=dict(tags or {}),
        tracking_uri=tracking_uri,
        into=None if run is None else run if isinstance(run, str) else str(run.info.run_id),
    )
    return _outside_a_loop(lambda: evaluate(request, track=tracked))


def compare(
    baseline: str | Path,
    candidate: str | Path,
    *,
    metrics: Sequence[str] = (),
    allow: Sequence[str] = (),
    tracking_uri: str | None = None,
) -> Comparison:
    """Compare two runs, as ``kebab-eval compare`` does; nothing is logged.

    Args:
        baseline, candidate: what names a run: an id, a name, ``latest``, a record folder, the file
            of a frozen baseline.
        metrics: which ones, in place of the usual.
        allow: what may differ: golden, corpus, k, metrics.

    Raises:
        NotComparableError: they differ in what makes numbers comparable.
        UsageError: no such run.
    """
    request = comparing.Request(
        str(baseline),
        str(candidate),
        metrics=tuple(metrics),
        allow=tuple(allow),
        tracking_uri=tracking_uri,
    )
    return comparing.compare_pair(comparing.find_pair(request), request)


def check_gate(
    candidate: str | Path,
    *,
    baseline: str | Path | None = None,
    rules: Sequence[str] | str | Path = (),
    tracking_uri: str | None = None,
) -> GateVerdict:
    """Judge a run by rules, as ``kebab-eval gate`` does; nothing is logged.

    Args:
        candidate, baseline: what names a run, as :func:`compare` takes it.
        rules: rules as texts, or the file that holds them; none is the customary one.

    Returns:
        ``.outcome`` (pass, fail, undecided) and ``.results``, one for each rule.

    Raises:
        RuleError: a rule is wrong, every one of them.
        UsageError: no such run, or no baseline where a rule compares.
    """
    path = Path(rules) if isinstance(rules, str | Path) else None
    texts = () if isinstance(rules, str | Path) else tuple(rules)
    request = GateRequest(
        candidate=str(candidate),
        baseline=None if baseline is None else str(baseline),
        rules_path=path,
        rules=texts,
        tracking_uri=tracking_uri,
    )
    return run_gate(request).verdict


def _outside_a_loop(work: Callable[[], T]) -> T:
    """Do some work that starts an event loop; in a thread of its own where one is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, thread_name_prefix="kebab-eval") as thread:
        return thread.submit(work).result()
