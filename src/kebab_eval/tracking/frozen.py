"""Frozen baselines on disk: two files, written whole or not at all, and never overwritten."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kebab_eval.baseline import Frozen, check_schema, frozen_of, thaw
from kebab_eval.errors import Fault, RecordError, UsageError
from kebab_eval.records import EvalRun

BASELINES = Path("baselines")

# What reading JSON of any shape can raise: wrong types, wrong values, missing keys, too deep.
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class FrozenFile:
    """A frozen file and what it says of itself, with the facts that a list of them shows."""

    path: Path
    frozen: Frozen
    run_name: str
    run_id: str
    golden: str
    primary: str
    score: float | None
    n: int


def write_new(files: Mapping[Path, str]) -> None:
    """Write new files: all of them, each whole, or none.

    Raises:
        UsageError: one of them exists; nothing was written.
        RecordError: the disk refused; nothing is left behind.
    """
    taken = [path for path in files if os.path.lexists(path)]
    if taken:
        raise UsageError([_exists(path) for path in taken])
    written: list[Path] = []
    try:
        for path, text in files.items():
            _write_one(path, text.encode("utf-8", "backslashreplace"))
            written.append(path)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def _write_one(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _create(temporary, data)
            # A link appears with its whole content, and fails where the name is taken.
            os.link(temporary, path)
        except FileExistsError:
            raise UsageError(_exists(path)) from None
        except OSError as reason:
            if reason.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            _create_or_nothing(path, data)  # a file system without links
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as reason:
        said = reason.strerror or str(reason)
        raise RecordError(f"{path}: cannot be written: {said}") from reason


def _create_or_nothing(path: Path, data: bytes) -> None:
    try:
        _create(path, data)
    except FileExistsError:
        raise UsageError(_exists(path)) from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _create(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _exists(path: Path) -> Fault:
    message = "exists already, and a frozen baseline is never overwritten; give another --label"
    return Fault(str(path), message)


def read_frozen(path: Path) -> tuple[Frozen, EvalRun]:
    """Return the run that a frozen file stands for.

    Raises:
        UsageError: the file is something else.
        RecordError: it is damaged or cannot be read.
    """
    data = _read(path)
    try:
        return thaw(data)
    except _DAMAGE as reason:
        raise RecordError(f"{path}: damaged ({_said(reason)})") from reason


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_bytes()
    except OSError as reason:
        raise RecordError(f"{path}: cannot be read: {reason.strerror}") from reason
    try:
        data = json.loads(text)
    except _DAMAGE as reason:
        raise RecordError(f"{path}: not valid JSON ({_said(reason)})") from reason
    if not isinstance(data, dict):
        raise UsageError(Fault(str(path), f"not a frozen baseline: a JSON {type(data).__name__}"))
    try:
        check_schema(data)
    except ValueError as reason:
        raise UsageError(Fault(str(path), f"not a frozen baseline: {reason}")) from reason
    return data


def list_frozen(folder: Path = BASELINES) -> tuple[list[FrozenFile], list[str]]:
    """Return the frozen files of a folder, newest first, and what is wrong with the others.

    Other JSON files are passed over in silence: the folder may hold more than baselines.
    """
    found, damaged = [], []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            found.append(_facts(path, _read(path)))
        except UsageError:
            continue
        except RecordError as reason:
            damaged.append(str(reason))
        except _DAMAGE as reason:
            damaged.append(f"{path}: damaged ({_said(reason)})")
    return sorted(found, key=lambda f: (f.frozen.frozen_at, f.path.name), reverse=True), damaged


def _facts(path: Path, data: Mapping[str, Any]) -> FrozenFile:
    golden, primary = data["golden"], str(data["primary"])
    entry = data["overall"]["metrics"].get(primary) or {"value": None, "n": 0}
    return FrozenFile(
        path=path,
        frozen=frozen_of(data),
        run_name=str(data["run_name"]),
        run_id=str(data["run"]["id"]),
        golden=f"{golden['name']} v{golden['version']} ({str(golden['digest'])[:8]})",
        primary=primary,
        score=None if entry["value"] is None else float(entry["value"]),
        n=int(entry["n"]),
    )


def _said(reason: BaseException) -> str:
    return f"missing {reason}" if isinstance(reason, KeyError) else " ".join(str(reason).split())
