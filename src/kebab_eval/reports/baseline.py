"""The Markdown half of a frozen baseline: its scores, and the weak slices with their causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kebab_eval.baseline import DEFAULT_LABEL, SLICED, Frozen, by_slice, scores
from kebab_eval.records import EvalRun
from kebab_eval.reports.markdown import code, escape, table
from kebab_eval.reports.summary import DASH, milliseconds, number, version_text
from kebab_eval.weak_slices import (
    CAUSES,
    WEAK_BELOW,
    Cause,
    Miss,
    WeakSlice,
    find_misses,
    find_weak_slices,
    group_by_cause,
)

_SHOWN_IDS = 8
# The scores that users of the Document Server's set read, v0.2 and then v0.1; at doc level.
_HEADLINE = (
    "ndcg_at_10",
    "ndcg_linear_at_10",
    "recall_at_10_rel2",
    "recall_at_10_rel3",
    "recall_at_10",
    "mrr_at_10",
    "top3_hit",
    "hit_at_5",
)


def render_baseline(run: EvalRun, frozen: Frozen) -> str:
    """Return the report of a frozen baseline."""
    names = _columns(run)
    overall = scores(run, run.golden.queries)
    return "\n".join(
        [
            *_head(run, frozen),
            "## Scores",
            "",
            *_grid("", {"all": overall}, names),
            *_grid_rest(overall),
            *_by_field(run, names),
            *_weak(run),
            *_system(run),
        ]
    )


def _head(run: EvalRun, frozen: Frozen) -> list[str]:
    golden = run.golden
    label = "" if frozen.label == DEFAULT_LABEL else f", label {code(frozen.label)}"
    git = run.info.get("git") or {}
    commit = f", commit {code(str(git['commit'])[:12])}" if git.get("commit") else ""
    dirty = " with uncommitted changes" if git.get("dirty") else ""
    lines = [
        f"# Baseline v{escape(frozen.version)}, {frozen.frozen_at[:10]}{label}",
        "",
        f"Run {escape(run.name)} ({code(run.run_id)}){commit}{dirty}, frozen {frozen.frozen_at}.",
        "",
        f"Golden set {escape(golden.name)} v{escape(golden.version)} "
        f"({code(golden.digest[:8])}), {len(golden.queries)} queries. The `.json` beside this file "
        "holds every query's hits and stands in for the run.",
        "",
    ]
    if run.info["status"] != "FINISHED":
        lines += [f"**This run ended {escape(str(run.info['status']))}.**", ""]
    return lines


def _columns(run: EvalRun) -> list[str]:
    """Return the primary metric, then the headline ones that score any query."""
    measured = {name for name, entry in run.aggregate["metrics"].items() if entry["n"]}
    chunk = ["hit_at_5_chunk"] if "hit_at_5_chunk" in measured else []
    names = [run.config["metrics"]["primary"], *(f"{name}_doc" for name in _HEADLINE), *chunk]
    return [name for name in dict.fromkeys(names) if name in measured]


def _grid(title: str, cells: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    header = [escape(title), "queries", *names, "p50", "p95"]
    rows = []
    for value, cell in cells.items():
        latency = [milliseconds(cell["latency_ms"][point]) for point in ("p50", "p95")]
        measured = [_with_n(cell["metrics"][name]) for name in names]
        rows.append([escape(value), str(cell["n"]), *measured, *latency])
    return [*table(header, rows), ""]


def _with_n(entry: Mapping[str, Any]) -> str:
    return DASH if entry["value"] is None else f"{number(entry['value'])} ({entry['n']})"


def _grid_rest(overall: Mapping[str, Any]) -> list[str]:
    lines = ["In brackets: how many queries the value is the mean of.", ""]
    if overall["failed"]:
        one = overall["failed"] == 1
        said = (
            "1 query failed** and scores"
            if one
            else f"{overall['failed']} queries failed** and score"
        )
        lines += [f"**{said} 0.", ""]
    precision = overall["failure_precision"]
    if precision["total"]:
        said = f"{precision['correct']}/{precision['total']}"
        lines += [f"Failure-case precision {said}: queries that rightly came back empty.", ""]
    return lines


def _by_field(run: EvalRun, names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for field in SLICED:
        cells = by_slice(run, field)
        if cells:
            lines += [f"### By {field}", "", *_grid(field, cells, names)]
    return lines


def _weak(run: EvalRun) -> list[str]:
    primary = run.config["metrics"]["primary"]
    weak, misses = find_weak_slices(run), find_misses(run)
    scored = run.aggregate["metrics"][primary]["n"] if primary in run.aggregate["metrics"] else 0
    lines = ["## Weak slices", ""]
    if not weak:
        return [*lines, f"None: no slice is below {WEAK_BELOW:.2f} by {primary}.", ""]
    causes = group_by_cause(misses)
    lines += [
        f"A slice is weak below {WEAK_BELOW:.2f} by {primary}. Of {scored} scored queries, "
        f"{len(misses)} are not answered in full; each is counted under one cause.",
        "",
    ]
    header = ["slice", primary, "n", *causes]
    rows = [
        [
            escape(f"{part.field}={part.value}"),
            number(part.score),
            str(part.n),
            *(str(len(part.by_cause().get(cause, ()))) for cause in causes),
        ]
        for part in weak
    ]
    lines += [*table(header, rows), ""]
    lines += ["What the causes mean:", ""]
    lines += [f"- **{cause}**: {CAUSES[cause]}." for cause in causes]
    lines += ["", *_said_of(weak), *_queries(causes), *_limits(run)]
    return lines


def _said_of(weak: Sequence[WeakSlice]) -> list[str]:
    lines = ["### Why", ""]
    for part in weak:
        groups = part.by_cause()
        if not groups:
            continue
        total = len(part.misses)
        first, found = next(iter(groups.items()))
        said = f"{len(found)} of {total} misses are {first}"
        more = ", ".join(f"{len(rest)} {cause}" for cause, rest in list(groups.items())[1:])
        few = " Too few queries to lean on." if part.n < 5 else ""
        lines.append(
            f"- {escape(f'{part.field}={part.value}')}, {number(part.score)}: {said}"
            f"{f'; {more}' if more else ''}.{few}"
        )
    return [*lines, ""]


def _queries(causes: Mapping[Cause, Sequence[Miss]]) -> list[str]:
    lines = ["### Which queries", ""]
    for cause, misses in causes.items():
        worst = sorted(misses, key=lambda miss: miss.score)[:_SHOWN_IDS]
        shown = ", ".join(
            code(miss.query_id) + (f" (rank {miss.rank})" if miss.rank else "") for miss in worst
        )
        more = f" and {len(misses) - _SHOWN_IDS} more" if len(misses) > _SHOWN_IDS else ""
        lines.append(f"- {cause} ({len(misses)}): {shown}{more}")
    return [*lines, ""]


def _limits(run: EvalRun) -> list[str]:
    said = (
        "The language of a document is read from what came back of it anywhere in the run; of one "
        "that never came back it is not known."
    )
    if not any(result.candidates for result in run.results):
        said += (
            " The system shows no candidates: what was among them and ranked out stands under "
            "candidate recall."
        )
    return [said, ""]


def _system(run: EvalRun) -> list[str]:
    system = run.info["system"]
    rows = [[escape(key), escape(version_text(value))] for key, value in system.items()]
    return ["## System", "", *table(["", ""], rows), ""]
