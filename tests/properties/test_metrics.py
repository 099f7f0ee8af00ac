"""What holds for every ranking: bounds, the ideal, permutations, renamed ids, unjudged items."""

from __future__ import annotations

import math
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval import evaluate
from kebab_eval.metrics import default_registry, evaluate_run
from kebab_eval.records import GoldenQuery, GoldenSet, Hit, Judgments, QueryResult

METRICS = [
    name
    for name in default_registry().examples()
    if default_registry().parse(name).family.kernel is not None
    and not name.endswith(("_doc", "_chunk"))
]
CUTS = (1, 3, 5, 10)

ITEMS = st.text(min_size=1, max_size=3) | st.sampled_from(string.ascii_lowercase)
GRADES = st.integers(-2, 5)
JUDGED = st.dictionaries(ITEMS, GRADES, max_size=12)
RANKING = st.lists(ITEMS, max_size=15)
SCORES = st.dictionaries(
    ITEMS, st.floats(allow_nan=False, allow_infinity=False, width=16), max_size=15
)
QUERIES = st.lists(st.tuples(JUDGED, RANKING), min_size=1, max_size=6)


def nfc_distinct(judged):
    from kebab_eval.metrics import normalise_id

    return len({normalise_id(name) for name in judged}) == len(judged)


SETS = QUERIES.filter(lambda pairs: all(nfc_distinct(judged) for judged, _ in pairs))


def scored(pairs, names=METRICS, min_relevance=1):
    judgments = {f"q{i}": judged for i, (judged, _) in enumerate(pairs)}
    rankings = {f"q{i}": ranking for i, (_, ranking) in enumerate(pairs)}
    return evaluate(judgments, rankings, names, min_relevance=min_relevance)


@settings(max_examples=300, deadline=None)
@given(SETS, st.integers(1, 3))
def test_values_lie_between_zero_and_one(pairs, min_relevance):
    for values in scored(pairs, min_relevance=min_relevance).per_query().values():
        assert all(0.0 <= value <= 1.0 for value in values.values())


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(ITEMS, GRADES, min_size=1, max_size=12).filter(nfc_distinct))
def test_an_ideal_ranking_scores_exactly_one(judged):
    ideal = sorted(judged, key=judged.__getitem__, reverse=True)
    found = scored([(judged, ideal)]).per_query()["q0"]
    for name, value in found.items():
        metric = default_registry().parse(name)
        if metric.family.ideal_is_one:
            assert value == 1.0, name
    relevant = sum(grade >= 1 for grade in judged.values())
    if relevant:
        assert found["recall"] == 1.0
        assert found["map"] == 1.0
        assert found[f"precision_at_{1}"] == 1.0


@settings(max_examples=200, deadline=None)
@given(SETS, st.randoms(use_true_random=False))
def test_permuting_the_queries_changes_nothing(pairs, source):
    order = list(range(len(pairs)))
    source.shuffle(order)
    one, two = scored(pairs), scored([pairs[i] for i in order])
    assert one.means == two.means
    assert one.intervals() == two.intervals()
    for place, index in enumerate(order):
        assert two.per_query()[f"q{place}"] == one.per_query()[f"q{index}"]


@settings(max_examples=200, deadline=None)
@given(SETS)
def test_renaming_ids_changes_nothing(pairs):
    from kebab_eval.metrics import normalise_id

    renamed = [
        (
            {f"<{normalise_id(n)}>": g for n, g in judged.items()},
            [f"<{normalise_id(n)}>" for n in ranking],
        )
        for judged, ranking in pairs
    ]
    assert scored(renamed).per_query() == scored(pairs).per_query()


@settings(max_examples=200, deadline=None)
@given(SETS, st.integers(1, 3))
def test_an_unjudged_item_at_the_end_changes_nothing_above_it(pairs, min_relevance):
    longer = [(judged, [*ranking, "unjudged item"]) for judged, ranking in pairs]
    one = scored(pairs, min_relevance=min_relevance).per_query()
    two = scored(longer, min_relevance=min_relevance).per_query()
    for query, values in one.items():
        for name, value in values.items():
            if name.startswith("empty_result") or name in {"precision", "judged"}:
                continue  # these are divided by the number of hits
            if "rel" in name and name.startswith("precision_rel"):
                continue
            if name.startswith("judged_at_"):
                continue
            assert two[query][name] == value, name


@settings(max_examples=300, deadline=None)
@given(JUDGED.filter(nfc_distinct), SCORES.filter(nfc_distinct))
def test_scores_rank_as_sorting_by_score_and_then_by_id_does(judged, scores):
    from kebab_eval.metrics import normalise_id

    ranking = sorted(scores, key=lambda n: (scores[n], normalise_id(n)), reverse=True)
    by_score = evaluate({"q": judged}, {"q": scores}, METRICS)
    by_order = evaluate({"q": judged}, {"q": ranking}, METRICS)
    assert by_score.per_query() == by_order.per_query()


@settings(max_examples=200, deadline=None)
@given(JUDGED.filter(nfc_distinct), RANKING, st.integers(1, 3))
def test_the_definitions_written_out(judged, ranking, min_relevance):
    """The same numbers from a few plain lines for each metric."""
    from kebab_eval.metrics import normalise_id

    grades = {normalise_id(name): grade for name, grade in judged.items()}
    seen: set[str] = set()
    found: list[int | None] = []
    for name in map(normalise_id, ranking):
        found.append(grades.get(name) if name not in seen else None)
        seen.add(name)
    n_relevant = sum(grade >= min_relevance for grade in grades.values())
    relevant = [grade is not None and grade >= min_relevance for grade in found]
    values = scored([(judged, ranking)], min_relevance=min_relevance).per_query()["q0"]
    for k in CUTS:
        if n_relevant:
            assert values[f"precision_at_{k}"] == sum(relevant[:k]) / k
            assert values[f"recall_at_{k}"] == sum(relevant[:k]) / n_relevant
            assert values[f"hit_at_{k}"] == float(any(relevant[:k]))
            first = [1 / (i + 1) for i, hit in enumerate(relevant[:k]) if hit]
            assert values[f"mrr_at_{k}"] == (first[0] if first else 0.0)
        for name, gain in (("ndcg", lambda g: 2.0**g - 1), ("ndcg_linear", float)):
            best = sorted((g for g in grades.values() if g > 0), reverse=True)
            if best:
                dcg = sum(
                    gain(g) / math.log2(i + 2) for i, g in enumerate(found[:k]) if g and g > 0
                )
                ideal = sum(gain(g) / math.log2(i + 2) for i, g in enumerate(best[:k]))
                assert values[f"{name}_at_{k}"] == pytest.approx(dcg / ideal, abs=1e-12)
    if n_relevant:
        precisions = [sum(relevant[: i + 1]) / (i + 1) for i, hit in enumerate(relevant) if hit]
        assert values["map"] == pytest.approx(sum(precisions) / n_relevant, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(SETS)
def test_a_run_is_scored_as_its_rankings_are(pairs):
    queries = tuple(
        GoldenQuery(f"q{i}", "text", Judgments(chunk=judged)) for i, (judged, _) in enumerate(pairs)
    )
    results = [
        QueryResult(
            f"q{i}",
            "text",
            "hybrid",
            tuple(Hit(rank, name, "d", 1.0, "rrf") for rank, name in enumerate(ranking, 1)),
            1.0,
        )
        for i, (_, ranking) in enumerate(pairs)
    ]
    run = evaluate_run(GoldenSet("g", "1", "", queries), results)
    for i, values in enumerate(scored(pairs).per_query().values()):
        for name, value in values.items():
            ours = run.per_query[i].get(f"{name}_chunk")
            assert ours is None or ours == value
