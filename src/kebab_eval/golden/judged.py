"""Entries from what TREC and BEIR have: a text for each query, and grades of documents."""

from __future__ import annotations

from collections.abc import Mapping

from kebab_eval.errors import Fault
from kebab_eval.golden.entries import Entry
from kebab_eval.records import GoldenQuery, Judgments


def judged_entries(
    texts: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, float]],
    source: str,
    faults: list[Fault],
    places: Mapping[str, str] | None = None,
) -> list[Entry]:
    """Return an entry for each query text, with its grades.

    Args:
        texts: query id -> text, in file order.
        qrels: query id -> document id -> grade; negative grades are kept.
        source: the place of a query that ``places`` does not hold.
    """
    entries = []
    for query_id, text in texts.items():
        place = (places or {}).get(query_id, source)
        if not text.strip():
            faults.append(Fault(place, f"query {query_id!r} has no text", "missing-field"))
            continue
        grades = {item: float(grade) for item, grade in qrels.get(query_id, {}).items()}
        query = GoldenQuery(query_id, text, Judgments(doc=grades), place=place)
        entries.append(Entry(query, {("doc", item): place for item in grades}))
    return entries
