"""What is in a golden set: counts by field, judgments, and how much of a corpus it reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from kebab_eval.records import LEVELS, GoldenQuery, GoldenSet, Level

STATS_SCHEMA = "kebab_eval.golden_stats.v1"
_FIELDS = ("language", "category", "difficulty", "ocr_derived")


@dataclass(frozen=True, slots=True)
class LevelStats:
    """The judgments of one level: how many queries have any, of how many items, of what grades."""

    queries: int
    items: tuple[int, float, int]
    """Least, median and most judged items of those queries; zeros where there are none."""
    grades: dict[float, int]


@dataclass(frozen=True, slots=True)
class GoldenStats:
    """What is in a set.

    Attributes:
        fields: field -> value -> queries; a query without the field is in none.
        groups: size of a group -> how many groups have it.
        no_answer: queries that nothing answers.
        never_expected: documents of the corpus that no query expects; None without a corpus.
    """

    golden: GoldenSet
    fields: dict[str, dict[str, int]]
    groups: dict[int, int]
    no_answer: int
    levels: dict[Level, LevelStats]
    with_spans: int
    with_must_contain: int
    with_notes: int
    never_expected: int | None
    documents: int | None

    def to_json(self) -> dict[str, Any]:
        golden = self.golden
        return {
            "schema_version": STATS_SCHEMA,
            "name": golden.name,
            "version": golden.version,
            "format": golden.format,
            "digest": golden.digest,
            "path": golden.path,
            "queries": len(golden.queries),
            "min_relevance": golden.min_relevance,
            "fields": self.fields,
            "groups": {str(size): count for size, count in self.groups.items()},
            "no_answer": self.no_answer,
            "levels": {
                level: {
                    "queries": stats.queries,
                    "items": dict(zip(("min", "median", "max"), stats.items, strict=True)),
                    "grades": {f"{grade:g}": n for grade, n in stats.grades.items()},
                }
                for level, stats in self.levels.items()
            },
            "with_spans": self.with_spans,
            "with_must_contain": self.with_must_contain,
            "with_notes": self.with_notes,
            "documents": self.documents,
            "never_expected": self.never_expected,
        }


def describe_set(
    golden: GoldenSet,
    docs: Collection[str] | None = None,
    owners: Mapping[str, str] | None = None,
) -> GoldenStats:
    """Count what is in a golden set.

    Args:
        docs: the documents of the corpus, where one is at hand.
        owners: chunk id -> its document, where the system lists chunks: who expects a chunk expects
            its document.
    """
    queries = golden.queries
    members = Counter(query.group for query in queries if query.group is not None)
    owners = owners or {}
    expected = {
        item if level == "doc" else owners.get(item)
        for query in queries
        for level in LEVELS
        for item, grade in query.judgments.at(level).items()
        if grade >= golden.min_relevance
    }
    return GoldenStats(
        golden=golden,
        fields={name: values for name in _FIELDS if (values := _values(queries, name))},
        groups=dict(sorted(Counter(members.values()).items())),
        no_answer=sum(query.should_refuse for query in queries),
        levels={level: _level(queries, level) for level in LEVELS},
        with_spans=sum(bool(query.spans) for query in queries),
        with_must_contain=sum(bool(query.must_contain) for query in queries),
        with_notes=sum(bool(query.notes) for query in queries),
        never_expected=None if docs is None else len(set(docs) - expected),
        documents=None if docs is None else len(docs),
    )


def _values(queries: Sequence[GoldenQuery], name: str) -> dict[str, int]:
    found = Counter(
        str(value).lower() if isinstance(value, bool) else str(value)
        for query in queries
        if (value := getattr(query, name)) is not None
    )
    return dict(sorted(found.items()))


def _level(queries: Sequence[GoldenQuery], level: Level) -> LevelStats:
    judged = [query.judgments.at(level) for query in queries if query.judgments.at(level)]
    sizes = [len(items) for items in judged] or [0]
    grades = Counter(grade for items in judged for grade in items.values())
    items = (min(sizes), median(sizes), max(sizes))
    return LevelStats(len(judged), items, dict(sorted(grades.items(), reverse=True)))
