"""Writing BEIR folders and TREC topics with qrels: texts of queries, and judged documents."""

from __future__ import annotations

import json
import re
from xml.sax.saxutils import escape

from kebab_eval.errors import Fault, GoldenError
from kebab_eval.golden.losses import Losses
from kebab_eval.golden.yaml_text import number
from kebab_eval.records import GoldenQuery, GoldenSet

TOPICS, QRELS = "topics.trec", "qrels.txt"
_BLANK = re.compile(r"[\s\x00-\x1f\x7f\ufeff]")
_BEIR_BLANK = re.compile(r"[\t\n\r]|^\s|\s$|^\ufeff")


def write_beir(golden: GoldenSet, losses: Losses) -> dict[str, str]:
    """Return ``queries.jsonl`` and ``qrels/test.tsv`` of the judged queries.

    Raises:
        GoldenError: with every id that its columns cannot hold.
    """
    queries = _judged(golden, losses)
    _check_ids(queries, _BEIR_BLANK, "beir's columns", "tabs, line ends or outer blanks")
    texts = [
        json.dumps({"_id": query.query_id, "text": query.query}, ensure_ascii=False)
        for query in queries
    ]
    rows = [f"{query}\t{item}\t{grade}" for query, item, grade in _grades(golden, queries, losses)]
    return {
        "queries.jsonl": "".join(f"{line}\n" for line in texts),
        "qrels/test.tsv": "".join(f"{row}\n" for row in ["query-id\tcorpus-id\tscore", *rows]),
    }


def write_trec(golden: GoldenSet, losses: Losses) -> dict[str, str]:
    """Return the topics and the qrels of the judged queries.

    Raises:
        GoldenError: with every id that holds white space.
    """
    queries = _judged(golden, losses)
    _check_ids(queries, _BLANK, "trec's columns", "white space")
    titles = {query.query_id: " ".join(_BLANK.sub(" ", query.query).split()) for query in queries}
    empty = [query for query in queries if not titles[query.query_id]]
    if empty:
        message = "the query has no characters that a topic can hold"
        raise GoldenError(Fault(query.place, message, "query") for query in empty)
    folded = sum(titles[query.query_id] != query.query for query in queries)
    losses.change("white space", folded, "queries", "the title of a topic is one line")
    topics = [_topic(query.query_id, titles[query.query_id]) for query in queries]
    rows = [f"{query} 0 {item} {grade}" for query, item, grade in _grades(golden, queries, losses)]
    return {TOPICS: "\n".join(topics), QRELS: "".join(f"{row}\n" for row in rows)}


def _topic(query_id: str, title: str) -> str:
    # A reader takes these words off once, as the old topics have them.
    number_word = "Number: " + escape(query_id)
    title = f"Topic: {title}" if title.startswith("Topic:") else title
    return f"<top>\n<num> {number_word}\n<title> {escape(title)}\n</top>\n"


def _judged(golden: GoldenSet, losses: Losses) -> list[GoldenQuery]:
    """Return the queries with a judged document; no other can stand in qrels."""
    judged = [query for query in golden.queries if query.judgments.doc]
    without = len(golden.queries) - len(judged)
    if not judged:
        message = f"no query has a judged document, and {losses.target} holds no others"
        raise GoldenError(Fault(golden.path, message, "empty"))
    losses.drop("", without, "queries", "without judged documents they are not asked")
    if golden.min_relevance != 1 and not golden.linear_gain:
        why = f"set golden.min_relevance: {number(golden.min_relevance)} when you use it"
        losses.change("min_relevance", len(judged), "queries", why)
    if golden.version != "1":
        losses.drop("version", 1, "sets", f"it is {golden.version!r}; set golden.version")
    return judged


def _grades(
    golden: GoldenSet, queries: list[GoldenQuery], losses: Losses
) -> list[tuple[str, str, int]]:
    """Return (query id, document id, whole grade); fractional gains become relevant or not."""
    rows = []
    changed = 0
    whole = not golden.linear_gain
    for query in queries:
        for item, grade in query.judgments.doc.items():
            kept = int(grade) if whole else int(grade >= golden.min_relevance)
            changed += kept != grade
            rows.append((query.query_id, item, kept))
    why = f"{losses.target} has whole grades: 1 is relevant, 0 is not"
    losses.change("gain", changed, "judgments", why)
    return rows


def _check_ids(
    queries: list[GoldenQuery], blank: re.Pattern[str], where: str, without: str
) -> None:
    faults = []
    seen: set[str] = set()
    for query in queries:
        for what, text in [
            ("query", query.query_id),
            *(("document", i) for i in query.judgments.doc),
        ]:
            if blank.search(text) and text not in seen:
                seen.add(text)
                message = f"{what} id {text!r} cannot stand in {where}, which take no {without}"
                faults.append(Fault(query.place, message, "id"))
    if faults:
        raise GoldenError(faults)
