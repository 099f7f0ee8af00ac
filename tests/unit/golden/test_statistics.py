"""What is in a golden set, counted by hand."""

from __future__ import annotations

from kebab_eval.golden.statistics import describe_set
from kebab_eval.records import GoldenQuery, GoldenSet, Judgments, Span
from kebab_eval.reports.golden_stats import stats_lines

QUERIES = (
    GoldenQuery("a", "x", Judgments(doc={"d": 3.0, "e": 0.0}), language="ko", group="g", notes="n"),
    GoldenQuery("b", "y", Judgments(doc={"d": 3.0}), language="ko", group="g"),
    GoldenQuery("c", "z", Judgments(chunk={"f#1": 1.0}), language="en", spans=(Span("f", "q"),)),
    GoldenQuery("n", "-", failure_expected=True, ocr_derived=False, must_contain=()),
)
GOLDEN = GoldenSet("g", "2", "abcd", QUERIES, min_relevance=2, format="docserver")


def test_the_counts() -> None:
    found = describe_set(GOLDEN, ["d", "e", "f"])
    assert found.fields == {"language": {"en": 1, "ko": 2}, "ocr_derived": {"false": 1}}
    assert found.groups == {2: 1}
    assert found.no_answer == 1
    assert (found.levels["doc"].queries, found.levels["doc"].items) == (2, (1, 1.5, 2))
    assert found.levels["doc"].grades == {3.0: 2, 0.0: 1}
    assert found.levels["chunk"].grades == {1.0: 1}
    assert (found.with_spans, found.with_notes, found.with_must_contain) == (1, 1, 0)
    # e has grade 0, and f is expected as a chunk only.
    assert (found.documents, found.never_expected) == (3, 2)
    assert found.to_json()["levels"]["doc"]["grades"] == {"3": 2, "0": 1}


def test_the_lines() -> None:
    assert list(stats_lines(describe_set(GOLDEN))) == [
        "g v2, 4 queries, docserver, digest abcd",
        "language       en 1, ko 2",
        "ocr derived    false 1",
        "groups         1 (1 of 2)",
        "no answer      1",
        "judged chunks  1 queries, 1 to 1 items (median 1); 1 of grade 1",
        "judged docs    2 queries, 1 to 2 items (median 1.5); 2 of grade 3, 1 of grade 0",
        "spans          1 queries",
        "must_contain   0 queries",
        "notes          1 queries",
    ]


def test_an_empty_set() -> None:
    found = describe_set(GoldenSet("g", "1", "x", ()))
    assert found.levels["doc"].items == (0, 0, 0)
    assert len(list(stats_lines(found))) == 5
