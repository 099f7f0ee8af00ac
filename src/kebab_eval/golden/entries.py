"""Reading the fields of one golden entry, whatever the format: typed, with every fault kept."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

from kebab_eval.errors import Fault, nearest
from kebab_eval.records import GoldenQuery, Level
from kebab_eval.yaml_source import Node


@dataclass(slots=True)
class Entry:
    """A golden query as it was read, with the place of each id it names.

    ``sound`` is False when a field was left out because it was wrong.
    """

    query: GoldenQuery
    id_places: dict[tuple[Level, str], str] = field(default_factory=dict)
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
                faults.append(Fault(key.place, f"unknown field {key.value!r}{hint}"))

    def text(self, name: str, *, required: bool = False) -> str | None:
        """Return a scalar's raw text, NFC: an id ``02142`` stays what it is."""
        node = self.fields.get(name)
        if node is None or node.is_null:
            if required:
                place = node.place if node else self.node.place
                self.faults.append(Fault(place, f"field {name!r} is missing"))
            return None
        if node.kind != "scalar":
            self.faults.append(Fault(node.place, f"{name} must be text, found {node.describe()}"))
            return None
        text = unicodedata.normalize("NFC", node.value)
        if not text.strip():
            self.faults.append(Fault(node.place, f"{name} must not be empty"))
            return None
        return text

    def texts(self, name: str) -> list[tuple[str, str]]:
        """Return a list field as (text, place) pairs; a missing or null field is an empty list."""
        node = self.fields.get(name)
        if node is None or node.is_null:
            return []
        if node.kind != "list":
            message = f"{name} must be a list of texts, found {node.describe()}"
            self.faults.append(Fault(node.place, message))
            return []
        pairs: list[tuple[str, str]] = []
        seen: set[str] = set()
        for item in node.value:
            if item.kind != "scalar" or not item.value.strip():
                message = f"{name} must hold texts, found {item.describe()}"
                self.faults.append(Fault(item.place, message))
                continue
            text = unicodedata.normalize("NFC", item.value)
            if text in seen:
                self.faults.append(Fault(item.place, f"{name} holds {text!r} twice; keep one"))
                continue
            seen.add(text)
            pairs.append((text, item.place))
        return pairs

    def choice(self, name: str, allowed: tuple[str, ...]) -> str | None:
        text = self.text(name)
        if text is not None and text not in allowed:
            message = f"{name} must be one of {', '.join(allowed)}; found {text!r}"
            self.faults.append(Fault(self.fields[name].place, message + nearest(text, allowed)))
            return None
        return text
