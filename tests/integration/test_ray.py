"""The fan-out on a real Ray cluster of two workers, beside the same run without it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra: pip install 'kebab-eval[ray]'")

Program = Callable[..., subprocess.CompletedProcess[str]]

# A worker that is told to die does so once, in the middle of a shard.
SYSTEM = """
import os, pathlib, signal, time
def search(query, k):
    number = int(query.split()[1])
    if os.path.exists("slow"):
        time.sleep(0.1)
    if number == 700 and not os.path.exists("died"):
        pathlib.Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if os.path.exists("down"):
        raise OSError("no route with " + os.environ["TOKEN"])
    with open("asked.txt", "a") as log:
        log.write(f"{number} {os.getpid()}\\n")
    return [(f"d{(number + n) % 50}", 1 / (n + 1)) for n in range(k)]
"""
COUNT = 1200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "system.py").write_text(SYSTEM)
    (tmp_path / "golden.yaml").write_text(
        "".join(
            f"- {{id: q{n:04}, query: text {n}, expected_doc_ids: [d{(n + 3) % 50}]}}\n"
            for n in range(COUNT)
        )
    )
    (tmp_path / "c.yaml").write_text(
        'golden: golden.yaml\nbackend: {type: python, target: "system:search", path: .}\n'
        'search: {k: 5}\nexecution: {concurrency: 4}\ntags: {token: "${env:TOKEN}"}\n'
    )
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    # Ray's sockets lie below its folder, and their paths may not be long.
    return {"RAY_TMPDIR": "/tmp", "TOKEN": "planted-token-of-ray"}  # noqa: S108


def results(record: Path) -> list[dict[str, Any]]:
    lines = (record / "per_query.jsonl").read_text().splitlines()
    return [
        {**json.loads(line), "latency_ms": 0, "timings_ms": {}, "started_at": ""} for line in lines
    ]


def test_the_same_results_though_a_worker_dies(program: Program, folder: Path) -> None:
    env = environment(folder)
    done = program("run", "-c", "c.yaml", "--engine", "ray", "--json", env=env)
    assert done.returncode == 0, done.stderr
    assert (folder / "died").exists()
    asked = [line.split() for line in (folder / "asked.txt").read_text().splitlines()]
    assert {int(number) for number, _ in asked} == set(range(COUNT))
    assert len({process for _, process in asked}) > 1
    by_ray = folder / json.loads(done.stdout)["record_dir"]

    alone = program("run", "-c", "c.yaml", "--json", env=env)
    local = folder / json.loads(alone.stdout)["record_dir"]
    assert results(by_ray) == results(local)
    read = [json.loads((record / "aggregate.json").read_text()) for record in (by_ray, local)]
    for aggregate in read:
        del aggregate["latency_ms"]
    assert read[0] == read[1]


def test_a_system_that_is_down_stops_the_run_and_tells_no_secret(
    program: Program, folder: Path
) -> None:
    (folder / "down").touch()
    env = environment(folder)
    done = program("run", "-c", "c.yaml", "--engine", "ray", env=env)
    assert done.returncode == 3
    assert "the first 10 queries all failed" in done.stderr
    assert "OSError: no route with ${env:TOKEN}" in done.stderr
    assert f"{COUNT - 10} queries were not asked" in done.stderr
    secret = env["TOKEN"].encode()
    session = Path("/tmp/ray/session_latest").resolve()  # noqa: S108
    for path in [*folder.rglob("*"), *session.rglob("*.log"), *session.rglob("*.err")]:
        if path.is_file():
            assert secret not in path.read_bytes(), path
    (folder / "down").unlink()
    (folder / "died").touch()
    done = program("resume", "latest", "--failed", "--json", env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["aggregate"]["failed_queries"] == 0


def test_a_polite_kill_keeps_what_came_back(folder: Path) -> None:
    for name in ("slow", "died"):
        (folder / name).touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "kebab_eval", "run", "-q", "-c", "c.yaml", "--engine", "ray"],
        cwd=folder,
        env={**os.environ, **environment(folder)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        found = list(folder.glob("mlruns/spool/*/per_query.jsonl"))
        if found and found[0].read_text().count("\n") >= 10:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "answers are kept in" in said
    (record,) = folder.glob("mlruns/spool/*")
    assert json.loads((record / "run.json").read_text())["status"] == "KILLED"
    assert len(results(record)) >= 10


def test_no_cluster_at_the_address_is_told(program: Program, folder: Path) -> None:
    address = ("--engine", "ray", "--ray-address", "127.0.0.1:9")
    done = program("run", "-c", "c.yaml", *address, env=environment(folder))
    assert done.returncode == 2
    assert "execution.ray_address: no Ray cluster at 127.0.0.1:9" in done.stderr
