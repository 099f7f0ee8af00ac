"""A comparison as Markdown."""

from __future__ import annotations

from kebab_eval.comparison import Comparison, QueryDelta
from kebab_eval.reports import compare_words as words
from kebab_eval.reports.markdown import code, escape, table
from kebab_eval.reports.summary import number, version_text

SHOWN_QUERIES = 20


def render_markdown(comparison: Comparison) -> str:
    """Return the whole comparison; the first screen stands alone as a comment on a change."""
    return "\n".join(
        [
            *_head(comparison),
            *_metrics(comparison),
            *_judgments(comparison),
            *_slices(comparison),
            *_changed(comparison),
            *_config(comparison),
            *_runs(comparison),
        ]
    )


def _head(comparison: Comparison) -> list[str]:
    head = words.head(comparison, escape)
    lines = [f"# {head.title}", "", f"{head.lever}", ""]
    lines += [f"**{head.verdict}**", ""]
    lines += [line for text in (head.belief, head.beside) if text for line in (text, "")]
    lines += [line for text in head.warnings for line in (f"**Mind:** {text}", "")]
    lines += [*(f"- {text}" for text in head.counts)]
    lines += [f"- {words.latency_text(comparison)}", f"- {words.failed_text(comparison, escape)}"]
    lines += [f"- {escape(note)}" for note in comparison.notes]
    return [*lines, ""]


def _metrics(comparison: Comparison) -> list[str]:
    before, after = (escape(name) for name in words.labels(comparison))
    header = ["metric", before, after, "difference", "95 % interval", "p", "p (Holm)"]
    rows = [
        [
            f"**{delta.metric}**" if delta.metric == comparison.primary else delta.metric,
            number(delta.baseline),
            number(delta.candidate),
            words.signed(delta.delta),
            words.interval_text(delta),
            escape(words.p_value(delta.p_value)),
            escape(words.p_value(delta.p_holm)),
            number(delta.detectable),
            str(delta.n),
            words.says(delta, primary=delta.metric == comparison.primary),
        ]
        for delta in comparison.deltas.values()
    ]
    return ["## Metrics", "", *table([*header, "detectable", "n", ""], rows), ""]


def _judgments(comparison: Comparison) -> list[str]:
    if not comparison.judgment_changes:
        return []
    before, after = (escape(name) for name in words.labels(comparison))
    rows = [
        [
            change.metric,
            number(change.baseline_by_old),
            number(change.baseline_by_new),
            number(change.candidate_by_old),
            number(change.candidate_by_new),
            words.signed(change.total),
            words.signed(change.from_judgments),
            words.signed(change.from_retrieval),
            str(change.n),
        ]
        for change in comparison.judgment_changes
    ]
    header = ["metric", *(f"{run}, {by} set" for run in (before, after) for by in ("old", "new"))]
    header += ["records' change", "from judgments", "from retrieval", "n"]
    return ["## Judgments or retrieval", "", *table(header, rows), ""]


def _slices(comparison: Comparison) -> list[str]:
    if not comparison.slices:
        return []
    before, after = (escape(name) for name in words.labels(comparison))
    rows = [
        [
            escape(part.field),
            escape(part.value),
            str(part.delta.n),
            number(part.delta.baseline),
            number(part.delta.candidate),
            words.signed(part.delta.delta),
            words.interval_text(part.delta),
            escape(words.p_value(part.delta.p_holm)),
            words.against(part),
        ]
        for part in comparison.slices
    ]
    header = ["", "", "n", before, after, "difference", "95 % interval", "p (Holm)", ""]
    return [f"## Slices by {comparison.primary}", "", *table(header, rows), ""]


def _changed(comparison: Comparison) -> list[str]:
    changed = comparison.changed
    lines = ["## Changed queries", ""]
    if not changed:
        return [*lines, "None: every query came out the same.", ""]
    for line in changed[:SHOWN_QUERIES]:
        lines += _query(line, comparison)
    if len(changed) > SHOWN_QUERIES:
        more = len(changed) - SHOWN_QUERIES
        lines += [f"And {more} more, in the JSON and HTML forms of this report.", ""]
    return lines


def _query(line: QueryDelta, comparison: Comparison) -> list[str]:
    rows = [
        [
            words.rank_text(item.baseline_rank),
            words.rank_text(item.candidate_rank),
            words.move_text(item),
            escape(item.chunk_id or item.doc_id),
            item.relevance,
        ]
        for item in words.shown_items(line)
    ]
    errors = [
        f"{side} failed: {escape(error)}"
        for side, error in (("baseline", line.baseline_error), ("candidate", line.candidate_error))
        if error is not None
    ]
    return [
        f"### {line.kind}: {escape(line.query_id)}, {escape(words.note_text(line, comparison))}",
        "",
        f"{escape(line.query)} ({comparison.primary} {words.signed(line.delta)})",
        "",
        *(text for error in errors for text in (error, "")),
        *(
            [*table(["before", "after", "", "hit", "judged"], rows), ""]
            if rows
            else ["(nothing came back)", ""]
        ),
    ]


def _config(comparison: Comparison) -> list[str]:
    if not comparison.config_diff:
        return []
    rows = [
        [
            escape(change.key),
            escape(version_text(change.baseline)),
            escape(version_text(change.candidate)),
            "lever" if change.lever else "follows" if change.source == "system" else "",
        ]
        for change in comparison.config_diff
    ]
    before, after = (escape(name) for name in words.labels(comparison))
    return ["## What differs", "", *table(["", before, after, ""], rows), ""]


def _runs(comparison: Comparison) -> list[str]:
    sides = zip(("baseline", "candidate"), (comparison.baseline, comparison.candidate), strict=True)
    runs = [f"- {which}: {code(side.name)}, {code(side.run_id)}" for which, side in sides]
    return ["## The runs", "", *runs, ""]
