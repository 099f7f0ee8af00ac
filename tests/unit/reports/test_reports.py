"""What reports say of a run, and that no text in it can become anything but text."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from rich.console import Console

from kebab_eval.records import EvalRun, Hit
from kebab_eval.reports import FORMATS, render, run_files
from kebab_eval.reports.html import render_html
from kebab_eval.reports.markdown import code, escape, render_note
from kebab_eval.reports.rows import per_query_table
from kebab_eval.reports.summary import DASH, number, summarise, version_text
from kebab_eval.reports.terminal import print_run
from kebab_eval.reports.texts import encodable

MakeRun = Callable[..., EvalRun]

# Plots take a second, and no text of a run stands in them (which a test holds).
NO_PLOTS = {"plots/ranks.svg": "<svg></svg>", "plots/metrics.svg": "<svg></svg>"}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=cmd|' /C calc'!A0",
    "a|b\n|---|",
    "`x` ``y``",
    "[a](javascript:alert(1))",
    "\x1b[31mred\x1b[0m",
    "\u2028\u2029\x85",
    "\r",
    "\ud800",
    "{{ 7 * 7 }} {% raw %}",
    "[bold]not markup[/bold] [/]",
    "\0",
    "# heading\n* item",
]


# --- what is said ---------------------------------------------------------------------------


def test_the_summary_says_what_a_reader_asks_first(run_with: MakeRun) -> None:
    summary = summarise(run_with())
    # one: nDCG = 1/log2(3) = 0.6309; two failed and scores 0; the mean is 0.3155.
    assert summary.primary.value == pytest.approx(0.63093 / 2, abs=1e-5)
    assert summary.primary.n == 2
    assert (summary.failed, summary.total) == (1, 2)
    assert summary.headline == "2 queries of set words v1 (01234567), hybrid, k=10"
    assert [line.first_relevant for line in summary.lines] == [2, None]
    assert [line.result.query_id for line in summary.failures] == ["q2 words"]
    assert [line.result.query_id for line in summary.worst] == ["q1 words"]


def test_a_partial_run_says_how_many_were_asked(run_with: MakeRun) -> None:
    run = run_with(status="KILLED")
    part = EvalRun(run.info, run.config, run.golden, run.results[:1], run.aggregate)
    assert summarise(part).headline.startswith("1 of 2 queries of")
    assert "**This run ended KILLED**" in render(part, "md")
    assert "This run ended KILLED" in render(part, "html")


def test_what_was_not_measured_is_a_dash() -> None:
    assert number(None) == DASH
    assert number(0.0) == "0.000"


def test_a_long_value_is_cut() -> None:
    assert version_text("x" * 100) == "x" * 77 + "..."
    assert version_text(None) == "none"


def test_the_note_is_the_head_of_the_report(run_with: MakeRun) -> None:
    run = run_with()
    assert render_note(run).startswith("# run words\n\n2 queries of set words v1")
    assert "## By language" in render_note(run)
    assert "## By group" not in render_note(run)
    assert "## By group" in render(run, "md")


def test_every_format_and_file_is_made(run_with: MakeRun) -> None:
    run = run_with()
    assert all(render(run, form) for form in FORMATS)
    assert set(run_files(run)) == {
        "aggregate.json",
        "per_query.csv",
        "per_query_table.json",
        "report.md",
        "report.html",
        "plots/ranks.svg",
        "plots/metrics.svg",
    }


def test_the_same_run_gives_the_same_bytes(run_with: MakeRun) -> None:
    assert run_files(run_with()) == run_files(run_with())


def test_json_holds_all_that_the_other_formats_show(run_with: MakeRun) -> None:
    run = run_with()
    document = json.loads(render(run, "json"))
    assert document["run"]["id"] == run.run_id
    assert document["aggregate"] == json.loads(json.dumps(run.aggregate))
    assert [line["query_id"] for line in document["per_query"]] == ["q1 words", "q2 words"]


def test_a_report_of_an_empty_run_is_made(run_with: MakeRun) -> None:
    run = run_with()
    empty = EvalRun(run.info, run.config, run.golden, (), run.aggregate)
    assert all(render(empty, form) for form in FORMATS)


def test_the_html_asks_nothing_of_anybody(run_with: MakeRun) -> None:
    html = render(run_with(), "html")
    # References within the file (#clip of a plot) are no requests.
    assert not re.search(r"""src\s*=|href\s*=\s*["']?[^"'#]|url\((?!#)|@import""", html)
    assert not re.search("<(script|link|iframe|object|embed)", html)


# --- hostile texts --------------------------------------------------------------------------


class Tags(HTMLParser):
    """Counts tags and attributes; texts do not matter."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[Any] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(tag)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_adds_anything_to_the_html(run_with: MakeRun, text: str) -> None:
    html = render_html(run_with(text), NO_PLOTS)
    assert Tags(html).found == Tags(render_html(run_with(), NO_PLOTS)).found
    html.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", html)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_leaves_its_place_in_the_markdown(run_with: MakeRun, text: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")

    def kinds(source: str) -> list[str]:
        tokens = parser.parse(source)
        flat = [token for token in tokens if token.type != "inline"]
        flat += [child for token in tokens for child in token.children or ()]
        return [token.type for token in flat if token.type not in ("text", "softbreak")]

    report = render(run_with(text), "md")
    allowed = kinds(render(run_with(), "md"))
    assert [kind for kind in kinds(report) if kind != "text_special"] == [
        kind for kind in allowed if kind != "text_special"
    ]
    report.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028]", report)


@pytest.mark.parametrize(
    "text", [*HOSTILE, "+1", "-1", "@x", "\tx", "\n=1", "＝1", "＋1", "－1", "＠1"]
)
def test_no_text_is_a_formula_or_a_second_row(run_with: MakeRun, text: str) -> None:
    run = run_with(text)
    rows = list(csv.reader(io.StringIO(render(run, "csv"), newline="")))
    assert len(rows) == 3
    assert {len(row) for row in rows} == {len(rows[0])}
    for cell in (cell for row in rows[1:] for cell in row):
        assert not cell.startswith(tuple("=+-@\t\r\n＝＋－＠")), cell


def test_the_csv_holds_facts_and_metrics(run_with: MakeRun) -> None:
    rows = list(csv.DictReader(io.StringIO(render(run_with(), "csv"), newline="")))
    assert rows[0]["query_id"] == "q1 words"
    assert rows[0]["first_relevant_rank"] == "2"
    assert (rows[0]["hits"], rows[0]["latency_ms"], rows[0]["error"]) == ("2", "2.0", "")
    assert float(rows[0]["mrr_at_10_doc"]) == 0.5
    assert rows[0]["difficulty"] == ""
    assert rows[1]["error"] == "failed: words"
    assert float(rows[1]["mrr_at_10_doc"]) == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_reaches_the_terminal_as_a_command(run_with: MakeRun, text: str) -> None:
    output = io.StringIO()
    print_run(run_with(text), Console(file=output, width=200, no_color=True, highlight=False))
    shown = output.getvalue()
    shown.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028]", shown)
    if text.startswith("[bold]"):
        assert text in shown


@pytest.mark.parametrize("text", HOSTILE)
def test_every_json_reads_back_and_is_utf8(run_with: MakeRun, text: str) -> None:
    run = run_with(text)
    assert json.loads(render(run, "json"))["per_query"][0]["query"] == f"{text} one"
    assert json.loads(encodable(json.dumps(per_query_table(run), ensure_ascii=False)))


def test_every_file_is_utf8_and_no_text_reaches_a_plot(run_with: MakeRun) -> None:
    plain = run_files(run_with())
    files = run_files(run_with("\ud800</svg><script>"))
    for name, content in files.items():
        content.encode("utf-8")
        if name.endswith(".json"):
            json.loads(content)
        if name.endswith(".svg"):
            assert content == plain[name]


def test_the_mlflow_table_lines_up_its_columns(run_with: MakeRun) -> None:
    table = json.loads(run_files(run_with())["per_query_table.json"])
    row = dict(zip(table["columns"], table["data"][0], strict=True))
    assert row["query_id"] == "q1 words"
    assert row["ndcg_at_10_doc"] == pytest.approx(0.63093, abs=1e-5)
    assert row["top_hits"] == "1. a words#h\n2. b words#h"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", "a\\|b"),
        ("`x`", "\\`x\\`"),
        ("<b>&amp;", "\\<b\\>\\&amp;"),
        ("a\nb", "a b"),
        ("\\", "\\\\"),
        ("\x1b", "\\\\x1b"),
    ],
)
def test_markdown_signs_are_escaped(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize(
    ("text", "span"),
    [("a", "`a`"), ("a`b", "`` a`b ``"), ("``", "``` `` ```"), ("a\nb", "`a b`"), ("", "` `")],
)
def test_a_code_span_holds_its_own_backticks(text: str, span: str) -> None:
    assert code(text) == span


# --- plots ----------------------------------------------------------------------------------


def test_a_rank_far_down_is_counted_in_its_bar(run_with: MakeRun) -> None:
    run = run_with()
    far = tuple(Hit(rank, f"x{rank}", f"x{rank}", 1.0, "rrf") for rank in range(1, 25))
    last = Hit(25, "b", "b words", 0.1, "rrf")
    result = run.results[0]
    moved = type(result)(result.query_id, result.query, "hybrid", (*far, last), 1.0)
    config = {**run.config, "search": {**run.config["search"], "k": 30}}
    plots = run_files(EvalRun(run.info, config, run.golden, (moved,), run.aggregate))
    assert ">&gt;20<" in plots["plots/ranks.svg"]
    assert plots["plots/ranks.svg"].startswith("<svg")
