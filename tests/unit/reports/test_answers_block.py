"""What reports say of answers, and that no answer can become anything but text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from kebab_eval.metrics import evaluate_run
from kebab_eval.records import Answer, Citation, EvalRun
from kebab_eval.reports.html import render_html
from kebab_eval.reports.markdown import render_markdown
from kebab_eval.reports.summary import summarise
from kebab_eval.reports.terminal import print_run

MakeRun = Callable[..., EvalRun]
NO_PLOTS = {"plots/ranks.svg": "<svg></svg>", "plots/metrics.svg": "<svg></svg>"}


def answered(run: EvalRun, answer: Answer) -> EvalRun:
    """Return a run whose first query, which has an expected document, got this answer."""
    first, *rest = run.results
    results = (replace(first, answer=answer), *rest)
    aggregate = evaluate_run(run.golden, results).aggregate
    return replace(run, results=results, aggregate=aggregate)


def printed(run: EvalRun) -> str:
    console = Console(width=200, highlight=False)
    with console.capture() as capture:
        print_run(run, console)
    return capture.get()


def test_one_line_says_what_became_of_the_answers(run_with: MakeRun) -> None:
    cited = (Citation("a words#h", "a", "[1]"), Citation(marker="[7]"))
    answer = Answer("fine [1] [7]", cited, grounded=True, latency_ms=12.0,
                    tokens={"prompt": 1200, "completion": 7})  # fmt: skip
    run = answered(run_with(), answer)
    said = (
        "1 answered; 0 refused; 0 failed; citation coverage 0.500 (n=1); "
        "p50 12.0 ms, p95 12.0 ms; 7 completion tokens, 1,200 prompt tokens"
    )
    assert summarise(run).answers == said
    assert f"answers: {said}" in printed(run)
    assert f"Answers: {said}." in render_markdown(run)
    assert f"Answers: {said}" in render_html(run, NO_PLOTS)


def test_refused_though_it_could_be_answered(run_with: MakeRun) -> None:
    run = answered(run_with(), Answer(refused=True, refusal_reason="score_gate", latency_ms=1.0))
    assert "0 answered; 1 refused (1 of them answerable); 0 failed" in summarise(run).answers


def test_a_failed_answer_is_told_with_its_cause(run_with: MakeRun) -> None:
    run = answered(run_with(), Answer(error="HTTP 500: busy"))
    note = "1 answer failed and counts in no answer metric: HTTP 500: busy"
    assert summarise(run).notes == (note,)
    assert f"note: {note}" in printed(run)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer("sixty bar [1]"), "sixty bar [1]"),
        (Answer("x" * 5000), "x" * 600 + "…"),
        (Answer(refused=True, refusal_reason="score_gate"), "(refused: score_gate)"),
        (Answer(refused=True), "(refused: no reason told)"),
        (Answer(error="HTTP 500"), "(failed: HTTP 500)"),
    ],
)
def test_the_worst_queries_show_their_answers(run_with: MakeRun, answer: Answer, said: str) -> None:
    run = answered(run_with(), answer)
    (line,) = summarise(run).worst
    assert line.answer == said
    assert said in render_html(run, NO_PLOTS)
    assert said in render_markdown(run).replace("\\", "")


def test_a_run_without_answers_shows_none(run_with: MakeRun) -> None:
    run = run_with()
    assert summarise(run).answers == ""
    for text in (printed(run), render_markdown(run), render_html(run, NO_PLOTS)):
        assert "nswers:" not in text
        assert "nswer:" not in text.replace("answer:\n", "")  # a section of the resolved config


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "a|b\n# heading", "\x1b[31mred", "\ud800", "{{ 7 * 7 }}"]
)
def test_a_hostile_answer_stays_text(run_with: MakeRun, text: str) -> None:
    for answer in (Answer(text), Answer(error=text), Answer(refused=True, refusal_reason=text)):
        run = answered(run_with(), answer)
        page, report = render_html(run, NO_PLOTS), render_markdown(run)
        assert "<script>" not in page
        assert "<script>" not in report
        assert "\n# heading" not in report
        for said in (page, report, printed(run)):
            assert "\x1b" not in said
            said.encode()  # no lone surrogate
