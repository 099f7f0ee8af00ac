"""Writing kebab's list of queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kebab_eval.golden.kebab import DIFFICULTIES, LANGUAGES
from kebab_eval.golden.losses import Losses
from kebab_eval.golden.yaml_text import number, quoted, word
from kebab_eval.records import LEVELS, GoldenQuery, GoldenSet, Level, Span


def write_kebab(golden: GoldenSet, losses: Losses) -> dict[str, str]:
    """Return the YAML of a set. Judged items are those that are relevant, all of one grade."""
    least = golden.min_relevance
    queries = [
        # Of grade 1 or more, they would be relevant when the file is read again.
        replace(query, spans=tuple(span for span in query.spans if span.grade >= least))
        for query in golden.queries
    ]
    spans_below = sum(len(query.spans) for query in golden.queries)
    spans_below -= sum(len(query.spans) for query in queries)
    below = graded = 0
    for query in queries:
        for level in LEVELS:
            grades = query.judgments.at(level)
            if level == "doc" and follows_from_spans(query):
                continue
            below += sum(grade < least for grade in grades.values())
            graded += sum(grade >= least and grade != 1 for grade in grades.values())
    why = f"below min_relevance {number(least)}; kebab lists what is relevant"
    losses.drop("", below, "judgments", why)
    losses.drop("", spans_below, "spans", why)
    losses.change("grade", graded, "judgments", "every expected item of kebab has grade 1")
    told_choices(golden, losses)
    by_spans = sum(_expects_by_spans(query, least) for query in queries)
    why = "no judged one is relevant, so that those of the spans are expected"
    losses.change("expected documents", by_spans, "queries", why)
    failing = sum(query.failure_expected for query in golden.queries)
    losses.change("failure_expected", failing, "queries", "a query that expects nothing says it")
    if golden.version not in ("1", "0.1", "0.2"):
        losses.drop("version", 1, "sets", f"it is {golden.version!r}; set golden.version")
    return {"": "\n".join(_entry(query, least) for query in queries)}


def told_choices(golden: GoldenSet, losses: Losses) -> None:
    """Count the languages and difficulties that the YAML formats do not know."""
    for what, allowed, values in (
        ("language", LANGUAGES, [query.language for query in golden.queries]),
        ("difficulty", DIFFICULTIES, [query.difficulty for query in golden.queries]),
    ):
        unknown = [value for value in values if value is not None and value not in allowed]
        said = ", ".join(sorted(set(unknown))[:3])
        losses.drop(what, len(unknown), "queries", f"{said}: not one of {', '.join(allowed)}")


def follows_from_spans(query: GoldenQuery) -> bool:
    """Say whether the judged documents are those that reading the spans gives again."""
    derived: dict[str, float] = {}
    for span in query.spans:
        derived[span.doc] = max(span.grade, derived.get(span.doc, 0.0))
    return bool(derived) and derived == dict(query.judgments.doc)


def _expects_by_spans(query: GoldenQuery, min_relevance: float) -> bool:
    grades = query.judgments.doc.values()
    judged = bool(grades) and all(grade < min_relevance for grade in grades)
    return judged and bool(query.spans) and not follows_from_spans(query)


def text_lists(fields: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """Return the lines of lists of texts; an empty list has none."""
    lines: list[str] = []
    for name, texts in fields:
        items = [f"    - {quoted(text)}" for text in texts]
        lines += [f"  {name}:", *items] if items else []
    return lines


def span_lines(spans: Iterable[Span], default_grade: float | None = 1) -> list[str]:
    """Return the lines of the field ``expected_spans``.

    Args:
        default_grade: the grade that is not written; None writes every one.
    """
    lines: list[str] = []
    for span in spans:
        said = span.meaning()
        said.pop("grade", None)
        if span.grade != default_grade:
            said["grade"] = span.grade
        for index, (name, value) in enumerate(said.items()):
            text = quoted(value) if isinstance(value, str) else number(value)
            lines.append(f"    {'-' if index == 0 else ' '} {name}: {text}")
    return ["  expected_spans:", *lines] if lines else []


def _entry(query: GoldenQuery, min_relevance: float) -> str:
    def relevant(level: Level) -> list[str]:
        grades = query.judgments.at(level)
        return [item for item, grade in grades.items() if grade >= min_relevance]

    lines = [f"- id: {word(query.query_id)}", f"  query: {quoted(query.query)}"]
    if query.language in LANGUAGES:
        lines.append(f"  lang: {query.language}")
    if query.difficulty in DIFFICULTIES:
        lines.append(f"  difficulty: {query.difficulty}")
    if query.group is not None:
        lines.append(f"  group: {word(query.group)}")
    plain = all(grade == 1 for grade in query.judgments.doc.values())
    lines += text_lists(
        [
            # Grades that stand in the spans are kept by leaving the documents to them.
            ("expected_doc_ids", relevant("doc") if plain or not follows_from_spans(query) else []),
            ("expected_chunk_ids", relevant("chunk")),
        ]
    )
    lines += span_lines(query.spans)
    lines += text_lists([("must_contain", query.must_contain), ("forbidden", query.forbidden)])
    if query.notes:
        lines.append(f"  notes: {quoted(query.notes)}")
    return "\n".join([*lines, ""])
