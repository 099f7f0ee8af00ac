"""Tags that an MLflow run gets after it was logged."""

from __future__ import annotations

from collections.abc import Mapping

from kebab_eval.errors import TrackerError
from kebab_eval.tracking.keys import MAX_TAG
from kebab_eval.tracking.store import Store


def tag_run(store: Store, run_id: str, tags: Mapping[str, str]) -> None:
    """Set tags of a run.

    Raises:
        TrackerError: the store is not there, or refused.
    """
    if store.database is not None and not store.database.exists():
        raise TrackerError(f"{store.shown}: there is no such store")
    from kebab_eval.tracking.run import open_client, told

    with told(store):
        client = open_client(store)
        for key, value in tags.items():
            client.set_tag(run_id, key, value[:MAX_TAG])
