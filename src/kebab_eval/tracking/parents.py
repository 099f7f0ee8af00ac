"""A parent run: what several evaluations, nested below it in MLflow, came to together."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kebab_eval.tracking import keys
from kebab_eval.tracking.run import find_experiment, open_client, told
from kebab_eval.tracking.store import Store, migrating, prepare_database

TAG_PARENT = "mlflow.parentRunId"
_BATCH = 500  # metrics a call; MLflow takes 1,000

Series = Mapping[str, Sequence[tuple[int, float]]]
"""Metric -> its (step, value) in order: the UI draws them as a curve."""


class ParentRun:
    """One MLflow run that holds others; it is there from the start, so that they show below it.

    Raises:
        TrackerError: the store does not answer.
    """

    def __init__(self, store: Store, experiment: str, name: str, tags: Mapping[str, str]) -> None:
        prepare_database(store)
        with told(store), migrating(store):
            self._client = open_client(store)
            self.experiment_id = find_experiment(self._client, store, experiment)
            marked = {
                "mlflow.source.name": "kebab-eval",
                "mlflow.source.type": "LOCAL",
                **tags,
            }
            created = self._client.create_run(
                self.experiment_id,
                start_time=int(time.time() * 1000),
                run_name=name,
                tags={key: value[: keys.MAX_TAG] for key, value in marked.items()},
            )
        self.run_id = str(created.info.run_id)
        self.store = store

    @property
    def ui_url(self) -> str:
        return keys.run_url(self.store.ui_url, self.experiment_id, self.run_id)

    @property
    def child_tags(self) -> dict[str, str]:
        """The tags that nest a run below this one."""
        return {TAG_PARENT: self.run_id}

    def finish(
        self,
        status: str,
        *,
        note: str = "",
        files: Mapping[str, str] | None = None,
        series: Series | None = None,
        params: Mapping[str, str] | None = None,
    ) -> None:
        """Log what it all came to, and end the run.

        Raises:
            TrackerError: the store does not answer.
        """
        from mlflow.entities import Metric, Param, RunTag

        now = int(time.time() * 1000)
        with told(self.store):
            try:
                metrics = [
                    Metric(key, value, now, step)
                    for key, values in (series or {}).items()
                    for step, value in values
                ]
                given = [Param(*pair) for pair in (params or {}).items()]
                tags = [RunTag("mlflow.note.content", note[: keys.MAX_TAG])] if note else []
                self._client.log_batch(self.run_id, metrics[:_BATCH], given, tags)
                for start in range(_BATCH, len(metrics), _BATCH):
                    self._client.log_batch(self.run_id, metrics[start : start + _BATCH])
                if files:
                    self._log(files)
            finally:
                self._client.set_terminated(self.run_id, status)

    def abandon(self, status: str) -> None:
        """End a run that came to nothing; what made it so is the thing to tell."""
        try:
            self.finish(status)
        except Exception as reason:
            logging.getLogger("kebab_eval").debug("could not end the parent run: %s", reason)

    def _log(self, files: Mapping[str, str]) -> None:
        with tempfile.TemporaryDirectory(prefix="kebab-eval-") as temporary:
            for name, text in files.items():
                path = Path(temporary, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="")
            self._client.log_artifacts(self.run_id, temporary)
