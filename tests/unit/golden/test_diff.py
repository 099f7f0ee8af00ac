"""What changed between two golden sets."""

from __future__ import annotations

from dataclasses import replace

from kebab_eval.golden.diff import FieldChange, diff_sets
from kebab_eval.golden.load import digest
from kebab_eval.records import BinaryJudgments, GoldenQuery, GoldenSet, Judgments, Span
from kebab_eval.reports.golden_diff import diff_lines


def made(*queries: GoldenQuery, version: str = "1") -> GoldenSet:
    return GoldenSet("g", version, digest(queries), queries)


Q = GoldenQuery(
    "q",
    "text",
    Judgments(chunk={"c": 1.0}, doc={"d": 1.0, "e": 2.0}),
    language="ko",
    must_contain=("a", "b"),
    tags={"intent": "x"},
    spans=(Span("d", "the answer"),),
    notes="why",
    place="g.yaml:1:1",
)


def changes(new: GoldenQuery) -> list[FieldChange]:
    found = diff_sets(made(Q), made(new)).changed
    return list(found[0].changes) if found else []


def test_layout_order_and_notes_mean_nothing() -> None:
    other = GoldenQuery("p", "t")
    moved = replace(Q, notes="other", place="x:9:9", must_contain=("b", "a"))
    found = diff_sets(made(Q, other), made(other, moved))
    assert found.same_meaning
    assert found.old.digest == found.new.digest
    assert list(diff_lines(found))[-1].startswith("the same queries and judgments")


def test_queries_that_only_one_has() -> None:
    found = diff_sets(made(Q), made(GoldenQuery("new", "t"), version="2"))
    assert [query.query_id for query in found.added] == ["new"]
    assert [query.query_id for query in found.removed] == ["q"]
    assert not found.same_meaning
    assert list(diff_lines(found))[1:] == [
        "1 added, 1 removed, 0 changed (0 of them judged otherwise), 0 the same",
        "+ new  t",
        "- q  text",
    ]


def test_each_field_is_told() -> None:
    assert changes(replace(Q, query="other")) == [FieldChange("query", "text", "other")]
    assert changes(replace(Q, language=None)) == [FieldChange("language", "ko", None)]
    assert changes(replace(Q, must_contain=("a",))) == [
        FieldChange("must_contain", ["a", "b"], ["a"])
    ]
    assert changes(replace(Q, tags={"intent": "y"})) == [FieldChange("tag intent", "x", "y")]
    assert changes(replace(Q, failure_expected=True)) == [
        FieldChange("failure_expected", False, True)
    ]


def test_judgments_are_told_item_by_item() -> None:
    new = replace(Q, judgments=Judgments(chunk={"other": 1.0}, doc={"d": 3.0, "f": 1.0}))
    assert changes(new) == [
        # The chunk ids are left out: the spans say which chunks are meant.
        FieldChange("doc d", 1.0, 3.0),
        FieldChange("doc e", 2.0, None),
        FieldChange("doc f", None, 1.0),
    ]
    bare = replace(Q, spans=())
    other = replace(bare, judgments=replace(Q.judgments, chunk={"c2": 1.0}))
    assert diff_sets(made(bare), made(other)).changed[0].changes == (
        FieldChange("chunk c", 1.0, None),
        FieldChange("chunk c2", None, 1.0),
    )


def test_spans_are_told_by_what_they_say() -> None:
    regraded = replace(Q, spans=(Span("d", "the answer", grade=2.0),))
    assert changes(regraded) == [FieldChange("span d 'the answer'", 1.0, 2.0)]
    (gone, come) = changes(replace(Q, spans=(Span("d", "the answer", occurrence=2),)))
    assert (gone.what, gone.after) == ("span d 'the answer'", None)
    assert (come.what, come.after) == ("span d quote='the answer' occurrence=2", 1.0)
    # Which chunks hold it is the chunker's doing.
    assert changes(replace(Q, spans=(Span("d", "the answer", chunk_ids=("z",)),))) == []


def test_the_old_binary_judgments_are_told_too() -> None:
    before = replace(Q, v01=BinaryJudgments(frozenset({"1", "2"}), frozenset({"1"})))
    after = replace(Q, v01=BinaryJudgments(frozenset({"1", "2"}), frozenset({"2"})))
    (changed,) = diff_sets(made(before), made(after)).changed
    assert changed.changes == (FieldChange("v0.1 top3", ["1"], ["2"]),)


def test_the_digest_differs_exactly_where_the_diff_does() -> None:
    variants = [
        Q,
        replace(Q, notes="n"),
        replace(Q, query="other"),
        replace(Q, spans=(Span("d", "another answer"),)),
        replace(Q, judgments=Judgments(chunk={"z": 1.0}, doc=Q.judgments.doc)),
        replace(Q, judgments=Judgments(doc={"d": 1.0})),
    ]
    for one in variants:
        for other in variants:
            found = diff_sets(made(one), made(other))
            assert found.same_meaning == (found.old.digest == found.new.digest)


def test_hostile_texts_stay_on_their_line() -> None:
    bad = replace(Q, query_id="a\nb\x1b[31m", query="x\u2028y")
    lines = list(diff_lines(diff_sets(made(), made(bad))))
    assert len(lines) == 3
    assert all(c.isprintable() or c == " " for c in lines[2])
