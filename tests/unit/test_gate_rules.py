"""The grammar of a gate's rules: what each means, and where a wrong one is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab_eval.errors import RuleError
from kebab_eval.gate_rules import (
    Rule,
    check_scopes,
    customary,
    parse_options,
    parse_rule,
    with_defaults,
)
from kebab_eval.records import GoldenQuery, GoldenSet, Judgments


def parsed(text: str) -> Rule:
    return parse_rule(text, lambda index: f"f:{index + 1}")


@pytest.mark.parametrize(
    ("text", "subject", "kind", "op", "bound"),
    [
        ("hit_at_5_chunk >= baseline - 0.03", "hit_at_5_chunk", "metric", ">=", (1, -0.03)),
        ("hit_at_5_chunk>=baseline-0.03", "hit_at_5_chunk", "metric", ">=", (1, -0.03)),
        ("ndcg_at_10_doc >= 0.70", "ndcg_at_10_doc", "metric", ">=", (0, 0.7)),
        ("ndcg_at_10_doc > baseline", "ndcg_at_10_doc", "metric", ">", (1, 0)),
        ("mrr_at_10_doc >= baseline + .01", "mrr_at_10_doc", "metric", ">=", (1, 0.01)),
        ("ndcg_at_10_doc >= 0.97x", "ndcg_at_10_doc", "metric", ">=", (0.97, 0)),
        ("empty_result <= 5e-2", "empty_result", "metric", "<=", (0, 0.05)),
        ("regressions <= 0", "regressions", "count", "<=", (0, 0)),
        ("losses <= 3", "losses", "count", "<=", (0, 3)),
        ("failed_queries == 0", "failed_queries", "count", "==", (0, 0)),
        ("failed_queries <= baseline", "failed_queries", "count", "<=", (1, 0)),
        ("p95_ms <= 1.2x", "p95_ms", "latency", "<=", (1.2, 0)),
        ("p95_ms < baseline + 20", "p95_ms", "latency", "<", (1, 20)),
    ],
)
def test_a_rule_means_what_it_says(
    text: str, subject: str, kind: str, op: str, bound: tuple[float, float]
) -> None:
    rule = parsed(text)
    assert (rule.subject, rule.kind, rule.op) == (subject, kind, op)
    assert (rule.factor, rule.offset) == bound
    assert rule.text == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("language=ko: ndcg_at_10_doc >= 0.70", "language", "ko"),
        ("language = ko : ndcg_at_10_doc >= 0.70", "language", "ko"),
        ("category='a: b': ndcg_at_10_doc >= 0.70", "category", "a: b"),
        ('category="say \\"hi\\"": ndcg_at_10_doc >= 0.70', "category", 'say "hi"'),
        ("category=한글 이름: ndcg_at_10_doc >= 0.70", "category", "한글 이름"),
        ("worst(language): ndcg_at_10_doc >= 0.5", "language", None),
        ("worst ( language ) : ndcg_at_10_doc >= 0.5", "language", None),
    ],
)
def test_a_rule_may_be_about_a_slice(text: str, field: str, value: str | None) -> None:
    rule = parsed(text)
    assert (rule.field, rule.value) == (field, value)


def test_words_in_brackets_say_how_strict_it_is() -> None:
    rule = parsed("ndcg_at_10_doc >= baseline [warn, significant]")
    assert (rule.on_fail, rule.require) == ("warn", "significant")
    assert rule.text == "ndcg_at_10_doc >= baseline"
    assert parsed("ndcg_at_10_doc >= 0.7").on_fail is None


def test_defaults_fill_in_what_a_rule_does_not_say() -> None:
    rules = [parsed("ndcg_at_10_doc >= 0.7"), parsed("losses <= 3"), parsed("mrr_doc >= 0 [point]")]
    filled = with_defaults(rules, "warn", "significant")
    assert [rule.on_fail for rule in filled] == ["warn"] * 3
    # a count has no test
    assert [rule.require for rule in filled] == ["significant", "point", "point"]


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "a rule is empty"),
        ("ndgc_at_10_doc >= 0.7", 1, "did you mean 'ndcg_at_10_doc'?"),
        ("  regresions <= 0", 3, "did you mean 'regressions'?"),
        ("p95_m <= 1", 1, "did you mean 'p95_ms'?"),
        ("zzz >= 1", 1, "no metric and no count is called 'zzz'; counts are"),
        ("hit_at_5 >= 0.7", 1, "needs a level: say hit_at_5_chunk or hit_at_5_doc"),
        ("ndcg_at_0_doc >= 0.7", 1, "a cutoff is 1 or more"),
        ("latency_ms <= 5", 1, "take one of p50_ms"),
        ("baseline >= 0.7", 1, "write the baseline on the right"),
        ("ndcg_at_10_doc", 15, "expected one of >= <= == > <, found nothing more"),
        ("ndcg_at_10_doc = 0.7", 16, "expected one of >= <= == > <, found '='"),
        ("ndcg_at_10_doc => 0.7", 16, "expected one of >= <= == > <, found '=>'"),
        ("ndcg_at_10_doc != 0.7", 16, "found '!='"),
        ("ndcg_at_10_doc >=", 18, "expected a number, 'baseline'"),
        ("ndcg_at_10_doc >= basline - 0.03", 19, "did you mean 'baseline'?"),
        ("ndcg_at_10_doc >= baseline - ", 30, "expected a number, found nothing more"),
        ("ndcg_at_10_doc >= baseline - -1", 30, "two signs stand in a row"),
        ("ndcg_at_10_doc >= baseline - 3", 30, "write 0.03 for three points"),
        ("ndcg_at_10_doc >= 70", 19, "lies between 0 and 1"),
        ("ndcg_at_10_doc >= 70%", 21, "percent can mean two things"),
        ("ndcg_at_10_doc >= baseline - 3 %", 32, "percent can mean two things"),
        ("ndcg_at_10_doc >= 0.7 0.8", 23, "the rule should end here, found '0'"),
        ("ndcg_at_10_doc >= 0.7abc", 22, "takes no unit"),
        ("ndcg_at_10_doc >= 1e999", 19, "no number that a computer can hold"),
        ("p95_ms <= 0x", 11, "a factor is above 0"),
        ("p95_ms <= 1.2x baseline", 16, "a factor takes nothing behind it"),
        ("regressions <= baseline", 16, "counted between the two runs"),
        ("losses <= 1.5x", 11, "counted between the two runs"),
        ("language=: ndcg_at_10_doc >= 0.7", 10, "expected the value of the slice"),
        ("language='ko: ndcg_at_10_doc >= 0.7", 10, "does not close"),
        ("language=ko: ndgc_at_10_doc >= 0.7", 14, "did you mean 'ndcg_at_10_doc'?"),
        ("worst(): ndcg_at_10_doc >= 0.7", 7, "takes a field such as language"),
        ("worst(language: ndcg_at_10_doc >= 0.7", 15, "expected ')'"),
        ("worst(language) ndcg_at_10_doc >= 0.7", 17, "expected ':' after the slice"),
        ("losses <= 3 [significant]", 14, "'significant' needs a metric"),
        ("losses <= 3 [wran]", 14, "did you mean 'warn'?"),
        ("losses <= 3 [warn", 18, "expected ',' or ']'"),
        ("losses <= 3 [warn] x", 20, "the rule should end here"),
        ("losses <= 3" + " " * 1000, 1, "at most 1000 characters"),
    ],
)
def test_a_wrong_rule_is_told_with_its_column(text: str, column: int, said: str) -> None:
    with pytest.raises(RuleError) as caught:
        parsed(text)
    (fault,) = caught.value.faults
    assert said in fault.message
    assert fault.place == f"f:{column}"


def test_every_wrong_option_is_told() -> None:
    with pytest.raises(RuleError) as caught:
        parse_options(["losses <= 3", "losses", "x >= 1"])
    first, second = map(str, caught.value.faults)
    assert first.startswith("--rule 'losses': column 7: expected one of >= <= == > <")
    assert second.startswith("--rule 'x >= 1': column 1: no metric and no count is called 'x'")


@given(st.text(max_size=60))
def test_any_text_is_a_rule_or_a_told_fault(text: str) -> None:
    try:
        rule = parsed(text)
    except RuleError as wrong:
        (fault,) = wrong.faults
        assert fault.place.startswith("f:")
        assert 1 <= int(fault.place[2:]) <= len(text) + 1
    else:
        assert rule.op in (">=", ">", "<=", "<", "==")


@pytest.mark.parametrize(
    ("op", "value", "holds"),
    [
        (">=", 0.6 - 0.03, True),  # 0.5699999999999999 against 0.57
        (">", 0.57 + 1e-15, False),
        ("<=", 0.57 + 1e-15, True),
        ("<", 0.6 - 0.03, False),
        ("==", 0.6 - 0.03, True),
        (">=", 0.5699, False),
        ("<=", 0.5701, False),
        ("==", 0.5701, False),
    ],
)
def test_rounding_decides_nothing(op: str, value: float, holds: bool) -> None:
    assert parsed(f"mrr_doc {op} 0.57").holds(value, 0.57) is holds


GOLDEN = GoldenSet(
    "set",
    "1",
    "d",
    (
        GoldenQuery("a", "x", Judgments(doc={"d": 1.0}), language="ko", tags={"team": "search"}),
        GoldenQuery("b", "y", Judgments(doc={"d": 1.0}), language="en"),
    ),
)


def test_slices_are_held_against_the_golden_set() -> None:
    texts = [
        "language=ko: mrr_doc >= 0",
        "team=search: mrr_doc >= 0",
        "langage=ko: mrr_doc >= 0",
        "worst(teem): mrr_doc >= 0",
        "language=fr: mrr_doc >= 0",
    ]
    with pytest.raises(RuleError) as caught:
        check_scopes([parsed(text) for text in texts], GOLDEN)
    assert [str(fault) for fault in caught.value.faults] == [
        "f:1: no query of 'set' has a field 'langage' (did you mean 'language'?)",
        "f:7: no query of 'set' has a field 'teem' (did you mean 'team'?)",
        "f:10: no query has language 'fr'; there are: en, ko",
    ]


def test_the_customary_rule_takes_the_level_that_is_judged() -> None:
    assert customary(GOLDEN).text == "hit_at_5_doc >= baseline - 0.03"
    chunked = GoldenSet("s", "1", "d", (GoldenQuery("a", "x", Judgments(chunk={"c": 1.0})),))
    assert customary(chunked).text == "hit_at_5_chunk >= baseline - 0.03"
