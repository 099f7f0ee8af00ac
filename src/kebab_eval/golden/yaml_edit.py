"""Changing single lists of a user's YAML file: every other character stays as it is.

A dumper would write the whole file anew, and with it every indent, blank line and long line. Here
the text is cut at the places of the items that change, and nowhere else. YAML has more layouts than
anyone foresees, so the new text is read again: an edit that does not read back as meant is refused.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from kebab_eval.errors import Fault, GoldenError
from kebab_eval.golden.yaml_lists import Cut, block_list, edit_list, flow_list, line_end, node_end
from kebab_eval.golden.yaml_text import number

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """A field of the entry at ``index`` gets a new list; ``after`` is where a new field goes.

    Items that stand in the list already keep their place and their comments; the order of a list
    has no meaning here.
    """

    index: int
    field: str
    value: Sequence[Any]
    after: str = ""


def edit_fields(text: str, source: str, edits: Sequence[FieldEdit]) -> str:
    """Return the text of a golden file with some list fields set.

    Args:
        text: a list of queries, or a mapping with ``queries``; valid YAML.
        edits: at most one for each field of an entry. Items are texts, or mappings of texts and
            numbers.

    Raises:
        GoldenError: the file uses aliases, through which one text stands in several places, or
            entries are laid out in a way that cannot be edited in place.
    """
    _refuse_aliases(text, source)
    root = _composed(text, source)
    entries = _entries(root)
    new = _spliced(text, entries, edits)
    if _reads_as(new, root, edits):
        return new
    raise GoldenError(
        [
            Fault(
                f"{source}:{entry.start_mark.line + 1}:{entry.start_mark.column + 1}",
                f"{edit.field} cannot be changed in the layout of this entry; write the entry as a "
                "block, one field a line and one item a line",
            )
            for edit in _refused(text, root, edits)
            for entry in [entries[edit.index]]
        ]
    )


def _refuse_aliases(text: str, source: str) -> None:
    faults = []
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            mark: Any = event.start_mark
            message = (
                f"alias *{event.anchor} stands for text elsewhere; write it out to edit the file"
            )
            faults.append(Fault(f"{source}:{mark.line + 1}:{mark.column + 1}", message))
    if faults:
        raise GoldenError(faults)


def _composed(text: str, source: str) -> Any:
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as refused:  # an anchor that comes twice, which our reader allows
        mark: Any = refused.problem_mark
        message = f"{refused.context or refused.problem}; take it out to edit the file"
        raise GoldenError(
            Fault(f"{source}:{mark.line + 1}:{mark.column + 1}", message)
        ) from refused


def _entries(root: Any) -> list[Any]:
    if isinstance(root, yaml.MappingNode):
        root = next((value for key, value in root.value if key.value == "queries"), None)
    return list(root.value) if isinstance(root, yaml.SequenceNode) else []


def _spliced(text: str, entries: Sequence[Any], edits: Sequence[FieldEdit]) -> str:
    first = line_end(text, 0)
    ends = "\r\n" if text.startswith("\r\n", first) else text[first : first + 1] or "\n"
    cuts = [cut for edit in edits for cut in _cuts(text, entries[edit.index], edit, ends)]
    parts, at = [], 0
    for start, end, put in sorted(cuts, key=lambda cut: cut[:2]):
        parts += [text[at:start], put]
        at = end
    return "".join([*parts, text[at:]])


def _cuts(text: str, entry: Any, edit: FieldEdit, ends: str) -> Sequence[Cut]:
    fields = {key.value: (key, value) for key, value in entry.value}
    if edit.field in fields:
        key, value = fields[edit.field]
        if isinstance(value, yaml.SequenceNode):
            kept, added = _kept(value, edit.value)
            return edit_list(text, key, value, kept=kept, added=added, ends=ends)
        start, end = value.start_mark.index, value.end_mark.index
        space = " " if start == end else ""  # nothing stands there, not even a space
        return [(start, end, space + flow_list(edit.value))]
    before = fields.get(edit.after) or entry.value[-1]
    end = node_end(text, before[1])
    if entry.flow_style:
        space = " " if before[1].start_mark.index == end else ""
        return [(end, end, f'{space}, "{edit.field}": {flow_list(edit.value)}')]
    column = entry.value[0][0].start_mark.column
    place = line_end(text, end)
    block = ends + block_list(edit.value, column + 2, ends) if edit.value else " []"
    return [(place, place, f"{ends}{' ' * column}{edit.field}:{block}")]


def _kept(value: Any, wanted: Sequence[Any]) -> tuple[list[bool], list[Any]]:
    """Return which items of a list stay, and the values that are new in it."""
    standing, meant = [_said(item) for item in value.value], [_meant(one) for one in wanted]
    known = _within(meant, Counter(standing))
    added = [one for one, stands in zip(wanted, known, strict=True) if not stands]
    return _within(standing, Counter(meant)), added


def _within(items: Sequence[str], others: Counter[str]) -> list[bool]:
    """Return for each item whether the others have it, as often as it comes."""
    found = []
    for item in items:
        found.append(others[item] > 0)
        others[item] -= 1
    return found


def _refused(text: str, root: Any, edits: Sequence[FieldEdit]) -> list[FieldEdit]:
    """Return the edits that do not read back, found by halving."""
    if _reads_as(_spliced(text, _entries(root), edits), root, edits):
        return []
    if len(edits) == 1:
        return list(edits)
    half = len(edits) // 2
    return _refused(text, root, edits[:half]) + _refused(text, root, edits[half:]) or list(edits)


def _reads_as(new: str, root: Any, edits: Sequence[FieldEdit]) -> bool:
    """Say whether a text is the old one with the edits, and nothing else, as a reader sees it."""
    try:
        after = yaml.compose(new, Loader=_Loader)
    except yaml.YAMLError:
        return False
    wanted = {(edit.index, edit.field): sorted(map(_meant, edit.value)) for edit in edits}
    before = _content(root)
    entries = before[1]
    for (index, field), items in wanted.items():
        entries[index][_key(field)] = items
    return before == _content(after, wanted)


def _content(root: Any, listed: Container[tuple[int, str]] = ()) -> tuple[object, list[Any]]:
    """Return what a file says: all around the entries, and each entry by its keys.

    Args:
        listed: fields of entries, of whose lists the order does not count.
    """
    entries = []
    for index, entry in enumerate(_entries(root)):
        if isinstance(entry, yaml.MappingNode):
            pairs = [
                (
                    _exactly(key),
                    sorted(map(_said, value.value))
                    if (index, str(key.value)) in listed and isinstance(value, yaml.SequenceNode)
                    else _exactly(value),
                )
                for key, value in entry.value
            ]
            entries.append(dict(pairs))
    around = (
        [pair for pair in root.value if pair[0].value != "queries"]
        if isinstance(root, yaml.MappingNode)
        else []
    )
    return [_exactly(part) for pair in around for part in pair], entries


def _key(field: str) -> object:
    return "tag:yaml.org,2002:str", field


def _exactly(node: Any) -> object:
    if isinstance(node, yaml.ScalarNode):
        return node.tag, node.value
    parts = (part for one in node.value for part in (one if isinstance(one, tuple) else (one,)))
    return node.tag, tuple(_exactly(part) for part in parts)


def _said(item: Any) -> str:
    """Return an item of a list as the golden reader takes it: raw text, NFC."""
    if isinstance(item, yaml.MappingNode):
        return repr(sorted((key.value, _said(value)) for key, value in item.value))
    if isinstance(item, yaml.SequenceNode):
        return repr([_said(one) for one in item.value])
    return unicodedata.normalize("NFC", item.value)


def _meant(item: Any) -> str:
    if isinstance(item, Mapping):
        return repr(sorted((key, _meant(value)) for key, value in item.items()))
    return unicodedata.normalize("NFC", item if isinstance(item, str) else number(item))
