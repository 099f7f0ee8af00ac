"""Where a span stands: folding, the way back, and telling places apart."""

from __future__ import annotations

import time
import unicodedata

import pytest

from kebab_eval.golden.spans import Document, Folded, locate, share
from kebab_eval.records import Span

NOTE = """\
# RRF 노트

**곧 상수가** 작을수록 한쪽 목록의
꼭대기가 힘을 얻고, `rrf_k`는 60이다.

- first point, with a [link](x.md)
- second point

1. open the valve
2. close it again

| tool | k |
|------|---|
| ours | 60 |

## 작은 k

The answer is 60. Elsewhere the answer is 60 too.

### Deeper

Text.

## Next
"""


def found(text: str, **span: object) -> list[str]:
    return [text[a:b] for a, b in locate(Span("d", **span), Document(text))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("quote", "stands_as"),
    [
        ("상수가 작을수록 한쪽 목록의 꼭대기가", "상수가** 작을수록 한쪽 목록의\n꼭대기가"),
        ("rrf_k는 60이다", "rrf_k`는 60이다"),
        ("**상수가 작을수록**", "상수가** 작을수록"),
        ("first point, with a link", "first point, with a [link"),
        ("first point, with a [link](x.md) second", "first point, with a [link](x.md)\n- second"),
        ("* second point", "second point"),
        ("ours|60", "ours | 60"),
        ("open the valve\n2. close it", "open the valve\n2. close it"),
        ("- open the valve\n- close it", "open the valve\n2. close it"),
        ("RRF 노트", "RRF 노트"),
    ],
)
def test_a_quote_is_found_whatever_the_layout(quote: str, stands_as: str) -> None:
    assert found(NOTE, quote=quote) == [stands_as]


@pytest.mark.parametrize(
    "changed",
    [
        unicodedata.normalize("NFD", NOTE),
        NOTE.replace("\n", "\r\n"),
        NOTE.replace("- first", "* first").replace("- second", "+ second"),
        NOTE.replace("1. ", "1) ").replace("2. ", "2) "),
        NOTE.replace("1. ", "- ").replace("2. ", "- "),
        NOTE.replace("\n꼭대기가", " 꼭대기가").replace("힘을 얻고, ", "힘을\n얻고, "),
        NOTE.replace("작을수록", "작을\u200b수록"),
        " ".join(NOTE.split()),
    ],
    ids=[
        "nfd",
        "crlf",
        "bullets",
        "numbers",
        "numbers-to-bullets",
        "wrapped",
        "unseen",
        "one-line",
    ],
)
def test_a_change_of_layout_loses_nothing(changed: str) -> None:
    for quote in (
        "상수가 작을수록 한쪽 목록의 꼭대기가 힘을 얻고",
        "first point, with a [link](x.md)\n- second point",
        "open the valve",
        "| ours | 60 |",
    ):
        (place,) = locate(Span("d", quote), Document(changed))
        # The way back is exact: what stands there folds to the quote.
        assert Folded(changed[slice(*place)], numbers=False).text == Folded(quote).text


def test_case_counts_and_other_words_are_not_found() -> None:
    assert found(NOTE, quote="the Answer") == []
    assert found(NOTE, quote="상수가 클수록") == []
    assert found(NOTE, quote="***") == []  # marks alone say nothing


def test_a_line_that_begins_with_a_year_is_no_list() -> None:
    wrapped = "It was measured in\n2024. The result stands."
    assert found(wrapped, quote="measured in 2024. The result") == ["measured in\n2024. The result"]


def test_every_place_counts_unless_one_is_meant() -> None:
    first, second = NOTE.index("answer is 60"), NOTE.rindex("answer is 60")
    document = Document(NOTE)

    def starts(**span: object) -> list[int]:
        spans = Span("d", "answer is 60", **span)  # type: ignore[arg-type]
        return [start for start, _ in locate(spans, document)]

    assert starts() == [first, second]
    assert starts(occurrence=2) == [second]
    assert starts(occurrence=3) == []
    assert starts(before="Elsewhere the") == [second]
    assert starts(after=". Elsewhere") == [first]
    assert starts(after="too") == [second]
    assert starts(before="nowhere") == []
    assert starts(start=second + 3, end=second + 5) == [second]


def test_offsets_alone() -> None:
    assert found("abc def", start=4, end=7) == ["def"]
    assert found("abc def", start=4, end=8) == []


def test_a_section_ends_where_the_next_of_its_level_begins() -> None:
    for name in ("작은 k", "작은-k", "작은 K"):
        (text,) = found(NOTE, section=name)
        assert text.startswith("## 작은 k")
        assert text.endswith("### Deeper\n\nText.\n\n")
    assert found(NOTE, section="Deeper") == ["### Deeper\n\nText.\n\n"]
    assert found(NOTE, section="none") == []
    assert found("```\n# code\n```\n# real\n", section="code") == []
    assert found("Title\n=====\ntext\n\nSub\n---\nmore\n", section="sub") == ["Sub\n---\nmore\n"]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_front_matter_lists_and_quotes_hold_no_headings(ends: str) -> None:
    note = "---\ntitle: Fusion\n---\n\n- # Item\n\n> # Quoted\n\n# The `rrf_k` *lever*\n\n60.\n"
    note = note.replace("\n", ends)
    for name in ("title: Fusion", "Item", "Quoted"):
        assert found(note, section=name) == []
    whole = "# The `rrf_k` *lever*\n\n60.\n".replace("\n", ends)
    assert found(note, section="the-rrf-k-lever") == [whole]
    assert found(note, section="The rrf_k lever") == [whole]


@pytest.mark.parametrize(
    ("chunk", "held"),
    [
        ("x a b c d y", 1.0),
        ("x a b", 2 / 4),  # its end begins the span: a b of a b c d
        ("c d y", 2 / 4),
        ("d y", 1 / 4),
        ("b c", 2 / 4),  # the whole chunk stands in the span
        ("x y", 0.0),
        ("", 0.0),
    ],
)
def test_the_share_of_a_span_that_a_chunk_holds(chunk: str, held: float) -> None:
    assert share("a b c d", chunk) == held


def test_a_hostile_text_takes_no_longer_than_it_is_long() -> None:
    anchor, chunk = "a" * 200_000 + "b", "c" + "a" * 200_000
    started = time.perf_counter()
    assert share(anchor, chunk) == pytest.approx(200_000 / 200_001)
    Folded("e\u0301" * 100_000)
    Document("# h\n" * 50_000).sections  # noqa: B018  # made when it is asked for
    # Quadratic would be minutes; a slow machine is given a wide margin.
    assert time.perf_counter() - started < 20
