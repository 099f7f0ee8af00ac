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
from kebab_eval.yaml_source import read_text

LINES, TABLES = (".jsonl", ".ndjson"), (".csv", ".tsv")
_SPACE = re.compile(r"[\s,]*")
_LIST = re.compile(r'"(?:[^"\\]|\\.)*"\s*:\s*(?=\[\s*\{)')
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
        return list(_lines(text, path, faults))
    return list(_array(text, path, faults))


def _lines(text: str, path: Path, faults: list[Fault]) -> Iterator[Item]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield from _decoded(line, 0, f"{path}:{number}", faults)


def _array(text: str, path: Path, faults: list[Fault]) -> Iterator[Item]:
    """Yield the objects of the one array of a file, which may stand in an object."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] == "{":
        found = _LIST.search(text, start)
        start = found.end() if found else len(text)
    if text[start : start + 1] != "[":
        message = "expected a JSON array of objects, or an object that holds one"
        faults.append(Fault(str(path), message, "type"))
        return
    place, line, line_start = start + 1, text.count("\n", 0, start) + 1, text.rfind("\n", 0, start)
    seen = start
    while True:
        place = _end(_SPACE, text, place)
        if text[place : place + 1] in ("]", ""):
            if not text[place:]:
                faults.append(Fault(f"{path}:{line}", "the array does not end", "unreadable"))
            return
        line += text.count("\n", seen, place)
        line_start = max(line_start, text.rfind("\n", seen, place))
        seen = place
        where = f"{path}:{line}:{place - line_start}"
        before = len(faults)
        end = yield from _decoded(text, place, where, faults)
        if end is None or (len(faults) > before and end == place):
            return
        place = end


def _decoded(text: str, start: int, place: str, faults: list[Fault]) -> Any:
    """Yield the object that begins at ``start``; return where it ends, None when it does not."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_object,
        parse_int=Number,
        parse_float=Number,
        parse_constant=_reject_constant,
    )
    try:
        value, end = decoder.raw_decode(text, start)
    except json.JSONDecodeError as wrong:
        before = place.rpartition(":")[0] if start else place
        message = f"not valid JSON: {wrong.msg} at character {wrong.pos - start + 1} of the entry"
        faults.append(Fault(place if start else before, message, "unreadable"))
        return None
    except (RecursionError, ValueError) as wrong:
        said = "nested too deep" if isinstance(wrong, RecursionError) else str(wrong)
        faults.append(Fault(place, f"not valid JSON: {said}", "unreadable"))
        return None
    if not isinstance(value, dict):
        what = "a list" if isinstance(value, list) else repr(value)
        faults.append(Fault(place, f"a golden query is an object, found {what}", "type"))
    else:
        yield Item(value, place)
    return end


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise ValueError(f"key {twice!r} stands twice; keep one")
    return data


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


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
