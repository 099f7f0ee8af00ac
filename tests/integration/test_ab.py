"""``kebab-eval ab``: two Document Servers side by side, into one CSV."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from aiohttp import web

Serving = Callable[..., AbstractContextManager[str]]


Program = Callable[..., subprocess.CompletedProcess[str]]

SET = """\
- {id: std_001, query: one, category: standards, graded_relevance: {11: 3, 12: 2}, notes: n}
- {id: std_002, query: two, category: standards, graded_relevance: {21: 3}, notes: n}
"""


def answering(*ids: int) -> object:
    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == "Bearer key"
        return web.json_response({"results": [{"id": number, "score": 1.0} for number in ids]})

    return handle


def test_two_servers_into_one_csv(serving: Serving, program: Program, tmp_path: Path) -> None:
    (tmp_path / "queries.yaml").write_text(SET)
    (tmp_path / "c.yaml").write_text(
        'golden: queries.yaml\nbackend: {type: docserver, base_url: "http://unused"}\n'
    )
    with (
        serving(answering(99, 11)) as old,
        serving(answering(11, 21, 12)) as new,
    ):
        done = program(
            "ab", "-c", "c.yaml", "--baseline-url", old, "--candidate-url", new,
            "--output", "x.csv", "--no-track", "--json", "-S", "search.k=10", "--limit", "2",
            env={"DOCSRV_TOKEN": "key"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    comparison = json.loads(done.stdout)
    assert comparison["counts"] == {"win": 2, "loss": 0, "draw": 0, "regression": 0}
    assert [change["key"] for change in comparison["config_diff"] if change["lever"]] == [
        "backend.base_url"
    ]
    record = json.loads(next(tmp_path.glob("mlruns/spool/*/run.json")).read_text())
    assert record["command"] == (
        f"kebab-eval ab --config c.yaml --baseline-url {old} --candidate-url {new} "
        "-S search.k=10 --limit 2"
    )
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["query_id"] for row in rows] == ["std_001", "std_002"]
    # one: 11 at rank 2, then at 1; two: missed, then 21 at rank 2.
    assert [row["baseline_first_relevant_rank"] for row in rows] == ["2", ""]
    assert [row["candidate_first_relevant_rank"] for row in rows] == ["1", "2"]
    assert float(rows[1]["delta"]) == float(rows[1]["candidate_ndcg_at_10_doc"]) > 0


def test_what_it_refuses(program: Program, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("golden: g.yaml\nbackend: {corpus: notes}\n")
    urls = ("--baseline-url", "http://a", "--candidate-url", "http://b")
    done = program("ab", "-c", "c.yaml", *urls)
    assert done.returncode == 2
    assert "embedded, which has no address" in done.stderr
    assert program("ab", "-c", "c.yaml", *urls, "-o", "x.txt").returncode == 2
