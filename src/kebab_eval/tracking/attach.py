"""Files that are added to a run which MLflow has already."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from kebab_eval.errors import TrackerError
from kebab_eval.tracking.run import open_client, told
from kebab_eval.tracking.store import Store


def attach_files(store: Store, run_id: str, folder: str, files: Mapping[str, str]) -> None:
    """Log texts as artifacts of a run, below ``folder``; what stood there is replaced.

    Raises:
        TrackerError: the store does not answer, or has no such run.
    """
    if store.database is not None and not store.database.exists():
        raise TrackerError(f"{store.shown}: there is no such store")  # and none is made for this
    with tempfile.TemporaryDirectory(prefix="kebab-eval-") as temporary:
        for name, text in files.items():
            Path(temporary, name).write_text(text, encoding="utf-8", newline="")
        with told(store):
            client = open_client(store)
            client.get_run(run_id)  # an artifact store takes files of runs that do not exist
            client.log_artifacts(run_id, temporary, folder)
