"""Lists in a YAML text: how they are written, and where to cut one so that only items change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import yaml

from kebab_eval.golden.yaml_text import number, quoted

Cut = tuple[int, int, str]
"""Which characters go, [start, end), and what comes in their place."""

_LINE_END = re.compile(r"\r?\n|[\r\x85\u2028\u2029]|\Z")
_GAP = re.compile(r"(?:\s|#[^\r\n]*)*")  # what may stand between tokens
_PROPERTIES = re.compile(r"[&!]\S*(?:\s+[&!]\S*)*")  # &anchor, !tag
_COMMENT = re.compile(r"(?:(?<=\s)|\A)#[^\r\n]*")


def line_end(text: str, start: int) -> int:
    """Return where the line of a character ends, before its line break."""
    return next(_LINE_END.finditer(text, start)).start()


def node_end(text: str, node: Any) -> int:
    """Return where a node ends: PyYAML's own mark of a block is only at the next token."""
    start, end = int(node.start_mark.index), int(node.end_mark.index)
    if isinstance(node, yaml.ScalarNode):
        return _block_scalar_end(text, start, end) if node.style in {"|", ">"} else end
    if node.flow_style or not node.value:
        return end
    last = node.value[-1]
    return node_end(text, last[1] if isinstance(last, tuple) else last)


def _block_scalar_end(text: str, start: int, end: int) -> int:
    header = text[start : line_end(text, start)].partition("#")[0]
    if "+" in header:  # the blank lines below belong to it
        return end - 2 if text.endswith("\r\n", start, end) else end - 1
    return start + len(text[start:end].rstrip())


def block_list(values: Sequence[Any], column: int, ends: str) -> str:
    """Return values as the items of a block list, without the last line break."""
    return ends.join(" " * column + _item(value, column, ends) for value in values)


def flow_list(values: Sequence[Any]) -> str:
    """Return values as a list in brackets, which is JSON too."""
    return f"[{', '.join(map(_flow, values))}]"


def edit_list(
    text: str, key: Any, value: Any, *, kept: Sequence[bool], added: Sequence[Any], ends: str
) -> list[Cut]:
    """Return the cuts that change a list that stands in the text.

    A new value takes the place of an item that goes, and the comments there stay.

    Args:
        key, value: the nodes of the field.
        kept: for each item of the list whether it stays.
        added: the new values.
        ends: the line break of the file.
    """
    if value.flow_style:
        return _edit_flow(text, value, kept, added, ends)
    if not any(kept) and not added:
        return _emptied(text, key, value, ends)
    return _edit_block(text, value, kept, added, ends)


def _edit_block(
    text: str, value: Any, kept: Sequence[bool], added: Sequence[Any], ends: str
) -> list[Cut]:
    cuts: list[Cut] = []
    places = _dashes(text, value)
    going = [place for place, stays in zip(places, kept, strict=True) if not stays]
    first = places[0][0]
    indent = text[_line_start(text, first) : first]
    for (dash, end, node), new in zip_longest(going, added[: len(going)]):
        inside = _comments(text, dash, end, node)
        if new is not None:
            lines = [*inside, _item(new, len(indent), ends)]
            cuts.append((dash, end, (ends + indent).join(lines)))
            continue
        behind = line_end(text, end)
        lines = [*inside, *_COMMENT.findall(text[end:behind])]
        stop = _LINE_END.match(text, behind)
        put = "".join(indent + line + ends for line in lines)
        cuts.append((_line_start(text, dash), stop.end() if stop else behind, put))
    if more := added[len(going) :]:
        at = line_end(text, places[-1][1])
        cuts.append((at, at, ends + block_list(more, len(indent), ends)))
    return cuts


def _emptied(text: str, key: Any, value: Any, ends: str) -> list[Cut]:
    start = int(value.start_mark.index)
    properties = _PROPERTIES.match(text, start)
    colon = text.index(":", int(key.end_mark.index)) + 1
    opened = (start, properties.end(), "[]") if properties else (colon, colon, " []")
    return [opened, *_edit_block(text, value, [False] * len(value.value), [], ends)]


def _edit_flow(
    text: str, value: Any, kept: Sequence[bool], added: Sequence[Any], ends: str
) -> list[Cut]:
    start, end = int(value.start_mark.index), int(value.end_mark.index)
    properties = _PROPERTIES.match(text, start)
    bracket = text.index("[", properties.end() if properties else start)
    if not _comments(text, bracket, end, value):
        return [(bracket, end, _whole_flow(value, kept, added, text))]
    indent = " " * (int(value.value[0].start_mark.column) if value.value else 0)
    cuts: list[Cut] = []
    going = [item for item, stays in zip(value.value, kept, strict=True) if not stays]
    for item, new in zip_longest(going, added[: len(going)]):
        first, last = int(item.start_mark.index), int(item.end_mark.index)
        put = "".join(line + ends + indent for line in _comments(text, first, last, item))
        cuts.append((first, last, put if new is None else put + _flow(new)))
        comma = _skip_gap(text, last)
        if new is None and text.startswith(",", comma):
            cuts.append((comma, comma + 1, ""))
    if more := [_flow(new) for new in added[len(going) :]]:
        at = node_end(text, value.value[-1]) if value.value else bracket + 1
        cuts.append((at, at, ", ".join([""] * bool(value.value) + more)))
    return cuts


def _whole_flow(value: Any, kept: Sequence[bool], added: Sequence[Any], text: str) -> str:
    shown = [
        text[item.start_mark.index : item.end_mark.index]
        for item, stays in zip(value.value, kept, strict=True)
        if stays
    ]
    return f"[{', '.join([*shown, *map(_flow, added)])}]"


def _dashes(text: str, value: Any) -> list[tuple[int, int, Any]]:
    """Return for each item of a block list where its dash stands, where it ends, and its node."""
    at = int(value.start_mark.index)
    properties = _PROPERTIES.match(text, at)
    at = properties.end() if properties else at
    found = []
    for item in value.value:
        dash, at = _skip_gap(text, at), node_end(text, item)
        found.append((dash, at, item))
    return found


def _skip_gap(text: str, start: int) -> int:
    gap = _GAP.match(text, start)
    return gap.end() if gap else start


def _line_start(text: str, index: int) -> int:
    return max(text.rfind(mark, 0, index) for mark in "\n\r\x85\u2028\u2029") + 1


def _comments(text: str, start: int, end: int, node: Any) -> list[str]:
    """Return the comments between two places, outside the scalars of a node."""
    shown = text[start:end]
    for scalar_start, scalar_end in _scalars(node):
        first, last = max(scalar_start - start, 0), scalar_end - start
        shown = shown[:first] + "x" * (last - first) + shown[last:]
    return _COMMENT.findall(shown)


def _scalars(node: Any) -> list[tuple[int, int]]:
    if isinstance(node, yaml.ScalarNode):
        return [(node.start_mark.index, node.end_mark.index)]
    parts = [part for one in node.value for part in (one if isinstance(one, tuple) else (one,))]
    return [place for part in parts for place in _scalars(part)]


def _item(value: Any, column: int, ends: str) -> str:
    if not isinstance(value, Mapping):
        return f"- {_scalar(value)}"
    pairs = (f"{key}: {_scalar(one)}" for key, one in value.items())
    return "- " + f"{ends}{' ' * (column + 2)}".join(pairs)


def _flow(value: Any) -> str:
    if not isinstance(value, Mapping):
        return _scalar(value)
    return "{" + ", ".join(f"{quoted(key)}: {_scalar(one)}" for key, one in value.items()) + "}"


def _scalar(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else number(value)
