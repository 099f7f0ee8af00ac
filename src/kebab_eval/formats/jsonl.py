"""JSON lines: ``{"query_id": …, "item_id": …, "grade": …}`` or ``… "score": …}``, one a line.

``doc_id`` or ``chunk_id`` may stand for ``item_id`` and ``relevance`` for ``grade``; further keys
are passed over. An id that is written as a number is the text that stands in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from kebab_eval.formats.columns import Columns, Rows, What
from kebab_eval.formats.lines import numbered_lines
from kebab_eval.formats.trec_strict import number_fault
from kebab_eval.metrics.ranktable import normalise_id

QUERY_KEYS = ("query_id",)
ITEM_KEYS = ("item_id", "doc_id", "chunk_id")
VALUE_KEYS: dict[What, tuple[str, ...]] = {"judgments": ("grade", "relevance"), "run": ("score",)}


class Number(str):
    """A JSON number as the text that stands in the file: ``1e5`` may be an id."""

    __slots__ = ()


class BadLine(Exception):
    """A line is no JSON object, or lacks what it must hold."""


def jsonl_columns(path: Path, what: What) -> Columns:
    """Return the rows of a JSONL file.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    rows = Rows(str(path))
    for number, line in numbered_lines(path):
        try:
            data = parse_object(line)
            query = id_of(data, QUERY_KEYS)
            item = id_of(data, ITEM_KEYS)
            value = _value(data, what)
        except BadLine as error:
            rows.fault(number, str(error))
            continue
        rows.add(number, query, item, value)
    return rows.columns()


def parse_object(line: bytes) -> dict[str, Any]:
    """Return a line's JSON object, its numbers as :class:`Number`.

    Raises:
        BadLine: it is not UTF-8, no JSON, no object, or an object with a key twice.
    """
    try:
        data = json.loads(
            line.decode(),
            parse_int=Number,
            parse_float=Number,
            parse_constant=_reject_constant,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as error:
        raise BadLine(f"not UTF-8 ({error.reason}); convert the file") from error
    except json.JSONDecodeError as error:
        raise BadLine(f"no JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise BadLine("the JSON is nested too deeply") from error
    if not isinstance(data, dict):
        raise BadLine(f"a line holds one JSON object, not {line[:40].decode(errors='replace')!r}")
    return data


def _reject_constant(text: str) -> NoReturn:
    raise BadLine(f"{text} is no JSON number; scores are finite")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise BadLine("a key stands twice in one object")
    return data


def id_of(data: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return the id under the one of the keys that is present, in NFC.

    Raises:
        BadLine: none or several are, or the id is no text.
    """
    value = _one_of(data, keys)
    if not isinstance(value, str) or not value:
        raise BadLine(f"{' or '.join(keys)} is {value!r}; an id is a text that is not empty")
    return normalise_id(str(value))


def _one_of(data: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    present = [key for key in keys if key in data]
    if len(present) != 1:
        found = ", ".join(data) or "no key"
        raise BadLine(f"a line needs one of {', '.join(keys)}; it has {found}")
    return data[present[0]]


def _value(data: Mapping[str, Any], what: What) -> float:
    keys = VALUE_KEYS[what]
    value = _one_of(data, keys)
    if not isinstance(value, Number):
        raise BadLine(f"{' or '.join(keys)} is {value!r}; it must be a number")
    fault = number_fault(str(value), what)
    if fault:
        raise BadLine(fault)
    return float(value)


def numbered_objects(path: Path, rows: Rows) -> Iterator[tuple[int, dict[str, Any]]]:
    """Return each line's number and object; a malformed line becomes a fault of ``rows``.

    Raises:
        FormatError: the file cannot be read.
    """
    for number, line in numbered_lines(path):
        try:
            yield number, parse_object(line)
        except BadLine as error:
            rows.fault(number, str(error))
