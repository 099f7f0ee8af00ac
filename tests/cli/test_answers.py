"""Answers from the command line: ``--with-rag``, what is printed, recorded and refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]
CONFIG = "configs/lexical.yaml"


@pytest.fixture(autouse=True)
def _starting_project(starter: Path, tmp_path: Path) -> None:
    shutil.copytree(starter, tmp_path, dirs_exist_ok=True)


def records(folder: Path) -> list[Path]:
    return sorted((folder / "mlruns" / "spool").glob("*"))


def results(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (record / "per_query.jsonl").read_text().splitlines()]


def test_with_rag_answers_out_of_the_hits(program: Program, tmp_path: Path) -> None:
    done = program("run", "-c", CONFIG, "--with-rag", "-o", "report.md")
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = records(tmp_path)
    answers = [result["answer"] for result in results(record)]
    counted = json.loads((record / "aggregate.json").read_text())["answers"]
    assert counted["answered"] == sum(not answer["refused"] for answer in answers) > 0
    assert counted["refused"] == sum(answer["refused"] for answer in answers)
    for answer, result in zip(answers, results(record), strict=True):
        assert answer["error"] is None
        assert answer["latency_ms"] >= 0
        retrieved = {hit["chunk_id"] for hit in result["hits"]}
        assert {citation["chunk_id"] for citation in answer["citations"]} <= retrieved
        for citation in answer["citations"]:
            assert citation["marker"] in answer["text"]
    said = f"answers: {counted['answered']} answered; {counted['refused']} refused"
    assert said in done.stdout
    assert f"{counted['answered']} answered" in (tmp_path / "report.md").read_text()
    assert f"{counted['answered']} answered" in (record / "report.html").read_text()
    # It was not run as the config says, and its name must not say so.
    assert json.loads((record / "run.json").read_text())["name"].endswith(
        "(answer.type=extractive)"
    )


def test_the_same_run_gives_the_same_answers(program: Program, tmp_path: Path) -> None:
    for _ in range(2):
        assert program("run", "-q", "-c", CONFIG, "--with-rag").returncode == 0
    first, second = (
        [{**result["answer"], "latency_ms": 0} for result in results(record)]
        for record in records(tmp_path)
    )
    assert first == second


def test_with_rag_leaves_answers_that_the_config_names(program: Program, tmp_path: Path) -> None:
    settings = ("-S", "answer.type=extractive", "-S", "answer.min_score=1.0")
    assert program("run", "-q", "-c", CONFIG, *settings, "--with-rag").returncode == 0
    (record,) = records(tmp_path)
    recorded = json.loads((record / "config.json").read_text())["answer"]
    assert (recorded["type"], recorded["min_score"]) == ("extractive", 1.0)


def test_with_rag_lets_its_keys_be_turned(program: Program, tmp_path: Path) -> None:
    settings = ("-S", "answer.chunks=1", "-S", "answer.min_score=0")
    assert program("run", "-q", "-c", CONFIG, *settings, "--with-rag").returncode == 0
    (record,) = records(tmp_path)
    for result in results(record):
        cited = [citation["chunk_id"] for citation in result["answer"]["citations"]]
        assert cited in ([], [result["hits"][0]["chunk_id"]])
    done = program("run", "-c", CONFIG, "--with-rag", "-S", "answer.chunks=x", "-S", "search.k=y")
    assert done.returncode == 2
    assert "search.k" in done.stderr


def test_without_it_nobody_answers(program: Program, tmp_path: Path) -> None:
    done = program("run", "-c", CONFIG)
    assert done.returncode == 0
    assert "answers:" not in done.stdout
    (record,) = records(tmp_path)
    assert {result["answer"] for result in results(record)} == {None}
    assert "answers" not in json.loads((record / "aggregate.json").read_text())


def test_an_answer_metric_may_be_the_primary_one(program: Program) -> None:
    primary = ("-S", "metrics.primary=citation_coverage")
    for name, more in (("one", ()), ("two", ("-S", "answer.sentences=1"))):
        done = program("run", "-q", "-c", CONFIG, "--with-rag", *primary, "--name", name, *more)
        assert done.returncode == 0, done.stderr
    done = program("compare", "one", "two")
    assert done.returncode == 0, done.stderr
    assert "citation_coverage" in done.stdout


def test_answers_that_fail_lose_no_hits_and_are_told(program: Program, tmp_path: Path) -> None:
    settings = (
        "-S", "answer.type=openai_compatible", "-S", "answer.base_url=http://127.0.0.1:1",
        "-S", "answer.model=m", "-S", "execution.retries=1", "-S", "execution.stop_after=2",
    )  # fmt: skip
    done = program("run", "-c", CONFIG, *settings)
    (record,) = records(tmp_path)
    lines = done.stderr.splitlines()  # retries are no lines on stderr
    assert done.returncode == 3
    assert lines[0] == f"error: {len(results(record))} answers failed, 0 tolerated (--max-failed)"
    assert lines[1].startswith("error: ")
    assert ": answer: " in lines[1]
    assert all(result["hits"] and result["answer"]["error"] for result in results(record))
    count = len(results(record))
    assert f"0 answered; 0 refused; {count} failed" in done.stdout
    assert f"note: {count} answers failed and count in no answer metric: " in done.stdout


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["metrics.primary=groundedness"],
         "error: configs/lexical.yaml: metrics.primary: groundedness needs answers, and "
         "answer.type is none; set it, or ask with --with-rag\n"),
        (["answer.type=openai_compatible", "answer.base_url=http://h", "answer.model=m",
          "answer.api_key=sk-plain"],
         "error: configs/lexical.yaml: answer.api_key: a key that stands in a config stands in "
         "every record; write ${env:NAME}, or leave it out where the server wants none\n"),
        (["answer.type=system"],
         "error: answer.type: the system embedded gives no answers of its own\n"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_before_anything_is_written(
    program: Program, tmp_path: Path, settings: list[str], said: str
) -> None:
    arguments = [word for setting in settings for word in ("-S", setting)]
    done = program("run", "-c", CONFIG, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert records(tmp_path) == []
