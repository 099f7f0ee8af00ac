"""A planted secret is looked for in everything that a run leaves behind and says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from aiohttp import web

Serving = Callable[..., AbstractContextManager[str]]


Program = Callable[..., subprocess.CompletedProcess[str]]

TOKEN, KEY, PASSWORD = "tok-PLANTED-1f7c9a", "sk-PLANTED-77aa01", "pw-PLANTED-c0ffee"
SECRETS = (TOKEN, KEY, PASSWORD)

CONFIG = """\
name: secretive
golden: golden.yaml
backend:
  type: http
  url: ADDRESS/search?account=${env:PASSWORD}
  headers: {X-Api-Key: "${env:KEY}"}
  auth: {bearer: "${env:TOKEN}"}
  params: {q: "{query}", who: "${env:PASSWORD}"}
  fields: {hits: "results[]", id: id, text: text}
answer: {type: openai_compatible, base_url: ADDRESS, model: m, api_key: "${env:KEY}"}
execution: {retries: 1, max_failed: 9, warmup: 0}
tags: {owner: team}
"""
GOLDEN = "".join(
    f"- {{id: q{n}, query: query {n}, expected_doc_ids: [d{n}], must_contain: [x]}}\n"
    for n in range(6)
)


def gossip() -> object:
    """A server that repeats every secret it is told, in hits, answers, errors and addresses."""

    async def handle(request: web.Request) -> web.StreamResponse:
        told = " ".join([*request.headers.values(), *request.query.values(), *SECRETS])
        if request.path.endswith("completions"):
            text = f"x because {told} [1]"
            return web.json_response({"choices": [{"message": {"content": text}}], "model": KEY})
        number = request.query["q"].split()[-1]
        if number == "1":
            return web.Response(status=500, text=f"who let {told} in?")
        if number == "2":
            return web.Response(
                status=302, headers={"Location": f"http://u:{TOKEN}@x.invalid/{KEY}"}
            )
        if number == "3":
            return web.Response(text=f"<html>{told}</html>")
        return web.json_response(
            {"results": [{"id": f"d{number}", "text": f"hit {told}"}, {"id": f"of {TOKEN}"}]}
        )

    return handle


def test_a_planted_secret_stands_nowhere(
    serving: Serving, program: Program, tmp_path: Path
) -> None:
    environment = {"TOKEN": TOKEN, "KEY": KEY, "PASSWORD": PASSWORD}
    (tmp_path / "golden.yaml").write_text(GOLDEN)
    said: list[str] = []

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = program(*arguments, env=environment)
        said.extend([done.stdout, done.stderr])
        return done

    with serving(gossip()) as address:
        (tmp_path / "c.yaml").write_text(CONFIG.replace("ADDRESS", address))
        for name in ("one", "two"):
            out = ("-o", f"{name}.html", "--debug")
            done = run("track", "-c", "c.yaml", "--name", name, "--cache", "cache", *out)
            assert done.returncode == 0, done.stderr
        for form in ("json", "md", "csv"):
            run("run", "-c", "c.yaml", "-o", f"live.{form}", "--with-rag")
        run("doctor", "--config", "c.yaml")
        run("resume", "latest", "--failed")
        run("track", "-c", "c.yaml", "-S", "backend.url=http://u:${env:PASSWORD}@127.0.0.1:1/x")
        run("track", "-c", "c.yaml", "-S", "execution.timeout_s=${env:TOKEN}")
    for form in ("json", "md", "csv", "html"):
        run("report", "one", "-o", f"report.{form}")
    run("compare", "one", "two", "-o", "compare.html")
    run("compare", "one", "two", "--json")
    run("diagnose", "one")
    run("baseline", "freeze", "one")
    run("gate", "--baseline", "one", "--candidate", "two")

    assert len([*tmp_path.glob("live.*"), tmp_path / "one.html"]) == 4
    (record, *_) = sorted((tmp_path / "mlruns" / "spool").iterdir())
    results = [json.loads(line) for line in (record / "per_query.jsonl").read_text().splitlines()]
    assert [bool(result["error"]) for result in results] == [False, True, True, True, False, False]
    assert "${env:TOKEN}" in results[0]["hits"][0]["snippet"]  # it was told, and is not written
    found = [
        (str(path.relative_to(tmp_path)), secret)
        for path in tmp_path.rglob("*")
        if path.is_file()
        for secret in SECRETS
        if secret.encode() in path.read_bytes()
    ]
    assert found == []
    assert [text for text in said if any(secret in text for secret in SECRETS)] == []


@pytest.mark.parametrize("name", ["mlflow.db"])
def test_the_search_looks_into_the_database_too(
    name: str, program: Program, tmp_path: Path
) -> None:
    """The search above would find a secret that MLflow was given."""
    (tmp_path / "golden.yaml").write_text("- {id: q, query: t, expected_doc_ids: [d]}\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "d").with_suffix(".md").write_text("# d\n\nwords\n")
    (tmp_path / "c.yaml").write_text(
        "golden: golden.yaml\nbackend: {corpus: notes}\nsearch: {mode: lexical}\n"
    )
    (tmp_path / "golden.yaml").write_text("- {id: q, query: t, expected_doc_ids: [d.md]}\n")
    program("track", "-c", "c.yaml", "--tag", "note=visible-marker-42")
    assert b"visible-marker-42" in (tmp_path / "mlruns" / name).read_bytes()
