"""The verdict of a gate, with the arithmetic shown."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kebab_eval.comparison import compare
from kebab_eval.errors import RuleError
from kebab_eval.gate import GateVerdict, RuleResult, judge
from kebab_eval.gate_rules import parse_options
from kebab_eval.records import EvalRun, GoldenQuery, GoldenSet, Judgments, QueryResult

JudgedRun = Callable[..., EvalRun]

HIT = "hit_at_5_doc"


def scored(name: str, values: Mapping[str, Sequence[float]], languages: str = "") -> EvalRun:
    """Return a run whose queries have the given values; query i is in language ``languages[i]``."""
    n = len(next(iter(values.values())))
    queries = tuple(
        GoldenQuery(
            f"q{i}",
            "text",
            Judgments(doc={"d": 1.0}),
            language={"k": "ko", "e": "en"}.get(languages[i : i + 1]),
        )
        for i in range(n)
    )
    results = tuple(
        QueryResult(
            f"q{i}",
            "text",
            "hybrid",
            latency_ms=float(i + 1),
            metrics={metric: column[i] for metric, column in values.items()},
        )
        for i in range(n)
    )
    info = {"id": f"id-{name}", "name": name, "status": "FINISHED"}
    aggregate = {"metrics": {metric: {} for metric in values}}
    config = {"metrics": {"primary": HIT, "cutoffs": [5]}}
    return EvalRun(info, config, GoldenSet("g", "1", "d", queries), results, aggregate)


def hits(name: str, lost: int, n: int, languages: str = "") -> EvalRun:
    """A run that misses its first ``lost`` queries and finds the others."""
    return scored(name, {HIT: [0.0] * lost + [1.0] * (n - lost)}, languages)


def verdict(candidate: EvalRun, baseline: EvalRun | None, *rules: str, **more: Any) -> GateVerdict:
    return judge(parse_options(rules), candidate, baseline, **more)


def one(candidate: EvalRun, baseline: EvalRun | None, rule: str) -> RuleResult:
    (result,) = verdict(candidate, baseline, rule).results
    return result


# --- by the point value ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "lost", "expected"),
    [
        # baseline 1.0; of 100 queries 3 lost is 0.97, which the rule still allows
        (f"{HIT} >= baseline - 0.03", 3, "pass"),
        (f"{HIT} > baseline - 0.03", 3, "fail"),
        (f"{HIT} >= baseline - 0.03", 4, "fail"),
        (f"{HIT} >= baseline - 0.03 [warn]", 4, "warn"),
        (f"{HIT} >= 0.97x", 3, "pass"),
        (f"{HIT} >= 0.97x", 4, "fail"),
        (f"{HIT} >= 0.9", 10, "pass"),
        (f"{HIT} >= 0.9", 11, "fail"),
        (f"{HIT} == 0.9", 10, "pass"),
        (f"{HIT} == 0.9", 9, "fail"),
    ],
)
def test_the_value_decides_by_default(rule: str, lost: int, expected: str) -> None:
    assert one(hits("new", lost, 100), hits("old", 0, 100), rule).verdict == expected


def test_a_rule_says_its_value_bound_and_baseline() -> None:
    result = one(hits("new", 4, 100), hits("old", 0, 100), f"{HIT} >= baseline - 0.03")
    assert (result.value, result.bound, result.baseline, result.n) == (0.96, 0.97, 1.0, 100)
    assert result.reason.startswith("0.960 is 0.010 below the 0.970 asked for (baseline 1.000)")
    assert "cannot tell that from noise" in result.reason
    assert "'require: significant' would leave this undecided" in result.reason
    better = one(hits("new", 0, 100), hits("old", 4, 100), f"{HIT} >= baseline - 0.03")
    assert better.reason == "1.000, asked for >= 0.930 (baseline 0.960), n=100"


def test_a_relative_rule_pairs_the_queries_that_both_scored() -> None:
    old, new = hits("old", 0, 10), hits("new", 5, 10)
    # the baseline scored only q0..q5, of which the candidate has q5 alone: 1/6 against 6/6
    old = replace(
        old,
        results=tuple(r if i < 6 else replace(r, metrics={}) for i, r in enumerate(old.results)),
    )
    result = one(new, old, f"{HIT} >= baseline")
    assert (result.value, result.baseline, result.n) == (1 / 6, 1.0, 6)


# --- counts and latencies -------------------------------------------------------------------


def docs(make: JudgedRun, name: str, ranks: Sequence[int | None]) -> EvalRun:
    """A run whose query i expects document ``d`` and finds it at ``ranks[i]``; -1 failed."""
    queries = [GoldenQuery(f"q{i}", "t", Judgments(doc={"d": 1.0})) for i in range(len(ranks))]
    others = [f"x{i}#c" for i in range(9)]
    rankings: dict[str, list[str] | None] = {}
    for i, rank in enumerate(ranks):
        at = len(others) if rank is None else rank - 1
        found = [*others[:at], *([] if rank is None else ["d#c"]), *others[at:]]
        rankings[f"q{i}"] = None if rank == -1 else found
    return make(name, queries, rankings)


def test_counts_are_those_of_the_comparison(judged_run: JudgedRun) -> None:
    # rank 1→2 loss, 1→miss regression, 3→1 win, 1→1 draw, 1→failed regression
    old = docs(judged_run, "old", [1, 1, 3, 1, 1])
    new = docs(judged_run, "new", [2, None, 1, 1, -1])
    rules = {
        "losses <= 1": "pass",
        "losses <= 0": "fail",
        "regressions <= 2": "pass",
        "regressions <= 1 [warn]": "warn",
        "wins >= 1": "pass",
        "draws == 1": "pass",
        "failed_queries == 0": "fail",
        "failed_queries <= baseline + 1": "pass",
        "total_queries == 5": "pass",
        "duplicate_hits == 0": "pass",
    }
    found = verdict(new, old, *rules, comparison=compare(old, new))
    assert {
        f"{r.rule.text}{' [warn]' if r.rule.on_fail == 'warn' else ''}": r.verdict
        for r in found.results
    } == rules
    assert found.results[1].reason == "1 is 1 above the 0 asked for, n=5"


def test_latency_is_held_against_a_factor() -> None:
    # latencies 1..100 ms: p95 is 95.05 by linear interpolation, and 1.2 times that 114.06
    old = hits("old", 0, 100)
    slow = replace(
        old, results=tuple(replace(r, latency_ms=1.21 * (r.latency_ms or 0)) for r in old.results)
    )
    result = one(slow, old, "p95_ms <= 1.2x")
    assert result.verdict == "fail"
    assert result.bound == pytest.approx(114.06)
    assert result.value == pytest.approx(115.0105)
    assert result.reason.startswith("115.0 ms is 1.0 ms above the 114.1 ms asked for (baseline 95.")
    assert one(slow, old, "max_ms <= 121").verdict == "pass"
    assert one(slow, old, "p50_ms <= baseline + 11").verdict == "pass"  # 50.5 -> 61.105


# --- slices ---------------------------------------------------------------------------------


def test_a_rule_about_a_slice_sees_only_that_slice() -> None:
    new = hits("new", 2, 10, "kkkkeeeeee")  # ko: 2 of 4 found, en: 6 of 6
    assert one(new, None, f"language=ko: {HIT} >= 0.5").verdict == "pass"
    result = one(new, None, f"language=ko: {HIT} >= 0.51")
    assert (result.verdict, result.value, result.n, result.slice) == ("fail", 0.5, 4, "language=ko")


def test_the_worst_slice_is_the_one_that_misses_its_own_bound_by_most() -> None:
    new = hits("new", 2, 10, "kkkkeeeeee")
    result = one(new, None, f"worst(language): {HIT} >= 0.6")
    assert (result.verdict, result.value, result.slice) == ("fail", 0.5, "language=ko")
    assert "worst in language=ko" in result.reason
    # ko was 0.25 before and is 0.5 now; en was 1 and is 5/6 now: en is the one that fell
    old = scored("old", {HIT: [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]}, "kkkkeeeeee")
    fell = scored("new", {HIT: [0, 0, 1, 1, 0, 1, 1, 1, 1, 1]}, "kkkkeeeeee")
    result = one(fell, old, f"worst(language): {HIT} >= baseline")
    assert (result.verdict, result.slice, result.baseline) == ("fail", "language=en", 1.0)


def test_an_unknown_slice_is_an_error_and_not_a_pass() -> None:
    with pytest.raises(RuleError, match="no query has language 'fr'"):
        verdict(hits("new", 0, 2, "ke"), None, f"language=fr: {HIT} >= 0")


# --- significance ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "p_value", "expected"),
    [
        # Only the lost queries differ, each by -1. All of one sign: 2 of 2^5 patterns, 2 of 2^6.
        (5, 2 / 32, "undecided"),
        (6, 2 / 64, "fail"),
    ],
)
def test_significance_is_what_the_paired_test_believes(
    lost: int, p_value: float, expected: str
) -> None:
    rule = f"{HIT} >= baseline [significant]"
    result = one(hits("new", lost, 10), hits("old", 0, 10), rule)
    assert result.p_value == p_value
    assert result.verdict == expected


def test_the_test_is_of_the_rules_own_bound() -> None:
    # 6 of 60 lost is -0.1, significantly below the baseline (p = 2/64), but not below the
    # baseline - 0.09 that the rule allows: six at -0.91 against fifty-four at +0.09.
    new, old = hits("new", 6, 60), hits("old", 0, 60)
    assert one(new, old, f"{HIT} >= baseline [significant]").verdict == "fail"
    result = one(new, old, f"{HIT} >= baseline - 0.09 [significant]")
    assert result.verdict == "undecided"
    assert (result.p_value or 0) > 0.5


def test_undecided_says_how_many_queries_it_takes() -> None:
    # 2 of 10 lost: s² = 10/9 · 0.2 · 0.8, s = 0.4216; (1.96 + 0.8416) · s / √10 = 0.3736;
    # 10 · (0.3736 / 0.2)² = 34.9
    result = one(hits("new", 2, 10), hits("old", 0, 10), f"{HIT} >= baseline [significant]")
    assert result.verdict == "undecided"
    assert result.detectable == pytest.approx(0.3736, abs=1e-4)
    assert result.needed == 35
    assert "it would take about 35 queries like these" in result.reason


def test_an_absolute_rule_can_be_significant_too() -> None:
    # ten queries, none found: every difference from 0.7 is -0.7, p = 2 / 2^10
    rule = f"{HIT} >= 0.7 [significant]"
    result = one(hits("new", 10, 10), None, rule)
    assert (result.verdict, result.p_value) == ("fail", 2 / 1024)
    assert one(hits("new", 4, 10), None, rule).verdict == "undecided"
    assert one(hits("new", 3, 10), None, rule).verdict == "pass"


def test_a_rule_that_holds_passes_however_few_the_queries() -> None:
    assert one(
        hits("new", 0, 1), hits("old", 0, 1), f"{HIT} >= baseline [significant]"
    ).verdict == ("pass")


def test_several_significant_rules_share_the_risk() -> None:
    # each alone has p = 2/64 = 0.031; Holm makes both 0.0625
    new, old = hits("new", 6, 10, "kkkkkkkkkk"), hits("old", 0, 10, "kkkkkkkkkk")
    rule = f"{HIT} >= baseline [significant]"
    found = verdict(new, old, rule, f"language=ko: {rule}")
    assert [(r.verdict, r.p_value) for r in found.results] == [("undecided", 0.0625)] * 2
    # a rule by its point value takes no part
    assert verdict(new, old, rule, f"{HIT} >= 0.1").results[0].verdict == "fail"


def test_the_worst_of_several_slices_pays_for_the_look() -> None:
    # ko loses 6 of 6: 2/64 alone, times two slices 0.0625
    new, old = hits("new", 6, 12, "kkkkkkeeeeee"), hits("old", 0, 12, "kkkkkkeeeeee")
    result = one(new, old, f"worst(language): {HIT} >= baseline [significant]")
    assert (result.verdict, result.p_value) == ("undecided", 0.0625)


def test_noise_against_itself_fails_in_at_most_one_of_twenty() -> None:
    rules = parse_options(
        [
            f"{HIT} >= baseline - 0.03 [significant]",
            "ndcg_at_10_doc >= baseline [significant]",
            "worst(language): ndcg_at_10_doc >= baseline [significant]",
        ]
    )
    failed = {"all": 0, "one": 0}
    for seed in range(200):
        source = random.Random(seed)  # not for secrets

        def noisy(name: str, source: random.Random = source) -> EvalRun:
            gains = [source.choice((0.0, 0.0, 0.39, 0.5, 0.63, 1.0, 1.0)) for _ in range(40)]
            columns = {HIT: [float(g > 0.39) for g in gains], "ndcg_at_10_doc": gains}
            return scored(name, columns, "ke" * 20)

        old, new = noisy("old"), noisy("new")
        failed["all"] += judge(rules, new, old).outcome == "fail"
        failed["one"] += judge(rules[1:2], new, old).outcome == "fail"
    assert failed["all"] <= 10
    assert failed["one"] <= 10


# --- the whole ------------------------------------------------------------------------------


def test_a_failed_rule_wins_over_an_undecided_one_and_a_warning_decides_nothing() -> None:
    new, old = hits("new", 2, 10), hits("old", 0, 10)
    fails, open_, warns, holds = (
        f"{HIT} >= baseline",
        f"{HIT} >= baseline [significant]",
        f"{HIT} >= baseline [warn]",
        f"{HIT} >= 0",
    )
    for rules, code in (
        ((holds,), 0),
        ((holds, warns), 0),
        ((holds, warns, open_), 4),
        ((holds, warns, open_, fails), 1),
    ):
        assert verdict(new, old, *rules).exit_code == code


def test_an_undecided_rule_that_only_warns_is_a_warning() -> None:
    new, old = hits("new", 2, 10), hits("old", 0, 10)
    found = verdict(new, old, f"{HIT} >= baseline [significant, warn]")
    assert (found.results[0].verdict, found.exit_code) == ("warn", 0)
    assert found.results[0].reason.startswith("undecided: ")


def test_runs_that_are_not_comparable_leave_relative_rules_undecided() -> None:
    new, old = hits("new", 2, 10), hits("old", 0, 10)
    rules = (f"{HIT} >= baseline", "losses <= 3", f"{HIT} >= 0.7")
    found = verdict(new, old, *rules, not_comparable="they differ in\n  golden set")
    assert [r.verdict for r in found.results] == ["undecided", "undecided", "pass"]
    assert found.exit_code == 4
    # also without a relative rule: the user asked for a comparison
    assert verdict(new, old, f"{HIT} >= 0.7", not_comparable="x").exit_code == 4
    assert verdict(new, old, f"{HIT} >= 0.9", not_comparable="x").exit_code == 1


def test_a_run_that_was_cut_off_proves_nothing() -> None:
    new = hits("new", 0, 10)
    found = verdict(replace(new, results=new.results[:6]), None, f"{HIT} >= 0.7")
    assert found.exit_code == 4
    assert found.not_comparable == "new is incomplete, 6 of 10 queries"


def test_two_chunkers_leave_chunk_rules_undecided(judged_run: JudgedRun) -> None:
    queries = [GoldenQuery("q", "t", Judgments(chunk={"d#c": 1.0}, doc={"d": 1.0}))]
    old = judged_run("old", queries, {"q": ["d#c"]})
    new = judged_run("new", queries, {"q": ["d#z"]}, system={"chunker_version": "v2"})
    rules = ("hit_at_5_chunk >= baseline", "hit_at_5_doc >= baseline")
    found = verdict(new, old, *rules, comparison=compare(old, new))
    assert [r.verdict for r in found.results] == ["undecided", "pass"]
    assert "take the same with _doc" in found.results[0].reason


def test_a_metric_that_scores_nothing_is_undecided(judged_run: JudgedRun) -> None:
    run = judged_run("new", [GoldenQuery("q", "t", Judgments(doc={"d": 1.0}))], {"q": ["d#c"]})
    result = one(run, None, "hit_at_5_chunk >= 0.5")
    assert (result.verdict, result.value) == ("undecided", None)
    assert "no query is scored for hit_at_5_chunk" in result.reason
    failed = judged_run("new", [GoldenQuery("q", "t")], {"q": None})
    assert one(failed, None, "p95_ms <= 1").verdict == "undecided"


def test_a_rule_may_ask_for_a_metric_that_the_run_was_not_scored_with(
    judged_run: JudgedRun,
) -> None:
    # d at rank 7: found among the first 7, not among the first 6
    run = docs(judged_run, "new", [7])
    assert "hit_at_7_doc" not in run.aggregate["metrics"]
    assert one(run, None, "hit_at_7_doc >= 1").verdict == "pass"
    assert one(run, None, "hit_at_6_doc >= 1").verdict == "fail"
    # A run without answers has nothing to be grounded: that is undecided, not passed.
    assert one(run, None, "groundedness >= 0.5").verdict == "undecided"


def test_the_json_holds_everything() -> None:
    new, old = hits("new", 2, 10), hits("old", 0, 10)
    document = verdict(new, old, f"{HIT} >= baseline [significant]").to_json()
    assert document["schema_version"] == "kebab_eval.gate.v1"
    assert (document["verdict"], document["exit_code"]) == ("undecided", 4)
    assert document["candidate"] == {"id": "id-new", "name": "new"}
    assert document["counts"] == {"fail": 0, "undecided": 1, "warn": 0, "pass": 0}
    (rule,) = document["rules"]
    assert rule["queries_needed"] == 35
    assert rule["place"] == "--rule"
    assert set(rule) == {
        "rule", "verdict", "on_fail", "require", "place", "value", "bound", "baseline", "n",
        "slice", "p_value", "detectable", "queries_needed", "reason",
    }  # fmt: skip
