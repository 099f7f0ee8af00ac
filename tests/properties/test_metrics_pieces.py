"""The pieces in which input is read and ranked change no number."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval import evaluate
from kebab_eval.api import evaluate_table
from kebab_eval.formats import trec_plain
from kebab_eval.formats.files import rank_run
from kebab_eval.metrics import default_registry, ordering

METRICS = [
    "map",
    "mrr",
    "ndcg",
    "ndcg_linear_at_3",
    "bpref",
    "err",
    "precision_at_5",
    "judged_at_5",
]
ITEMS = st.sampled_from([f"d{i}" for i in range(10)] + ["문서", "é"])
GROUPS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "r"]),
    st.dictionaries(ITEMS, st.integers(-1, 3), min_size=1, max_size=8),
    min_size=1,
)


@settings(max_examples=150, deadline=None)
@given(GROUPS, GROUPS, st.integers(1, 200), st.integers(1, 20), st.randoms(use_true_random=False))
def test_files_in_any_order_and_pieces_score_as_dicts_do(judgments, run, size, block, source):
    lines = [f"{q} Q0 {d} 0 {s} t\n" for q, hits in run.items() for d, s in hits.items()]
    source.shuffle(lines)
    with tempfile.TemporaryDirectory() as name:
        qrels_path, run_path = Path(name, "qrels"), Path(name, "run")
        qrels_path.write_text(
            "".join(
                f"{q} 0 {d} {g}\n" for q, grades in judgments.items() for d, g in grades.items()
            )
        )
        run_path.write_text("".join(lines))
        with mock.patch.object(trec_plain, "SLICE_BYTES", size):
            ranked = rank_run(qrels_path, run_path)
    found = evaluate_table(ranked.table, default_registry().parse_all(METRICS), ranked.query_ids)
    with mock.patch.object(ordering, "BLOCK_HITS", block):
        expected = evaluate(judgments, run, METRICS)
    assert found.per_query() == expected.per_query()
    assert ranked.without_results == expected.without_results
    assert set(ranked.without_judgments) == set(expected.without_judgments)
