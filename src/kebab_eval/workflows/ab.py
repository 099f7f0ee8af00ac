"""Two systems of one kind at two addresses: evaluate both by one config, then compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kebab_eval.comparison import Comparison, compare
from kebab_eval.config_file import load_config
from kebab_eval.errors import Fault, UsageError
from kebab_eval.records import EvalRun
from kebab_eval.workflows.evaluate import Outcome, Request, evaluate

Progress = Callable[[str, int, int], None]
_ADDRESS = {"docserver": "backend.base_url", "http": "backend.url"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Both evaluations and what came of comparing them."""

    baseline: Outcome
    candidate: Outcome
    comparison: Comparison

    @property
    def runs(self) -> tuple[EvalRun, EvalRun]:
        return self.baseline.run, self.candidate.run


def evaluate_both(
    request: Request, baseline_url: str, candidate_url: str, progress: Progress, *, track: bool
) -> Pair:
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
    outcomes = []
    for side, url in (("baseline", baseline_url), ("candidate", candidate_url)):
        settings = (f"{key}={_quoted(url)}", f"name={_quoted(f'{name} {side}')}")
        asked = replace(request, overrides=(*request.overrides, *settings))
        outcomes.append(evaluate(asked, progress, track=track))
    before, after = outcomes
    return Pair(before, after, compare(before.run, after.run))


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)
