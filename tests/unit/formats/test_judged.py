"""The rank table of a run file is that of the same run in memory."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from kebab_eval.errors import FormatError
from kebab_eval.formats import trec_plain
from kebab_eval.formats.columns import from_lists
from kebab_eval.formats.files import rank_run
from kebab_eval.formats.judged import Judge, Regroup, whole_queries
from kebab_eval.formats.texts import Texts, codes, has_repeats, salted
from kebab_eval.metrics.ordering import from_scores


def files(tmp_path, judgments, run, shuffle=None):
    lines = [f"{q} Q0 {d} 0 {s!r} t\n" for q, hits in run.items() for d, s in hits.items()]
    judged = [f"{q} 0 {d} {g}\n" for q, grades in judgments.items() for d, g in grades.items()]
    if shuffle is not None:
        random.Random(shuffle).shuffle(lines)
        random.Random(shuffle).shuffle(judged)
    (tmp_path / "qrels").write_text("".join(judged))
    (tmp_path / "run").write_text("".join(lines))
    return tmp_path / "qrels", tmp_path / "run"


def made_up(levels):
    source = random.Random(levels)
    judgments, run = {}, {}
    for index in range(12):
        names = [f"문서{i}" if i % 5 == 0 else f"document-{i}" for i in range(60)]
        source.shuffle(names)
        judgments[f"q{index}"] = {n: source.randrange(4) for n in names[:20]}
        hits = source.sample(names, source.randrange(1, 50))
        run[f"q{index}"] = {n: float(source.randrange(levels)) for n in hits}
    del run["q3"]
    run["unjudged"] = {"a": 1.0}
    return judgments, run


@pytest.mark.parametrize("levels", [3, 10**9])
@pytest.mark.parametrize("size", [1, 400, 1 << 24])
@pytest.mark.parametrize("shuffle", [None, 1])
def test_as_in_memory(tmp_path, monkeypatch, levels, size, shuffle):
    monkeypatch.setattr(trec_plain, "SLICE_BYTES", size)
    judgments, run = made_up(levels)
    found = rank_run(*files(tmp_path, judgments, run, shuffle))
    table = from_scores(
        list(judgments.values()), [run.get(q, {}) for q in judgments], list(judgments)
    )
    expected = dict(zip(judgments, table.n_hits.tolist(), strict=True))
    assert dict(zip(found.query_ids, found.table.n_hits.tolist(), strict=True)) == expected
    names = list(judgments)
    assert sorted(
        zip([names[q] for q in table.query], table.grade, table.rank, strict=True)
    ) == sorted(
        zip(
            [found.query_ids[q] for q in found.table.query],
            found.table.grade,
            found.table.rank,
            strict=True,
        )
    )
    assert (found.without_results, found.without_judgments) == (("q3",), ("unjudged",))


def test_equal_keys_of_different_ids_make_no_wrong_hit(tmp_path, monkeypatch):
    """With every key the same, the texts decide."""
    judgments, run = {"q": {"a": 1}}, {"q": {"x": 2.0}}
    qrels, path = files(tmp_path, judgments, run)
    monkeypatch.setattr(Texts, "keys", lambda texts: np.zeros(len(texts), dtype=np.uint64))
    with pytest.raises(Regroup):
        rank_run(qrels, path)


def test_empty_judgments_are_refused(tmp_path):
    with pytest.raises(FormatError, match="judgments are empty"):
        rank_run(*files(tmp_path, {}, {"q": {"a": 1.0}}))


def test_an_empty_run_is_all_missing(tmp_path):
    found = rank_run(*files(tmp_path, {"q": {"a": 1}}, {}))
    assert found.without_results == ("q",)
    assert found.table.n_hits.tolist() == [0]


def test_a_query_over_several_pieces_is_put_together():
    pieces = [
        from_lists(["q", "q"], ["a", "b"], [1.0, 2.0]),
        from_lists(["q"], ["c"], [3.0]),
        from_lists(["q", "r"], ["d", "a"], [4.0, 5.0]),
        from_lists(["s"], ["a"], [6.0]),
    ]
    found = [(p.item.tolist(), starts.tolist(), n) for p, starts, n in whole_queries(pieces)]
    assert found == [
        (["a", "b", "c", "d"], [0, 4], ["q"]),
        (["a"], [0, 1], ["r"]),
        (["a"], [0, 1], ["s"]),
    ]


def test_a_query_that_comes_again_is_noticed():
    one = from_lists(["q", "r", "q"], ["a", "a", "b"], [1.0] * 3)
    with pytest.raises(Regroup):
        list(whole_queries([one]))
    with pytest.raises(Regroup):
        list(whole_queries([one.slice(0, 1), one.slice(1, 2), one.slice(2, 3)]))


def test_judge_needs_distinct_judgments():
    with pytest.raises(Regroup):
        Judge(from_lists(["q", "q"], ["a", "a"], [1.0, 2.0]))


SOME = ["", "a", "b", "abcdefgh", "abcdefghi", "a\0", "문서", "x" * 100, "x" * 101, "x" * 99 + "y"]


def test_keys_follow_the_text_alone():
    keys = Texts.of(SOME).keys()
    assert len(set(keys.tolist())) == len(SOME)
    assert keys.tolist() == [Texts.of([text]).keys()[0] for text in SOME]
    assert keys.tolist() == Texts.of(["zzz", *SOME]).slice(1, len(SOME) + 1).keys().tolist()


def test_texts_come_back_as_they_went_in():
    texts = Texts.of(SOME)
    assert texts.tolist() == SOME == [texts[row] for row in range(len(SOME))]
    assert Texts.of_arrow(pa.array(["zzz", *SOME]).slice(1)).tolist() == SOME
    assert texts.take(np.array([3, 0, 6, 3])).tolist() == [SOME[row] for row in (3, 0, 6, 3)]
    assert Texts.joined([texts.slice(2, 5), Texts.of([]), texts]).tolist() == SOME[2:5] + SOME
    assert Texts.of([]).tolist() == Texts.of_arrow(pa.array([], pa.string())).tolist() == []


def test_texts_are_compared_pair_by_pair():
    texts, rows = Texts.of(SOME), np.arange(len(SOME))
    for shift in range(len(SOME)):
        found = texts.same(rows, texts.take(np.roll(rows, shift)), rows)
        assert found.tolist() == [shift == 0] * len(SOME)


def test_runs_and_codes():
    texts = Texts.of(["q", "q", "r", "q", "qq", "qq"])
    assert texts.runs().tolist() == [0, 2, 3, 4, 6]
    numbers, names = codes(texts)
    assert (numbers.tolist(), names) == ([0, 0, 1, 0, 2, 2], ["q", "r", "qq"])
    assert codes(Texts.of([]))[1] == []


def test_a_million_keys_do_not_collide():
    keys = Texts.of([f"D{i}" for i in range(1_000_000)]).keys()
    assert not has_repeats(keys)
    assert not has_repeats(salted(keys[:1000].repeat(1000), np.tile(np.arange(1000), 1000)))
