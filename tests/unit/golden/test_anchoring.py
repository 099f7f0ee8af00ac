"""From chunk ids to quotes, and from one chunker's ids to another's."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kebab_eval.golden.anchoring import anchor_query
from kebab_eval.golden.anchors import Corpus, resolve_spans
from kebab_eval.golden.migration import migrate_query
from kebab_eval.records import GoldenQuery, GoldenSet, Judgments, Listing, Passage, Span

TEXT = """\
# Pumps

The first pump runs at sixty bar. It was built in 2019 by the plant.

The second pump runs at eighty bar. Nobody knows who built it.

The valve is open. The valve is open.
"""


def cut(*marks: str, name: str = "d") -> Listing:
    """Cut the text before each mark."""
    places = [0, *(TEXT.index(mark) for mark in marks), len(TEXT)]
    passages = []
    for number, (start, end) in enumerate(pairwise(places)):
        text = TEXT[start:end].rstrip()
        passages.append(Passage(f"{name}{number}", "d", text, start, start + len(text)))
    return Listing(tuple(passages), {"d": TEXT})


def query(*chunks: str, **more: object) -> GoldenQuery:
    return GoldenQuery("q", "t", Judgments(chunk=dict.fromkeys(chunks, 1.0)), **more)  # type: ignore[arg-type]


PARAGRAPHS = cut("The first", "The second", "The valve")


@pytest.mark.parametrize("chunk", ["d1", "d2"])
def test_a_quote_names_its_chunk_and_no_other(chunk: str) -> None:
    found = anchor_query(query(chunk), Corpus(PARAGRAPHS))
    assert (found.lost, found.shared) == ((), ())
    golden = GoldenSet("g", "1", "x", (query(spans=found.spans),))
    resolved, faults = resolve_spans(golden, PARAGRAPHS)
    assert faults == []
    assert resolved.queries[0].judgments.chunk == {chunk: 1.0}


def test_the_sentence_that_holds_what_an_answer_must_hold() -> None:
    (span,) = anchor_query(query("d1", must_contain=("2019",)), Corpus(PARAGRAPHS)).spans
    assert span.quote == "It was built in 2019 by the plant."


def test_grades_stay() -> None:
    graded = GoldenQuery("q", "t", Judgments(chunk={"d1": 3.0}))
    assert anchor_query(graded, Corpus(PARAGRAPHS)).spans[0].grade == 3.0


def test_a_sentence_that_stands_twice_is_told_by_its_occurrence() -> None:
    halves = cut("The second", "The valve", "The valve is open.\n")
    twice = TEXT.rindex("The valve")
    listing = Listing(
        (*halves.passages[:2], Passage("e", "d", TEXT[twice:], twice, len(TEXT))), {"d": TEXT}
    )
    (span,) = anchor_query(query("e"), Corpus(listing)).spans
    assert (span.quote, span.occurrence) == ("The valve is open.", 2)


def test_what_overlaps_is_said_to_be_shared() -> None:
    whole = Passage("all", "d", TEXT, 0, len(TEXT))
    listing = Listing((*PARAGRAPHS.passages, whole), {"d": TEXT})
    found = anchor_query(query("d2"), Corpus(listing))
    assert found.shared == ("d2",)
    assert len(found.spans) == 1


def test_an_unknown_chunk_and_one_that_says_too_little_are_lost() -> None:
    found = anchor_query(query("gone", "d0"), Corpus(PARAGRAPHS))
    assert found.lost == ("gone", "d0")  # d0 is the heading alone


# --- migrating --------------------------------------------------------------------------------

SENTENCES = cut("The first", "It was", "The second", "Nobody", "The valve", name="s")
WHOLE = cut(name="w")


@pytest.mark.parametrize(
    ("chunks", "old", "new", "outcome", "after"),
    [
        (["d1"], PARAGRAPHS, PARAGRAPHS, "kept", ("d1",)),
        (["d1"], PARAGRAPHS, cut("The first", "The second", name="e"), "moved", ("e1",)),
        (["d1"], PARAGRAPHS, SENTENCES, "split", ("s1", "s2")),
        (["s1", "s2"], SENTENCES, PARAGRAPHS, "merged", ("d1",)),
        (["d1", "d2"], PARAGRAPHS, WHOLE, "merged", ("w0",)),
    ],
)
def test_regions_find_their_successors(
    chunks: list[str], old: Listing, new: Listing, outcome: str, after: tuple[str, ...]
) -> None:
    found = migrate_query(query(*chunks), Corpus(old), Corpus(new))
    assert (found.outcome, found.after, found.lost) == (outcome, after, ())


def test_a_chunk_that_the_old_config_does_not_have_is_lost() -> None:
    found = migrate_query(query("d1", "gone"), Corpus(PARAGRAPHS), Corpus(SENTENCES))
    assert found.outcome == "lost"
    assert found.lost == (("gone", "is no chunk of the old config"),)


def test_spans_go_before_regions() -> None:
    span = Span("d", "built in 2019")
    found = migrate_query(query("d1", spans=(span,)), Corpus(PARAGRAPHS), Corpus(SENTENCES))
    assert (found.outcome, found.after, found.by_span) == ("moved", ("s2",), True)
    lost = Span("d", "built in 1919")
    found = migrate_query(query("d1", spans=(lost,)), Corpus(PARAGRAPHS), Corpus(SENTENCES))
    assert found.outcome == "lost"


def test_listings_without_places_are_matched_by_text() -> None:
    def bare(listing: Listing) -> Listing:
        return Listing(tuple(Passage(p.chunk_id, p.doc_id, p.text) for p in listing.passages))

    found = migrate_query(query("d1"), Corpus(bare(PARAGRAPHS)), Corpus(bare(SENTENCES)))
    assert (found.outcome, found.after) == ("split", ("s1", "s2"))
