"""The objects of people's own files: a JSON array, JSON lines, or the rows of a CSV.

Each comes with its place. Numbers are kept as the text that stands in the file, because an id may
look like one.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from kebab_eval.errors import Fault, GoldenError
from kebab_eval.formats.jsonl import Number
from kebab_eval.yaml_source import Node, read_text

LINES, TABLES = (".jsonl", ".ndjson"), (".csv", ".tsv")
_NO_ARRAY = "expected a JSON array of objects, or an object that holds one"
_BLANKS = " \t\n\r"
_SPACE = re.compile(r"[ \t\n\r]*")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that may be half of a character
_MAX_CELL = 2**24


@dataclass(frozen=True, slots=True)
class Item:
    """One object of the file and where it begins. A CSV's cells are texts without structure."""

    data: Mapping[str, Any]
    place: str
    flat: bool = False


def read_objects(path: Path, faults: list[Fault]) -> list[Item]:
    """Return the objects of a file; what is wrong is added to ``faults``.

    Raises:
        GoldenError: the file cannot be read at all.
    """
    text = read_text(path, GoldenError, "golden set")
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return list(_rows(text, path, faults))
    if suffix in LINES:
        return list(json_lines(text, str(path), faults))
    return list(_array(text, path, faults))


def json_lines(text: str, source: str, faults: list[Fault]) -> Iterator[Item]:
    """Yield the object of each line that is not blank; what is wrong is added to ``faults``."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{source}:{number}"
        value, end = _decoded(line, _skipped(line, 0), place, faults)
        if end is None:
            continue
        if line[end:].strip(_BLANKS):
            message = f"a line holds one JSON object; text follows it at character {end + 1}"
            faults.append(Fault(place, message, "unreadable"))
        elif (item := _item(value, place, faults)) is not None:
            yield item


def _array(text: str, path: Path, faults: list[Fault]) -> Iterator[Item]:
    """Yield the objects of the one array of a file, which may stand in an object."""
    start = _skipped(text, 0)
    wrapped = text[start : start + 1] == "{"
    if wrapped:
        found = _wrapped(text, path, faults)
        if found is None:
            return
        start = found
    elif text[start : start + 1] != "[":
        faults.append(Fault(str(path), _NO_ARRAY, "type"))
        return
    position, line, line_start, seen = _skipped(text, start + 1), 1, -1, 0
    while text[position : position + 1] != "]":
        line += text.count("\n", seen, position)
        line_start = max(line_start, text.rfind("\n", seen, position))
        seen = position
        place = f"{path}:{line}:{position - line_start}"
        value, end = _decoded(text, position, place, faults)
        if end is None:
            return
        item = _item(value, place, faults)
        if item is not None:
            yield item
        position = _skipped(text, end)
        if text[position : position + 1] == "]":
            break
        if text[position : position + 1] != ",":
            message = "not valid JSON: expected a comma or ]"
            faults.append(Fault(_at(text, position, path), message, "unreadable"))
            return
        position = _skipped(text, position + 1)
        if text[position : position + 1] == "]":
            message = "not valid JSON: a comma before ]"
            faults.append(Fault(_at(text, position, path), message, "unreadable"))
            return
    after = _skipped(text, position + 1)
    if not wrapped and text[after:]:
        message = "text follows the array; a file holds one"
        faults.append(Fault(_at(text, after, path), message, "unreadable"))


def _wrapped(text: str, path: Path, faults: list[Fault]) -> int | None:
    """Return where the one array of an object begins; of several, the one called ``queries``."""
    arrays: dict[str, int] = {}
    position = _skipped(text, 0) + 1
    position = _skipped(text, position)
    while text[position : position + 1] != "}":
        name, end = _decoded(text, position, _at(text, position, path), faults)
        if end is None:
            return None
        colon = _skipped(text, end)
        if not isinstance(name, str) or isinstance(name, Number) or text[colon : colon + 1] != ":":
            message = "not valid JSON: expected a key in double quotes and a colon"
            faults.append(Fault(_at(text, position, path), message, "unreadable"))
            return None
        position = _skipped(text, colon + 1)
        value, end = _decoded(text, position, _at(text, position, path), faults)
        if end is None:
            return None
        if isinstance(value, list) and (not value or isinstance(value[0], dict)):
            arrays[name] = position
        position = _skipped(text, end)
        if text[position : position + 1] == "}":
            break
        if text[position : position + 1] != ",":
            message = "not valid JSON: expected a comma or }"
            faults.append(Fault(_at(text, position, path), message, "unreadable"))
            return None
        position = _skipped(text, position + 1)
    after = _skipped(text, position + 1)
    if text[after:]:
        message = "text follows the object; JSON lines are written to a file that ends in .jsonl"
        faults.append(Fault(_at(text, after, path), message, "unreadable"))
        return None
    if len(arrays) > 1 and "queries" not in arrays:
        found = ", ".join(arrays)
        message = f"holds several lists of objects ({found}); call that of the queries 'queries'"
        faults.append(Fault(str(path), message, "type"))
        return None
    if not arrays:
        faults.append(Fault(str(path), _NO_ARRAY, "type"))
        return None
    return arrays.get("queries", next(iter(arrays.values())))


def _decoded(text: str, start: int, place: str, faults: list[Fault]) -> tuple[Any, int | None]:
    """Return the value that begins at ``start`` and where it ends; None when it is no JSON."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        if _HALF.search(text, start, end):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as wrong:
        said = f"{wrong.msg} at character {wrong.pos - start + 1} of the entry"
    except UnicodeEncodeError:
        said = "a \\u escape is half of a character"
    except RecursionError:
        said = "nested too deep"
    except ValueError as wrong:
        said = str(wrong)
    else:
        return value, end
    faults.append(Fault(place, f"not valid JSON: {said}", "unreadable"))
    return None, None


def _item(value: Any, place: str, faults: list[Fault]) -> Item | None:
    if isinstance(value, dict):
        return Item(value, place)
    what = "a list" if isinstance(value, list) else repr(value)
    faults.append(Fault(place, f"a golden query is an object, found {what}", "type"))
    return None


def _skipped(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _at(text: str, position: int, path: Path) -> str:
    line_start = text.rfind("\n", 0, position)
    return f"{path}:{text.count(chr(10), 0, position) + 1}:{position - line_start}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise ValueError(f"key {twice!r} stands twice; keep one")
    return data


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=Number,
    parse_float=Number,
    parse_constant=_reject_constant,
)


class _Part(Node):
    """A part of an object; its place is the object's."""

    __slots__ = ()

    @property
    def place(self) -> str:
        return self.source


def as_node(value: Any, place: str) -> Node:
    """Return a value of an object as a node, every part of it at one place."""
    if isinstance(value, dict):
        pairs = [(as_node(key, place), as_node(child, place)) for key, child in value.items()]
        return _Part("mapping", pairs, 0, 0, place)
    if isinstance(value, list):
        return _Part("list", [as_node(child, place) for child in value], 0, 0, place)
    if value is None or isinstance(value, bool):
        return _Part(
            "scalar", "null" if value is None else str(value).lower(), 0, 0, place, plain=True
        )
    return _Part("scalar", str(value), 0, 0, place, plain=isinstance(value, Number))


def cell_value(text: str) -> Any:
    """Return what a CSV's cell holds as JSON; None where it is no JSON list or object."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (list, dict)) else None


def _rows(text: str, path: Path, faults: list[Fault]) -> Iterator[Item]:
    header = text.partition("\n")[0]
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    if separator not in header and ";" in header:
        separator = ";"
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    names: list[str] | None = None
    try:
        while True:
            line = reader.line_num + 1
            row = next(reader, None)
            if row is None:
                return
            if not any(cell.strip() for cell in row):
                continue
            if names is None:
                names = [name.strip() for name in row]
                for name in sorted({name for name in names if names.count(name) > 1}):
                    message = f"column {name!r} stands twice; keep one"
                    faults.append(Fault(f"{path}:{line}", message, "duplicate-item"))
            elif len(row) != len(names):
                message = f"{len(row)} cells where the header has {len(names)}"
                faults.append(Fault(f"{path}:{line}", message, "unreadable"))
            else:
                yield Item(dict(zip(names, row, strict=True)), f"{path}:{line}", flat=True)
    except csv.Error as wrong:
        faults.append(Fault(f"{path}:{reader.line_num}", f"not valid CSV: {wrong}", "unreadable"))
