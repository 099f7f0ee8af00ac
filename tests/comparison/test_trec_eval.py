"""Our numbers beside what trec_eval itself printed for its own test files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab_eval.api import evaluate_table
from kebab_eval.formats.files import rank_run
from kebab_eval.metrics import default_registry
from kebab_eval.metrics.trec_names import own_name

FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "trec_eval_test"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="trec_eval's test files are not beside the checkout"
)

CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
MEASURES = [
    *(f"P_{k}" for k in CUTS),
    *(f"recall_{k}" for k in CUTS),
    *(f"ndcg_cut_{k}" for k in CUTS),
    *(f"map_cut_{k}" for k in CUTS),
    *(f"success_{k}" for k in (1, 5, 10)),
    *("map", "recip_rank", "Rprec", "bpref", "ndcg", "set_P", "set_recall"),
]
OURS = {name: "ndcg_linear" if name == "ndcg" else own_name(name) for name in MEASURES}


def printed(name):
    """Return (measure, query) -> the text that trec_eval printed."""
    lines = (FOLDER / name).read_text().splitlines()
    return {(m.strip(), q): value for m, q, value in (line.split("\t") for line in lines)}


def scored(qrels, run, min_relevance=1, complete=True):
    judged = rank_run(FOLDER / qrels, FOLDER / run, min_relevance)
    evaluation = evaluate_table(
        judged.table,
        default_registry().parse_all(OURS.values()),
        judged.query_ids,
        without_results=judged.without_results,
    )
    return evaluation if complete else evaluation.returned()


@pytest.mark.parametrize(
    ("output", "qrels", "run", "min_relevance", "complete"),
    [
        ("out.test.a", "qrels.test", "results.test", 1, False),
        ("out.test.aq", "qrels.test", "results.test", 1, False),
        ("out.test.aqc", "qrels.test", "results.trunc", 1, True),
        ("out.test.aql", "qrels.rel_level", "results.test", 2, False),
    ],
)
def test_every_shared_measure_to_the_printed_digit(output, qrels, run, min_relevance, complete):
    theirs = printed(output)
    found = scored(qrels, run, min_relevance, complete)
    per_query, means = found.per_query(), found.means
    compared = 0
    for (measure, query), text in theirs.items():
        if measure not in OURS:
            continue
        values = means if query == "all" else per_query[query]
        assert f"{values[OURS[measure]]:.4f}" == text, (measure, query)
        compared += 1
    topics = 1 + (0 if output == "out.test.a" else len(per_query))
    assert compared == topics * len([m for m in MEASURES if (m, "all") in theirs])
    assert compared >= 40


def test_the_number_of_topics():
    assert len(scored("qrels.test", "results.test", complete=False).query_ids) == int(
        printed("out.test.a")["num_q", "all"]
    )
