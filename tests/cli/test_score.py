from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kebab_eval.cli.front import main


@pytest.fixture
def files(tmp_path):
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text("q1 0 a 1\nq1 0 b 3\nq2 0 a 1\n")
    run.write_text("q1 Q0 a 1 2.0 t\nq1 Q0 b 2 1.0 t\nq9 Q0 a 1 1.0 t\n")
    return str(qrels), str(run)


@pytest.fixture
def score(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as caught:
            main(["score", *map(str, arguments)])
        out, err = capsys.readouterr()
        return caught.value.code, out, err

    return call


def test_a_line_for_each_metric(files, score):
    code, out, err = score(*files, "--metrics", "mrr_at_10,precision_at_5")
    assert code == 0
    assert out == (
        "num_q                 \tall\t2\n"
        "num_q_without_results \tall\t1\n"
        "mrr_at_10             \tall\t0.5000\n"
        "precision_at_5        \tall\t0.2000\n"
    )
    assert err == (
        "1 query without results in the run: they count as 0\n"
        "1 query of the run without judgments: not scored\n"
    )


def test_per_query_lines(files, score):
    _, out, _ = score(*files, "-m", "mrr_at_10", "-m", "P_5", "--per-query")
    assert out.splitlines()[:4] == [
        "mrr_at_10             \tq1\t1.0000",
        "precision_at_5        \tq1\t0.4000",
        "mrr_at_10             \tq2\t0.0000",
        "precision_at_5        \tq2\t0.0000",
    ]


def test_queries_without_results_can_be_left_out(files, score):
    _, out, err = score(*files, "-m", "mrr_at_10", "--returned")
    assert "mrr_at_10             \tall\t1.0000" in out
    assert "they are left out" in err


def test_one_json_document(files, score):
    _, out, _ = score(*files, "-m", "recall_at_10", "--min-relevance", 3, "--json", "--per-query")
    assert json.loads(out) == {
        "schema_version": "kebab_eval.score.v1",
        "total_queries": 2,
        "complete": True,
        "without_results": ["q2"],
        "without_judgments": ["q9"],
        "metrics": {"recall_at_10": {"value": 1.0, "n": 1, "ci95": None}},
        "per_query": {"q1": {"recall_at_10": 1.0}, "q2": {}},
    }


def test_an_undefined_metric_is_a_dash(tmp_path, score):
    (tmp_path / "qrels").write_text("q 0 a 0\n")
    (tmp_path / "run").write_text("q Q0 a 1 1 t\n")
    _, out, _ = score(tmp_path / "qrels", tmp_path / "run", "-m", "map")
    assert "map                   \tall\t-" in out


def test_gzip_and_jsonl(tmp_path, files, score):
    packed = tmp_path / "run.gz"
    packed.write_bytes(gzip.compress(Path(files[1]).read_bytes()))
    assert score(files[0], packed)[1] == score(*files)[1]
    lines = tmp_path / "run.jsonl"
    lines.write_text('{"query_id": "q1", "item_id": "a", "score": 2}\n')
    assert "0.5000" in score(files[0], lines, "-m", "mrr_at_10")[1]


def test_an_unknown_metric_ends_with_two(files, score):
    code, out, err = score(*files, "-m", "ndgc_at_10,hit")
    assert (code, out) == (2, "")
    assert err.splitlines()[0].startswith(
        "error: no metric is called 'ndgc_at_10' (did you mean 'ndcg_at_10'?)"
    )
    assert err.splitlines()[1] == "error: 'hit' needs a cutoff, as in hit_at_10"


def test_a_malformed_line_ends_with_two_and_its_place(files, score):
    with Path(files[1]).open("a") as stream:
        stream.write("q1 Q0 c 3 0,5 t\n")
    code, out, err = score(*files)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {files[1]}:4: the score is '0,5'")


def test_a_missing_file_ends_with_two(files, score):
    code, _, err = score(files[0], files[1] + "x")
    assert code == 2
    assert err == f"error: {files[1]}x: cannot be read: no such file\n"


def test_help_holds_an_example(score):
    code, out, _ = score("-h")
    assert code == 0
    assert "kebab-eval score qrels.txt run.txt.gz" in out
