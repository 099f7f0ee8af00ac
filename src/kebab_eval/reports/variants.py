"""The consistency over paraphrases as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kebab_eval.reports.markdown import code, escape, table
from kebab_eval.reports.summary import number
from kebab_eval.reports.texts import one_line
from kebab_eval.variants import STATES, Group, VariantReport

_DOMINANT = {"a": "ranked out (a)", "b": "missing (b)", None: ""}


def render_variants(report: VariantReport, form: str) -> str:
    """Return the report as ``text``, ``md`` or ``json``."""
    if form == "json":
        return json.dumps(report.to_json(), ensure_ascii=False, indent=2) + "\n"
    lines = _markdown(report) if form == "md" else _text(report)
    return "\n".join(lines) + "\n"


def _facts(report: VariantReport) -> Iterator[str]:
    count = sum(len(group.variants) for group in report.groups)
    yield f"{len(report.groups)} groups, {count} wordings"
    for state, number_of in report.states.items():
        if number_of:
            yield f"{number_of} {state}: {STATES[state]}"
    yield (
        f"mean spread {number(report.mean_spread)} (0: every wording finds the same share of what "
        "is expected)"
    )
    across = ""
    if report.mean_across is not None:
        across = f"; of a Korean and an English one {number(report.mean_across)}"
    yield f"mean overlap of two wordings' first 10 documents {number(report.mean_overlap)}{across}"


def _text(report: VariantReport) -> Iterator[str]:
    yield one_line(report.name)
    yield from _facts(report)
    for group in report.groups:
        yield ""
        yield one_line(f"{group.name}: {_said(group)}")
        for variant in group.variants:
            language = variant.language or ""
            shown = f"{number(variant.narrow)} of {number(variant.pool)}"
            yield (
                f"  {variant.state:<11} {shown}  {language:<5} "
                + one_line(f"{variant.query_id}  {variant.query}")
            )


def _said(group: Group) -> str:
    parts = [f"spread {number(group.spread)}", f"worst {number(group.worst)}"]
    parts.append(f"overlap {number(group.overlap)}")
    if group.across is not None:
        parts.append(f"ko-en {number(group.across)}")
    if group.dominant:
        parts.append(f"mostly {_DOMINANT[group.dominant]}")
    if group.answers_consistent is not None:
        parts.append("answers agree" if group.answers_consistent else "answers differ")
    return ", ".join(parts)


def _markdown(report: VariantReport) -> Iterator[str]:
    yield f"# Paraphrases in {escape(report.name)}"
    yield ""
    for fact in _facts(report):
        yield f"- {fact}"
    yield ""
    rows = [
        [
            escape(group.name),
            number(group.spread),
            number(group.worst),
            number(group.overlap),
            number(group.across),
            _DOMINANT[group.dominant],
        ]
        for group in report.groups
    ]
    yield from table(["group", "spread", "worst", "overlap", "ko-en", "mostly"], rows)
    yield ""
    for group in report.groups:
        yield f"## {escape(group.name)}"
        yield ""
        wordings = [
            [
                v.state,
                number(v.narrow),
                number(v.pool),
                v.language or "",
                code(v.query_id),
                escape(v.query),
            ]
            for v in group.variants
        ]
        yield from table(["", "first 10", "first 50", "", "query", ""], wordings)
        yield ""
