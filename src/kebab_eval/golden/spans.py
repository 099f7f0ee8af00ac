"""Where a span stands in a document, whatever became of its layout.

Quote and document are folded alike before they are compared: NFC, white space to one space,
Markdown marks and invisible characters left out. Each folded character knows which characters of
the original it came from, so that a place found in the folded text is an exact place in the
document.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property

from kebab_eval.records import Span

Place = tuple[int, int]
"""Characters [start, end) of a document's text."""

# Emphasis, code, headings, quotes, list bullets, escapes, brackets of links, setext underlines.
_MARKS = r"*_~`#>\-+\\\[\]="
# What is there and not seen: soft hyphens, joiners, marks of direction and order (category Cf).
_UNSEEN = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f"
)
_LEFT_OUT = re.compile(f"[{_MARKS}{_UNSEEN}]")
# The cells of a table are apart like words. White space is what str.isspace says, like re's \\s.
_PARTS = re.compile(rf"(?P<words>[^\s|{_MARKS}{_UNSEEN}]+)|(?P<blank>[\s|]+)|[{_MARKS}{_UNSEEN}]+")
# `1.` and `1)` are one mark of a list; a number that ends a sentence loses its dot alike.
_NUMBER_MARK = re.compile(r"(?:(?<=\d)|\A)[.)](?=\s|\Z)")
_NUMBERED = re.compile(r"^[ \t>]*(\d{1,9}[.)])[ \t]", re.MULTILINE)
_LONE_RETURN = re.compile(r"\r(?!\n)")
_WORD = re.compile(r"\w+")


class Folded:
    """A text as it is compared, with the way back to the original.

    Args:
        original: the text as it stands.
        numbers: whether the numbers of ordered lists count as text. A quote from a numbered list is
            looked for with them first; without them it matches the same list with other marks.
    """

    def __init__(self, original: str, *, numbers: bool = True) -> None:
        self.original = original
        self.text, self._starts, self._ends = _fold(original, numbers)

    def origin(self, start: int, end: int) -> Place:
        """Return the characters of the original that folded [start, end) came from.

        A character that NFC composed of several is all of them.
        """
        if start >= end:
            return (0, 0)
        return self._starts[start], self._ends[end - 1]

    def folded(self, start: int, end: int) -> Place:
        """Return the folded characters that came from [start, end) of the original."""
        from bisect import bisect_left

        return bisect_left(self._starts, start), bisect_left(self._starts, end)

    def places(self, quote: Folded) -> list[Place]:
        """Return each folded place of a folded quote, in order; none overlaps another."""
        return list(_occurrences(self.text, quote.text))


class Document:
    """A document in both foldings, made when they are first needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def folded(self) -> Folded:
        return Folded(self.text)

    @cached_property
    def unnumbered(self) -> Folded:
        return Folded(self.text, numbers=False)

    @cached_property
    def sections(self) -> list[tuple[str, int, int]]:
        """(heading text, start, end) of each section, its heading and lower sections included."""
        return _sections(self.text)


def locate(span: Span, document: Document) -> list[Place]:
    """Return each place that a span means, as characters of the document's text, in order.

    A quote without ``occurrence``, ``before``, ``after`` or offsets means every place it stands at.
    Empty where it stands nowhere.
    """
    if span.section:
        wanted = slug(span.section)
        return [(s, e) for title, s, e in document.sections if slug(title) == wanted]
    if not span.quote:
        start, end = span.start or 0, span.end or 0
        return [(start, end)] if end <= len(document.text) else []
    for numbers in (True, False):
        folded = document.folded if numbers else document.unnumbered
        found = _quoted(span, folded, numbers=numbers)
        if found:
            break
    places = [folded.origin(*place) for place in found]
    if span.start is not None and len(places) > 1:
        wanted_start = span.start
        return [min(places, key=lambda place: (abs(place[0] - wanted_start), place))]
    return places


def _quoted(span: Span, folded: Folded, *, numbers: bool) -> list[Place]:
    quote = Folded(span.quote, numbers=numbers).text
    before = Folded(span.before, numbers=numbers).text
    # Folded behind the quote: what a dot is depends on what stands before it.
    after = Folded(span.quote + span.after, numbers=numbers).text[len(quote) :].lstrip(" ")
    places = list(_occurrences(folded.text, quote))
    if before or after:
        places = [place for place in places if _stands_between(folded.text, place, before, after)]
    if span.occurrence is None:
        return places
    return places[span.occurrence - 1 : span.occurrence]


def _stands_between(text: str, place: Place, before: str, after: str) -> bool:
    start, end = place
    left = text[max(0, start - len(before) - 1) : start].rstrip(" ")
    right = text[end : end + len(after) + 1].lstrip(" ")
    return left.endswith(before) and right.startswith(after)


def share(anchor: str, chunk: str) -> float:
    """Return the share of a folded anchor that a folded chunk holds, in characters but blanks.

    1 where it is contained; else the longest end of the chunk that begins the anchor, or the
    longest beginning of it that ends the anchor, or the whole chunk where it stands in the anchor.
    """
    whole = solid(anchor)
    if not whole or not chunk:
        return 0.0
    if anchor in chunk:
        return 1.0
    if chunk in anchor:
        return solid(chunk) / whole
    best = max(_joint(chunk, anchor), _joint(anchor, chunk), key=solid)
    return solid(best) / whole


def solid(text: str) -> int:
    """Return how many characters are no blanks."""
    return len(text) - text.count(" ")


def _joint(left: str, right: str) -> str:
    """Return the longest text that ends ``left`` and begins ``right``."""
    reach = min(len(left), len(right))
    tail, fail = left[len(left) - reach :], [0] * reach
    head = right[:reach]
    for place in range(1, reach):  # how far a beginning of `head` ends here (Knuth, Morris, Pratt)
        known = fail[place - 1]
        while known and head[place] != head[known]:
            known = fail[known - 1]
        fail[place] = known + (head[place] == head[known])
    matched = 0
    for character in tail:
        while matched and (matched == reach or character != head[matched]):
            matched = fail[matched - 1]
        matched += character == head[matched]
    return head[:matched]


def slug(heading: str) -> str:
    """Return a heading in the form that references name it by: words in lower case, ``-`` between.

    Of ``#section`` references and headings alike, so that either spelling meets the other.
    """
    folded = unicodedata.normalize("NFKC", heading).lower()
    return "-".join(_WORD.findall(unicodedata.normalize("NFC", folded.replace("_", " "))))


def _occurrences(text: str, wanted: str) -> Iterator[Place]:
    if not wanted:
        return
    start = text.find(wanted)
    while start >= 0:
        yield start, start + len(wanted)
        start = text.find(wanted, start + len(wanted))


def _fold(original: str, numbers: bool) -> tuple[str, list[int], list[int]]:
    if not numbers:
        original = _NUMBERED.sub(_without_number, original)
    original = _NUMBER_MARK.sub("*", original)  # a mark that is left out, in its place
    if not unicodedata.is_normalized("NFC", original):
        return _fold_clusters(original)
    kept: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    blank: Place | None = None
    for part in _PARTS.finditer(original):
        if part.lastgroup == "blank":
            blank = blank or part.span()
        elif part.lastgroup == "words":
            start, end = part.span()
            if blank is not None and kept:
                kept.append(" ")
                starts.append(blank[0])
                ends.append(blank[1])
            blank = None
            kept.append(part[0])
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
    return "".join(kept), starts, ends


def _without_number(match: re.Match[str]) -> str:
    start, end = (place - match.start() for place in match.span(1))
    return match[0][:start] + " " * (end - start) + match[0][end:]


def _fold_clusters(original: str) -> tuple[str, list[int], list[int]]:
    """Do the same where characters of the original have to be composed first."""
    kept: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    blank: Place | None = None
    for cluster, start, end in _clusters(original):
        if cluster.isspace() or cluster == "|":
            blank = blank or (start, end)
        elif not _LEFT_OUT.fullmatch(cluster):
            if blank is not None and kept:
                kept.append(" ")
                starts.append(blank[0])
                ends.append(blank[1])
            blank = None
            kept.append(cluster)
            starts.extend([start] * len(cluster))
            ends.extend([end] * len(cluster))
    return "".join(kept), starts, ends


def _clusters(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each character in NFC, with the characters of the original that compose it."""
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and _joins(text[start:end], text[end]):
            end += 1
        yield unicodedata.normalize("NFC", text[start:end]), start, end
        start = end


def _joins(cluster: str, character: str) -> bool:
    """Say whether a character composes with, or is reordered among, those before it."""
    if character < "\u0300":
        return False
    if unicodedata.combining(character):
        return True
    # Hangul: a vowel joins its consonant, a final consonant the syllable of both.
    alone = unicodedata.normalize("NFC", cluster) + unicodedata.normalize("NFC", character)
    return unicodedata.normalize("NFC", cluster + character) != alone


def _sections(text: str) -> list[tuple[str, int, int]]:
    from kebab_eval.formats.markdown import parse_markdown  # needed for spans of sections alone

    lines = _LONE_RETURN.sub("\n", text)  # a line break too, and of the same length
    found: list[tuple[str, int, int]] = []
    ends = dict.fromkeys(range(1, 7), len(text))  # where a section of each level would end
    for block in reversed(parse_markdown(lines).blocks):
        if block.kind == "heading":
            found.append((block.heading, block.start, ends[block.level]))
            ends.update(dict.fromkeys(range(block.level, 7), block.start))
    return found[::-1]
