"""A frozen baseline: its scores, its Markdown, and the run that comes back out of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kebab_eval.baseline import Frozen, check_label, freeze, thaw, version_of
from kebab_eval.errors import UsageError
from kebab_eval.records import EvalRun, GoldenQuery, GoldenSet, Judgments
from kebab_eval.reports.baseline import render_baseline

JudgedRun = Callable[..., EvalRun]

FROZEN = Frozen("0.2", "default", "2026-12-01T08:30:00Z")


def sample(make: JudgedRun, text: str = "") -> EvalRun:
    """Rank 1, rank 2, a failure, a right refusal, a wrong one; latencies are 1, 2, 0 and 1 ms."""
    queries = [
        GoldenQuery(f"a{text}", "x", Judgments(doc={"d": 3.0}), language="ko", category="exam"),
        GoldenQuery("b", "x", Judgments(doc={"d": 2.0}), language="ko", ocr_derived=True),
        GoldenQuery("c", "x", Judgments(doc={"d": 1.0}), language="en", ocr_derived=False),
        GoldenQuery("d", "x", failure_expected=True, category="failure_expected"),
        GoldenQuery("e", "x", failure_expected=True, category="failure_expected"),
    ]
    found = {f"a{text}": ["d#1"], "b": ["z#1", "d#1"], "c": None, "d": [], "e": ["d#1"]}
    run = make("name", queries, found, text=text, baselines=[{"label": "old"}])
    return replace(run, info={**run.info, "git": {"commit": "c" * 40, "dirty": True}})


def test_a_frozen_run_comes_back_as_it_was(judged_run: JudgedRun) -> None:
    run = sample(judged_run, text="한글 \ud800 \u2028")
    text = freeze(run, FROZEN).encode("utf-8", "backslashreplace")
    frozen, again = thaw(json.loads(text))
    assert frozen == FROZEN
    assert again.results == run.results
    assert again.golden == run.golden
    assert again.aggregate == run.aggregate
    assert again.config == run.config
    # what it was frozen as before is no part of it
    assert again.info == {key: value for key, value in run.info.items() if key != "baselines"}


def test_the_scores_stand_in_four_cuts_each_with_its_n(judged_run: JudgedRun) -> None:
    document = json.loads(freeze(sample(judged_run), FROZEN))
    assert (document["schema_version"], document["version"]) == ("kebab_eval.baseline.v1", "0.2")
    overall = document["overall"]
    # hit@1: found, not, failed = 1/3; the right refusal is 1 of 2
    assert overall["metrics"]["hit_at_1_doc"] == {"value": 1 / 3, "n": 3}
    assert overall["failure_precision"] == {"correct": 1, "total": 2}
    assert (overall["n"], overall["failed"]) == (5, 1)
    # of 0, 1, 1 and 2 ms: p50 is 1, p95 lies 0.85 of the way from 1 to 2
    assert overall["latency_ms"] == {"p50": 1.0, "p95": pytest.approx(1.85)}
    assert document["by_language"]["ko"]["metrics"]["hit_at_1_doc"] == {"value": 0.5, "n": 2}
    assert list(document["by_language"]) == ["en", "ko"]
    assert list(document["by_ocr_derived"]) == ["false", "true"]
    assert document["by_category"]["failure_expected"]["n"] == 2
    # grade >= 3 is asked of one query only
    assert overall["metrics"]["recall_at_10_rel3_doc"] == {"value": 1.0, "n": 1}


def test_the_file_can_be_diffed(judged_run: JudgedRun) -> None:
    lines = freeze(sample(judged_run), FROZEN).splitlines()
    # one query a line
    assert sum('"schema_version": "kebab_eval.query_result.v1"' in line for line in lines) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": "kebab_eval.baseline.v2"},
        {"schema_version": None},
        {"golden": []},
        {"golden": {}},
        {"per_query": [{}]},
        {"run": {}},
        {"aggregate": {}},
        {"config": 1},
    ],
)
def test_damage_is_told(judged_run: JudgedRun, change: dict[str, Any]) -> None:
    document = {**json.loads(freeze(sample(judged_run), FROZEN)), **change}
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        thaw(document)


@pytest.mark.parametrize(
    ("version", "label", "stem"),
    [
        ("0.2", "default", "v0.2_baseline_2026-12-01"),
        ("1", "before-rerank", "v1_baseline_2026-12-01_before-rerank"),
    ],
)
def test_the_files_are_named_as_their_users_know_them(version: str, label: str, stem: str) -> None:
    assert Frozen(version, label, "2026-12-01T08:30:00Z").stem == stem


@pytest.mark.parametrize(
    ("version", "said"),
    [("0.2", "0.2"), ("v0.2", "0.2"), ("2026/01 b", "2026-01-b"), ("..", "0"), ("v", "v")],
)
def test_a_golden_version_becomes_part_of_a_file_name(version: str, said: str) -> None:
    assert version_of(GoldenSet("g", version, "d", ())) == said


@pytest.mark.parametrize("label", ["", "../x", "a/b", ".hidden", "a b", "x" * 81, "a\n", "-x"])
def test_a_label_that_is_no_file_name_is_refused(label: str) -> None:
    with pytest.raises(UsageError, match=r"--label: .* cannot be part of a file name"):
        check_label(label, "--label")


def test_the_markdown_says_what_is_weak_and_why(judged_run: JudgedRun) -> None:
    text = render_baseline(sample(judged_run), FROZEN)
    assert text.startswith("# Baseline v0.2, 2026-12-01\n")
    assert "Failure-case precision 1/2" in text
    assert "**1 queries failed**" not in text
    assert "**1 query failed** and scores 0." in text
    # ndcg@10: a 1, b 1 / log2(3) = 0.631, c failed 0
    assert "| language=en | 0.000 | 1 | 1 | 0 |" in text
    assert "| ocr\\_derived=true | 0.631 | 1 | 0 | 1 |" in text
    assert "- language=en, 0.000: 1 of 1 misses are failed. Too few queries to lean on." in text
    assert "- ranked low (1): `b` (rank 2)" in text
    assert "with uncommitted changes" in text


def test_the_markdown_of_a_perfect_run_says_so(judged_run: JudgedRun) -> None:
    queries = [GoldenQuery("a", "x", Judgments(doc={"d": 1.0}), language="ko")]
    text = render_baseline(judged_run("n", queries, {"a": ["d#1"]}), FROZEN)
    assert "None: no slice is below 0.70 by ndcg_at_10_doc." in text


def test_hostile_texts_stay_text_in_the_markdown(judged_run: JudgedRun) -> None:
    hostile = "<script>|`x`\n# [a](b)\x1b"
    queries = [
        GoldenQuery(hostile, hostile, Judgments(doc={"d": 1.0}), language=hostile, category=hostile)
    ]
    run = judged_run(hostile, queries, {hostile: ["z#1"]}, system={hostile: hostile})
    text = render_baseline(run, Frozen("1", "x", "2026-12-01T08:30:00Z"))
    assert "\x1b" not in text
    outside_code = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<script>" not in outside_code
    assert "\n# [" not in text
