"""The scores by version in each report: what is shown, with which n, and nothing on other sets."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from kebab_eval.config import Metrics
from kebab_eval.metrics import evaluate_run
from kebab_eval.records import (
    BinaryJudgments,
    EvalRun,
    GoldenQuery,
    GoldenSet,
    Hit,
    Judgments,
    QueryResult,
)
from kebab_eval.reports.html import render_html
from kebab_eval.reports.markdown import render_markdown, render_note
from kebab_eval.reports.terminal import print_run
from kebab_eval.reports.versions import version_tables

NO_PLOTS = {"plots/ranks.svg": "<svg></svg>", "plots/metrics.svg": "<svg></svg>"}
HOSTILE = "<b>|x\x1b[31m [red]"


def make_run(
    eval_version: str | None = None, *, categories: Sequence[str] = ("exam",), graded: bool = True
) -> EvalRun:
    """Return a run of one query for each category, its document second, and six failure cases.

    Five of the failure cases came back empty.
    """
    queries, results = [], []
    for number, category in enumerate(categories):
        binary = BinaryJudgments(frozenset("1"), frozenset("1")) if graded else None
        judgments = Judgments(doc={"1": 3.0 if graded else 1.0})
        queries.append(
            GoldenQuery(
                f"q{number}", "words", judgments, language="ko", category=category, v01=binary
            )
        )
        results.append(answer(f"q{number}", "9", "1"))
    for number in range(6):
        query = GoldenQuery(f"f{number}", "words", failure_expected=True, category="none")
        queries.append(replace(query, v01=BinaryJudgments() if graded else None))
        results.append(answer(f"f{number}", *("9" if number == 0 else "")))
    format_name, threshold = ("docserver", 2) if graded else ("kebab", 1)
    golden = GoldenSet("set", "0.2", "0123456789abcdef", tuple(queries), threshold, "", format_name)
    scores = evaluate_run(golden, results)
    settings = Metrics().model_dump(mode="json")
    if eval_version is not None:
        settings["eval_version"] = eval_version
    info = {
        "id": "20260101-000000-n-abcd",
        "name": "run",
        "created_at": "2026-01-01T00:00:00.000Z",
        "status": "FINISHED",
        "golden": {"name": "set", "version": "0.2", "digest": golden.digest},
        "lever": None,
        "system": {},
        "git": None,
        "versions": {},
        "command": "",
    }
    config = {"metrics": settings, "search": {"mode": "hybrid", "k": 10}}
    judged = [
        replace(result, metrics=row) for result, row in zip(results, scores.per_query, strict=True)
    ]
    return EvalRun(info, config, golden, tuple(judged), scores.aggregate)


def answer(query_id: str, *docs: str) -> QueryResult:
    hits = tuple(Hit(rank, f"{doc}#h", doc, 0.5, "rrf") for rank, doc in enumerate(docs, 1))
    return QueryResult(query_id, "words", "hybrid", hits, 2.0)


def on_terminal(run: EvalRun, width: int = 100) -> str:
    output = io.StringIO()
    print_run(run, Console(file=output, width=width, highlight=False))
    return output.getvalue()


def in_html(run: EvalRun) -> str:
    """Return the cells of the page, one row a line."""
    page = render_html(run, NO_PLOTS)
    rows = re.findall(r"<tr>(.*?)</tr>", page, flags=re.DOTALL)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, flags=re.DOTALL) for row in rows]
    return "\n".join("  ".join(re.sub(r"<[^>]*>", "", cell) for cell in row) for row in cells)


def test_every_report_shows_both_blocks_with_n_and_failure_precision() -> None:
    run = make_run()
    # The document is second: recall 1, MRR 1/2, nDCG 1/log2(3) = 0.631 in both versions.
    assert re.search(
        r"^all +1\.000 \(1\) +0\.500 \(1\) +0\.631 \(1\) +1\.000 \(1\)$",
        on_terminal(run),
        re.MULTILINE,
    )
    assert re.search(
        r"^all +0\.631 \(1\) +1\.000 \(1\) +1\.000 \(1\) +5/6$", on_terminal(run), re.MULTILINE
    )
    markdown = render_markdown(run)
    assert "|  | all | 1.000 (1) | 0.500 (1) | 0.631 (1) | 1.000 (1) |" in markdown
    graded = "0.631 (1) | 1.000 (1) | 1.000 (1) | 5/6 | 2.0 (7) | 2.0 (7) |"
    assert f"|  | all | {graded}" in markdown
    assert "| category | none | – | – | – | 5/6 | 2.0 (6) | 2.0 (6) |" in markdown
    assert "| language | ko | 0.631 (1) | 1.000 (1) | 1.000 (1) | – | 2.0 (1) |" in markdown
    page = in_html(run)
    assert "all  1.000 (1)  0.500 (1)  0.631 (1)  1.000 (1)" in page
    assert "none  –  –  –  5/6  2.0 (6)  2.0 (6)" in page


def test_the_note_of_the_run_has_the_scores_of_the_whole_set_only() -> None:
    note = render_note(make_run())
    assert "## Scores v0.1 (binary)" in note
    assert "| 5/6 |" in note
    assert "| category |" not in note.partition("## By")[0]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("v0.1", ["v0.1 (binary)"]),
        ("v0.2", ["v0.2 (graded)"]),
        ("both", ["v0.1 (binary)", "v0.2 (graded)"]),
    ],
)
def test_the_config_chooses_the_blocks(asked: str, shown: list[str]) -> None:
    run = make_run(asked)
    assert [table.title for table in version_tables(run)] == shown
    for text in (on_terminal(run), render_markdown(run), render_html(run, NO_PLOTS)):
        assert re.findall(r"v0\.\d \((?:binary|graded)\)", text) == shown


def test_only_the_graded_block_explains_failure_cases() -> None:
    assert "failure cases: how many" in on_terminal(make_run("v0.2"))
    assert "failure cases" not in on_terminal(make_run("v0.1"))


def test_a_record_from_before_the_key_shows_both() -> None:
    run = make_run()
    settings = {k: v for k, v in run.config["metrics"].items() if k != "eval_version"}
    assert len(version_tables(replace(run, config={**run.config, "metrics": settings}))) == 2


def test_other_sets_have_no_block() -> None:
    run = make_run(graded=False)
    assert version_tables(run) == ()
    for text in (on_terminal(run), render_markdown(run), render_html(run, NO_PLOTS)):
        assert "binary" not in text
        assert "In parentheses" not in text


@pytest.mark.parametrize("width", [80, 100])
def test_the_tables_fit_a_terminal(width: int) -> None:
    lines = on_terminal(make_run(categories=["failure_expected"] * 60), width).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("v0.1"))
    rows = lines[start:-1]
    assert any(re.match(r"  failure_expected +1\.000 \(60\) ", row) for row in rows)
    assert all(len(row.rstrip()) <= width for row in rows)


def test_many_values_are_cut_short_on_a_terminal_and_nowhere_else() -> None:
    run = make_run(categories=[f"c{number:02}" for number in range(20)])
    assert "  and 9 more" in on_terminal(run)  # 20 and the failure cases' own, 12 are shown
    assert "| category | c19 |" in render_markdown(run)


def test_a_hostile_category_stays_a_text() -> None:
    run = make_run(categories=[HOSTILE])
    assert "\x1b" not in on_terminal(run)
    assert r"<b>|x\x1b[31m [red]" in on_terminal(run)
    assert r"| category | \<b\>\|x\\x1b\[31m \[red\] |" in render_markdown(run)
    assert "<b>|x" not in render_html(run, NO_PLOTS)


def test_a_set_of_fractional_gains_shows_its_own_ndcg() -> None:
    query = GoldenQuery("q", "words", Judgments(doc={"1": 0.5}))
    golden = GoldenSet("set", "1", "0123456789abcdef", (query,), 0.5)
    scores = evaluate_run(golden, [answer("q", "9", "1")])
    run: Any = replace(make_run(), golden=golden, results=(), aggregate=scores.aggregate)
    # 0.5/log2(3) / 0.5
    assert re.search(
        r"^nDCG \(linear\) +doc +0\.000 +0\.631 +0\.631 +0\.631 +1$", on_terminal(run), re.MULTILINE
    )
