"""The statistics of a golden set as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kebab_eval.golden.statistics import GoldenStats
from kebab_eval.reports.texts import one_line


def stats_lines(stats: GoldenStats) -> Iterator[str]:
    """Yield one line a fact, its name first."""
    golden = stats.golden
    about = f"{golden.name} v{golden.version}, {len(golden.queries)} queries, {golden.format}"
    yield one_line(f"{about}, digest {golden.digest}")
    for field, values in stats.fields.items():
        yield _fact(field.replace("_", " "), _counts(values))
    if stats.groups:
        groups = sum(stats.groups.values())
        sizes = ", ".join(f"{count} of {size}" for size, count in stats.groups.items())
        yield _fact("groups", f"{groups} ({sizes})")
    yield _fact("no answer", str(stats.no_answer))
    for level, found in stats.levels.items():
        if found.queries:
            least, middle, most = found.items
            grades = ", ".join(f"{n} of grade {grade:g}" for grade, n in found.grades.items())
            yield _fact(
                f"judged {level}s",
                f"{found.queries} queries, {least} to {most} items (median {middle:g}); {grades}",
            )
    yield _fact("spans", f"{stats.with_spans} queries")
    yield _fact("must_contain", f"{stats.with_must_contain} queries")
    yield _fact("notes", f"{stats.with_notes} queries")
    if stats.documents is not None:
        said = f"{stats.documents}, of which no query expects {stats.never_expected}"
        yield _fact("documents", said)


def _fact(name: str, value: str) -> str:
    return f"{name:<14} {one_line(value)}"


def _counts(values: Mapping[str, int]) -> str:
    return ", ".join(f"{value} {count}" for value, count in values.items())
