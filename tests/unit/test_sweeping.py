"""A sweep's numbers, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kebab_eval.records import GoldenQuery, Judgments
from kebab_eval.reports.sweep import render_sweep, sweep_files
from kebab_eval.sweeping import (
    MAX_TESTED,
    Measured,
    Sweep,
    best_gate,
    hold_out,
    points_of,
)

NAME = "ndcg_at_10_doc"
JUDGED = Judgments(doc={"d": 1.0})


def queries(answerable: int, refusable: int = 0) -> list[GoldenQuery]:
    return [
        *(GoldenQuery(f"a{n}", "t", JUDGED) for n in range(answerable)),
        *(GoldenQuery(f"n{n}", "t", failure_expected=True) for n in range(refusable)),
    ]


def measured(column: list[list[float]], asked: list[GoldenQuery] | None = None) -> Measured:
    rows = np.array(column)
    asked = asked or queries(rows.shape[1])
    return Measured(asked, {NAME: rows}, rows > 0, rows == 0)


def test_each_value_is_held_against_the_base() -> None:
    found = measured([[0.5, 0.5, 1.0, 0.0], [1.0, 0.5, 1.0, 0.5], [0.5, 0.5, 1.0, 0.0]])
    base, better, same = points_of([(1,), (2,), (3,)], found, NAME, 0)
    assert base.metrics[NAME] == 0.5
    assert (base.delta, base.p_value) == (0.0, None)
    # (.5 + 0 + 0 + .5) / 4; two differences that are not 0: 2 of 4 sign patterns are as extreme
    assert (better.delta, better.n, better.p_value) == (0.25, 4, 0.5)
    assert (same.delta, same.ci95, same.p_value) == (0.0, (0.0, 0.0), 1.0)
    assert better.p_holm == 1.0  # two values were tested: 2 x .5


def test_a_query_that_one_side_does_not_score_is_left_out() -> None:
    found = measured([[0.5, np.nan], [1.0, 1.0]])
    point = points_of([(1,), (2,)], found, NAME, 0)[1]
    assert (point.n, point.delta, point.metrics[NAME]) == (1, 0.5, 1.0)


def test_many_values_are_a_curve_and_no_tests() -> None:
    rows = [[0.5, 0.5, 0.5, 0.5]] + [[1.0, 1.0, 1.0, 1.0]] * (MAX_TESTED + 1)
    points = points_of([(n,) for n in range(len(rows))], measured(rows), NAME, 0)
    assert {point.p_value for point in points} == {None}
    assert points[1].ci95 == (0.5, 0.5)


def test_the_two_sides_of_a_gate() -> None:
    """Three answerable queries and two without an answer, at three thresholds.

    0: all 3 answered, none refused: (1 + 0) / 2; .5: 2 of 3 and 2 of 2: .833; .9: 0 and 2: .5.
    """
    asked = queries(3, 2)
    answered = [[1, 1, 1], [1, 1, 0], [0, 0, 0]]
    empty = [[0, 0], [1, 1], [1, 1]]
    found = np.array([[*a, 0, 0] for a in answered], dtype=bool)
    refused = np.array([[0, 0, 0, *e] for e in empty], dtype=bool)
    both = Measured(asked, {NAME: np.full((3, 5), np.nan)}, found, refused)
    gate = best_gate([0.0, 0.5, 0.9], both)
    assert gate is not None
    assert (gate.threshold, gate.refused, gate.n_answerable, gate.n_refusable) == (0.5, 1.0, 3, 2)
    assert gate.answered == pytest.approx(2 / 3)
    assert gate.balanced == pytest.approx((2 / 3 + 1) / 2)
    assert gate.ci95[0] <= 0.5 <= gate.ci95[1]
    point = points_of([(0.0,), (0.5,), (0.9,)], both, NAME, 0)[0]
    assert (point.answered, point.refused) == (1.0, 0.0)
    # no gate at all is no threshold, and a set of one kind has no balance
    without = best_gate([None, 0.5, 0.9], both)
    assert without is not None
    assert without.threshold == 0.5
    one_kind = Measured(queries(3), {NAME: np.ones((1, 3))}, found[:1, :3], refused[:1, :3])
    assert best_gate([0.5], one_kind) is None


def test_the_choice_is_reported_on_queries_that_did_not_choose() -> None:
    """Noise: each of 200 values is right on a random half of 60 queries, the base half right.

    Over 30 ways to part the queries the luckiest value gains on those that chose it, each time, and
    on the others nothing on the average: 30 means of 30 coins have a standard error of .017.
    """
    source = np.random.default_rng(3)
    values = [(n,) for n in range(200)]
    held = []
    for seed in range(30):
        rows = source.integers(0, 2, (200, 60)).astype(float)
        rows[0] = 0.5
        found = hold_out(values, measured(rows.tolist()), NAME, 0, 0.5, seed=seed)
        assert found is not None
        assert found.chosen_on + found.held_out == 60
        held.append(found)
    assert min(one.gain_there for one in held) > 0.1
    assert abs(np.mean([one.gain for one in held])) < 0.05
    rows = source.integers(0, 2, (3, 60)).astype(float)
    twice = [hold_out(values[:3], measured(rows.tolist()), NAME, 0, 0.5) for _ in range(2)]
    assert twice[0] == twice[1]


def test_paraphrases_stay_on_one_side() -> None:
    asked = [GoldenQuery(f"q{n}", "t", JUDGED, group="one") for n in range(10)]
    found = measured([[1.0] * 10, [0.0] * 10], asked)
    assert hold_out([(1,), (2,)], found, NAME, 0, 0.5) is None  # one side would be empty


def _sweep(**more: object) -> Sweep:
    found = measured([[0.5, 0.5, 1.0, 0.0], [1.0, 0.5, 1.0, 0.5]])
    values = [("a|b",), (None,)]
    given = {
        "name": "sweep of <b>", "keys": ("x.y",), "points": points_of(values, found, NAME, 0),
        "base": 0, "base_said": "the first", "primary": NAME, "direction": "higher", "queries": 4,
        "golden": {"name": "g", "digest": "d"}, **more,
    }  # fmt: skip
    return Sweep(**given)  # type: ignore[arg-type]


def test_the_forms_say_the_same() -> None:
    sweep = _sweep()
    text = render_sweep(sweep, "text")
    assert text.startswith(
        "sweep of <b>\n2 combinations of x.y over 4 queries, by ndcg_at_10_doc; differences from "
        "a|b (the first)\nno value differs beyond chance, corrected for 1 values\n"
    )
    assert "none           0.750  +0.250" in text
    markdown = render_sweep(sweep, "md")
    assert r"| a\|b | 0.500 | base |" in markdown
    assert r"# sweep of \<b\>" in markdown
    rows = render_sweep(sweep, "csv").splitlines()
    assert rows[0].startswith("x.y,ndcg_at_10_doc,n,delta,")
    assert len(rows) == 3
    assert '"schema_version": "kebab_eval.sweep.v1"' in render_sweep(sweep, "json")
    files = sweep_files(sweep)
    assert set(files) == {"sweep.json", "sweep.md", "sweep.csv", "sweep.svg"}
    assert files["sweep.svg"].startswith("<svg")
    assert files == sweep_files(_sweep())  # the same bytes again
