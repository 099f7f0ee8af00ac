"""The runs page as this project's runs want it: which columns, in which order.

MLflow keeps a shared view in a tag of the experiment and opens it by a key in the address. Nobody
documents that (seen in 3.17), so it is best effort: what goes wrong here is nobody's business, and
a page without the view is MLflow's own.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from kebab_eval.metrics import default_registry

if TYPE_CHECKING:
    from mlflow import MlflowClient

VIEW_KEY = "kebab-eval"
_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"
_METRICS = ("hit_at_5_chunk", "hit_at_5_doc", "recall_at_10_doc")
_PARAMS = ("rrf_k", "mode", "chunker_version", "embedding_model")


def save_view(client: MlflowClient, experiment_id: str, primary: str) -> bool:
    """Keep the view with an experiment that has none; say whether it has one now.

    Args:
        primary: the metric whose column comes first.
    """
    try:
        if _TAG not in client.get_experiment(experiment_id).tags:
            client.set_experiment_tag(experiment_id, _TAG, _state(primary))
    except Exception as reason:  # whatever MLflow says: the run is logged all the same
        logging.getLogger("kebab_eval").debug("the view was not saved: %s", reason)
        return False
    return True


def _state(primary: str) -> str:
    """Return what the page reads: its columns, newest run first."""
    kind = default_registry().parse(primary).kind
    metrics = [f"{kind}/{primary}", *(f"retrieval/{name}" for name in _METRICS if name != primary)]
    metrics += ["latency/p95_ms", "count/failed_queries"]
    columns = ["attributes.`Duration`", *(f"metrics.`{name}`" for name in metrics)]
    columns += [f"params.`{name}`" for name in _PARAMS]
    return json.dumps(
        {"selectedColumns": columns, "orderByKey": "attributes.start_time", "orderByAsc": False}
    )
