"""What changed between two states of a golden set: queries, judgments, and everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kebab_eval.records import LEVELS, GoldenQuery, GoldenSet, Span

DIFF_SCHEMA = "kebab_eval.golden_diff.v1"
# Fields that are compared as they are; judgments and spans are compared item by item.
_FIELDS = (
    "query",
    "language",
    "category",
    "difficulty",
    "group",
    "ocr_derived",
    "failure_expected",
    "must_contain",
    "forbidden",
)


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One thing that a query says otherwise; None where a side does not say it.

    ``what`` is a field, ``chunk <id>`` or ``doc <id>`` (grades), ``span <what it says>``, or
    ``tag <name>``.
    """

    what: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class QueryChange:
    """A query that both sets have and that means something else now."""

    query_id: str
    query: str
    changes: tuple[FieldChange, ...]

    @property
    def judged_otherwise(self) -> bool:
        words = ("chunk ", "doc ", "span ")
        return any(change.what.startswith(words) for change in self.changes)


@dataclass(frozen=True, slots=True)
class SetDiff:
    """Two golden sets: what only one has, and what changed; each in the order of its set."""

    old: GoldenSet
    new: GoldenSet
    added: tuple[GoldenQuery, ...]
    removed: tuple[GoldenQuery, ...]
    changed: tuple[QueryChange, ...]

    @property
    def same_meaning(self) -> bool:
        return not (self.added or self.removed or self.changed)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": DIFF_SCHEMA,
            "old": _about(self.old),
            "new": _about(self.new),
            "same_meaning": self.same_meaning,
            "added": [{"query_id": q.query_id, "query": q.query} for q in self.added],
            "removed": [{"query_id": q.query_id, "query": q.query} for q in self.removed],
            "changed": [
                {
                    "query_id": change.query_id,
                    "query": change.query,
                    "changes": [
                        {"what": one.what, "before": one.before, "after": one.after}
                        for one in change.changes
                    ],
                }
                for change in self.changed
            ],
        }


def diff_sets(old: GoldenSet, new: GoldenSet) -> SetDiff:
    """Compare two golden sets by query id. Layout, comments, notes and order mean nothing."""
    before = {query.query_id: query for query in old.queries}
    after = {query.query_id: query for query in new.queries}
    changed = []
    for query_id, query in after.items():
        if query_id in before:
            changes = tuple(_changes(before[query_id], query))
            if changes:
                changed.append(QueryChange(query_id, query.query, changes))
    return SetDiff(
        old,
        new,
        added=tuple(query for query in new.queries if query.query_id not in before),
        removed=tuple(query for query in old.queries if query.query_id not in after),
        changed=tuple(changed),
    )


def _changes(old: GoldenQuery, new: GoldenQuery) -> Iterator[FieldChange]:
    for name in _FIELDS:
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(before, tuple):
            before, after = sorted(before), sorted(after)
        if before != after:
            yield FieldChange(name, before, after)
    for level in LEVELS:
        # Where spans say which chunks are meant, the ids mean nothing of their own.
        if level == "chunk" and old.spans and new.spans:
            continue
        yield from _items(level, old.judgments.at(level), new.judgments.at(level))
    yield from _items("span", _spans(old.spans), _spans(new.spans))
    yield from _items("tag", old.tags, new.tags)
    if old.v01 != new.v01:
        for name in ("relevant", "top3"):
            sides = [sorted(getattr(v01, name)) if v01 else None for v01 in (old.v01, new.v01)]
            if sides[0] != sides[1]:
                yield FieldChange(f"v0.1 {name}", *sides)


def _items(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldChange]:
    for item in [*old, *(item for item in new if item not in old)]:
        before, after = old.get(item), new.get(item)
        if before != after:
            yield FieldChange(f"{what} {item}", before, after)


def _spans(spans: tuple[Span, ...]) -> dict[str, float]:
    """Return what tells a span from others -> its grade."""
    named = {}
    for span in spans:
        meaning = span.meaning()
        meaning.pop("grade", None)
        doc = meaning.pop("doc")
        if list(meaning) == ["quote"]:
            told = f"{span.quote!r}"
        else:
            told = " ".join(f"{key}={value!r}" for key, value in meaning.items())
        named[f"{doc} {told}"] = span.grade
    return named


def _about(golden: GoldenSet) -> dict[str, Any]:
    return {
        "name": golden.name,
        "version": golden.version,
        "digest": golden.digest,
        "path": golden.path,
        "queries": len(golden.queries),
    }
