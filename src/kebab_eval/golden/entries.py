"""Reading the fields of one golden entry, whatever the format: typed, with every fault kept."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

from kebab_eval.errors import Fault, nearest
from kebab_eval.records import GoldenQuery, Level, Span
from kebab_eval.yaml_source import Node

SPAN_FIELDS = frozenset(
    {"doc", "quote", "occurrence", "before", "after", "start", "end", "section", "grade"}
)
MAX_GRADE = 1000  # beyond it a gain of 2^grade - 1 is no finite number any more


@dataclass(slots=True)
class Entry:
    """A golden query as it was read, with the place of each id it names.

    ``places`` has the place of each field that stands in the file, by the field's name there.
    ``sound`` is False when a field was left out because it was wrong.
    """

    query: GoldenQuery
    id_places: dict[tuple[Level, str], str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    sound: bool = True


class FieldReader:
    """Takes typed fields out of one mapping node; what is wrong goes to ``faults``."""

    def __init__(self, node: Node, allowed: frozenset[str], faults: list[Fault]) -> None:
        self.node = node
        self.faults = faults
        self.fields: dict[str, Node] = {}
        for key, value in node.value:
            if key.value in allowed:
                self.fields[key.value] = value
            else:
                hint = nearest(key.value, allowed) or f"; allowed: {', '.join(sorted(allowed))}"
                self.fault(key.place, f"unknown field {key.value!r}{hint}", "unknown-field")

    @property
    def places(self) -> dict[str, str]:
        """Field -> the place of its value."""
        return {name: node.place for name, node in self.fields.items()}

    def fault(self, place: str, message: str, code: str) -> None:
        self.faults.append(Fault(place, message, code))

    def has(self, name: str) -> bool:
        """Say whether a field stands there and is not null."""
        return name in self.fields and not self.fields[name].is_null

    def text(self, name: str, *, required: bool = False) -> str | None:
        """Return a scalar's raw text, NFC: an id ``02142`` stays what it is."""
        node = self.fields.get(name)
        if node is None or node.is_null:
            if required:
                place = node.place if node else self.node.place
                self.fault(place, f"field {name!r} is missing", "missing-field")
            return None
        if node.kind != "scalar":
            self.fault(node.place, f"{name} must be text, found {node.describe()}", "type")
            return None
        text = unicodedata.normalize("NFC", node.value)
        if not text.strip():
            self.fault(node.place, f"{name} must not be empty", "missing-field")
            return None
        return text

    def texts(self, name: str) -> list[tuple[str, str]]:
        """Return a list field as (text, place) pairs; a missing or null field is an empty list."""
        pairs: list[tuple[str, str]] = []
        seen: set[str] = set()
        for item in self.items(name, "a list of texts"):
            if item.kind != "scalar" or not item.value.strip():
                self.fault(item.place, f"{name} must hold texts, found {item.describe()}", "type")
                continue
            text = unicodedata.normalize("NFC", item.value)
            if text in seen:
                message = f"{name} holds {text!r} twice; keep one"
                self.fault(item.place, message, "duplicate-item")
                continue
            seen.add(text)
            pairs.append((text, item.place))
        return pairs

    def items(self, name: str, what: str = "a list") -> list[Node]:
        """Return the nodes of a list field; a missing or null field is an empty list."""
        node = self.fields.get(name)
        if node is None or node.is_null:
            return []
        if node.kind != "list":
            self.fault(node.place, f"{name} must be {what}, found {node.describe()}", "type")
            return []
        return list(node.value)

    def choice(self, name: str, allowed: tuple[str, ...]) -> str | None:
        text = self.text(name)
        if text is not None and text not in allowed:
            message = f"{name} must be one of {', '.join(allowed)}; found {text!r}"
            place = self.fields[name].place
            self.fault(place, message + nearest(text, allowed), "unknown-value")
            return None
        return text

    def boolean(self, name: str) -> bool | None:
        node = self.fields.get(name)
        if node is None or node.is_null:
            return None
        value = node.python() if node.kind == "scalar" else None
        if not isinstance(value, bool):
            message = f"{name} must be true or false, found {node.describe()}"
            self.fault(node.place, message, "type")
            return None
        return value

    def whole(self, name: str, least: int = 0) -> int | None:
        """Return a whole number from ``least`` on."""
        node = self.fields.get(name)
        if node is None or node.is_null:
            return None
        value = node.python() if node.kind == "scalar" else None
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            message = f"{name} must be a whole number from {least} on, found {node.describe()}"
            self.fault(node.place, message, "type")
            return None
        return value

    def grade(self, name: str) -> float | None:
        node = self.fields.get(name)
        return None if node is None or node.is_null else self.grade_of(node, name)

    def grade_of(self, node: Node, what: str) -> float | None:
        """Return the grade that a node holds: a number from 0 to ``MAX_GRADE``."""
        value = node.python() if node.kind == "scalar" else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault(node.place, f"{what} must be a grade, found {node.describe()}", "grade")
            return None
        if not 0 <= value <= MAX_GRADE or not math.isfinite(value):
            message = f"{what} must be a grade from 0 to {MAX_GRADE}, found {node.describe()}"
            self.fault(node.place, message, "grade")
            return None
        return float(value)

    def spans(
        self, name: str, grade_of: Callable[[str], float] = lambda _doc: 1.0
    ) -> tuple[Span, ...]:
        """Return a list of spans: ``{doc, quote}``, ``{doc, start, end}`` or ``{doc, section}``.

        Args:
            grade_of: document id -> the grade of a span of it that names none.
        """
        found = []
        for node in self.items(name, "a list of spans"):
            if node.kind != "mapping":
                message = f"{name} holds mappings with doc and quote, found {node.describe()}"
                self.fault(node.place, message, "type")
                continue
            span = span_of(node, self.faults, grade_of)
            if span is not None:
                found.append(span)
        return tuple(found)


def query_nodes(root: Node, faults: list[Fault]) -> list[Node]:
    """Return the entries of a list of golden queries, or of a mapping with the key ``queries``.

    What is neither, and each entry that is no mapping, is added to ``faults``.
    """
    if root.kind == "mapping":
        root = next((value for key, value in root.value if key.value == "queries"), root)
    if root.kind != "list":
        message = f"a golden set is a list of queries, found {root.describe()}"
        faults.append(Fault(root.place, message, "type"))
        return []
    for node in root.value:
        if node.kind != "mapping":
            message = f"a golden query is a mapping with id and query, found {node.describe()}"
            faults.append(Fault(node.place, message, "type"))
    return [node for node in root.value if node.kind == "mapping"]


def span_of(node: Node, faults: list[Fault], grade_of: Callable[[str], float]) -> Span | None:
    """Return the span that a mapping says; what is wrong is added to ``faults``."""
    reader = FieldReader(node, SPAN_FIELDS, faults)
    before = len(faults)
    doc = reader.text("doc", required=True)
    quote, section = reader.text("quote"), reader.text("section")
    start, end = reader.whole("start"), reader.whole("end")
    occurrence = reader.whole("occurrence", least=1)
    grade = reader.grade("grade")
    text_before, text_after = reader.text("before") or "", reader.text("after") or ""
    if len(faults) > before or doc is None:
        return None
    if (start is None) != (end is None):
        reader.fault(node.place, "start and end stand together, or neither does", "span")
        return None
    if start is not None and end is not None and start >= end:
        reader.fault(reader.fields["end"].place, f"end must be above start ({start})", "span")
        return None
    if quote is None and start is None and section is None:
        reader.fault(node.place, "a span needs a quote, start and end, or a section", "span")
        return None
    if section is not None and (quote is not None or start is not None):
        message = "a span is a section or a quote (start and end), not both; write two spans"
        reader.fault(reader.fields["section"].place, message, "span")
        return None
    if quote is None:
        for name in ("occurrence", "before", "after"):
            if name in reader.fields:
                place = reader.fields[name].place
                reader.fault(place, f"{name} tells places of a quote apart; add the quote", "span")
                return None
    return Span(
        doc=doc,
        quote=quote or "",
        occurrence=occurrence,
        before=text_before,
        after=text_after,
        start=start,
        end=end,
        section=section or "",
        grade=grade_of(doc) if grade is None else grade,
        place=node.place,
    )
