"""Which pages ``ui --open`` opens, and when."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.tracking.store import Store, resolve_store
from kebab_eval.workflows import ui


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return resolve_store(f"sqlite:///{tmp_path}/mlflow.db", None)


class _Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002


@pytest.mark.parametrize(
    ("labels", "opened"),
    [
        (["UI", "runs", "newest", "queries", "compare", "pairs"], ["runs", "compare", "pairs"]),
        (["UI"], ["UI"]),  # nothing was tracked yet
    ],
)
def test_the_pages_open_once_the_server_answers(
    monkeypatch: pytest.MonkeyPatch, store: Store, labels: list[str], opened: list[str]
) -> None:
    found: list[str] = []
    monkeypatch.setattr(ui.webbrowser, "open", found.append)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Healthy)
    base = f"http://127.0.0.1:{server.server_port}"
    links = tuple((label, base if label == "UI" else f"{base}/#/{label}") for label in labels)
    thread = ui.open_pages(ui.Plan(links, None, store))
    assert found == []  # nobody answers yet
    threading.Thread(target=server.serve_forever, daemon=True).start()
    thread.join(10)
    server.shutdown()
    server.server_close()
    assert found == [url for label, url in links if label in opened]
