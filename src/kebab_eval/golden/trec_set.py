"""TREC topics with qrels as a golden set.

Topics are ``<top>`` elements, of which the number and the title are read, or lines of a query id, a
tab and the text. The qrels are named beside them (``golden.qrels``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import unescape

from kebab_eval.errors import Fault, FormatError, GoldenError
from kebab_eval.formats.files import read_judgments
from kebab_eval.golden.entries import Entry
from kebab_eval.golden.judged import judged_entries
from kebab_eval.yaml_source import read_text

_TOPIC = re.compile(r"<top>(.*?)(?=</top>|<top>|\Z)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number:\s*)?([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic:\s*)?(.*?)\s*(?=</?[a-z]+>|\Z)", re.DOTALL | re.IGNORECASE)
_PROLOGUE = re.compile(
    # Atomic, so that a hostile file is not tried in every way it could be cut.
    r"\s*(?>(?><\?.*?\?>|<!--.*?-->|<(?!top>)[a-z]+>)\s*)*+<top>",
    re.DOTALL | re.IGNORECASE,
)


def looks_like_topics(text: str) -> bool:
    """Say whether a text begins with a topic, be it behind an XML prologue and root element."""
    return _PROLOGUE.match(text) is not None


def read_trec_set(path: Path, qrels: Path | None, faults: list[Fault]) -> list[Entry]:
    """Return the judged topics; what is wrong in either file is added to ``faults``.

    A topic that the qrels do not hold is unjudged, which is not a query that nothing answers: it is
    left out, as trec_eval does it.

    Raises:
        GoldenError: the topics cannot be read at all.
    """
    text = read_text(path, GoldenError, "topics")
    judgments: dict[str, dict[str, float]] = {}
    if qrels is None:
        message = "topics need the qrels that judge them: set golden.qrels to the file"
        faults.append(Fault(str(path), message, "missing-field"))
    else:
        try:
            judgments = read_judgments(qrels)
        except FormatError as wrong:
            faults += [replace(fault, code="unreadable") for fault in wrong.faults]
    texts: dict[str, str] = {}
    places: dict[str, str] = {}
    topics = _elements(text) if looks_like_topics(text) else _lines(text)
    for line, query_id, title in topics:
        place = f"{path}:{line}:1"
        if query_id is None or title is None:
            missing = "number (<num>)" if query_id is None else "title (<title>)"
            message = (
                f"a topic has no {missing}"
                if looks_like_topics(text)
                else ("a line of topics is a query id, a tab and the text")
            )
            faults.append(Fault(place, message, "missing-field"))
        elif query_id in texts:
            first = places[query_id]
            message = f"id {query_id!r} stands twice (first at {first}); ids are unique"
            faults.append(Fault(place, message, "duplicate-id"))
        else:
            texts[query_id], places[query_id] = title, place
    if not texts and not faults:
        message = "golden set is empty; it needs at least one query"
        faults.append(Fault(str(path), message, "empty"))
    judged = {query_id: title for query_id, title in texts.items() if query_id in judgments}
    if texts and not judged and not faults:
        message = f"judges none of the topics of {path}; are these the right qrels?"
        faults.append(Fault(str(qrels), message, "unknown-id"))
    return judged_entries(judged, judgments, str(path), faults, places)


Topic = tuple[int, str | None, str | None]
"""Line, id and text of a topic."""


def _elements(text: str) -> Iterator[Topic]:
    line, seen = 1, 0
    for match in _TOPIC.finditer(text):
        line += text.count("\n", seen, match.start())
        seen = match.start()
        number, title = _NUMBER.search(match[1]), _TITLE.search(match[1])
        yield (
            line,
            number and _nfc(unescape(number[1])),
            title and " ".join(_nfc(unescape(title[1])).split()),
        )


def _lines(text: str) -> Iterator[Topic]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            query_id, tab, query = line.partition("\t")
            if tab and query_id.strip():
                yield number, _nfc(query_id.strip()), _nfc(query.strip())
            else:
                yield number, None, None


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
