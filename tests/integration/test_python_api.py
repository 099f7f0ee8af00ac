"""track, compare and check_gate from Python: alone, in an event loop, into the caller's run."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

import kebab_eval
from kebab_eval.errors import ConfigError, NotComparableError, UsageError

HYBRID = "configs/hybrid.yaml"


@pytest.fixture(autouse=True)
def _inside(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def test_runs_are_compared_and_judged() -> None:
    before = kebab_eval.track(HYBRID, tracked=False)
    after = kebab_eval.track(
        HYBRID, {"search.mode": "lexical", "name": "words"}, tracked=False, tags={"team": "a"}
    )
    assert before.tracked is None
    assert (after.run.name, after.run.info["tags"]["team"]) == ("words", "a")
    assert after.run.config["search"]["mode"] == "lexical"
    found = kebab_eval.compare(before.folder, "words")
    assert [change.key for change in found.levers] == ["search.mode"]
    verdict = kebab_eval.check_gate(
        "words", baseline=before.folder, rules=["failed_queries == 0", "ndcg_at_5_doc >= 1"]
    )
    assert [result.verdict for result in verdict.results] == ["pass", "fail"]
    limited = kebab_eval.track(HYBRID, tracked=False, limit=2)
    assert len(limited.run.results) == 2


def test_errors_are_those_of_the_commands() -> None:
    with pytest.raises(ConfigError, match=r"fusion\.rrf_k must be a number"):
        kebab_eval.track(HYBRID, {"fusion.rrf_k": "x"}, tracked=False)
    with pytest.raises(UsageError, match="no run is called 'nothing'"):
        kebab_eval.compare("nothing", "nothing")
    kebab_eval.track(HYBRID, {"name": "a"}, tracked=False)
    kebab_eval.track(HYBRID, {"name": "b", "search.k": 3}, tracked=False)
    with pytest.raises(NotComparableError):
        kebab_eval.compare("a", "b")


def test_where_an_event_loop_runs_as_in_a_notebook() -> None:
    async def cell() -> int:
        return len(kebab_eval.track(HYBRID, tracked=False).run.results)

    assert asyncio.run(cell()) == 8


INTO = """
import json, mlflow, kebab_eval
mlflow.set_tracking_uri("sqlite:///mlruns/mlflow.db")
mlflow.set_experiment("mine")
with mlflow.start_run(run_name="training") as run:
    mlflow.log_param("learning_rate", 0.1)
    outcome = kebab_eval.track("configs/hybrid.yaml", run=run)
    status = mlflow.get_run(run.info.run_id).info.status
    mlflow.log_metric("after", 1.0)
found = mlflow.get_run(run.info.run_id)
print(json.dumps({
    "same": outcome.tracked.run_id == run.info.run_id, "open": status,
    "status": found.info.status, "name": found.info.run_name,
    "params": sorted(found.data.params), "metrics": sorted(found.data.metrics),
    "runs": len(mlflow.search_runs(output_format="list")),
    "traces": len(mlflow.search_traces(run_id=run.info.run_id, return_type="list")),
}))
"""


def test_a_run_of_the_callers_is_filled_and_left_open(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTO], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["same"], told["open"], told["status"]) == (True, "RUNNING", "FINISHED")
    assert (told["name"], told["runs"], told["traces"]) == ("training", 1, 8)
    assert {"learning_rate", "rrf_k"} <= set(told["params"])
    assert {"after", "retrieval/ndcg_at_5_doc"} <= set(told["metrics"])
