"""The golden formats by name, and which one a file is in.

A format is one file in this package and one line in :data:`FORMATS`. Its reader adds every fault to
the list that it is given and raises only where the file cannot be read at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kebab_eval.errors import Fault, GoldenError
from kebab_eval.golden.entries import Entry
from kebab_eval.golden.kebab import read_kebab
from kebab_eval.yaml_source import Node, parse_yaml, read_text

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a golden file is to be read, beyond its path.

    Args:
        format: a key of :data:`FORMATS`, or ``auto``.
        map: for ``mapped``: our field -> where it stands in the user's objects.
        qrels: for ``trec``: the judgments of the topics.
        split: for ``beir``: which qrels file.
    """

    format: str = AUTO
    map: Mapping[str, Any] | None = None
    qrels: Path | None = None
    split: str | None = None


@dataclass(slots=True)
class Parsed:
    """A golden file as its format's reader understood it.

    Args:
        entries: in file order.
        version: what the file calls itself.
        min_relevance: the grade from which an item is relevant, unless the config says otherwise.
        top_grade: the highest grade of its scale, None where the scale is open.
        root: the root node of a YAML file.
    """

    format: str
    entries: list[Entry]
    version: str = "1"
    min_relevance: float = 1
    top_grade: float | None = None
    root: Node | None = field(default=None, repr=False)


Reader = Callable[[Path, ReadOptions, list[Fault]], Parsed]


@dataclass(frozen=True, slots=True)
class GoldenFormat:
    """A golden format: what it is, and its reader."""

    title: str
    read: Reader


def yaml_root(path: Path) -> Node:
    """Return the root node of a YAML golden file.

    Raises:
        GoldenError: the file cannot be read, is no YAML, or is empty.
    """
    source = str(path)
    root = parse_yaml(read_text(path, GoldenError, "golden set"), source, GoldenError)
    if root is None or root.is_null or (root.kind == "list" and not root.value):
        message = "golden set is empty; it needs at least one query"
        raise GoldenError(Fault(source, message, "empty"))
    return root


def _read_kebab(path: Path, options: ReadOptions, faults: list[Fault]) -> Parsed:
    root = yaml_root(path)
    return Parsed("kebab", read_kebab(root, faults), root=root)


FORMATS: dict[str, GoldenFormat] = {
    "kebab": GoldenFormat("kebab's list of queries (YAML)", _read_kebab),
}


def parse_golden(path: Path, options: ReadOptions | None = None) -> tuple[Parsed, list[Fault]]:
    """Return what a golden file says, and everything that is wrong with how it says it.

    Raises:
        GoldenError: the file cannot be read at all, or its format is not known.
    """
    options = options or ReadOptions()
    faults: list[Fault] = []
    name = "kebab" if options.format == AUTO else options.format
    parsed = FORMATS[name].read(path, options, faults)
    parsed.entries = [_with_span_documents(entry) for entry in parsed.entries]
    return parsed, faults


def _with_span_documents(entry: Entry) -> Entry:
    """Judge the documents of spans, where an entry judges no document itself."""
    query = entry.query
    if not query.spans or query.judgments.doc:
        return entry
    documents: dict[str, float] = {}
    places = dict(entry.id_places)
    for span in query.spans:
        documents[span.doc] = max(span.grade, documents.get(span.doc, 0.0))
        places.setdefault(("doc", span.doc), span.place)
    judged = replace(query, judgments=replace(query.judgments, doc=documents))
    return replace(entry, query=judged, id_places=places)
