"""The view of the runs page: kept once, and never a reason to fail."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from kebab_eval.tracking.keys import runs_url
from kebab_eval.tracking.views import VIEW_KEY, save_view


class Client:
    def __init__(self, tags: dict[str, str] | None = None) -> None:
        self.tags = tags or {}
        self.set = 0

    def get_experiment(self, _: str) -> Any:
        return SimpleNamespace(tags=self.tags)

    def set_experiment_tag(self, _: str, key: str, value: str) -> None:
        self.set += 1
        self.tags[key] = value


def saved(client: Any) -> bool:
    return save_view(client, "1", "ndcg_at_10_doc")


def test_the_primary_metric_comes_first_and_the_newest_run_on_top() -> None:
    client = Client()
    assert saved(client)
    (state,) = (json.loads(value) for value in client.tags.values())
    assert state["selectedColumns"][:3] == [
        "attributes.`Duration`", "metrics.`retrieval/ndcg_at_10_doc`",
        "metrics.`retrieval/hit_at_5_chunk`",
    ]  # fmt: skip
    assert "params.`rrf_k`" in state["selectedColumns"]
    assert (state["orderByKey"], state["orderByAsc"]) == ("attributes.start_time", False)


def test_a_view_that_is_there_is_left_alone() -> None:
    client = Client({f"mlflow.sharedViewState.{VIEW_KEY}": "somebody's own"})
    assert saved(client)
    assert client.set == 0


def test_a_store_that_refuses_costs_the_view_and_nothing_else() -> None:
    class Refusing(Client):
        def set_experiment_tag(self, *_: str) -> None:
            raise RuntimeError("no")

    assert not saved(Refusing())


def test_the_link_names_the_view_only_where_there_is_one() -> None:
    assert runs_url("http://h", "1") == "http://h/#/experiments/1/evaluation-runs"
    assert runs_url("http://h", "1", VIEW_KEY) == (
        "http://h/#/experiments/1/runs?viewStateShareKey=kebab-eval"
    )
