"""YAML as it stands in the file: every node keeps its line, its column and its raw text.

PyYAML's own loaders lose what this project needs: where a value stands (for messages) and what
its characters were (an id ``02142`` must not become 1122). The composer below reads the C parser's
events without recursion, so depth and alias expansion are bounded by counting and never by the
stack.

Plain scalars follow YAML 1.2's core schema: ``no`` and ``on`` are words, ``02142`` is two thousand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from kebab_eval.errors import Fault, InputError

MAX_DEPTH = 60
MAX_NODES = 5_000_000
MAX_ALIASED = 100_000  # what aliases may add to the values that stand in the file
MAX_BYTES = 256 * 1024 * 1024

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_MAX_DIGITS = 400  # beyond this int() refuses or crawls; no number in these files is longer

_FORBIDDEN = re.compile(  # what YAML allows in no document, lone surrogates among it
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True, eq=False)
class Node:
    """A mapping, a list or a scalar, with where it stands (line and column from 1).

    ``value`` is a list of (key node, value node) pairs, a list of nodes, or a scalar's raw text.
    ``plain`` says that a scalar stood without quotes, so that it may be read as a number or null.
    """

    kind: Literal["mapping", "list", "scalar"]
    value: Any
    line: int
    column: int
    source: str
    plain: bool = False

    @property
    def place(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and self.plain and self.value in _NULL

    def python(self) -> Any:
        """Return the plain Python value. Depth is bounded by the composer, so recursion is safe."""
        if self.kind == "mapping":
            return {key.value: child.python() for key, child in self.value}
        if self.kind == "list":
            return [child.python() for child in self.value]
        return resolve_scalar(self.value) if self.plain else self.value

    def describe(self) -> str:
        """Return what was found, short enough for a message: ``a list``, ``'x'``, ``12``."""
        if self.kind != "scalar":
            return f"a {self.kind}"
        text = self.value if len(self.value) <= 40 else self.value[:37] + "..."
        if self.is_null:
            return "nothing"
        return text if self.plain and not isinstance(self.python(), str) else repr(text)


def resolve_scalar(text: str) -> Any:
    """Return the value of a plain scalar: None, a bool, an int, a float, or the text itself."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if len(text) <= _MAX_DIGITS:
        if _INT.match(text):
            return int(text)
        if _FLOAT.match(text):
            return float(text)
    return text


def read_text(path: Path, error: type[InputError], what: str) -> str:
    """Return a file's text: strict UTF-8, a byte-order mark taken off.

    Args:
        error: the class to raise when the file is missing, unreadable, binary or not UTF-8.
        what: what the file is, for the message (``config file``).
    """
    source = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)  # a device or a pipe does not tell its size before
    except FileNotFoundError:
        raise error(Fault(source, f"{what} does not exist; check the path")) from None
    except IsADirectoryError:
        raise error(Fault(source, f"{what} is a folder; name a file in it")) from None
    except OSError as reason:
        raise error(Fault(source, f"{what} cannot be read: {reason.strerror}")) from reason
    except ValueError as reason:  # an embedded NUL in the path
        raise error(Fault(repr(source), f"{what} cannot be read: {reason}")) from reason
    if len(data) > MAX_BYTES:
        raise error(Fault(source, f"{what} is larger than {MAX_BYTES // 2**20} MiB"))
    if b"\0" in data:
        raise error(Fault(source, f"{what} is a binary file; expected UTF-8 text"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        # The codec counts from behind a byte-order mark; everything before the fault is sound.
        before = reason.object[: reason.start].decode()
        message = (
            f"{what} is not UTF-8 (byte 0x{reason.object[reason.start]:02x}); save it as UTF-8"
        )
        raise error(Fault(_place_after(before, source), message)) from None


def _place_after(before: str, source: str) -> str:
    """Return the place of the character that follows a text."""
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"{source}:{line}:{column}"


def parse_yaml(text: str, source: str, error: type[InputError]) -> Node | None:
    """Return the root node of one YAML document, or None when the text holds none.

    Args:
        source: the name that places are told with.
        error: the class to raise on broken YAML, duplicate keys, more than one document, nesting
            deeper than ``MAX_DEPTH`` or aliases that expand past ``MAX_NODES``.
    """
    try:
        # What yaml.parse does, without a generator between each event and its reader.
        loader = _Loader(text)
        try:
            return _Composer(source, error).compose(loader.get_event)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as reason:
        mark = reason.problem_mark or reason.context_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        said = ", ".join(part for part in (reason.context, reason.problem) if part)
        raise error(Fault(place, f"not valid YAML: {said}")) from reason
    except (yaml.YAMLError, UnicodeEncodeError) as reason:  # a character that YAML forbids
        found = _FORBIDDEN.search(text)
        if found is None:
            said = str(reason).splitlines()[0]
            raise error(Fault(source, f"not valid YAML: {said}")) from reason
        place = _place_after(text[: found.start()], source)
        message = f"not valid YAML: character U+{ord(found[0]):04X} may not stand in it"
        raise error(Fault(place, message)) from None


class _Open:
    """A mapping or list that is being filled; ``size`` counts its values, aliases unfolded."""

    __slots__ = ("anchor", "key", "node", "size")

    def __init__(self, node: Node, anchor: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.size = 1
        self.key: Node | None = None  # of a mapping, until its value comes

    def attach(self, node: Node) -> None:
        if self.node.kind == "list":
            self.node.value.append(node)
        elif self.key is None:
            self.key = node
        else:
            self.node.value.append((self.key, node))
            self.key = None


class _Composer:
    def __init__(self, source: str, error: type[InputError]) -> None:
        self.source = source
        self.error = error
        self.nodes = 0  # those that stand in the text
        self.sizes: dict[int, int] = {}  # id of a finished anchored node -> nodes when expanded
        self.faults: list[Fault] = []

    def compose(self, next_event: Callable[[], Any]) -> Node | None:
        """Return the root node. One loop with few calls: a golden set has some 400,000 events.

        Args:
            next_event: returns an event, None after the last.
        """
        root: Node | None = None
        source = self.source
        scalar_event = yaml.ScalarEvent
        open_nodes: list[_Open] = []
        parent: _Open | None = None
        anchors: dict[str, Node] = {}
        documents = 0
        while (event := next_event()) is not None:
            kind = type(event)
            if kind is scalar_event:
                mark = event.start_mark
                plain = not event.style and event.implicit[0]
                node = Node("scalar", event.value, mark.line + 1, mark.column + 1, source, plain)
                self.nodes += 1
                if self.nodes > MAX_NODES:
                    self._fail(event, f"holds more than {MAX_NODES:,} values")
                if event.anchor:
                    anchors[event.anchor] = node
                if parent is None:
                    root = node
                else:
                    parent.attach(node)
                    parent.size += 1  # which stands in the text, so that nothing expands
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if len(open_nodes) >= MAX_DEPTH:
                    self._fail(event, f"nested deeper than {MAX_DEPTH} levels")
                mark = event.start_mark
                is_mapping = kind is yaml.MappingStartEvent
                node = Node(
                    "mapping" if is_mapping else "list", [], mark.line + 1, mark.column + 1, source
                )
                self.nodes += 1
                if self.nodes > MAX_NODES:
                    self._fail(event, f"holds more than {MAX_NODES:,} values")
                if parent is not None:
                    parent.attach(node)
                parent = _Open(node, event.anchor)
                open_nodes.append(parent)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                closed = open_nodes.pop()
                node = closed.node
                if node.kind == "mapping":
                    self._check_keys(node)
                if closed.anchor:
                    anchors[closed.anchor] = node
                    self.sizes[id(node)] = closed.size
                if open_nodes:
                    parent = open_nodes[-1]
                    self._count(event, parent, closed.size)
                else:
                    parent, root = None, node
            elif kind is yaml.AliasEvent:
                aliased = anchors.get(str(event.anchor))
                if aliased is None:
                    self._fail(event, f"alias *{event.anchor} has no anchor before it")
                elif parent is not None:
                    parent.attach(aliased)
                    self._count(event, parent, self.sizes.get(id(aliased), 1))
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self._fail(event, "a second document starts here; only one is allowed")
        if self.faults:
            raise self.error(self.faults)
        return root

    def _check_keys(self, node: Node) -> None:
        seen: dict[str, Node] = {}
        for key, _ in node.value:
            if key.kind != "scalar":
                message = f"a key must be a word, found {key.describe()}"
                self.faults.append(Fault(key.place, message))
            elif key.value in seen:
                first = seen[key.value].line
                message = f"key {key.value!r} stands twice (first on line {first}); keep one"
                self.faults.append(Fault(key.place, message))
            else:
                seen[key.value] = key

    def _count(self, event: Any, parent: _Open, more: int) -> None:
        parent.size += more
        if parent.size > self.nodes + MAX_ALIASED:
            message = f"expands to more than {MAX_ALIASED:,} values by its aliases; unfold them"
            self._fail(event, message)

    def _fail(self, event: Any, message: str) -> None:
        mark = event.start_mark
        place = f"{self.source}:{mark.line + 1}:{mark.column + 1}"
        raise self.error([*self.faults, Fault(place, message)])
