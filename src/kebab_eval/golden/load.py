"""From a golden file to a checked :class:`GoldenSet`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kebab_eval.errors import Fault, GoldenError, UsageError, nearest
from kebab_eval.golden.entries import Entry
from kebab_eval.golden.registry import Parsed, ReadOptions, parse_golden, without_collector
from kebab_eval.records import LEVELS, GoldenQuery, GoldenSet, Judgments, Level
from kebab_eval.redaction import redact

_MANY = 5  # missing chunk ids, from which on a common cause is looked for
_HINTS_AT_MOST = 30
_COMPARISONS_AT_MOST = 300_000  # about two seconds of looking for the nearest ids


@dataclass(frozen=True, slots=True)
class LoadedGolden:
    """A golden set, and where each id that it names stands."""

    golden: GoldenSet
    entries: tuple[Entry, ...]


def load_golden(
    path: Path,
    min_relevance: float | None = None,
    levels: Collection[Level] = LEVELS,
    options: ReadOptions | None = None,
) -> LoadedGolden:
    """Read and check a golden file.

    Args:
        min_relevance: the grade from which an item is relevant; None takes the format's own.
        levels: the levels whose judgments count; the others are left out.
        options: its format and what that needs; None finds out.

    Raises:
        GoldenError: with every fault of the file, each at its ``file:line:column``.
    """
    with without_collector():
        parsed, faults = parse_golden(path, options)
        faults += structure_faults(parsed)
        entries = parsed.entries
        if not set(levels) >= set(LEVELS):
            entries = [at_levels(entry, levels, faults) for entry in entries]
        if faults:
            raise GoldenError(in_file_order(faults))
        return as_loaded(path, parsed, entries, min_relevance)


def as_loaded(
    path: Path, parsed: Parsed, entries: Sequence[Entry], min_relevance: float | None = None
) -> LoadedGolden:
    """Return the golden set of entries that are known to be sound."""
    queries = tuple(entry.query for entry in entries)
    golden = GoldenSet(
        name=redact(path.stem),
        version=parsed.version,
        digest=digest(queries),
        queries=queries,
        min_relevance=parsed.min_relevance if min_relevance is None else min_relevance,
        path=str(path),
        format=parsed.format,
    )
    return LoadedGolden(golden, tuple(entries))


def structure_faults(parsed: Parsed) -> list[Fault]:
    """Return what is wrong between the entries: ids that stand twice, groups that disagree."""
    return [*_duplicate_ids(parsed.entries), *_disagreeing_groups(parsed.entries)]


def check_ids(loaded: LoadedGolden, chunks: Collection[str] | None, docs: Collection[str]) -> None:
    """Hold every expected id against what the system has.

    The chunk ids of a query with spans are left alone: its spans say which chunks are meant.

    Args:
        chunks: the chunk ids of the system, NFC; None where it cannot list them.
        docs: its document ids, NFC.

    Raises:
        GoldenError: one fault for each id that the system does not hold, in file order.
    """
    known: dict[Level, Collection[str] | None] = {"chunk": chunks, "doc": docs}
    missing = [
        (place, level, item)
        for entry in loaded.entries
        for (level, item), place in entry.id_places.items()
        if (ids := known[level]) is not None and item not in ids
        if not (level == "chunk" and entry.query.spans)
    ]
    if not missing:
        return
    faults = []
    comparisons = 0
    for number, (place, level, item) in enumerate(missing):
        hint = ""
        ids = known[level] or ()
        if number < _HINTS_AT_MOST and comparisons < _COMPARISONS_AT_MOST:
            hint = _nearest_id(item, ids, level)
            comparisons += len(ids)
        kind = "chunk" if level == "chunk" else "document"
        faults.append(Fault(place, f"{kind} {item!r} is not in the corpus{hint}", "unknown-id"))
    raise GoldenError([*in_file_order(faults), *_other_chunks(loaded, missing)])


def _other_chunks(
    loaded: LoadedGolden, missing: Sequence[tuple[str, Level, str]]
) -> Iterator[Fault]:
    """Say what most missing chunk ids have in common: they are another chunker's."""
    named = sum(
        level == "chunk"
        for entry in loaded.entries
        if not entry.query.spans
        for level, _ in entry.id_places
    )
    unknown = sum(level == "chunk" for _, level, _ in missing)
    if unknown >= _MANY and unknown * 2 > named:
        yield Fault(
            loaded.golden.path,
            f"{unknown} of {named} chunk ids belong to other chunk settings than this config's; "
            "spans are true for all of them ('kebab-eval golden anchor' writes them with the old "
            "config); to judge by documents alone, add -S golden.levels=[doc]",
        )


def _nearest_id(item: str, ids: Collection[str], level: Level) -> str:
    if level == "chunk":
        # The hash at the end changes with the text; the same heading in the same document is meant.
        stem = item.rpartition(":")[0]
        same = sorted(other for other in ids if other.rpartition(":")[0] == stem)
        if same:
            return f"; its text or the chunker has changed: now {', '.join(map(repr, same[:3]))}"
        document = item.partition("#")[0]
        ids = [other for other in ids if other.startswith(document + "#")] or ids
    return nearest(item, ids)


def select(golden: GoldenSet, limit: int | None = None, query_ids: Sequence[str] = ()) -> GoldenSet:
    """Return a part of a golden set; its digest is that of the part.

    Raises:
        UsageError: a query id that the set does not hold.
    """
    queries = golden.queries
    if query_ids:
        known = {query.query_id for query in queries}
        unknown = [wanted for wanted in query_ids if wanted not in known]
        if unknown:
            raise UsageError(
                [
                    Fault(
                        "--query-id", f"{wanted!r} is not in {golden.path}{nearest(wanted, known)}"
                    )
                    for wanted in unknown
                ]
            )
        queries = tuple(query for query in queries if query.query_id in set(query_ids))
    if limit is not None:
        queries = queries[:limit]
    if queries == golden.queries:
        return golden
    return replace(golden, queries=queries, digest=digest(queries))


def digest(queries: Iterable[GoldenQuery]) -> str:
    """Return 32 hex digits over what the queries mean: not their order, layout, or comments."""
    meanings = sorted(json.dumps(query.meaning(), ensure_ascii=True) for query in queries)
    return hashlib.sha256("\n".join(meanings).encode()).hexdigest()[:32]


def at_levels(entry: Entry, levels: Collection[Level], faults: list[Fault]) -> Entry:
    """Return an entry with what a config's ``golden.levels`` leave of its judgments.

    Args:
        faults: gets one where nothing is left of an entry that was judged.
    """
    query = entry.query
    judgments = query.judgments
    spans = query.spans if "chunk" in levels else ()
    kept = Judgments(**{level: judgments.at(level) for level in LEVELS if level in levels})
    judged = judgments.chunk or judgments.doc or query.spans
    if judged and not (kept.chunk or kept.doc or spans):
        # Without this it would count as a query that nothing answers.
        message = f"{query.query_id!r} is judged at no level of golden.levels"
        faults.append(Fault(query.place, message, "unjudged"))
    places = {key: place for key, place in entry.id_places.items() if key[0] in levels}
    return replace(entry, query=replace(query, judgments=kept, spans=spans), id_places=places)


def _duplicate_ids(entries: Sequence[Entry]) -> list[Fault]:
    counts = Counter(entry.query.query_id for entry in entries)
    first: dict[str, str] = {}
    faults = []
    for entry in entries:
        query_id = entry.query.query_id
        if counts[query_id] > 1:
            if query_id in first:
                message = (
                    f"id {query_id!r} stands twice (first at {first[query_id]}); ids are unique"
                )
                faults.append(Fault(entry.query.place, message, "duplicate-id"))
            first.setdefault(query_id, entry.query.place)
    return faults


def _disagreeing_groups(entries: Sequence[Entry]) -> list[Fault]:
    """Paraphrases of one intent must expect the same set of documents."""
    first: dict[str, GoldenQuery] = {}
    faults = []
    for entry in entries:
        query = entry.query
        if query.group is None or not entry.sound:
            continue
        head = first.setdefault(query.group, query)
        if set(query.judgments.doc) != set(head.judgments.doc):
            message = (
                f"group {query.group!r}: {query.query_id!r} expects {_listed(query)}, but "
                f"{head.query_id!r} ({head.place}) expects {_listed(head)}; "
                "the members of a group expect the same documents"
            )
            faults.append(Fault(query.place, message, "group"))
    return faults


def _listed(query: GoldenQuery) -> str:
    return ", ".join(sorted(query.judgments.doc)) or "no document"


def in_file_order(faults: Iterable[Fault]) -> list[Fault]:
    def order(fault: Fault) -> tuple[int, ...]:
        # A format of several files has places in each; without a line it is about the whole.
        return tuple(int(part) for part in fault.place.split(":")[-2:] if part.isdecimal())

    return sorted(faults, key=order)
