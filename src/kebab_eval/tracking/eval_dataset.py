"""A golden set as an MLflow evaluation dataset: made once, merged when it changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kebab_eval.records import GoldenQuery, GoldenSet
from kebab_eval.redaction import redact
from kebab_eval.tracking.keys import TAG_GOLDEN
from kebab_eval.tracking.pulse import Pulse
from kebab_eval.tracking.store import Store
from kebab_eval.tracking.traces import expected_ids

if TYPE_CHECKING:
    from mlflow import MlflowClient

_BATCH = 200


def keep_dataset(
    client: MlflowClient, store: Store, experiment_id: str, golden: GoldenSet, pulse: Pulse
) -> None:
    """Let the experiment have the golden set as a dataset of its name, as it is now.

    A record's inputs are those of the query's traces. Records of queries that are gone, or that ask
    something else now, are removed; a dataset whose digest is the golden set's is left alone.
    """
    pulse.beat()
    name = redact(golden.name)
    mine = [
        found
        for found in client.search_datasets([experiment_id], max_results=50)
        if found.name == name
    ]
    dataset = mine[0] if mine else client.create_dataset(name, experiment_id)
    if dataset.tags.get(TAG_GOLDEN) == golden.digest:
        return
    records = [_record(query, golden.min_relevance) for query in golden.queries]
    wanted = [record["inputs"] for record in records]
    with _uri_of(store):
        for start in range(0, len(records), _BATCH):
            pulse.beat()
            dataset.merge_records(records[start : start + _BATCH])
        pulse.beat()
        kept = {(inputs["query_id"], inputs["query"]) for inputs in wanted}
        gone = [
            record.dataset_record_id
            for record in dataset.records
            if (record.inputs.get("query_id"), record.inputs.get("query")) not in kept
        ]
        if gone:
            dataset.delete_records(gone)
    pulse.beat()
    client.set_dataset_tags(dataset.dataset_id, {TAG_GOLDEN: golden.digest})


def _record(query: GoldenQuery, min_relevance: float) -> dict[str, Any]:
    return {
        "inputs": {"query_id": redact(query.query_id), "query": redact(query.query)},
        "expectations": {"expected_ids": expected_ids(query, min_relevance)},
    }


@contextmanager
def _uri_of(store: Store) -> Iterator[None]:
    """Make a store MLflow's own for a while: datasets know no other; a caller may have one."""
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(store.uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(before)
