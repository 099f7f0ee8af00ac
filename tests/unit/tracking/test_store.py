"""Which store is meant, how it is shown, and what must be true of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kebab_eval.errors import TrackerError, UsageError
from kebab_eval.tracking.store import UI_URL, Store, prepare_database, resolve_store


def test_option_then_environment_then_config_then_the_default(tmp_path: Path) -> None:
    environ = {"MLFLOW_TRACKING_URI": "http://env"}
    assert resolve_store("http://option", "http://config", environ).uri == "http://option"
    assert resolve_store(None, "http://config", environ).uri == "http://env"
    assert resolve_store(None, "http://config", {"MLFLOW_TRACKING_URI": ""}).uri == "http://config"
    assert resolve_store(None, None, {}).database == Path.cwd() / "mlruns/mlflow.db"


def test_an_embedded_store_is_absolute_for_mlflow_and_relative_for_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = resolve_store("sqlite:///a/x.db", None, {})
    assert store.uri == f"sqlite:///{tmp_path}/a/x.db"
    assert store.artifact_uri == (tmp_path / "a/artifacts").as_uri()
    assert store.shown == "sqlite:///a/x.db"
    assert store.ui_url == UI_URL


def test_a_server_is_shown_without_credentials() -> None:
    store = resolve_store("https://me:s3cret@host/", None, {})
    assert store.database is None
    assert store.artifact_uri is None
    assert (store.shown, store.ui_url) == ("https://host/", "https://host")


@pytest.mark.parametrize("uri", ["mlruns", "./mlruns", "file:///x", "file:x", "/abs"])
def test_the_old_file_store_is_refused(uri: str) -> None:
    with pytest.raises(UsageError, match="old file store"):
        resolve_store(uri, None, {})


def test_a_broken_address_is_refused() -> None:
    with pytest.raises(UsageError, match="is no valid address"):
        resolve_store("http://[x", None, {})


def test_a_database_is_made_in_write_ahead_mode(tmp_path: Path) -> None:
    database = tmp_path / "deep/er/x.db"
    prepare_database(Store("sqlite:///x", database))
    prepare_database(Store("sqlite:///x", database))
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_server_needs_no_preparation() -> None:
    prepare_database(Store("http://h"))


@pytest.mark.parametrize("kind", ["folder", "not a database", "below a file", "nul"])
def test_a_database_that_cannot_be_opened_is_told(tmp_path: Path, kind: str) -> None:
    database = tmp_path / "x.db"
    if kind == "folder":
        database.mkdir()
    elif kind == "not a database":
        database.write_bytes(b"this is no database at all" * 100)
    elif kind == "below a file":
        database.write_text("")
        database = database / "y.db"
    else:
        database = tmp_path / "a\0b" / "x.db"
    with pytest.raises(TrackerError, match="cannot be opened"):
        prepare_database(Store("sqlite:///x", database))
