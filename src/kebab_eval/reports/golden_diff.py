"""The difference of two golden sets as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kebab_eval.golden.diff import SetDiff
from kebab_eval.records import GoldenSet
from kebab_eval.reports.summary import DASH
from kebab_eval.reports.texts import one_line

_LONG = 100


def diff_lines(diff: SetDiff) -> Iterator[str]:
    """Yield the lines: what was compared, how much changed, then query by query."""
    yield f"{_named(diff.old)} → {_named(diff.new)}"
    if diff.same_meaning:
        yield "the same queries and judgments: runs of the two are comparable"
        return
    same = len(diff.new.queries) - len(diff.added) - len(diff.changed)
    judged = sum(change.judged_otherwise for change in diff.changed)
    yield (
        f"{len(diff.added)} added, {len(diff.removed)} removed, {len(diff.changed)} changed "
        f"({judged} of them judged otherwise), {same} the same"
    )
    for sign, queries in (("+", diff.added), ("-", diff.removed)):
        for query in queries:
            yield f"{sign} {one_line(query.query_id)}  {one_line(_short(query.query))}"
    for change in diff.changed:
        yield f"~ {one_line(change.query_id)}  {one_line(_short(change.query))}"
        for one in change.changes:
            yield "    " + one_line(f"{one.what}: {_value(one.before)} → {_value(one.after)}")


def _named(golden: GoldenSet) -> str:
    about = f"{golden.name} v{golden.version} {golden.digest[:8]}"
    return one_line(f"{about} ({len(golden.queries)} queries)")


def _value(value: Any) -> str:
    if value is None:
        return DASH
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return _short(", ".join(value) or DASH if isinstance(value, list) else repr(value))


def _short(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
