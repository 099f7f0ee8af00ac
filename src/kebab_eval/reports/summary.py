"""What every report says of a run, once: the renderers only give it a form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kebab_eval.diagnosis import relevant_items
from kebab_eval.metrics.answers import ANSWER_METRICS
from kebab_eval.metrics.slices import slice_values
from kebab_eval.records import LEVELS, EvalRun, GoldenQuery, Level, QueryResult
from kebab_eval.reports.versions import VersionTable, version_tables

DASH = "–"
WORST = 10
_ANSWER_SHOWN = 600  # characters: a model may be asked for pages

_GRID = (
    ("hit", "hit"),
    ("precision", "precision"),
    ("recall", "recall"),
    ("ndcg", "nDCG"),
    ("ndcg_linear", "nDCG (linear)"),
)
# kebab's definition, which its users know: the documents among the first k hits, where the other
# document metrics look at the first k documents.
_RECALL_OF_HITS = "recall of k hits"
_SLICED = ("hit_at_5_chunk", "hit_at_5_doc", "recall_at_10_doc")
_SINGLES = (("mrr_at_10", "MRR@10"), ("map", "MAP"), ("judged_at_10", "judged@10"))


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric's value over the scored queries; None where no query was scored."""

    name: str
    value: float | None
    n: int
    ci95: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the metrics table: a label, its level, and one value for each cutoff."""

    label: str
    level: Level
    values: tuple[float | None, ...]
    n: int


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One value of a slice: how many queries the primary metric scores, and the mean of each."""

    value: str
    n: int
    scores: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class QueryLine:
    """One golden query with its result, and where its first relevant item stood."""

    golden: GoldenQuery
    result: QueryResult
    level: Level
    """The level it is judged at: the primary metric's, or the other where only that is judged."""
    first_relevant: int | None
    """Rank of the first hit that is relevant at that level."""
    score: float | None
    """The primary metric, None where the query is not scored for it."""

    @property
    def answer(self) -> str:
        """The answer, or what there is in its place; empty for a run without answers."""
        answer = self.result.answer
        if answer is None:
            return ""
        if answer.error is not None:
            return f"(failed: {answer.error})"
        if answer.refused:
            return f"(refused: {answer.refusal_reason or 'no reason told'})"
        text = answer.text
        return text if len(text) <= _ANSWER_SHOWN else text[:_ANSWER_SHOWN] + "…"


@dataclass(frozen=True, slots=True)
class Summary:
    """A run as people read it."""

    name: str
    status: str
    headline: str
    primary: Measure
    cutoffs: tuple[int, ...]
    grid: tuple[Row, ...]
    singles: tuple[tuple[str, Measure, Measure], ...]
    """label, chunk level, document level."""
    slice_columns: tuple[str, ...]
    """The metrics of the slices, the primary one first."""
    slices: tuple[tuple[str, tuple[SliceRow, ...]], ...]
    """field, then a row for each of its values."""
    latency_ms: Mapping[str, float | None]
    no_answer: tuple[int, int]
    """How many of the queries that nothing answers came back empty, and how many there are."""
    answerable_empty: tuple[int, int]
    """How many of the other queries came back empty, and how many there are."""
    notes: tuple[str, ...]
    """What a reader must know before believing the numbers."""
    failed: int
    total: int
    lines: tuple[QueryLine, ...]
    missed: str = ""
    """How many queries found nothing relevant, and where they were lost; empty where none could."""
    answers: str = ""
    """What became of the answers, in one line; empty for a run without."""
    versions: tuple[VersionTable, ...] = ()
    """The scores of a Document Server set by version, those that the run is to be read by."""

    @property
    def failures(self) -> tuple[QueryLine, ...]:
        return tuple(line for line in self.lines if line.result.error is not None)

    @property
    def worst(self) -> tuple[QueryLine, ...]:
        """The lowest scored queries by the primary metric, at most ``WORST``, below 1."""
        scored = [
            (line.score, index, line)
            for index, line in enumerate(self.lines)
            if line.score is not None and line.score < 1 and line.result.error is None
        ]
        return tuple(line for _, _, line in sorted(scored, key=lambda item: item[:2])[:WORST])


def summarise(run: EvalRun) -> Summary:
    """Return what the reports say of a run."""
    aggregate = run.aggregate
    measures = {name: _measure(name, entry) for name, entry in aggregate["metrics"].items()}
    cutoffs = tuple(run.config["metrics"]["cutoffs"])
    primary = run.config["metrics"]["primary"]
    results = {result.query_id: result for result in run.results}
    lines = tuple(
        _line(query, results[query.query_id], run.golden.min_relevance, primary)
        for query in run.golden.queries
        if query.query_id in results
    )
    columns = _slice_columns(measures, primary)
    return Summary(
        name=run.name,
        status=str(run.info["status"]),
        headline=_headline(run),
        primary=_get(measures, primary),
        cutoffs=cutoffs,
        grid=tuple(_grid(measures, cutoffs)),
        singles=tuple(
            (label, _get(measures, f"{name}_chunk"), _get(measures, f"{name}_doc"))
            for name, label in _SINGLES
        ),
        slice_columns=columns,
        slices=tuple(_slices(aggregate["slices"], columns, lines)),
        latency_ms=aggregate["latency_ms"],
        no_answer=_empty(line for line in lines if line.golden.should_refuse),
        answerable_empty=_empty(line for line in lines if not line.golden.should_refuse),
        notes=(*_notes(run, cutoffs, aggregate["duplicate_hits"]), *_failed_answers(run.results)),
        failed=aggregate["failed_queries"],
        total=aggregate["total_queries"],
        lines=lines,
        missed=_missed(aggregate.get("miss_stages") or {}, lines, run.golden.min_relevance),
        answers=_answers(aggregate, measures, lines),
        versions=version_tables(run),
    )


def _answers(
    aggregate: Mapping[str, Any], measures: Mapping[str, Measure], lines: Iterable[QueryLine]
) -> str:
    found = aggregate.get("answers")
    if not found:
        return ""
    parts = [f"{found[name]} {name}" for name in ("answered", "refused", "failed")]
    # Who refuses everything is grounded wherever he answers: the other side of that has to be seen.
    wrongly = sum(
        (answer := line.result.answer) is not None
        and answer.error is None
        and answer.refused
        and not line.golden.should_refuse
        for line in lines
    )
    if wrongly:
        parts[1] += f" ({wrongly} of them answerable)"
    for name in ANSWER_METRICS:
        measure = _get(measures, name)
        if measure.value is not None:
            parts.append(f"{name.replace('_', ' ')} {number(measure.value)} (n={measure.n})")
    latency = found["latency_ms"]
    parts.append(f"p50 {milliseconds(latency['p50'])}, p95 {milliseconds(latency['p95'])}")
    if found["tokens"]:
        parts.append(", ".join(f"{n:,} {name} tokens" for name, n in found["tokens"].items()))
    return "; ".join(parts)


def _empty(lines: Iterable[QueryLine]) -> tuple[int, int]:
    answered = [line for line in lines if line.result.error is None]
    return sum(not line.result.hits for line in answered), len(answered)


def _notes(run: EvalRun, cutoffs: tuple[int, ...], duplicates: int) -> list[str]:
    notes = []
    asked = run.config["search"]["k"]
    beyond = [f"@{k}" for k in cutoffs if k > asked]
    if beyond:
        notes.append(
            f"{', '.join(beyond)} and every other cutoff above search.k = {asked} see only the "
            f"{asked} hits that were asked for"
        )
    if duplicates:
        notes.append(f"{duplicates} hits came back twice; only the first of each counts")
    return notes


def _failed_answers(results: Iterable[QueryResult]) -> list[str]:
    causes = [
        result.answer.error
        for result in results
        if result.answer is not None and result.answer.error is not None
    ]
    if not causes:
        return []
    one = len(causes) == 1
    said = "1 answer failed and counts" if one else f"{len(causes)} answers failed and count"
    return [f"{said} in no answer metric: {causes[0].rstrip('.')}{'' if one else ', …'}"]


def _headline(run: EvalRun) -> str:
    golden, config = run.info["golden"], run.config
    total = len(run.golden.queries)
    queries = str(total) if len(run.results) == total else f"{len(run.results)} of {total}"
    search = config["search"]
    return (
        f"{queries} queries of {golden['name']} v{golden['version']} ({golden['digest'][:8]}), "
        f"{search['mode']}, k={search['k']}"
    )


def _measure(name: str, entry: Mapping[str, Any]) -> Measure:
    interval = entry["ci95"]
    return Measure(name, entry["value"], entry["n"], tuple(interval) if interval else None)


def _get(measures: Mapping[str, Measure], name: str) -> Measure:
    return measures.get(name, Measure(name, None, 0, None))


def _grid(measures: Mapping[str, Measure], cutoffs: tuple[int, ...]) -> list[Row]:
    rows = []
    for level in LEVELS:
        for family, label in _GRID:
            cells = [_get(measures, f"{family}_at_{k}_{level}") for k in cutoffs]
            if any(cell.value is not None for cell in cells):
                values = tuple(cell.value for cell in cells)
                name = _RECALL_OF_HITS if (family, level) == ("recall", "doc") else label
                rows.append(Row(name, level, values, max(cell.n for cell in cells)))
        if level == "chunk":
            spans = [_get(measures, f"span_recall_at_{k}") for k in cutoffs]
            if any(cell.value is not None for cell in spans):
                values = tuple(cell.value for cell in spans)
                rows.append(Row("recall of spans", level, values, max(s.n for s in spans)))
    return rows


def _slice_columns(measures: Mapping[str, Measure], primary: str) -> tuple[str, ...]:
    """Return the metrics of the slice table: the primary one, then those that score any query."""
    scored = [name for name in _SLICED if _get(measures, name).value is not None]
    return tuple(dict.fromkeys([primary, *scored]))


def _slices(
    slices: Mapping[str, Mapping[str, Mapping[str, Any]]],
    columns: Sequence[str],
    lines: tuple[QueryLine, ...],
) -> list[tuple[str, tuple[SliceRow, ...]]]:
    """The n shown beside a mean is how many queries it is the mean of, not how many there are."""
    scored = Counter(
        pair
        for line in lines
        if line.score is not None
        for pair in slice_values(line.golden).items()
    )
    return [
        (
            field,
            tuple(
                SliceRow(value, scored[field, value], tuple(cell.get(name) for name in columns))
                for value, cell in sorted(cells.items())
            ),
        )
        for field, cells in slices.items()
        if cells
    ]


def _missed(stages: Mapping[str, int], lines: Iterable[QueryLine], least: float) -> str:
    """Return how many answerable queries found nothing relevant, and which stages lost them."""
    answerable = sum(bool(relevant_items(line.golden, least)[1]) for line in lines)
    missed = sum(stages.values())
    if not missed:
        return f"all {answerable} answerable queries found something relevant" if answerable else ""
    order = sorted(stages.items(), key=lambda one: (-one[1], one[0]))
    lost = ", ".join(f"{count} {stage}" for stage, count in order)
    return f"{missed} of {answerable} answerable queries found nothing relevant, lost at: {lost}"


def _line(query: GoldenQuery, result: QueryResult, threshold: float, primary: str) -> QueryLine:
    judged = [level for level in LEVELS if query.judgments.at(level)]
    wanted: Level = "chunk" if primary.endswith("_chunk") else "doc"
    level = wanted if wanted in judged or not judged else judged[0]
    grades = query.judgments.at(level)
    first = next(
        (
            hit.rank
            for hit in result.hits
            if grades.get(hit.chunk_id if level == "chunk" else hit.doc_id, 0) >= threshold
        ),
        None,
    )
    return QueryLine(query, result, level, first, result.metrics.get(primary))


def first_relevant(line: QueryLine) -> str:
    """Return where the first relevant item stood, with its level: ranks of hits, not documents."""
    item = "chunk" if line.level == "chunk" else "document"
    if line.first_relevant is None:
        return f"no expected {item} came back"
    return f"first expected {item} at rank {line.first_relevant}"


def empty_results(summary: Summary) -> str:
    """Return both sides of an empty result: right where nothing answers, a miss elsewhere."""
    (right, unanswerable), (wrong, answerable) = summary.no_answer, summary.answerable_empty
    said = f"{wrong} of {answerable} answerable queries"
    return f"{right} of {unanswerable} without an answer (right), {said}" if unanswerable else said


def number(value: float | None, digits: int = 3) -> str:
    """Return a value as people read it; a dash where nothing was measured."""
    return DASH if value is None else f"{value:.{digits}f}"


def interval(measure: Measure) -> str:
    if measure.ci95 is None:
        return ""
    return f"{measure.ci95[0]:.3f} to {measure.ci95[1]:.3f}"


def milliseconds(value: float | None) -> str:
    return DASH if value is None else f"{value:,.1f} ms"


def version_text(value: Any) -> str:
    """Return a snapshot value in one short line."""
    text = "none" if value is None else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
