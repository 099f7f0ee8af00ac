"""Documents named the way people name them: by the end of a path, or by a pattern."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from kebab_eval.errors import Fault, nearest
from kebab_eval.golden.entries import Entry
from kebab_eval.golden.load import LoadedGolden, digest
from kebab_eval.records import GoldenQuery, Level

_SHOWN = 3


def resolve_documents(
    loaded: LoadedGolden, docs: Collection[str]
) -> tuple[LoadedGolden, list[Fault]]:
    """Return a mapped set with each document reference as the id that it means.

    An id that the system holds is itself. ``rrf-notes.md`` is the one id that ends in
    ``/rrf-notes.md``; ``search/*.md`` are all that match, each with the gain of the reference. The
    digest is then that of the ids. Other formats name ids, and stay as they are.

    Returns:
        The set, and a fault for each reference that means nothing, or more than one document.
    """
    if loaded.golden.format != "mapped":
        return loaded, []
    finder = _Finder(docs)
    faults: list[Fault] = []
    entries = tuple(_resolved(entry, finder, faults) for entry in loaded.entries)
    queries = tuple(entry.query for entry in entries)
    golden = replace(loaded.golden, queries=queries, digest=digest(queries))
    return LoadedGolden(golden, entries), faults


class _Finder:
    def __init__(self, docs: Collection[str]) -> None:
        self.docs = {_nfc(doc): doc for doc in sorted(docs)}
        self.by_name: dict[str, list[str]] = {}
        for key in self.docs:
            self.by_name.setdefault(key.rpartition("/")[2], []).append(key)

    def find(self, reference: str) -> tuple[list[str], str]:
        """Return the ids that a reference means, and what is wrong with it."""
        wanted = _nfc(reference).replace("\\", "/").removeprefix("./")
        if _nfc(reference) in self.docs or wanted in self.docs:
            return [self.docs.get(_nfc(reference)) or self.docs[wanted]], ""
        if any(mark in wanted for mark in "*?["):
            matching = [doc for key, doc in self.docs.items() if fnmatchcase(key, wanted)]
            return matching, "" if matching else f"no document matches {reference!r}"
        same_name = self.by_name.get(wanted.rpartition("/")[2], [])
        ending = [self.docs[key] for key in same_name if f"/{key}".endswith(f"/{wanted}")]
        # A path from another root: the end that it shares with a document's path.
        ending = ending or [self.docs[key] for key in same_name if wanted.endswith(f"/{key}")]
        if len(ending) == 1:
            return ending, ""
        if ending:
            shown = ", ".join(map(repr, ending[:_SHOWN])) + (" …" if len(ending) > _SHOWN else "")
            return [], f"{reference!r} may be {shown}; write more of the path"
        return [], f"document {reference!r} is not in the corpus{nearest(reference, self.docs)}"


def _resolved(entry: Entry, finder: _Finder, faults: list[Fault]) -> Entry:
    meant: dict[str, list[str]] = {}
    query = entry.query
    for reference in dict.fromkeys([*query.judgments.doc, *(span.doc for span in query.spans)]):
        meant[reference], wrong = finder.find(reference)
        if wrong:
            faults.append(Fault(query.place, wrong, "unknown-id"))
    places: dict[tuple[Level, str], str] = {}
    for (level, item), place in entry.id_places.items():
        for name in meant.get(item, []) if level == "doc" else [item]:
            places[level, name] = place
    return replace(entry, query=_with_documents(query, meant), id_places=places)


def _with_documents(query: GoldenQuery, meant: Mapping[str, list[str]]) -> GoldenQuery:
    grades: dict[str, float] = {}
    for reference, grade in query.judgments.doc.items():
        for doc in meant[reference]:
            grades[doc] = max(grade, grades.get(doc, grade))
    spans = tuple(
        replace(span, doc=doc) for span in query.spans for doc in meant[span.doc] or [span.doc]
    )
    return replace(query, judgments=replace(query.judgments, doc=grades), spans=spans)


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
