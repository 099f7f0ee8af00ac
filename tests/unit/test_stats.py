from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import stats as scipy_stats

from kebab_eval.stats import (
    benjamini_hochberg,
    detectable_difference,
    holm,
    mean_interval,
    mean_intervals,
    randomisation_test,
)


@pytest.mark.parametrize("n", [0, 1, 5, 50])
def test_identical_runs_give_one(n):
    assert randomisation_test(np.zeros(n)) == 1.0


def test_one_query_cannot_show_a_difference():
    assert randomisation_test([0.5]) == 1.0  # both signs are as extreme


def test_two_queries():
    # + + and - - of the four patterns reach |1.5|
    assert randomisation_test([1.0, 0.5]) == 2 / 4
    # every pattern of 1, -1 gives 0 or 2, and 0 was observed
    assert randomisation_test([1.0, -1.0]) == 1.0


def test_all_patterns_by_hand():
    # 1, 2, 3 sum to 6: only + + + and - - - of eight patterns reach it
    assert randomisation_test([1.0, 2.0, 3.0]) == 2 / 8
    # 1, 2, -3 sum to 0: every pattern does
    assert randomisation_test([1.0, 2.0, -3.0]) == 1.0
    # 1, 2, 3, -1: sum 5; reached by +++-, ++++ (7), and their opposites: ++++, +++-, -+++ (5)
    assert randomisation_test([1.0, 2.0, 3.0, -1.0]) == 6 / 16


def test_sums_in_another_order_count_as_equal():
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last digit
    assert randomisation_test([0.1, 0.2, 0.3]) == 2 / 8


def test_queries_without_a_difference_do_not_matter():
    assert randomisation_test([1.0, 0.0, 2.0, 0.0, 3.0]) == randomisation_test([1.0, 2.0, 3.0])


@pytest.mark.parametrize("n", [3, 8, 12])
def test_exact_as_scipy_has_it(n):
    values = np.random.default_rng(n).normal(0.3, 1, n)
    theirs = scipy_stats.permutation_test(
        (values,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert randomisation_test(values) == pytest.approx(theirs.pvalue, abs=1e-12)


def test_sampled_is_near_the_exact_value():
    values = np.random.default_rng(5).normal(0.3, 1, 16)
    exact = randomisation_test(values)
    sampled = randomisation_test(values, flips=65_535)  # one below 2^16
    assert sampled == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 65_535) ** 0.5)


def test_sampled_is_near_the_t_test_for_many_queries():
    values = np.random.default_rng(6).normal(0.02, 0.3, 1000)
    assert randomisation_test(values) == pytest.approx(
        scipy_stats.ttest_1samp(values, 0).pvalue, abs=0.01
    )


def test_p_is_never_zero():
    assert randomisation_test(np.ones(1000)) == 1 / 100_001


def test_the_p_value_is_uniform_without_a_difference():
    random = np.random.default_rng(8)
    p_values = [randomisation_test(random.normal(size=30), flips=999) for _ in range(400)]
    assert np.mean(np.array(p_values) <= 0.05) == pytest.approx(0.05, abs=0.035)


def test_sign_and_order_do_not_matter():
    values = np.random.default_rng(9).normal(0.2, 1, 40)
    assert randomisation_test(-values) == pytest.approx(randomisation_test(values), abs=0.01)
    assert randomisation_test(values) == randomisation_test(values)
    assert randomisation_test(values, seed=1) != randomisation_test(values, seed=2)


@pytest.mark.parametrize(("n", "bound_s"), [(50, 0.05), (10_000, 1.0)])
def test_a_hundred_thousand_resamples_are_quick(n, bound_s):
    values = np.random.default_rng(1).normal(size=n)
    times = []
    for _ in range(3):
        start = time.process_time()  # the tests share their cores with others
        randomisation_test(values)
        times.append(time.process_time() - start)
    assert min(times) < bound_s


SCRIPT = """
import numpy as np
from kebab_eval.stats import mean_interval, randomisation_test
values = np.random.default_rng(1).normal(0.1, 1, 500)
print(randomisation_test(values).hex(), *[v.hex() for v in mean_interval(values)])
"""


def test_the_bytes_do_not_depend_on_threads():
    outputs = set()
    for threads in ("1", "4"):
        environment = os.environ | {
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONHASHSEED": threads,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1


def test_the_interval_is_near_the_normal_one():
    values = np.random.default_rng(2).normal(0.5, 0.2, 400)
    low, high = mean_interval(values)
    half = 1.96 * values.std(ddof=1) / 20
    assert low == pytest.approx(values.mean() - half, abs=0.003)
    assert high == pytest.approx(values.mean() + half, abs=0.003)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_no_interval_below_two_values(values):
    assert mean_interval(values) is None
    assert np.isnan(mean_intervals(np.array(values).reshape(-1, 1))).all()


def test_the_interval_of_two_values():
    # the mean of two draws from 0 and 1 is 0, 1/2 or 1, the outer ones a quarter each
    assert mean_interval([0.0, 1.0]) == (0.0, 1.0)


def test_the_interval_of_equal_values_is_a_point():
    assert mean_interval([0.25] * 10) == (0.25, 0.25)


def test_columns_do_not_depend_on_each_other_or_on_the_order():
    values = np.random.default_rng(3).random((60, 4))
    together = mean_intervals(values, seed=5)
    assert together[2].tolist() == list(mean_interval(values[::-1, 2], seed=5))


def test_many_queries_in_blocks(monkeypatch):
    values = np.random.default_rng(4).random((50, 2))
    whole = mean_intervals(values)
    monkeypatch.setattr("kebab_eval.stats._CELLS", 50 * 7 * 2)
    blocks = mean_intervals(values)
    assert blocks == pytest.approx(whole, abs=0.02)


def test_holm_by_hand():
    # sorted .01 .02 .03: times 3, 2, 1 gives .03 .04 .03, and no later one below an earlier
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_benjamini_hochberg_as_scipy_has_it():
    p_values = np.random.default_rng(0).random(20).tolist()
    assert benjamini_hochberg(p_values) == pytest.approx(
        scipy_stats.false_discovery_control(p_values).tolist()
    )
    # .01 * 3/1, .02 * 3/2, .03 * 3/3 are all .03
    assert benjamini_hochberg([0.01, 0.02, 0.03]) == pytest.approx([0.03] * 3)
    assert benjamini_hochberg([]) == []


def test_detectable_difference_by_hand():
    # z(.975) + z(.8) = 1.95996 + 0.84162 = 2.80159; s of -1, 1, -1, 1 is 2/sqrt(3); n = 4
    expected = 2.80159 * (2 / 3**0.5) / 2
    assert detectable_difference([-1.0, 1.0, -1.0, 1.0]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_no_detectable_difference_below_two_values(values):
    assert detectable_difference(values) is None


def test_identical_runs_could_have_shown_any_difference():
    assert detectable_difference([0.0, 0.0, 0.0]) == 0.0
