from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from math import log2
from pathlib import Path

import pytest

from kebab_eval.errors import MetricError
from kebab_eval.metrics import evaluate_run
from kebab_eval.records import GoldenQuery, GoldenSet, Hit, Judgments, QueryResult


def golden(*queries, min_relevance=1):
    return GoldenSet("g", "1", "", tuple(queries), min_relevance)


def result(query_id, *hits, error=None, latency_ms=1.0):
    """A result whose hits are written ``chunk:doc``."""
    pairs = [hit.split(":") for hit in hits]
    return QueryResult(
        query_id,
        "text",
        "hybrid",
        tuple(Hit(rank, c, d, 1.0 / rank, "rrf") for rank, (c, d) in enumerate(pairs, 1)),
        None if error else latency_ms,
        error,
    )


def query(query_id, chunk=None, doc=None, **fields):
    return GoldenQuery(query_id, "text", Judgments(chunk or {}, doc or {}), **fields)


def test_document_metrics_read_the_documents_in_order_of_first_appearance():
    found = evaluate_run(
        golden(query("q", doc={"d2": 1})), [result("q", "a:d1", "b:d1", "c:d1", "d:d2")]
    )
    values = found.per_query[0]
    # d2 is the second document and comes with the fourth hit.
    assert values["mrr_at_10_doc"] == 1 / 2
    assert values["precision_at_3_doc"] == 1 / 3
    assert values["ndcg_at_3_doc"] == pytest.approx(1 / log2(3))
    # recall alone looks at the documents of the first k hits.
    assert values["recall_at_3_doc"] == 0.0
    assert values["recall_at_5_doc"] == 1.0


def test_legacy_names_are_at_chunk_level_where_chunks_are_judged():
    found = evaluate_run(
        golden(query("q", {"c": 1}, {"d": 1})), [result("q", "a:d", "b:d", "c:d")]
    ).aggregate
    assert found["hit_at_k"] == {"1": 0.0, "3": 1.0, "5": 1.0, "10": 1.0}
    assert found["mrr"] == 1 / 3
    assert found["precision_at_k_chunk"]["5"] == 1 / 5
    assert found["recall_at_k_doc"] == {"1": 1.0, "3": 1.0, "5": 1.0, "10": 1.0}


def test_legacy_names_are_at_document_level_where_no_chunk_is_judged():
    found = evaluate_run(golden(query("q", doc={"d": 1})), [result("q", "a:x", "b:d")]).aggregate
    assert found["mrr"] == 1 / 2
    assert found["hit_at_k"]["1"] == 0.0
    assert found["precision_at_k_chunk"] == {"1": None, "3": None, "5": None, "10": None}


def test_a_failed_query_scores_zero_and_is_counted():
    found = evaluate_run(
        golden(query("q", {"c": 1}), query("r", {"c": 1})),
        [result("q", "c:d"), result("r", error="timeout")],
    )
    assert found.aggregate["failed_queries"] == 1
    assert found.aggregate["total_queries"] == 2
    assert found.aggregate["mrr"] == 1 / 2
    # whether it returned nothing is not known of a query that failed
    assert found.aggregate["metrics"]["empty_result"]["n"] == 1
    assert found.aggregate["empty_result_rate"] == 0.0
    assert found.aggregate["latency_ms"] == {"p50": 1.0, "p95": 1.0, "p99": 1.0, "max": 1.0}


def test_an_outage_does_not_pass_for_a_right_refusal():
    found = evaluate_run(
        golden(
            query("q", failure_expected=True),
            query("r", failure_expected=True),
            query("s", failure_expected=True),
        ),
        [result("q"), result("r", error="timeout"), result("s", "c:d")],
    )
    assert found.aggregate["failure_precision"] == {"correct": 1, "total": 3}
    assert [row["failure_correct"] for row in found.per_query] == [1.0, 0.0, 0.0]


def test_a_partial_run_is_scored_on_what_it_holds():
    found = evaluate_run(
        golden(query("q", {"c": 1}), query("r", {"c": 1}), query("s", {"c": 1})),
        [result("s", "c:d"), result("q", "x:d")],
    )
    assert found.aggregate["total_queries"] == 2
    assert found.aggregate["metrics"]["hit_at_1_chunk"]["n"] == 2
    assert [row.get("hit_at_1_chunk") for row in found.per_query] == [0.0, None, 1.0]


def test_no_result_at_all_is_all_undefined():
    found = evaluate_run(golden(query("q", {"c": 1})), []).aggregate
    assert found["total_queries"] == 0
    assert found["mrr"] is None
    assert found["empty_result_rate"] is None
    assert found["latency_ms"]["p50"] is None
    assert found["failure_precision"] == {"correct": 0, "total": 0}


def test_an_empty_golden_set():
    assert evaluate_run(golden(), []).aggregate["mrr"] is None


def test_graded_sets_have_recall_by_grade_and_top3_hit():
    binary = evaluate_run(golden(query("q", {"c": 1})), [result("q", "c:d")]).aggregate["metrics"]
    assert not [name for name in binary if "_rel" in name or "top3" in name]
    graded = evaluate_run(
        golden(query("q", {"c": 3, "b": 2}), min_relevance=2), [result("q", "c:d")]
    ).aggregate["metrics"]
    assert graded["recall_at_10_rel2_chunk"]["value"] == 1 / 2
    assert graded["recall_at_10_rel3_chunk"]["value"] == 1.0
    assert graded["top3_hit_chunk"]["value"] == 1.0


def test_slices_by_field_and_tag():
    found = evaluate_run(
        golden(
            query("q", {"c": 1}, language="ko", ocr_derived=True, tags={"team": "x"}),
            query("r", {"c": 1}, language="en", ocr_derived=False, tags={"team": "x"}),
            query("s", {}, language="en"),
        ),
        [result("q", "c:d"), result("r", "x:d", "c:d"), result("s", "c:d")],
    ).aggregate["slices"]
    assert found["language"]["ko"]["mrr_at_10_chunk"] == 1.0
    assert found["language"]["en"]["mrr_at_10_chunk"] == 1 / 2
    assert found["language"]["en"]["n"] == 2
    assert set(found["ocr_derived"]) == {"true", "false"}
    assert found["team"]["x"]["hit_at_1_chunk"] == 1 / 2
    assert found["category"] == {}


def test_a_slice_without_scored_queries_is_null():
    found = evaluate_run(
        golden(query("q", {}, {"d": 1}, language="ko")), [result("q", "c:d")]
    ).aggregate["slices"]
    assert found["language"]["ko"]["mrr_at_10_chunk"] is None


def test_ids_are_compared_in_nfc():
    decomposed, composed = "\u1100\u1161.md", "\uac00.md"
    assert decomposed != composed
    found = evaluate_run(golden(query("q", {composed: 1})), [result("q", f"{decomposed}:d")])
    assert found.per_query[0]["hit_at_1_chunk"] == 1.0


def test_hits_without_an_id_match_nothing_and_are_no_duplicates():
    found = evaluate_run(golden(query("q", doc={"d": 1})), [result("q", ":d", ":d")])
    assert found.aggregate["duplicate_hits"] == 0
    assert found.per_query[0]["hit_at_1_doc"] == 1.0


def test_further_metrics_by_name():
    found = evaluate_run(
        golden(query("q", {"c": 1})), [result("q", "x:d", "c:d")], metrics=["rbp_chunk"]
    )
    assert found.per_query[0]["rbp_chunk"] == pytest.approx(0.2 * 0.8)
    with pytest.raises(MetricError, match="say rbp_chunk or rbp_doc"):
        evaluate_run(golden(query("q", {"c": 1})), [], metrics=["rbp"])


def test_ndcg_at_5_and_10_are_there_whatever_the_cutoffs():
    metrics = evaluate_run(golden(query("q", {"c": 1})), [], cutoffs=(20, 2)).aggregate["metrics"]
    assert {"ndcg_at_2_doc", "ndcg_at_5_doc", "ndcg_at_10_doc", "ndcg_at_20_doc"} <= set(metrics)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([result("z", "c:d")], "'z', which golden set 'g' does not hold"),
        ([result("q", "c:d"), result("q", "c:d")], "two results are for query 'q'"),
    ],
)
def test_results_that_do_not_fit_are_refused(results, message):
    with pytest.raises(MetricError, match=message):
        evaluate_run(golden(query("q", {"c": 1})), results)


def test_a_cutoff_below_one_is_refused():
    with pytest.raises(MetricError, match="a cutoff is 1 or more"):
        evaluate_run(golden(query("q", {"c": 1})), [], cutoffs=(0,))


def test_the_interval_holds_the_mean_and_one_query_has_none():
    queries = [query(f"q{i}", {"c": 1}) for i in range(40)]
    results = [result(f"q{i}", *(["c:d"] if i % 4 else ["x:d"])) for i in range(40)]
    entry = evaluate_run(golden(*queries), results).aggregate["metrics"]["hit_at_1_chunk"]
    low, high = entry["ci95"]
    assert low < entry["value"] == 0.75 < high
    one = evaluate_run(golden(queries[1]), results[1:2]).aggregate["metrics"]["hit_at_1_chunk"]
    assert one == {"value": 1.0, "n": 1, "ci95": None}


def hundred_queries():
    queries = [
        query(
            f"q{i}",
            {f"c{(7 * i + j) % 50}": j % 4 for j in range(20)},
            {f"d{(3 * i + j) % 20}": j % 4 for j in range(5)},
            language=("ko", "en")[i % 2],
            group=f"g{i // 3}",
            tags={"team": "xyz"[i % 3]},
        )
        for i in range(100)
    ]
    results = [
        result(f"q{i}", *(f"c{(11 * i + j * j) % 50}:d{(5 * i + j) % 20}" for j in range(10)))
        for i in range(100)
    ]
    return golden(*queries, min_relevance=2), results


def test_one_hundred_queries_are_quick():
    # 0.04 s on an idle core; the bound is the contract's, for a busy one.
    times = []
    for _ in range(3):
        start = time.process_time()  # the tests share their cores with others
        evaluate_run(*hundred_queries())
        times.append(time.process_time() - start)
    assert min(times) < 0.3


SCRIPT = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import hashlib, json
from test_aggregate import hundred_queries
from kebab_eval.metrics import evaluate_run
text = json.dumps(evaluate_run(*hundred_queries()).aggregate, allow_nan=False)
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_the_bytes_depend_neither_on_hash_seed_nor_on_threads():
    digests = set()
    for seed, threads in (("0", "1"), ("1", "2"), ("42", "4")):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout)
    assert len(digests) == 1


def test_permuting_queries_changes_no_number():
    gold, results = hundred_queries()
    other = golden(*reversed(gold.queries), min_relevance=2)
    one, two = evaluate_run(gold, results), evaluate_run(other, results[::-1])
    assert one.per_query == two.per_query[::-1]
    assert json.dumps(one.aggregate, sort_keys=True) == json.dumps(two.aggregate, sort_keys=True)


def test_the_aggregate_is_plain_json():
    text = json.dumps(evaluate_run(*hundred_queries()).aggregate, allow_nan=False)
    assert json.loads(text)["schema_version"] == "kebab_eval.aggregate.v1"


def test_importing_the_metrics_pulls_in_numpy_only():
    script = (
        "import sys; import kebab_eval.metrics, kebab_eval.stats; "
        "print([m for m in ('pandas', 'click', 'pydantic', 'httpx', 'mlflow', 'pyarrow') "
        "if m in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
