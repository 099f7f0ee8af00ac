"""The one mapping to MLflow's names: params, metric keys, links without credentials."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kebab_eval.tracking import keys

CONFIG: dict[str, Any] = {
    "name": "n",
    "experiment": "e",
    "lever": "fusion.rrf_k",
    "golden": {"path": "g"},
    "suites": {"a": "b"},
    "backend": {"type": "embedded", "corpus": "c", "cache": "v"},
    "chunking": {"version": "md-heading-v1"},
    "fusion": {"rrf_k": 60, "weights": {"lexical": 1, "vector": 0.5}},
    "search": {"mode": "hybrid", "k": 10},
    "score_gate": None,
    "metrics": {"cutoffs": [1, 3]},
    "tracking": {"uri": "u"},
    "execution": {"concurrency": 4},
    "tags": {"a": "b"},
}


def test_params_are_the_flattened_config_under_the_standard_names() -> None:
    assert keys.run_params(CONFIG, {"index_version": 3, "rrf_k": 60}) == {
        "backend.corpus": "c",
        "backend.type": "embedded",
        "chunker_version": "md-heading-v1",
        "fusion.weights.lexical": "1",
        "fusion.weights.vector": "0.5",
        "index_version": "3",
        "k": "10",
        "metrics.cutoffs": "[1, 3]",
        "mode": "hybrid",
        "rrf_k": "60",
        "score_gate": "none",
    }


def test_two_runs_of_one_lever_differ_in_one_param() -> None:
    other = {**CONFIG, "name": "m", "fusion": {**CONFIG["fusion"], "rrf_k": 20}, "tags": {}}
    one, two = keys.run_params(CONFIG, {}), keys.run_params(other, {})
    assert {key for key in one if one[key] != two[key]} == {"rrf_k"}


def test_a_param_is_cut_to_what_mlflow_takes() -> None:
    assert len(keys.run_params({"x": "y" * 10_000}, {})["x"]) == 6000


def aggregate(**slices: Any) -> dict[str, Any]:
    return {
        "metrics": {
            "ndcg_at_10_doc": {"value": 0.5, "n": 4, "ci95": None},
            "hit_at_1_chunk": {"value": None, "n": 0, "ci95": None},
            "groundedness": {"value": 1.0, "n": 2, "ci95": None},
        },
        "latency_ms": {"p50": 3.0, "p95": None},
        "total_queries": 4,
        "failed_queries": 1,
        "duplicate_hits": 2,
        "slices": slices,
    }


def test_metrics_carry_their_kind_and_an_undefined_one_only_its_n() -> None:
    assert keys.run_metrics(aggregate(), "ndcg_at_10_doc") == {
        "retrieval/ndcg_at_10_doc": 0.5,
        "count/scored_ndcg_at_10_doc": 4,
        "count/scored_hit_at_1_chunk": 0,
        "answer/groundedness": 1.0,
        "latency/p50_ms": 3.0,
        "count/queries": 4,
        "count/failed_queries": 1,
        "count/duplicate_hits": 2,
    }


def test_only_the_primary_metric_is_logged_by_slice_and_no_group() -> None:
    cells = {
        "ko": {"n": 2, "ndcg_at_10_doc": 0.25, "mrr": 1.0},
        "en": {"n": 1, "ndcg_at_10_doc": None},
    }
    found = keys.run_metrics(aggregate(language=cells, group={"g": cells["ko"]}), "ndcg_at_10_doc")
    assert {key: value for key, value in found.items() if key.startswith("by_")} == {
        "by_language/ko": 0.25
    }


def by_category(*values: str) -> dict[str, float]:
    cells = {value: {"n": 1, "ndcg_at_10_doc": float(i)} for i, value in enumerate(values)}
    found = keys.run_metrics(aggregate(category=cells), "ndcg_at_10_doc")
    return {key: value for key, value in found.items() if key.startswith("by_")}


def test_two_values_never_share_a_key() -> None:
    found = by_category("c++", "c##", "c__")
    assert sorted(found.values()) == [0, 1, 2]
    assert found["by_category/c__"] == 0
    long = by_category("x" * 400, "x" * 401)
    assert sorted(long.values()) == [0, 1]
    assert max(map(len, long)) <= keys.MAX_KEY


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("standards", "standards"),
        ("한글 값", "한글 값"),
        ("a/b", "a_b"),
        ("<script>", "_script_"),
        ("a\nb\x1b", "a_b_"),
        ("", "_"),
        ("  ", "_"),
        (".", "_"),
        ("..", "_"),
        ("...", "..."),
        ("a.b-c:d", "a.b-c:d"),
    ],
)
def test_a_value_becomes_a_part_of_a_key_that_mlflow_takes(text: str, part: str) -> None:
    assert keys.key_part(text) == part
    key = f"by_category/{keys.key_part(text)}"
    assert posixpath.normpath(key) == key  # what MLflow asks of a key
    assert re.fullmatch(r"[/\w.\- :]*", key)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("http://host:5000/x", "http://host:5000/x"),
        ("https://me:s3cret@host/x?y=1", "https://host/x?y=1"),
        ("https://s3cret@host", "https://host"),
        ("https://me:p@s3cret@host", "https://host"),
        ("http://me:s3cret@[::1", "http://[::1"),
        ("http://[::1", "http://[::1"),
        ("postgresql+psycopg2://u:s3cret@h/db", "postgresql+psycopg2://h/db"),
        ("//u:s3cret@h", "//h"),
        ("http://host/models@v2", "http://host/models@v2"),
        ("sqlite:////data/a@b/x.db", "sqlite:////data/a@b/x.db"),
        ("databricks", "databricks"),
        ("", ""),
    ],
)
def test_no_shown_address_holds_user_or_password(uri: str, shown: str) -> None:
    assert keys.public_uri(uri) == shown


def test_links_lead_to_the_pages_of_the_ui() -> None:
    assert keys.run_url("http://h", "7", "abc") == "http://h/#/experiments/7/runs/abc"
    fragment = urlsplit(keys.compare_url("http://h", ["7"], ["a", "b"])).fragment
    query = parse_qs(urlsplit(fragment).query)
    assert json.loads(query["runs"][0]) == ["a", "b"]
    assert json.loads(query["experiments"][0]) == ["7"]
