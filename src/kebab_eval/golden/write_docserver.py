"""Writing the Document Server's sets, graded (v0.2) and binary (v0.1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from kebab_eval.golden.docserver import (
    CATEGORIES,
    DOMAINS,
    INTENTS,
    RELEVANT_FROM,
    TOP_GRADE,
    binary_of,
)
from kebab_eval.golden.kebab import DIFFICULTIES, LANGUAGES
from kebab_eval.golden.losses import Losses
from kebab_eval.golden.write_kebab import (
    span_lines,
    text_lists,
    told_choices,
)
from kebab_eval.golden.yaml_text import key, quoted, word
from kebab_eval.records import BinaryJudgments, GoldenQuery, GoldenSet

_TAGS: dict[str, tuple[str, ...] | None] = {
    "legacy_category": None,
    "intent": INTENTS,
    "domain_hint": DOMAINS,
}
"""Tag that is a field there -> its values, None where any will do."""


def write_v02(golden: GoldenSet, losses: Losses) -> dict[str, str]:
    """Return the YAML of a graded set.

    A set whose grades are whole, up to 3, and relevant from 2 on keeps them. Of any other, what is
    relevant gets grade 2, other judged items with a gain grade 1.
    """
    grades = _scale(golden, losses)
    lines: list[str] = []
    for query in golden.queries:
        lines += _graded_case(query, grades)
    _tell_tags(golden, losses)
    told_choices(golden, losses)
    unknown = [q.category for q in golden.queries if q.category and q.category not in CATEGORIES]
    said = ", ".join(sorted(set(unknown))[:3])
    losses.drop("category", len(unknown), "queries", f"{said}: v0.2 has {', '.join(CATEGORIES)}")
    _tell_ids(golden, losses)
    return {"": _file(golden, lines)}


def write_v01(golden: GoldenSet, losses: Losses) -> dict[str, str]:
    """Return the YAML of a binary set: the ids it had as v0.1, or those that are relevant."""
    lines: list[str] = []
    below = graded = 0
    for query in golden.queries:
        binary = query.v01 or _binary(query, golden.min_relevance)
        lines += [f"- id: {word(query.query_id)}", f"  query: {quoted(query.query)}"]
        if query.category is not None:
            lines.append(f"  category: {word(query.category)}")
        lines += [
            f"  relevant_ids: {_id_list(binary.relevant, query)}",
            f"  top3_ids: {_id_list(binary.top3, query)}",
        ]
        for item, grade in query.judgments.doc.items():
            below += item not in binary.relevant
            graded += item in binary.relevant and grade != (3 if item in binary.top3 else 2)
    losses.drop("", below, "judgments", "docserver-v0.1 lists what is relevant")
    losses.change("grade", graded, "judgments", "it is 3 in top3_ids and 2 elsewhere")
    _tell_ids(golden, losses)
    return {"": _file(golden, lines)}


def _scale(golden: GoldenSet, losses: Losses) -> Callable[[float], int]:
    found = [grade for query in golden.queries for grade in query.judgments.doc.values()]
    found += [span.grade for query in golden.queries for span in query.spans]
    fits = all(float(grade).is_integer() and 0 <= grade <= TOP_GRADE for grade in found)
    if fits and golden.min_relevance == RELEVANT_FROM:
        return int

    def grade_of(grade: float) -> int:
        return RELEVANT_FROM if grade >= golden.min_relevance else int(grade > 0)

    changed = sum(grade != grade_of(grade) for grade in found)
    losses.change("grade", changed, "judgments", "2 is relevant there, 1 has a gain, 0 has none")
    return grade_of


def _graded_case(query: GoldenQuery, grade_of: Callable[[float], int]) -> list[str]:
    lines = [f"- id: {word(query.query_id)}", f"  query: {quoted(query.query)}"]
    fields = {
        "category": query.category if query.category in CATEGORIES else None,
        **{name: query.tags.get(name) for name in _TAGS if _is_field(name, query.tags)},
        "language": query.language if query.language in LANGUAGES else None,
        "difficulty": query.difficulty if query.difficulty in DIFFICULTIES else None,
        "group": query.group,
    }
    lines += [f"  {name}: {word(value)}" for name, value in fields.items() if value is not None]
    if query.ocr_derived is not None:
        lines.append(f"  ocr_derived: {str(query.ocr_derived).lower()}")
    lines.append(f"  failure_expected: {str(query.failure_expected).lower()}")
    grades = query.judgments.doc
    lines.append("  graded_relevance:" if grades else "  graded_relevance: {}")
    lines += [f"    {_key(item)} {grade_of(grade)}" for item, grade in grades.items()]
    if query.v01 is not None:
        lines.append(f"  relevant_ids: {_id_list(query.v01.relevant, query)}")
        lines.append(f"  top3_ids: {_id_list(query.v01.top3, query)}")
    spans = [replace(span, grade=float(grade_of(span.grade))) for span in query.spans]
    lines += span_lines(spans, None)
    lines += text_lists([("must_contain", query.must_contain), ("forbidden", query.forbidden)])
    if query.notes:
        lines.append(f"  notes: {quoted(query.notes)}")
    return lines


def _is_field(name: str, tags: Mapping[str, str]) -> bool:
    allowed = _TAGS.get(name, ())
    return name in tags and (allowed is None or tags[name] in allowed)


def _binary(query: GoldenQuery, min_relevance: float) -> BinaryJudgments:
    grades = query.judgments.doc
    if min_relevance == RELEVANT_FROM:
        return binary_of(dict(grades))
    return BinaryJudgments(frozenset(i for i, grade in grades.items() if grade >= min_relevance))


def _tell_tags(golden: GoldenSet, losses: Losses) -> None:
    lost = sum(any(not _is_field(name, q.tags) for name in q.tags) for q in golden.queries)
    losses.drop("tags", lost, "queries", f"docserver has only {', '.join(_TAGS)}")


def _tell_ids(golden: GoldenSet, losses: Losses) -> None:
    ids = {item for query in golden.queries for item in query.judgments.doc}
    texts = sum(not _is_integer(item) for item in ids)
    losses.change("document id", texts, "ids", "no plain integer: written as text")


def _id_list(ids: Collection[str], query: GoldenQuery) -> str:
    """Return ids as a flow list, in the order of the query's judgments, the rest by name."""
    order = {item: place for place, item in enumerate(query.judgments.doc)}
    listed = sorted(ids, key=lambda item: (order.get(item, len(order)), item))
    return f"[{', '.join(_id(item) for item in listed)}]"


def _id(item: str) -> str:
    return item if _is_integer(item) else quoted(item)


def _key(item: str) -> str:
    return f"{item}:" if _is_integer(item) else key(item, "    ")


def _is_integer(item: str) -> bool:
    return item.isascii() and item.isdecimal() and (item == "0" or item[0] != "0")


def _file(golden: GoldenSet, lines: list[str]) -> str:
    if golden.version in ("1", "0.1", "0.2"):
        return "\n".join([*lines, ""])
    return "\n".join([f"version: {quoted(golden.version)}", "queries:", *lines, ""])
