"""Which MLflow store is meant, and what must be true of it before MLflow sees it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from kebab_eval.config import DEFAULT_TRACKING_URI
from kebab_eval.errors import Fault, TrackerError, UsageError
from kebab_eval.redaction import redact
from kebab_eval.tracking.keys import public_uri

UI_URL = "http://127.0.0.1:5000"
_SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Store:
    """An MLflow store.

    Attributes:
        uri: what MLflow is given; a SQLite path in it is absolute.
        database: the SQLite file, None for a server or another database.
    """

    uri: str
    database: Path | None = None

    @property
    def artifact_uri(self) -> str | None:
        """Where experiments of an embedded store keep artifacts: absolute, fixed at creation."""
        return (self.database.parent / "artifacts").as_uri() if self.database else None

    @property
    def ui_url(self) -> str:
        """The address of the UI: the server's own, or the one that ``kebab-eval ui`` starts."""
        if self.uri.startswith(("http://", "https://")):
            return redact(public_uri(self.uri)).rstrip("/")
        return UI_URL

    @property
    def shown(self) -> str:
        """The store as messages and records show it: no credentials, no machine's folders."""
        if self.database is None:
            return redact(public_uri(self.uri))
        return redact(_SQLITE + os.path.relpath(self.database).replace(os.sep, "/"))


def resolve_store(
    option: str | None, configured: str | None = None, environ: Mapping[str, str] = os.environ
) -> Store:
    """Return the store that the option, ``MLFLOW_TRACKING_URI`` or the config names, in that order.

    Raises:
        UsageError: the store is a folder: MLflow's old file store loses what this tool logs.
    """
    uri = option or environ.get("MLFLOW_TRACKING_URI") or configured or DEFAULT_TRACKING_URI
    if uri.startswith(_SQLITE):
        path = uri.removeprefix(_SQLITE).partition("?")[0]
        database = Path(os.path.abspath(path))
        return Store(f"{_SQLITE}{database.as_posix()}", database)
    _check_address(uri)
    if uri.startswith("file:") or ("://" not in uri and uri != "databricks"):
        message = (
            f"{public_uri(uri)!r} is MLflow's old file store, which it no longer keeps up; "
            f"use {DEFAULT_TRACKING_URI} or the address of a tracking server"
        )
        raise UsageError(Fault("tracking uri", message))
    return Store(uri)


_SCHEMES = ("http", "https", "postgresql", "mysql", "mssql", "sqlite", "file", "databricks", "")


def _check_address(uri: str) -> None:
    """Refuse what no store can be, before any query is asked."""
    shown = redact(public_uri(uri))
    try:
        parts = urlsplit(uri)
        scheme = parts.scheme.partition("+")[0]
        if scheme in ("http", "https") and not (parts.hostname and parts.port != 0):
            raise ValueError("no host")
    except ValueError as reason:
        message = f"{shown!r} is no valid address ({redact(str(reason))}); as in http://host:5000"
        raise UsageError(Fault("tracking uri", message)) from None
    if "://" in uri and scheme not in _SCHEMES:
        known = ", ".join(name for name in _SCHEMES if name not in ("", "file"))
        message = f"{shown!r} has the scheme {scheme!r}; MLflow knows {known}"
        raise UsageError(Fault("tracking uri", message))


@contextmanager
def migrating(store: Store) -> Iterator[None]:
    """Hold the only right to open an embedded store: opening it the first time makes its tables.

    Two first runs at once would both make them, and one would fail.
    """
    if store.database is None or sys.platform == "win32":
        yield
        return
    import fcntl

    with (store.database.parent / f".{store.database.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prepare_database(store: Store) -> None:
    """Make the folder of an embedded store and put its file into write-ahead mode.

    The mode persists in the file; it lets the UI read while a run is being written.
    """
    if store.database is None:
        return
    import sqlite3

    try:
        store.database.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(store.database, timeout=10)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
    except (OSError, ValueError, sqlite3.Error) as reason:
        raise TrackerError(f"{store.shown}: cannot be opened: {reason}") from reason
