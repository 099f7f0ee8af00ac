"""A diagnosis as text, Markdown and JSON: stages first, then what could win, then each query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from kebab_eval.diagnosis import LEVERS, STAGES, Diagnosis, Lost
from kebab_eval.reports.markdown import code, escape, table
from kebab_eval.reports.texts import one_line
from kebab_eval.weak_slices import CAUSES, Cause

_SHOWN = 10


def render_diagnosis(diagnosis: Diagnosis, form: str) -> str:
    """Return the diagnosis.

    Args:
        form: ``text``, ``md`` or ``json``.
    """
    if form == "json":
        return json.dumps(diagnosis.to_json(), ensure_ascii=False, indent=2) + "\n"
    lines = _markdown(diagnosis) if form == "md" else _text(diagnosis)
    return "\n".join(lines) + "\n"


def _headline(diagnosis: Diagnosis) -> str:
    missed = len(diagnosis.lost)
    if not missed:
        return f"all {diagnosis.answerable} answerable queries found something relevant"
    said = f"{missed} of {diagnosis.answerable} answerable queries found nothing relevant"
    if diagnosis.found_document:
        said += f"; {diagnosis.found_document} of them found the document, but not the passage"
    return said


def _text(diagnosis: Diagnosis) -> Iterator[str]:
    yield one_line(f"{diagnosis.name}: {_headline(diagnosis)}")
    if not diagnosis.lost:
        return
    yield ""
    yield "lost at"
    for stage, lost in diagnosis.by_stage.items():
        yield f"  {len(lost):>4}  {stage:<13} {STAGES[stage]}"
        yield f"        levers: {LEVERS[stage]}"
    if diagnosis.wins:
        yield ""
        yield "could win, at most"
        for win in diagnosis.wins:
            yield f"  {len(win.queries):>4}  {win.lever}: {win.change}"
    yield ""
    yield "causes"
    for cause, count in _causes(diagnosis):
        yield f"  {count:>4}  {cause:<16} {CAUSES[cause]}"
    if diagnosis.slices:
        yield ""
        yield "missed by slice"
        for (field, value), (missed, of) in diagnosis.slices.items():
            if missed:
                yield "  " + one_line(f"{missed:>4} of {of:<4} {field} {value}")
    yield ""
    yield "queries"
    for stage, lost in diagnosis.by_stage.items():
        for one in lost[:_SHOWN]:
            yield "  " + one_line(f"{stage:<13} {one.query_id}  {_where(one)}  {one.query}")
        if len(lost) > _SHOWN:
            yield f"  {stage:<13} and {len(lost) - _SHOWN} more; --format json shows all"


def _causes(diagnosis: Diagnosis) -> list[tuple[Cause, int]]:
    """Return each cause with its queries, the most frequent first."""
    counts = Counter(lost.cause for lost in diagnosis.lost)
    order = list(CAUSES)
    found = [(cause, counts[cause]) for cause in order if counts[cause]]
    return sorted(found, key=lambda one: -one[1])


def _where(lost: Lost) -> str:
    """Return where the nearest item stood: ``lexical 12, vector 3, fused 14``."""
    ranks = [f"{name} {rank}" for name, rank in sorted(lost.channel_ranks.items())]
    if ranks and lost.fused_rank is not None and lost.stage != "beyond k":
        ranks.append(f"fused {lost.fused_rank}")
    return f"({', '.join(ranks)})" if ranks else ""


def _markdown(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"# What {escape(diagnosis.name)} lost, and where"
    yield ""
    yield f"{_headline(diagnosis).capitalize()}."
    yield ""
    if not diagnosis.lost:
        return
    stages = [
        [str(len(lost)), stage, STAGES[stage], LEVERS[stage]]
        for stage, lost in diagnosis.by_stage.items()
    ]
    yield from table(["queries", "lost at", "", "levers"], stages)
    yield ""
    if diagnosis.wins:
        yield "## What a lever could win, at most"
        yield ""
        rows = [[str(len(win.queries)), win.lever, escape(win.change)] for win in diagnosis.wins]
        yield from table(["queries", "lever", "change"], rows)
        yield ""
    yield "## Causes"
    yield ""
    causes = [[str(count), cause, CAUSES[cause]] for cause, count in _causes(diagnosis)]
    yield from table(["queries", "cause", ""], causes)
    yield ""
    rows = [
        [escape(field), escape(value), str(missed), str(of)]
        for (field, value), (missed, of) in diagnosis.slices.items()
        if missed
    ]
    if rows:
        yield "## By slice"
        yield ""
        yield from table(["", "", "missed", "answerable"], rows)
        yield ""
    yield "## The queries"
    yield ""
    queries = [
        [stage, code(one.query_id), escape(one.query), _where(one), one.cause or ""]
        for stage, lost in diagnosis.by_stage.items()
        for one in lost
    ]
    yield from table(["lost at", "query", "", "ranks", "cause"], queries)
