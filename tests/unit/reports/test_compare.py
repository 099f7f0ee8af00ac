"""What the reports of a comparison say, their frozen shapes, and that no text leaves its place."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kebab_eval.comparison import Comparison, compare
from kebab_eval.records import EvalRun, GoldenQuery, Judgments
from kebab_eval.reports.compare import COMPARE_FORMATS, comparison_files, render_comparison
from kebab_eval.reports.compare_terminal import print_comparison
from kebab_eval.reports.compare_words import head, p_value, signed

JudgedRun = Callable[..., EvalRun]

SNAPSHOTS = Path(__file__).parent / "snapshots"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a|b\n|---|",
    "`x` ``y``",
    "[a](javascript:alert(1))",
    "\x1b[31mred\x1b[0m",
    "\u2028\u2029\x85",
    "\ud800",
    "{{ 7 * 7 }} {% raw %}",
    "[bold]not markup[/bold] [/]",
    "\0",
    "# heading\n* item",
]


def _pair(make: JudgedRun, text: str = "") -> Comparison:
    """Eight queries: one lost, one later, five better, one failed; ``text`` stands everywhere."""
    languages = ["ko"] * 4 + ["en"] * 4
    queries = [
        GoldenQuery(
            f"q{i}{text}",
            f"what is {i}? {text}",
            Judgments(doc={f"d{text}": 1.0}),
            language=f"{language}{text}",
            tags={f"team{text}": language},
        )
        for i, language in enumerate(languages, 1)
    ]
    old, new = [1, 1, 2, 2, 2, 3, None, 1], [None, 2, 1, 1, 1, 1, 1, None]

    def run(name: str, ranks: list[int | None], **more: Any) -> EvalRun:
        rankings: dict[str, list[str] | None] = {}
        for query, rank in zip(queries, ranks, strict=True):
            hits = ["x#1", "x#2", f"y{text}#3"]
            if rank is not None:
                hits.insert(rank - 1, f"d{text}#c")
            rankings[query.query_id] = hits
        if name.startswith("after"):
            rankings[queries[-1].query_id] = None
        return make(f"{name}{text}", queries, rankings, text=text, **more)

    fusion = {"method": "rrf", "weights": {"lexical": 1.0, "vector": 1.0}}
    return compare(
        run("before", old, config={"fusion": {**fusion, "rrf_k": 60}}),
        run(
            "after",
            new,
            config={"fusion": {**fusion, "rrf_k": text or 1}},
            lever={"key": "fusion.rrf_k", "value": 1},
            system={f"engine{text}": text or "2"},
        ),
    )


@pytest.mark.parametrize("form", ["md", "json", "text"])
def test_the_shape_is_frozen(judged_run: JudgedRun, form: str) -> None:
    shown = render_comparison(_pair(judged_run), form, "http://ui")
    path = SNAPSHOTS / f"comparison.{form}"
    if os.environ.get("TAKE_SNAPSHOTS"):  # to take it anew; then read the diff
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


def test_the_json_holds_the_contract(judged_run: JudgedRun) -> None:
    document = json.loads(render_comparison(_pair(judged_run), "json", "http://ui"))
    assert {
        "baseline", "candidate", "comparable", "config_diff", "chunker_version_match", "deltas",
        "counts", "per_query", "ui_url",
    } <= document.keys()  # fmt: skip
    for delta in document["deltas"].values():
        assert {
            "baseline", "candidate", "delta", "ci95", "p_value", "p_holm", "detectable", "n",
        } <= delta.keys()  # fmt: skip
    assert set(document["counts"]) == {"win", "loss", "draw", "regression"}
    for line in document["per_query"]:
        assert {
            "query_id", "kind", "baseline_rank", "candidate_rank", "delta", "note",
        } <= line.keys()  # fmt: skip


def test_the_first_screen_says_what_to_do(judged_run: JudgedRun) -> None:
    first = head(_pair(judged_run))
    assert first.title == "after against before"
    assert first.verdict.startswith("No difference that 8 queries can tell: ndcg_at_10_doc ")
    assert "four times out of five" in first.belief
    assert "takes about" in first.belief
    # The system says "engine" changed too, which no config explains.
    assert first.lever == "2 levers moved: fusion.rrf_k 60 → 1; engine none → 2"
    assert first.warnings[0].startswith("2 levers moved at once")
    assert first.warnings[1].startswith("2 queries found what was expected before and no longer")


def _first(comparison: Comparison) -> str:
    found = head(comparison)
    return " ".join([found.lever, *found.warnings, found.verdict, found.belief, *found.counts])


def _docs(make: JudgedRun, name: str, rank: int, **more: Any) -> EvalRun:
    queries = [GoldenQuery(f"q{i}", "t", Judgments(doc={"d": 1.0})) for i in range(8)]
    hits = [*(f"x{i}#c" for i in range(rank - 1)), "d#c"]
    return make(name, queries, {q.query_id: hits for q in queries}, **more)


def test_a_winner_is_called_by_name(judged_run: JudgedRun) -> None:
    said = _first(compare(_docs(judged_run, "old", 2), _docs(judged_run, "new", 1)))
    assert "new is better than old: ndcg_at_10_doc 0.631 → 1.000, +0.369" in said
    assert "p = 0.008, n = 8." in said
    assert "No lever moved: a difference is chance, or comes from what no config shows" in said


def test_one_run_twice_says_so(judged_run: JudgedRun) -> None:
    run = _docs(judged_run, "old", 1)
    said = _first(compare(run, run))
    assert "this is one and the same run" in said
    assert "1.000 in both runs, the same on each of 8 queries" in said


def test_runs_of_one_name_are_told_apart_by_id(judged_run: JudgedRun) -> None:
    before = _docs(judged_run, "same", 2, id="id-1")
    after = _docs(judged_run, "same", 1, id="id-2")
    assert head(compare(before, after)).title == "id-2 against id-1"


def test_a_declared_lever_that_did_not_move_is_told(judged_run: JudgedRun) -> None:
    search = {"mode": "lexical", "k": 10, "depth": 50}
    after = _docs(
        judged_run, "new", 1, config={"search": search}, lever={"key": "fusion.rrf_k", "value": 60}
    )
    said = _first(compare(_docs(judged_run, "old", 1), after))
    assert "config says that it moves fusion.rrf_k; that is the same in both runs" in said


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0842, "+0.084"), (-0.0842, "−0.084"), (0.0001, "0.000"), (-0.0001, "0.000"), (None, "–")],
)
def test_a_difference_has_its_sign(value: float | None, text: str) -> None:
    assert signed(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (0.164, "0.164"), (0.04996, "0.0500"), (0.00004, "< 0.001")]
)
def test_a_p_value_never_hides_its_side_of_the_limit(value: float, text: str) -> None:
    assert p_value(value) == text


# --- hostile texts --------------------------------------------------------------------------


class Tags(HTMLParser):
    """Collects tags and attributes; texts do not matter."""

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
def test_no_text_adds_anything_to_the_html(judged_run: JudgedRun, text: str) -> None:
    html = render_comparison(_pair(judged_run, text), "html")
    assert Tags(html).found == Tags(render_comparison(_pair(judged_run, "x"), "html")).found
    html.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", html)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_leaves_its_place_in_the_markdown(judged_run: JudgedRun, text: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")

    def kinds(source: str) -> list[str]:
        tokens = parser.parse(source)
        flat = [token for token in tokens if token.type != "inline"]
        flat += [child for token in tokens for child in token.children or ()]
        passed = ("text", "softbreak", "text_special")
        return [token.type for token in flat if token.type not in passed]

    report = render_comparison(_pair(judged_run, text), "md")
    assert kinds(report) == kinds(render_comparison(_pair(judged_run, "x"), "md"))
    report.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028]", report)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [60, 200])
def test_no_text_reaches_the_terminal_as_a_command(
    judged_run: JudgedRun, text: str, width: int
) -> None:
    output = io.StringIO()
    console = Console(file=output, width=width, no_color=True, highlight=False)
    print_comparison(_pair(judged_run, text), console)
    output.getvalue().encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028]", output.getvalue())


@pytest.mark.parametrize("text", HOSTILE)
def test_the_json_reads_back_and_is_utf8(judged_run: JudgedRun, text: str) -> None:
    shown = render_comparison(_pair(judged_run, text), "json")
    shown.encode("utf-8")
    assert json.loads(shown)["per_query"][0]["query_id"] == f"q1{text}"


def test_the_html_asks_nothing_of_anybody(judged_run: JudgedRun) -> None:
    html = render_comparison(_pair(judged_run), "html")
    assert not re.search(r"""src\s*=|href\s*=|url\(|@import""", html)
    assert not re.search("<(script|link|iframe|object|embed)", html)


# --- size -----------------------------------------------------------------------------------


def test_every_form_is_made_of_runs_without_a_query(judged_run: JudgedRun) -> None:
    found = compare(judged_run("a", [], {}), judged_run("b", [], {}))
    assert all(render_comparison(found, form) for form in COMPARE_FORMATS)
    assert found.verdict == "not measured"


def test_ten_thousand_queries_stay_small(judged_run: JudgedRun) -> None:
    queries = [
        GoldenQuery(f"q{i}", "a query of some length", Judgments(doc={"d": 1.0}))
        for i in range(10_000)
    ]
    others = [f"x{i}#c" for i in range(9)]
    ranks = [(1 + i % 9, 1 + (i * 7) % 9) for i in range(10_000)]

    def run(name: str, side: int) -> EvalRun:
        rankings = {
            query.query_id: [*others[: rank[side] - 1], "d#c", *others[rank[side] - 1 :]]
            for query, rank in zip(queries, ranks, strict=True)
        }
        return judged_run(name, queries, rankings)

    found = compare(run("a", 0), run("b", 1), metrics=["ndcg_at_10_doc"])
    assert len(render_comparison(found, "html").encode()) < 5_000_000
    assert set(comparison_files(found)) == {"comparison.md", "comparison.html", "comparison.json"}
