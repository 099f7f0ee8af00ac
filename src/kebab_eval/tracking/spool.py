"""The local record of a run: a folder ``mlruns/spool/<run id>`` that is written as answers come.

``run.json`` is written first and last; its ``status`` tells a finished record from an interrupted
one. ``per_query.jsonl`` only ever holds whole lines.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from kebab_eval.errors import Fault, RecordError, UsageError, nearest
from kebab_eval.records import Candidate, EvalRun, GoldenQuery, GoldenSet, QueryResult
from kebab_eval.redaction import redact

T = TypeVar("T")

SPOOL = Path("mlruns/spool")
RUN_FILE, RESULTS_FILE = "run.json", "per_query.jsonl"
AGGREGATE_FILE, CONFIG_FILE, GOLDEN_FILE = "aggregate.json", "config.json", "golden.jsonl"
CANDIDATES_FILE = "candidates.jsonl"
MIN_PREFIX = 4

# What reading JSON of any shape can raise: wrong types, wrong values, missing keys, too deep.
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
_TOLD_AT_MOST = 20

_LATEST = re.compile(r"latest(?:~(\d{1,6}))?\Z")
_BASELINE = re.compile(r"baseline(?::(.+))?\Z", re.DOTALL)


def new_run_id(name: str, now: datetime) -> str:
    """Return an id that sorts by time and says its name: ``20261130-221530-rrf_k60-4f2a``."""
    slug = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:40] or "run"
    return f"{now:%Y%m%d-%H%M%S}-{slug}-{secrets.token_hex(2)}"


class RecordWriter:
    """Writes one record. A failure of the disk is a :class:`RecordError` that names the file."""

    def __init__(self, folder: Path, info: dict[str, Any]) -> None:
        self.folder = folder
        self.info = info
        self._open: dict[str, int] = {}

    @classmethod
    def create(
        cls,
        root: Path,
        name: str,
        info: Mapping[str, Any],
        files: Mapping[str, str],
        at: datetime | None = None,
    ) -> RecordWriter:
        """Start a record: all of its first files are there, or nothing is.

        Args:
            root: the spool folder; made when it is absent.
            info: what ``run.json`` holds; ``id``, ``created_at`` and ``status`` are added.
            files: further files, name to text.
            at: when the evaluation began; None is now.
        """
        now = datetime.now(UTC) if at is None else at.astimezone(UTC)
        run_id = new_run_id(name, now)
        folder = root / run_id
        started = {
            "id": run_id,
            "name": name,
            "created_at": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "status": "RUNNING",
            **info,
        }
        writer = cls(folder, started)
        with _told(folder):
            folder.mkdir(parents=True)
        try:
            for file, text in files.items():
                writer.write(file, text)
            writer.write(RUN_FILE, dump_json(started))
            writer.open_lines(RESULTS_FILE)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return writer

    @classmethod
    def reopen(cls, folder: Path, results: Sequence[QueryResult]) -> RecordWriter:
        """Go on with a record that was cut off, of which these results are kept."""
        writer = cls(folder, _read_json(folder / RUN_FILE))
        kept = "".join(dump_line(result.to_json()) + "\n" for result in results)
        writer.write(RESULTS_FILE, kept)
        path = folder / CANDIDATES_FILE
        if path.exists():
            with _told(path):  # half a line at its end is nobody's candidates
                os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        writer.open_lines(RESULTS_FILE)
        return writer

    def open_lines(self, name: str) -> None:
        """Open a file of lines, which it makes, for what is added as it comes."""
        with _told(self.folder / name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._open[name] = os.open(self.folder / name, flags, 0o666)

    def append(self, result: QueryResult) -> None:
        """Add one result as a line, after its candidates if it has any.

        A line that the disk did not take whole is taken back.
        """
        if result.candidates:
            if CANDIDATES_FILE not in self._open:
                self.open_lines(CANDIDATES_FILE)
            self._append(CANDIDATES_FILE, dump_candidates(result))
        self._append(RESULTS_FILE, dump_line(result.to_json()))

    def _append(self, name: str, text: str) -> None:
        line, path, file = _utf8(text + "\n"), self.folder / name, self._open.get(name, -1)
        with _told(path):
            before = os.fstat(file)
            if before.st_nlink == 0:  # writing would succeed, and nobody could ever read it
                raise FileNotFoundError(errno.ENOENT, "it was removed while the run was going on")
            try:
                written = os.write(file, line)
                while written < len(line):
                    written += os.write(file, line[written:])
            except BaseException:
                os.ftruncate(file, before.st_size)
                raise

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file whole or not at all; sub-folders in the name are made."""
        path = self.folder / name
        temporary = path.with_name(f".{path.name}.tmp")
        data = _utf8(content) if isinstance(content, str) else content
        with _told(path):
            if path.parent != self.folder:  # the record's own folder is never made a second time
                path.parent.mkdir(exist_ok=True)
            try:
                temporary.write_bytes(data)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise

    def write_results(self, results: Sequence[QueryResult]) -> None:
        """Replace the lines that came in by the judged ones, in the order of the golden set."""
        self.close()
        self.write(RESULTS_FILE, "".join(dump_line(r.to_json()) + "\n" for r in results))
        listed = [dump_candidates(result) + "\n" for result in results if result.candidates]
        if listed:
            self.write(CANDIDATES_FILE, "".join(listed))

    def update(self, **changes: Any) -> None:
        """Change ``run.json``."""
        self.info.update(changes)
        self.write(RUN_FILE, dump_json(self.info))

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


def read_record(folder: Path) -> EvalRun:
    """Read a record folder back.

    Raises:
        RecordError: the folder holds no record, or one that is damaged (with file and line).
    """
    info = _read_json(folder / RUN_FILE, ("id", "name", "created_at", "status", "golden", "system"))
    config = _read_json(folder / CONFIG_FILE, ("search", "metrics"))
    aggregate_path = folder / AGGREGATE_FILE
    aggregate = _read_json(aggregate_path) if aggregate_path.exists() else {}
    results = tuple(read_results(folder / RESULTS_FILE))
    queries = tuple(_read_lines(folder / GOLDEN_FILE, GoldenQuery.from_json, "a golden query"))
    try:
        about = info["golden"]
        golden = GoldenSet(
            name=str(about["name"]),
            version=str(about["version"]),
            digest=str(about["digest"]),
            queries=queries,
            min_relevance=float(about["min_relevance"]),
            path=str(about["path"]),
            format=str(about.get("format", "kebab")),
        )
    except _DAMAGE as reason:
        raise RecordError(f"{folder / RUN_FILE}: 'golden' is damaged ({_said(reason)})") from reason
    return EvalRun(info, config, golden, results, aggregate)


def read_results(path: Path) -> Iterator[QueryResult]:
    """Yield the results of a ``per_query.jsonl``.

    Raises:
        RecordError: the file is damaged, told with each line.
    """
    return _read_lines(path, QueryResult.from_json, "a query result")


def read_candidates(folder: Path) -> dict[str, dict[str, tuple[Candidate, ...]]]:
    """Return query id -> channel -> its ranking, of the queries whose candidates were recorded.

    Raises:
        RecordError: the file is damaged.
    """
    path = folder / CANDIDATES_FILE
    return dict(_read_lines(path, _candidates, "candidates")) if path.exists() else {}


def _candidates(data: Any) -> tuple[str, dict[str, tuple[Candidate, ...]]]:
    channels = {
        str(name): tuple(Candidate(str(c), str(d), float(score)) for c, d, score in ranking)
        for name, ranking in data["channels"].items()
    }
    return str(data["query_id"]), channels


def dump_candidates(result: QueryResult) -> str:
    """Return the line of a query's candidates: a channel -> [chunk id, document id, score] each."""
    channels = {
        name: [[one.chunk_id, one.doc_id, one.score] for one in ranking]
        for name, ranking in result.candidates.items()
    }
    return dump_line({"query_id": result.query_id, "channels": channels})


def _read_lines(path: Path, parse: Callable[[Any], T], what: str) -> Iterator[T]:
    with _told(path, doing="read"):
        lines = path.read_bytes().split(b"\n")
    damaged: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield parse(json.loads(line))
        except _DAMAGE as reason:
            if number < len(lines):  # else it was being written when the power went
                damaged.append(f"{path}:{number}: not {what} ({_said(reason)})")
    if damaged:
        told, more = damaged[:_TOLD_AT_MOST], len(damaged) - _TOLD_AT_MOST
        raise RecordError("\n".join([*told, *([f"{path}: and {more} more"] if more > 0 else [])]))


def _read_json(path: Path, required: Sequence[str] = ()) -> dict[str, Any]:
    with _told(path, doing="read"):
        data = path.read_bytes()
    try:
        value = json.loads(data)
    except _DAMAGE as reason:
        raise RecordError(f"{path}: not valid JSON ({_said(reason)})") from reason
    if not isinstance(value, dict):
        raise RecordError(f"{path}: expected a JSON object, found {type(value).__name__}")
    missing = [key for key in required if key not in value]
    if missing:
        raise RecordError(f"{path}: damaged, without {', '.join(map(repr, missing))}")
    return value


def _said(reason: BaseException) -> str:
    return f"missing {reason}" if isinstance(reason, KeyError) else " ".join(str(reason).split())


@contextmanager
def _told(path: Path, *, doing: str = "written") -> Iterator[None]:
    try:
        yield
    except OSError as reason:
        said = reason.strerror or str(reason)
        raise RecordError(f"{path}: cannot be {doing}: {said}") from reason


def is_tracked(info: Mapping[str, Any]) -> bool:
    """Say whether a ``run.json`` names its MLflow run and its golden set, as a whole one does."""
    mlflow, golden = info.get("mlflow"), info.get("golden")
    return (
        isinstance(mlflow, dict)
        and isinstance(golden, dict)
        and {"run_id", "experiment_id", "tracking_uri"} <= mlflow.keys()
        and "digest" in golden
    )


def list_records(root: Path = SPOOL) -> list[dict[str, Any]]:
    """Return the ``run.json`` of each record in the spool, newest first, with its ``folder``."""
    found = []
    if root.is_dir():
        for path in root.glob(f"*/{RUN_FILE}"):
            try:
                info = _read_json(path)
            except RecordError:
                continue
            if {"id", "name", "created_at"} <= info.keys():
                found.append({**info, "folder": path.parent})
    return sorted(found, key=lambda info: (str(info["created_at"]), str(info["id"])), reverse=True)


def find_record(reference: str, root: Path = SPOOL) -> Path | None:
    """Return the record folder that a reference names, or None when the spool holds none.

    Args:
        reference: a folder or the ``per_query.jsonl`` in it, ``latest``, ``latest~N``, ``baseline``
            or ``baseline:LABEL``, a run id or MLflow run id or a unique prefix of 4 characters or
            more, or a run name (the newest of that name).

    Raises:
        UsageError: the reference is ambiguous; the candidates are listed.
    """
    folder = Path(reference)
    try:
        if (folder / RUN_FILE).is_file():
            return folder
        if folder.name == RESULTS_FILE and folder.with_name(RUN_FILE).is_file():
            return folder.parent
    except OSError:
        pass  # too long for a path, or not to be looked into: then it is a name
    records = list_records(root)
    latest = _LATEST.match(reference)
    if latest:
        back = int(latest.group(1) or 0)
        return records[back]["folder"] if back < len(records) else None
    marked = find_marked(reference, records)
    if marked is not None:
        return marked[1]
    named = [info for info in records if info["name"] == reference]
    if named:
        return Path(named[0]["folder"])
    if len(reference) < MIN_PREFIX:
        return None
    matching = [info for info in records if any(i.startswith(reference) for i in _ids(info))]
    matching = [info for info in matching if reference in _ids(info)] or matching
    if len(matching) > 1:
        listed = ", ".join(f"{info['id']} ({info['name']})" for info in matching[:5])
        more = "" if len(matching) <= 5 else f" and {len(matching) - 5} more"
        message = f"{len(matching)} runs begin with {reference!r}: {listed}{more}; give more of it"
        raise UsageError(Fault("RUN", message))
    return Path(matching[0]["folder"]) if matching else None


def baseline_label(reference: str) -> tuple[bool, str | None]:
    """Return whether a reference asks for a frozen baseline, and its label; None is any."""
    match = _BASELINE.match(reference)
    return match is not None, match.group(1) if match else None


def find_marked(reference: str, records: Sequence[Mapping[str, Any]]) -> tuple[str, Path] | None:
    """Return (frozen at, folder) of the record frozen last that ``baseline[:LABEL]`` names."""
    asked, label = baseline_label(reference)
    if not asked:
        return None
    found = [
        (mark["frozen_at"], info["folder"])
        for info in records
        for mark in _marks(info)
        if label is None or mark["label"] == label
    ]
    return max(found, key=lambda item: item[0]) if found else None


def mark_baseline(folder: Path, label: str, frozen_at: str, file: str) -> None:
    """Note in a record that it was frozen.

    Raises:
        RecordError: the record could not be read or written.
    """
    info = _read_json(folder / RUN_FILE)
    mark = {"label": label, "frozen_at": frozen_at, "file": file}
    RecordWriter(folder, info).update(baselines=[*_marks(info), mark])


def _marks(info: Mapping[str, Any]) -> list[dict[str, str]]:
    marks = info.get("baselines")
    keys = ("label", "frozen_at")
    return [
        mark
        for mark in (marks if isinstance(marks, list) else ())
        if isinstance(mark, dict) and all(isinstance(mark.get(key), str) for key in keys)
    ]


def near_reference(reference: str, root: Path = SPOOL, frozen: Iterable[str] = ()) -> str:
    """Return a hint for a reference that named nothing: the nearest name, or how to list them.

    Args:
        frozen: labels of frozen files, beside those of the records.
    """
    records = list_records(root)
    if baseline_label(reference)[0]:
        labels = sorted({*frozen, *(mark["label"] for info in records for mark in _marks(info))})
        there = f"frozen are {', '.join(labels)}" if labels else "nothing is frozen yet"
        return f"; {there}: 'kebab-eval baseline freeze RUN' makes one"
    if not records:
        return f"; there is no record in {root} yet: 'kebab-eval track' makes the first"
    return nearest(reference, {str(info["name"]) for info in records}) or (
        f"; the newest are {', '.join(str(info['id']) for info in records[:3])}"
    )


def _ids(info: Mapping[str, Any]) -> list[str]:
    mlflow = info.get("mlflow")
    mlflow_id = mlflow.get("run_id") if isinstance(mlflow, dict) else None
    return [str(info["id"]), *([str(mlflow_id)] if mlflow_id else [])]


def dump_json(value: Any) -> str:
    """Return JSON as the record holds it: indented, keys in the order given, no NaN."""
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def dump_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _utf8(text: str) -> bytes:
    """Return UTF-8, secrets as references; a lone surrogate as the escape that reads back."""
    return redact(text).encode("utf-8", "backslashreplace")
