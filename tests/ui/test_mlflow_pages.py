"""The MLflow UI of a real server, in a real browser: what a user sees after two runs.

With ``KEBAB_EVAL_PICTURES=docs/images`` in the environment the README's pictures are taken anew.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
PICTURES = os.environ.get("KEBAB_EVAL_PICTURES")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs chromium (apt-get install chromium)"
)


def _kebab_eval(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kebab_eval", *arguments]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two configs of this repository were tracked."""
    folder = tmp_path_factory.mktemp("ui")
    for name in ("rrf_k60", "rrf_k1"):
        config = ROOT / "configs" / f"{name}.yaml"
        subprocess.run(_kebab_eval("track", "--config", str(config), "-q"), cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def links(store: Path) -> Iterator[dict[str, str]]:
    """The links that ``kebab-eval ui`` prints, while it serves."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = (store / "ui.log").open("w+")
    server = subprocess.Popen(
        _kebab_eval("ui", "--port", str(port)),
        cwd=store,
        stdout=log,
        stderr=log,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        _await("127.0.0.1", port)
        lines = (store / "ui.log").read_text().splitlines()
        found = [
            re.match(r"(UI|runs|newest|queries|compare|pairs) +(http\S+)$", line) for line in lines
        ]
        yield {match[1]: match[2] for match in found if match}
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 0
        log.close()


def _await(host: str, port: int) -> None:
    deadline = time.monotonic() + 90
    while True:
        try:
            with closing(http.client.HTTPConnection(host, port, timeout=2)) as connection:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


@pytest.fixture
def page() -> Iterator[Any]:
    with playwright.sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser.new_page(viewport={"width": 1280, "height": 900})
        finally:
            browser.close()


def _close_assistant(page: Any) -> None:
    page.get_by_role("button", name="Close").first.click()


def _picture(page: Any, name: str) -> None:
    if PICTURES:
        page.wait_for_timeout(600)
        page.screenshot(path=ROOT / PICTURES / name)


def test_two_runs_compare_by_the_one_lever(page: Any, links: dict[str, str]) -> None:
    page.set_viewport_size({"width": 1280, "height": 1040})
    page.goto(links["compare"])
    page.get_by_text("Run details").wait_for(timeout=60_000)
    _close_assistant(page)
    page.get_by_text("Visualizations").click()
    page.get_by_role("switch", name="Parameters - Show diff only").click()
    page.get_by_text("chunker_version").wait_for(state="detached", timeout=60_000)

    text = page.locator("body").inner_text()
    text = text[text.index("Run details") :]
    parameters = text[text.index("Parameters") : text.index("Metrics")]
    shown = [word for word in parameters.split() if word not in {"Show", "diff", "only"}]
    assert shown == ["Parameters", "rrf_k", "60", "1"]

    _picture(page, "compare-two-runs.png")

    # The metrics scroll in a box of their own, and only the rows in sight are in the page.
    # Only the column of values takes the wheel.
    name = page.get_by_text("by_difficulty/easy").bounding_box()
    page.mouse.move(name["x"] + 300, name["y"] + 100)
    seen: set[str] = set()
    for _ in range(30):
        seen |= set(page.locator("body").inner_text().split())
        if "retrieval/ndcg_at_10_doc" in seen:
            break
        page.mouse.wheel(0, 150)
        page.wait_for_timeout(250)
    assert {"retrieval/ndcg_at_10_doc", "by_language/ko", "latency/p95_ms"} <= seen


def test_the_runs_page_has_the_columns_of_this_project(page: Any, links: dict[str, str]) -> None:
    page.set_viewport_size({"width": 1600, "height": 700})
    page.goto(links["runs"])
    page.get_by_text("rrf_k60").first.wait_for(timeout=60_000)
    _close_assistant(page)
    page.get_by_text("retrieval/ndcg_at_10_doc").first.wait_for(timeout=60_000)
    text = page.locator("body").inner_text()
    assert "rrf_k1" in text
    assert "0.683" in text  # nDCG@10 of rrf_k1, in its row
    _picture(page, "runs-page.png")


def test_the_run_page_shows_the_note_and_the_params(page: Any, links: dict[str, str]) -> None:
    page.goto(links["newest"])
    page.get_by_text("rrf_k1").first.wait_for(timeout=60_000)
    page.get_by_role("heading", name="Metrics").first.wait_for(timeout=60_000)
    text = page.locator("body").inner_text()
    assert "Lever: fusion.rrf_k = 1" in text  # the note, rendered as Markdown
    assert "chunker_version" in text
    assert "golden_queries" in text
    _close_assistant(page)
    _picture(page, "run-page.png")


def test_the_evaluation_page_pairs_every_query_of_two_runs(
    page: Any, links: dict[str, str]
) -> None:
    page.set_viewport_size({"width": 1440, "height": 1000})
    page.goto(links["pairs"])
    page.get_by_text("expected_ids").first.wait_for(timeout=60_000)
    _close_assistant(page)
    page.get_by_text("90 of 90").wait_for(timeout=60_000)
    _picture(page, "evaluation-pairs.png")

    head = page.locator("body").inner_text()
    # the averages of the candidate, and how far each is from the baseline's
    assert re.search(r"ndcg_at_10_doc\s+AVG\s+0\.68\s+\+0\.08", head)
    assert re.search(r"hit_at_10_doc\s+AVG\s+[\d.]+\s+\+[\d.]+", head)

    # Only the rows in sight are in the page. Each row is a query, with a trace of either run.
    pairs: dict[str, list[str]] = {}
    page.mouse.move(700, 700)
    for _ in range(80):
        text = page.locator("body").inner_text()
        for row in re.split(r'\n\{ "query_id": "', text)[1:]:
            query_id = row[: row.index('"')]
            pairs[query_id] = re.findall(r"\btr-[0-9a-f]{32}\b", row)
        if len(pairs) == 90:
            break
        page.mouse.wheel(0, 300)
        page.wait_for_timeout(150)
    assert len(pairs) == 90
    assert {query_id: ids for query_id, ids in pairs.items() if len(set(ids)) != 2} == {}


def test_a_trace_shows_the_hits_as_documents_below_its_search(
    page: Any, links: dict[str, str]
) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(links["queries"])
    page.get_by_text("expected_ids").first.wait_for(timeout=60_000)
    _close_assistant(page)
    page.get_by_text('"query_id": "exam-016"').first.click()
    page.get_by_text("Spans").wait_for(timeout=60_000)
    for stage in ("lexical", "embedding", "vector", "fusion"):
        page.get_by_text(stage, exact=True).first.wait_for(timeout=60_000)
    page.get_by_text("search", exact=True).first.click()
    page.get_by_text("doc_uri").first.wait_for(timeout=60_000)
    assert page.get_by_text("doc_uri").count() == 10  # one card for each hit
    _picture(page, "trace.png")
    page.get_by_text("doc_uri").first.click()
    page.get_by_text("grade_doc").first.wait_for(timeout=60_000)
    assert "exam/reliability-engineering.md" in page.locator("body").inner_text()


def test_the_report_needs_no_script_and_no_network(page: Any, store: Path) -> None:
    (record,) = (store / "mlruns" / "spool").glob("*-rrf_k1-*")
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("request", lambda request: problems.append(request.url))
    page.goto((record / "report.html").as_uri())
    assert problems == [(record / "report.html").as_uri()]
    text = page.locator("body").inner_text()
    assert "ndcg_at_10_doc" in text
    assert "Worst queries" in text
    _picture(page, "report.png")
