"""Changing single values of a user's YAML file: every other character stays as it is.

A dumper would write the whole file anew, and move comments and blank lines with it. Here the text
is cut at the places of the values that change, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from kebab_eval.errors import Fault, GoldenError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """A field of the entry at ``index`` gets a new list; ``after`` is where a new field goes."""

    index: int
    field: str
    value: Sequence[Any]
    after: str = ""


def edit_fields(text: str, source: str, edits: Sequence[FieldEdit]) -> str:
    """Return the text of a golden file with some list fields set.

    Args:
        text: a list of queries, or a mapping with ``queries``.
        edits: at most one for each field of an entry.

    Raises:
        GoldenError: the file uses aliases, through which one text stands in several places.
    """
    events: Iterator[Any] = yaml.parse(text, Loader=_Loader)
    for alias in (event for event in events if isinstance(event, yaml.AliasEvent)):
        mark: Any = alias.start_mark
        message = f"alias *{alias.anchor} stands for text elsewhere; write it out to edit the file"
        raise GoldenError(Fault(f"{source}:{mark.line + 1}:{mark.column + 1}", message))
    root = yaml.compose(text, Loader=_Loader)
    entries = _entries(root)
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    cuts = [_cut(text, entries[edit.index], edit, end_of_line) for edit in edits]
    for start, end, new in sorted(cuts, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _entries(root: Any) -> list[Any]:
    if isinstance(root, yaml.MappingNode):
        root = next(value for key, value in root.value if key.value == "queries")
    return list(root.value)


def _cut(text: str, entry: Any, edit: FieldEdit, end_of_line: str) -> tuple[int, int, str]:
    """Return which characters go, and what comes in their place."""
    fields = {key.value: (key, value) for key, value in entry.value}
    if edit.field in fields:
        _, value = fields[edit.field]
        if value.flow_style or not isinstance(value, yaml.SequenceNode) or not value.value:
            return value.start_mark.index, _end(value), _flow(edit.value)
        column = value.start_mark.column
        new = _block(edit.value, column, end_of_line)[column:]  # the first dash stands there
        return value.start_mark.index, _end(value), new if edit.value else "[]"
    before = fields.get(edit.after) or list(fields.values())[-1]
    end = _end(before[1])
    if entry.flow_style:
        return end, end, f", {edit.field}: {_flow(edit.value)}"
    column = before[0].start_mark.column
    line_end = text.find("\n", end)
    place = len(text) if line_end < 0 else line_end
    if place > end and text[place - 1] == "\r":
        place -= 1
    block = _block(edit.value, column + 2, end_of_line)
    return place, place, f"{end_of_line}{' ' * column}{edit.field}:{end_of_line}{block}"


def _end(node: Any) -> int:
    """Return where a value ends: a block collection's own mark is only at the next token."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _block(values: Sequence[Any], column: int, end_of_line: str) -> str:
    lines = []
    for value in values:
        if isinstance(value, Mapping):
            marks = ["- ", *["  "] * len(value)]
            pairs = zip(marks, value.items(), strict=False)
            lines += [f"{' ' * column}{mark}{key}: {_scalar(one)}" for mark, (key, one) in pairs]
        else:
            lines.append(f"{' ' * column}- {_scalar(value)}")
    return end_of_line.join(lines)


def _flow(values: Sequence[Any]) -> str:
    shown = [
        "{" + ", ".join(f"{key}: {_scalar(one)}" for key, one in value.items()) + "}"
        if isinstance(value, Mapping)
        else _scalar(value)
        for value in values
    ]
    return f"[{', '.join(shown)}]"


def _scalar(value: Any) -> str:
    """Return a value as YAML: JSON is YAML, and a text in its quotes is a text to every reader."""
    return json.dumps(value, ensure_ascii=False)
