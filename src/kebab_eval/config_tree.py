"""The files of a config and the overrides on top, merged to one tree that keeps every place.

Nothing here knows what a config may say, beyond which sections change their keys with their type.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kebab_eval.errors import ConfigError, Fault
from kebab_eval.yaml_source import MAX_DEPTH, Node, parse_yaml, read_text

MAX_FILES = 100
TYPED = frozenset({"backend", "rerank", "answer"})
"""Sections whose keys depend on their type."""


@dataclass(slots=True)
class Leaf:
    """A value of the merged tree: its node and the folder that relative paths start from."""

    node: Node
    folder: Path


@dataclass(slots=True)
class Item:
    """What stands under a key of the merged tree, and where the key itself stands."""

    key_place: str
    value: Tree | Leaf


Tree = dict[str, Item]


def merged_tree(path: Path, overrides: Sequence[str]) -> Tree:
    """Return what a config file, what it extends, and the overrides on top say.

    Raises:
        ConfigError: a file cannot be read, or an override is none.
    """
    tree = _extended(path, (), None, [])
    for override in overrides:
        _merge(tree, _override_tree(override))
    return tree


def section_type(path: Path, overrides: Sequence[str], section: str) -> str | None:
    """Return the type that a section is given; None where it is given none.

    Raises:
        ConfigError: a file cannot be read, or an override is none.
    """
    tree = merged_tree(path, overrides)
    value = tree[section].value if section in tree else None
    return _type(value) if isinstance(value, dict) else None


def _extended(path: Path, chain: tuple[Path, ...], asked_at: Node | None, read: list[Path]) -> Tree:
    try:
        resolved = Path(os.path.realpath(path))
    except ValueError:
        resolved = path  # a NUL in the name: reading it tells that
    if resolved in chain:
        circle = " -> ".join(step.name for step in (*chain[chain.index(resolved) :], resolved))
        place = asked_at.place if asked_at else str(path)
        raise ConfigError(Fault(place, f"'extends' goes in a circle: {circle}; take one link out"))
    read.append(resolved)
    if asked_at is not None and len(read) > MAX_FILES:
        message = f"'extends' reads more than {MAX_FILES} files; extend fewer, each once"
        raise ConfigError(Fault(asked_at.place, message))
    try:
        root = parse_yaml(read_text(path, ConfigError, "config file"), str(path), ConfigError)
    except ConfigError as missing:
        if asked_at is None:
            raise
        told = [
            Fault(f.place, f"{f.message} (extended at {asked_at.place})") for f in missing.faults
        ]
        raise ConfigError(told) from None
    if root is None or root.is_null:
        raise ConfigError(
            Fault(str(path), "config file is empty; 'kebab-eval init' writes one to start from")
        )
    if root.kind != "mapping":
        message = f"a config is a mapping of keys to values, found {root.describe()}"
        raise ConfigError(Fault(root.place, message))
    own: Tree = {}
    merged: Tree = {}
    for key, value in root.value:
        if key.value == "extends":
            bases = value.value if value.kind == "list" else [value]
            for base in bases:
                if base.kind != "scalar" or base.is_null or not base.value:
                    message = f"'extends' takes a file or a list of files, found {base.describe()}"
                    raise ConfigError(Fault(base.place, message))
                if "${" in base.value:
                    message = "'extends' takes no environment reference; write the path"
                    raise ConfigError(Fault(base.place, message))
                extended = path.parent / base.value
                _merge(merged, _extended(extended, (*chain, resolved), base, read))
        else:
            own[key.value] = Item(key.place, branch(value, path.parent))
    _merge(merged, own)
    return merged


def branch(node: Node, folder: Path) -> Tree | Leaf:
    if node.kind == "mapping":
        return {key.value: Item(where(key), branch(value, folder)) for key, value in node.value}
    return Leaf(node, folder)


def _merge(base: Tree, over: Tree, *, top: bool = True) -> None:
    for key, item in over.items():
        old, new = base[key].value if key in base else None, item.value
        if not isinstance(new, dict):
            base[key] = item
            continue
        if top and key == "golden" and isinstance(old, Leaf) and old.node.kind == "scalar":
            # The short form is a path; what is merged into it must not lose that.
            old = {"path": Item(base[key].key_place, old)}
            base[key] = Item(base[key].key_place, old)
        # A backend of another type shares no keys with the one it replaces.
        replaced = top and key in TYPED and "type" in new
        if isinstance(old, dict) and not (replaced and _type(new) != _type(old)):
            _merge(old, new, top=False)
        else:
            base[key] = item


def _type(tree: Tree) -> Any:
    leaf = tree["type"].value if "type" in tree else None
    return leaf.node.value if isinstance(leaf, Leaf) else None


def _override_tree(override: str) -> Tree:
    key, separator, text = override.partition("=")
    place = f"-S {key}"
    steps = key.strip().split(".")
    if not separator or not all(steps):
        message = "an override is written key.path=value, as in fusion.rrf_k=20"
        raise ConfigError(Fault(f"-S {override}", message))
    if len(steps) > MAX_DEPTH or not_unicode(key):
        raise ConfigError(Fault(f"-S {key[:200]}", "no key of a config is called that"))
    try:
        node = parse_yaml(text, place, ConfigError)
    except ConfigError as broken:
        raise ConfigError([Fault(place, fault.message) for fault in broken.faults]) from None
    if node is None:
        node = Node("scalar", "", 1, 1, place, plain=True)
    _place_at(node, place)
    tree: Tree = {steps[-1]: Item(place, branch(node, Path()))}
    for step in reversed(steps[:-1]):
        tree = {step: Item(place, tree)}
    return tree


def _place_at(node: Node, place: str) -> None:
    """Make a node from the command line tell its option instead of a line and a column."""
    node.source, node.line = place, 0
    if node.kind == "mapping":
        for key, value in node.value:
            _place_at(key, place)
            _place_at(value, place)
    elif node.kind == "list":
        for child in node.value:
            _place_at(child, place)


def where(node: Node) -> str:
    return node.place if node.line else node.source


def not_unicode(text: Any) -> bool:
    return isinstance(text, str) and any("\ud800" <= character <= "\udfff" for character in text)
