"""The two HTML reports in a real browser: no script, no request, readable on a phone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="needs chromium (apt-get install chromium)"
)
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def pages(project: Path) -> Path:
    """Reports of the starting project's two configs, its queries and notes hostile."""
    note = next(iter(sorted(project.rglob("notes/*.md"))))
    note.write_text(f"{note.read_text(encoding='utf-8')}\n\n{HOSTILE}\n", encoding="utf-8")
    golden = project / "golden" / "queries.yaml"
    queries = yaml.safe_load(golden.read_text(encoding="utf-8"))
    for query in queries:
        query["query"] += f" {HOSTILE}"
    golden.write_text(yaml.safe_dump(queries, allow_unicode=True), encoding="utf-8")
    for arguments in (
        ("run", "-q", "--config", "configs/hybrid.yaml"),
        ("run", "-q", "--config", "configs/lexical.yaml"),
        ("compare", "hybrid", "lexical", "-o", "compare.html"),
        ("report", "lexical", "-o", "report.html"),
    ):
        command = [sys.executable, "-m", "kebab_eval", *arguments]
        subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)
    return project


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize(
    ("name", "title", "facts"),
    [
        ("compare.html", "lexical against hybrid – kebab-eval",
         ("One lever moved: search.mode hybrid → lexical", "regressions", "ndcg_at_5_doc")),
        ("report.html", "lexical – kebab-eval",
         ("ndcg_at_5_doc", "answerable queries", "Slices", "Worst queries", "How to repeat it")),
    ],
)  # fmt: skip
def test_the_page_is_quiet_and_says_what_matters(
    pages: Path, *, name: str, title: str, facts: tuple[str, ...], width: int, scheme: Any
) -> None:
    page_file = pages / name
    said: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url))
        page.goto(page_file.as_uri())
        assert page.title() == title
        shown = page.inner_text("body")
        wide = page.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert said == [page_file.as_uri()]  # the page itself is the only request
    assert wide <= width
    assert HOSTILE in shown
    for fact in facts:
        assert fact in shown
