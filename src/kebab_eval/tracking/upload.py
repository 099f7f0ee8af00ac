"""What one MLflow run gets of a record: each step may be done again, and is then there once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kebab_eval.records import EvalRun
from kebab_eval.tracking import keys
from kebab_eval.tracking.eval_dataset import keep_dataset
from kebab_eval.tracking.previous import previous_results
from kebab_eval.tracking.pulse import Pulse
from kebab_eval.tracking.spool import RUN_FILE
from kebab_eval.tracking.store import Store
from kebab_eval.tracking.trace_choice import choose
from kebab_eval.tracking.trace_upload import Progress, Sent, send_traces
from kebab_eval.tracking.traces import TraceMaker
from kebab_eval.tracking.views import save_view

if TYPE_CHECKING:
    from mlflow import MlflowClient

_BATCH = 100  # MLflow's limit of params a call; metrics and tags may be more, one limit is simpler


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """The run before one in its experiment, over the same golden set."""

    run_id: str
    name: str
    compare_url: str
    pairs_url: str
    """Both runs' queries, row by row."""


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """Where an MLflow run is."""

    run_id: str
    experiment_id: str
    ui_url: str
    previous: PreviousRun | None = None
    queries_url: str = ""
    taken: bool = False
    """Whether the run was there before: it may hold something already."""


def milliseconds(moment: str) -> int:
    """Return a moment (RFC 3339) in milliseconds since 1970, as MLflow has it."""
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class Upload:
    """Brings a judged record into a run that was made for it."""

    client: MlflowClient
    store: Store
    tracked: TrackedRun
    run: EvalRun
    folder: Path
    pulse: Pulse

    @property
    def ended_ms(self) -> int:
        """When the evaluation ended, by its record: the same whenever it is uploaded."""
        info = self.run.info
        return milliseconds(info["created_at"]) + round(float(info.get("duration_s", 0)) * 1000)

    def log(self, note: str, progress: Progress) -> Sent:
        """Log what is missing; see :meth:`Tracker.finish`."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        digest = _digest(files)
        self.pulse.beat()
        there = self.client.get_run(self.tracked.run_id).data.tags.get(keys.TAG_UPLOADED)
        if there != digest:
            self._values(note)
            self._files(files)
            self._dataset()
        sent = replace(self._traces(progress), view=self._view())
        self.pulse.beat()
        self.client.set_tag(self.tracked.run_id, keys.TAG_UPLOADED, digest)
        return sent

    def end(self, status: str) -> None:
        """End the run, at the time when the evaluation ended."""
        self.client.set_terminated(self.tracked.run_id, status, self.ended_ms)

    def _values(self, note: str) -> None:
        from mlflow.entities import Metric, Param, RunTag

        run, run_id = self.run, self.tracked.run_id
        snapshot = {**run.info["system"], "golden_digest": run.golden.digest}
        params = [Param(*pair) for pair in keys.run_params(run.config, snapshot).items()]
        settings = run.config["metrics"]
        logged = keys.run_metrics(
            run.aggregate, settings["primary"], settings.get("eval_version", "both")
        )
        # The store takes a value at one time once, however often it comes.
        metrics = [Metric(key, value, self.ended_ms, 0) for key, value in logged.items()]
        tables = [{"path": "per_query_table.json", "type": "table"}]
        tags = [
            RunTag("mlflow.note.content", note[: keys.MAX_TAG]),
            RunTag("mlflow.loggedArtifacts", json.dumps(tables)),  # what the artifact view compares
        ]
        for start in range(0, max(len(params), len(metrics)), _BATCH):
            part = slice(start, start + _BATCH)
            self.pulse.beat()
            self.client.log_batch(run_id, metrics[part], params[part], tags if start == 0 else ())
        self.pulse.beat()
        self.client.log_inputs(run_id, datasets=[_dataset_input(run.info["golden"])])

    def _files(self, files: list[Path]) -> None:
        for path in files:
            self.pulse.beat(path.stat().st_size)
            inside = path.relative_to(self.folder).parent.as_posix()
            self.client.log_artifact(
                self.tracked.run_id, str(path), None if inside == "." else inside
            )

    def _dataset(self) -> None:
        """Keep the golden set as a dataset where that is wanted; a part of a set is none."""
        settings, about = self.run.config.get("tracking") or {}, self.run.info["golden"]
        if settings.get("dataset") and about.get("queries_in_set") == about["queries"]:
            place = self.tracked.experiment_id
            keep_dataset(self.client, self.store, place, self.run.golden, self.pulse)

    def _view(self) -> bool:
        settings = self.run.config.get("tracking") or {}
        if not settings.get("view", True):
            return False
        self.pulse.beat()
        primary = str(self.run.config["metrics"]["primary"])
        return save_view(self.client, self.tracked.experiment_id, primary)

    def _traces(self, progress: Progress) -> Sent:
        run, tracked = self.run, self.tracked
        settings = run.config.get("tracking") or {}
        policy = str(settings.get("traces", "all"))
        before = None
        if policy == "changed" and tracked.previous is not None:
            self.pulse.beat()
            before = previous_results(self.client, tracked.previous.run_id)
        primary = str(run.config["metrics"]["primary"])
        chosen = choose(policy, run.results, primary, before)
        maker = TraceMaker(run, tracked.run_id, tracked.experiment_id)
        return send_traces(self.store, maker, chosen, self.pulse, progress, fresh=not tracked.taken)


def _digest(files: list[Path]) -> str:
    """Return a digest of what is uploaded; ``run.json`` notes where it went, so it stands apart."""
    found = hashlib.sha256()
    for path in files:
        if path.name != RUN_FILE:
            found.update(f"{path.name}\0{path.stat().st_size}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:32]


def _dataset_input(golden: Mapping[str, Any]) -> Any:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = Dataset(
        name=golden["name"],
        digest=golden["digest"],
        source_type="local",
        source=json.dumps({"uri": golden["path"]}, ensure_ascii=False),
        profile=json.dumps({"num_queries": golden["queries"], "version": golden["version"]}),
    )
    return DatasetInput(dataset, tags=[InputTag("mlflow.data.context", "eval")])
