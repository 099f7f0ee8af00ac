"""Which scores of a Document Server set are wanted, and whether the set has any."""

from __future__ import annotations

from dataclasses import replace

from kebab_eval.errors import Fault, UsageError
from kebab_eval.records import EvalRun, GoldenSet


def check_version(golden: GoldenSet, eval_version: str) -> None:
    """Hold that a set has scores by version, where one version is asked for.

    Raises:
        UsageError: it is of another format.
    """
    if eval_version != "both" and all(query.v01 is None for query in golden.queries):
        message = (
            f"{golden.name!r} is no Document Server set (format {golden.format}): it has no scores "
            "by version; leave the option out"
        )
        raise UsageError(Fault("--eval-version", message))


def by_version(run: EvalRun, eval_version: str) -> EvalRun:
    """Return a run that is reported by one version.

    Raises:
        UsageError: its golden set has no scores by version.
    """
    check_version(run.golden, eval_version)
    settings = {**run.config["metrics"], "eval_version": eval_version}
    return replace(run, config={**run.config, "metrics": settings})
