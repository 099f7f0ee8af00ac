"""This project's own golden format: one query a line, everything kept.

It is what a record keeps as ``golden.jsonl``, so a run's golden set can be used again.
"""

from __future__ import annotations

import math
import unicodedata
from pathlib import Path

from kebab_eval.errors import Fault, GoldenError
from kebab_eval.golden.entries import MAX_GRADE, Entry, FieldReader
from kebab_eval.golden.objects import as_node, json_lines
from kebab_eval.records import LEVELS, BinaryJudgments, GoldenQuery, Judgments, Level
from kebab_eval.yaml_source import Node, read_text

MARKS = frozenset({"query_id", "judgments"})
FIELDS = frozenset(
    {
        "query_id",
        "query",
        "judgments",
        "language",
        "category",
        "difficulty",
        "group",
        "ocr_derived",
        "failure_expected",
        "must_contain",
        "forbidden",
        "tags",
        "spans",
        "v01",
        "notes",
    }
)


def is_jsonl_set(text: str) -> bool:
    """Say whether the first line of a text is a golden query as this project writes it."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    item = next(json_lines(first, "", []), None)
    return item is not None and item.data.keys() >= MARKS


def read_jsonl_set(path: Path, faults: list[Fault]) -> list[Entry]:
    """Return the queries of a file; what is wrong is added to ``faults``.

    Raises:
        GoldenError: the file cannot be read at all.
    """
    text = read_text(path, GoldenError, "golden set")
    before = len(faults)
    entries = [
        entry
        for item in json_lines(text, str(path), faults)
        if (entry := _entry(as_node(item.data, item.place), faults)) is not None
    ]
    if not entries and len(faults) == before:
        message = "golden set is empty; it needs at least one query"
        faults.append(Fault(str(path), message, "empty"))
    return entries


def _entry(node: Node, faults: list[Fault]) -> Entry | None:
    before = len(faults)
    reader = FieldReader(node, FIELDS, faults)
    query_id = reader.text("query_id", required=True)
    query = reader.text("query", required=True)
    judgments = _parts(reader, "judgments")
    grades = {level: _grades(reader, judgments.get(level), level) for level in LEVELS}
    must_contain, forbidden = (
        tuple(text for text, _ in reader.texts(name)) for name in ("must_contain", "forbidden")
    )
    golden_query = GoldenQuery(
        query_id=query_id or "",
        query=query or "",
        judgments=Judgments(**grades),
        language=reader.text("language"),
        category=reader.text("category"),
        difficulty=reader.text("difficulty"),
        group=reader.text("group"),
        ocr_derived=reader.boolean("ocr_derived"),
        failure_expected=bool(reader.boolean("failure_expected")),
        must_contain=must_contain,
        forbidden=forbidden,
        tags=_tags(reader),
        spans=_unresolved(reader).spans("spans"),
        v01=_v01(reader),
        notes=reader.text("notes") or "",
        place=node.place,
    )
    if query_id is None or query is None:
        return None
    places: dict[tuple[Level, str], str] = {
        (level, item): node.place for level in LEVELS for item in grades[level]
    }
    return Entry(golden_query, places, reader.places, sound=len(faults) == before)


def _parts(reader: FieldReader, name: str) -> dict[str, Node]:
    """Return the values of a field that is an object, by key."""
    node = reader.fields.get(name)
    if node is None or node.is_null:
        return {}
    if node.kind != "mapping":
        reader.fault(node.place, f"{name} must be an object, found {node.describe()}", "type")
        return {}
    return {key.value: value for key, value in node.value}


def _grades(reader: FieldReader, node: Node | None, level: Level) -> dict[str, float]:
    grades: dict[str, float] = {}
    if node is None or node.is_null:
        return grades
    if node.kind != "mapping":
        message = f"judgments.{level} must be an object of id: grade, found {node.describe()}"
        reader.fault(node.place, message, "type")
        return grades
    for key, value in node.value:
        item = unicodedata.normalize("NFC", key.value)
        grade = value.python() if value.kind == "scalar" else None
        if isinstance(grade, bool) or not isinstance(grade, int | float):
            grade = math.nan
        if not item.strip():
            reader.fault(node.place, f"judgments.{level} holds an empty id", "missing-field")
        elif not abs(grade) <= MAX_GRADE:
            message = f"the grade of {item!r} must be a number up to {MAX_GRADE}"
            reader.fault(node.place, f"{message}, found {value.describe()}", "grade")
        elif item in grades:
            reader.fault(node.place, f"judgments.{level} holds {item!r} twice", "duplicate-item")
        else:
            grades[item] = float(grade)
    return grades


def _tags(reader: FieldReader) -> dict[str, str]:
    tags = {}
    for name, node in _parts(reader, "tags").items():
        if node.kind != "scalar" or node.is_null:
            message = f"tags holds texts; {name!r} is {node.describe()}"
            reader.fault(node.place, message, "type")
        else:
            tags[name] = node.value
    return tags


def _unresolved(reader: FieldReader) -> FieldReader:
    """Return a reader without the chunks that a record resolved: they are its chunker's."""
    for span in reader.items("spans") if reader.has("spans") else ():
        if span.kind == "mapping":
            span.value = [pair for pair in span.value if pair[0].value != "chunk_ids"]
    return reader


def _v01(reader: FieldReader) -> BinaryJudgments | None:
    if not reader.has("v01"):
        return None
    node = reader.fields["v01"]
    if node.kind != "mapping":
        reader.fault(node.place, f"v01 must be an object, found {node.describe()}", "type")
        return None
    inner = FieldReader(node, frozenset({"relevant", "top3"}), reader.faults)
    relevant, top3 = (
        frozenset(item for item, _ in inner.texts(name)) for name in ("relevant", "top3")
    )
    return BinaryJudgments(relevant, top3)
