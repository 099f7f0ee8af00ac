from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest

from kebab_eval.errors import MetricError
from kebab_eval.metrics import Family, Registry, default_registry
from kebab_eval.metrics import registry as registry_module
from kebab_eval.metrics.trec_names import own_name


@pytest.fixture
def registry():
    return default_registry()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("ndcg_at_10_doc", ("ndcg", 10, None, "doc")),
        ("ndcg_linear_at_5_chunk", ("ndcg_linear", 5, None, "chunk")),
        ("recall_at_5_rel2_chunk", ("recall", 5, 2, "chunk")),
        ("mrr_at_10", ("mrr", 10, None, None)),
        ("map_doc", ("map", None, None, "doc")),
        ("top3_hit_chunk", ("top3_hit", None, None, "chunk")),
        ("judged_at_10_doc", ("judged", 10, None, "doc")),
        ("empty_result", ("empty_result", None, None, None)),
        ("latency_ms", ("latency_ms", None, None, None)),
    ],
)
def test_a_name_says_its_parameters(registry, name, parameters):
    metric = registry.parse(name)
    found = (metric.family.name, metric.cutoff, metric.min_grade, metric.level)
    assert found == parameters
    assert metric.name == name


def test_every_example_name_parses_to_itself(registry):
    assert [registry.parse(name).name for name in registry.examples()] == list(registry.examples())


def test_every_family_declares_meaning_source_and_direction(registry):
    for family in registry:
        assert family.meaning
        assert family.source
        assert family.scored
        assert family.direction in {"higher", "lower"}
    assert registry.parse("latency_ms").direction == "lower"
    assert registry.parse("ndcg_at_3").meaning.startswith("nDCG of the first 3,")
    assert registry.parse("recall_at_3_rel2").meaning.endswith("relevant from grade 2")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc_at_10_doc", "did you mean 'ndcg_at_10_doc'?"),
        ("precison_at_5", "did you mean 'precision_at_5'?"),
        ("", "no metric is called ''"),
        ("hit", "needs a cutoff, as in hit_at_10"),
        ("rprec_at_5", "rprec takes no cutoff"),
        ("hit_at_0", "a cutoff is 1 or more"),
        ("ndcg_at_10_rel2", "ndcg takes no grade"),
        ("recall_at_10_rel0", "a grade is 1 or more"),
        ("latency_ms_doc", "latency_ms has no level"),
        ("hit_at_１０", "no metric is called"),
    ],
)
def test_a_wrong_name_is_answered_with_what_is_right(registry, name, message):
    with pytest.raises(MetricError, match=message.replace("?", r"\?")):
        registry.parse(name)


def test_all_wrong_names_are_told_at_once(registry):
    with pytest.raises(MetricError) as caught:
        registry.parse_all(["hit_at_1", "hit", "nope"])
    assert len(caught.value.faults) == 2


def test_a_name_asked_for_twice_is_computed_once(registry):
    assert [m.name for m in registry.parse_all(["map", "hit_at_1", "map"])] == ["map", "hit_at_1"]


@pytest.mark.parametrize("name", ["x_at_10", "x_rel2", "x_doc", "a b", ""])
def test_a_family_cannot_be_named_like_a_parameter(name):
    with pytest.raises(MetricError, match="cannot be called"):
        Registry([Family(name, "m", "s", "q")])


def test_a_family_name_is_taken_once():
    with pytest.raises(MetricError, match="registered already"):
        Registry([Family("x", "m", "s", "q"), Family("x", "m", "s", "q")])


def test_a_metric_without_kernel_does_not_follow_from_a_ranking(registry):
    with pytest.raises(MetricError, match="does not follow from a ranking"):
        registry.parse("groundedness").compute(None)


def places(table, cutoff, min_grade):
    return table.n_hits.astype(np.float64)


PLACES = Family("places", "how many hits came back", "a test", "every query", places)


def test_a_metric_of_another_package_registers_through_an_entry_point(monkeypatch):
    point = EntryPoint("places", f"{__name__}:PLACES", registry_module.ENTRY_POINT_GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: PLACES)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    default_registry.cache_clear()
    try:
        from kebab_eval import evaluate

        assert evaluate({"q": {"a": 1}}, {"q": ["x", "y"]}, ["places"])["places"] == 2.0
    finally:
        default_registry.cache_clear()


def test_an_entry_point_that_does_not_load_is_named(monkeypatch):
    point = EntryPoint("broken", "no_such_module:metric", registry_module.ENTRY_POINT_GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    default_registry.cache_clear()
    try:
        assert default_registry().parse("map").name == "map"
        with pytest.raises(MetricError, match=r"'broken'.*no_such_module"):
            default_registry().parse("broken")
    finally:
        default_registry.cache_clear()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("P_5", "precision_at_5"),
        ("ndcg_cut.10", "ndcg_linear_at_10"),
        ("success_1", "hit_at_1"),
        ("recip_rank", "mrr"),
        ("Rprec", "rprec"),
        ("ndcg", "ndcg"),
        ("hit_at_3", "hit_at_3"),
    ],
)
def test_trec_eval_names(theirs, ours):
    assert own_name(theirs) == ours
