"""Spans become chunk ids: the rule, the faults, and systems that list nothing."""

from __future__ import annotations

import pytest

from kebab_eval.golden.anchors import resolve_from_hits, resolve_spans
from kebab_eval.golden.load import digest
from kebab_eval.records import (
    GoldenQuery,
    GoldenSet,
    Hit,
    Judgments,
    Listing,
    Passage,
    QueryResult,
    Span,
)

WORDS = [f"w{n}" for n in range(1, 13)]  # w1 … w12
TEXT = " ".join(WORDS)


def golden(*spans: Span) -> GoldenSet:
    query = GoldenQuery("q", "text", Judgments(chunk={"old": 1.0}, doc={"d": 1.0}), spans=spans)
    return GoldenSet("g", "1", digest([query]), (query,))


def windows(*reaches: tuple[int, int], placed: bool = True, documents: bool = True) -> Listing:
    """Chunks of the words first..last, named by them, with or without their place."""
    passages = []
    for first, last in reaches:
        text = " ".join(WORDS[first - 1 : last])
        start = TEXT.index(text + " ") if last < 12 else TEXT.index(text)
        place = (start, start + len(text)) if placed else (None, None)
        passages.append(Passage(f"d#{first}-{last}", "d", text, *place))
    return Listing(tuple(passages), {"d": TEXT} if documents else {})


MODES = pytest.mark.parametrize(
    ("placed", "documents"),
    [(True, True), (False, True), (False, False)],
    ids=["places", "documents", "texts alone"],
)


@MODES
@pytest.mark.parametrize(
    ("quote", "chunks"),
    [
        ((2, 3), ["d#1-4"]),  # contained in one
        ((4, 5), ["d#1-4", "d#5-8"]),  # cut in halves: each holds one word of two
        ((4, 6), ["d#5-8"]),  # cut 1 to 2: only the larger part
        ((3, 6), ["d#1-4", "d#5-8"]),
        ((3, 10), ["d#5-8"]),  # 17 characters, no chunk holds 8.5: the one that holds most, 8
    ],
)
def test_the_rule(quote: tuple[int, int], chunks: list[str], placed: bool, documents: bool) -> None:
    listing = windows((1, 4), (5, 8), (9, 12), placed=placed, documents=documents)
    span = Span("d", " ".join(WORDS[quote[0] - 1 : quote[1]]))
    resolved, faults = resolve_spans(golden(span), listing)
    assert faults == []
    (query,) = resolved.queries
    assert query.spans[0].chunk_ids == tuple(chunks)
    assert query.judgments.chunk == dict.fromkeys(chunks, 1.0)
    assert query.judgments.doc == {"d": 1.0}


@MODES
def test_a_long_chunk_is_as_good_as_a_short_one(placed: bool, documents: bool) -> None:
    listing = windows((1, 12), placed=placed, documents=documents)
    resolved, _ = resolve_spans(golden(Span("d", "w6")), listing)  # intersection over union: 1/12
    assert resolved.queries[0].judgments.chunk == {"d#1-12": 1.0}


@MODES
def test_windows_that_overlap_all_hold_it(placed: bool, documents: bool) -> None:
    listing = windows((1, 6), (4, 9), (7, 12), placed=placed, documents=documents)
    resolved, _ = resolve_spans(golden(Span("d", "w5 w6")), listing)
    assert resolved.queries[0].spans[0].chunk_ids == ("d#1-6", "d#4-9")


def test_a_chunk_has_the_highest_grade_of_what_it_holds() -> None:
    spans = (Span("d", "w1", grade=1.0), Span("d", "w2", grade=3.0), Span("d", "w12", grade=2.0))
    resolved, _ = resolve_spans(golden(*spans), windows((1, 6), (7, 12)))
    assert resolved.queries[0].judgments.chunk == {"d#1-6": 3.0, "d#7-12": 2.0}


def test_the_digest_is_of_the_meaning_and_not_of_the_chunks() -> None:
    before = golden(Span("d", "w5 w6"))
    for listing in (windows((1, 6), (7, 12)), windows((1, 12))):
        resolved, _ = resolve_spans(before, listing)
        assert resolved.digest == before.digest == digest(resolved.queries)
    assert golden(Span("d", "w5")).digest != before.digest


def test_one_place_of_several() -> None:
    text = "the answer here and the answer there"
    listing = Listing(
        (Passage("one", "d", text[:15], 0, 15), Passage("two", "d", text[16:], 16, len(text))),
        {"d": text},
    )

    def chunks(**which: object) -> tuple[str, ...] | None:
        span = Span("d", "the answer", **which)  # type: ignore[arg-type]
        return resolve_spans(golden(span), listing)[0].queries[0].spans[0].chunk_ids

    assert chunks() == ("one", "two")
    assert chunks(occurrence=2) == ("two",)
    assert chunks(after="here") == ("one",)


def test_a_section_counts_by_how_much_of_a_chunk_lies_in_it() -> None:
    text = "# a\nw w w w\n# b\nx x x x x x\n# c\ny y\n"
    b = text.index("# b")
    cuts = [(0, b + 7), (b + 7, b + 15), (b + 15, len(text))]
    passages = tuple(Passage(f"c{n}", "d", text[s:e], s, e) for n, (s, e) in enumerate(cuts))
    resolved, _ = resolve_spans(golden(Span("d", section="b")), Listing(passages, {"d": text}))
    # c0: `bxx` of `awwwwbxx` lies in it, less than half; c1 all; c2: `x` of `xcyy`, less than half.
    assert resolved.queries[0].spans[0].chunk_ids == ("c1",)
    whole = Listing((Passage("all", "d", text, 0, len(text)),), {"d": text})
    resolved, _ = resolve_spans(golden(Span("d", section="b")), whole)
    assert resolved.queries[0].spans[0].chunk_ids == ("all",)


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (Span("dd", "w1"), "document 'dd' is not in the corpus"),
        (Span("d", "gone"), "quote 'gone' is not in 'd'; quote words that stand in it"),
        (Span("d", "w2 w3 w5"), "as far as 'w2 w3': compare what follows"),
        (Span("d", "w1 w2", occurrence=2), "is in 'd' once: there is no occurrence 2"),
        (Span("d", "w2", before="w9"), "not between the words before and after it"),
        (Span("d", start=0, end=999), "[0, 999) is beyond the end of 'd' (38 characters)"),
        (Span("d", section="x"), "has no section 'x'"),
    ],
)
def test_a_span_that_stands_nowhere_is_told(span: Span, said: str) -> None:
    resolved, (fault,) = resolve_spans(golden(span), windows((1, 12)))
    assert said in fault.message
    assert fault.code == "anchor"
    assert resolved.queries[0].spans[0].chunk_ids == ()


def test_queries_without_spans_stay_as_they_are() -> None:
    plain = GoldenQuery("p", "t", Judgments(chunk={"old": 1.0}))
    before = GoldenSet("g", "1", "x", (plain,))
    assert resolve_spans(before, windows((1, 12))) == (before, [])


def test_without_a_listing_the_hits_decide() -> None:
    def hit(rank: int, doc: str, text: str) -> Hit:
        return Hit(rank, f"{doc}#{rank}", doc, 1.0, "rrf", text)

    hits = (hit(1, "e", "w1 w2"), hit(2, "d", "w0 w1 w2"), hit(3, "d", "w2 w9"))
    before = golden(Span("d", "w1 w2", grade=2.0), Span("d", "w7 w8"))
    after = resolve_from_hits(before, [QueryResult("q", "text", "hybrid", hits)])
    (query,) = after.queries
    # The third hit begins as the span ends: half of it. The other span came back in no hit.
    assert [span.chunk_ids for span in query.spans] == [("d#2", "d#3"), ("d#span-2",)]
    assert query.judgments.chunk == {"d#2": 2.0, "d#3": 2.0, "d#span-2": 1.0}
    assert resolve_from_hits(after, []) == after
