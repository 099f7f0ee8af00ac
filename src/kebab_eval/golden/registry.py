"""The golden formats by name, and which one a file is in.

A format is one file in this package and one line in :data:`FORMATS`. Its reader adds every fault to
the list that it is given and raises only where the file cannot be read at all.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kebab_eval.errors import Fault, GoldenError, nearest
from kebab_eval.golden.beir_set import read_beir_set
from kebab_eval.golden.docserver import (
    MARKS,
    RELEVANT_FROM,
    TOP_GRADE,
    declared_version,
    is_graded,
    read_docserver,
)
from kebab_eval.golden.entries import Entry, query_nodes
from kebab_eval.golden.jsonl_set import is_jsonl_set, read_jsonl_set
from kebab_eval.golden.kebab import read_kebab
from kebab_eval.golden.mapped import read_mapped
from kebab_eval.golden.trec_set import looks_like_topics, read_trec_set
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


Reader = Callable[[Path, ReadOptions, list[Fault], "Node | None"], Parsed]
"""Takes path, options, the list to add faults to, and the root node if it is parsed already."""


@dataclass(frozen=True, slots=True)
class GoldenFormat:
    """A golden format: what it is, and its reader."""

    title: str
    read: Reader


def yaml_root(path: Path, root: Node | None = None) -> Node:
    """Return the root node of a YAML golden file.

    Args:
        root: what detection has parsed already.

    Raises:
        GoldenError: the file cannot be read, is no YAML, or is empty.
    """
    source = str(path)
    if root is None:
        root = parse_yaml(read_text(path, GoldenError, "golden set"), source, GoldenError)
    if root is None or root.is_null or (root.kind == "list" and not root.value):
        message = "golden set is empty; it needs at least one query"
        raise GoldenError(Fault(source, message, "empty"))
    return root


def _read_kebab(path: Path, options: ReadOptions, faults: list[Fault], root: Node | None) -> Parsed:
    root = yaml_root(path, root)
    version = declared_version(root) or "1"
    return Parsed("kebab", read_kebab(root, faults), version=version, root=root)


def _read_docserver(
    path: Path, options: ReadOptions, faults: list[Fault], root: Node | None
) -> Parsed:
    root = yaml_root(path, root)
    graded = is_graded(root)
    return Parsed(
        "docserver",
        read_docserver(root, faults, graded=graded),
        version=declared_version(root) or ("0.2" if graded else "0.1"),
        min_relevance=RELEVANT_FROM,
        top_grade=TOP_GRADE,
        root=root,
    )


def _read_beir(path: Path, options: ReadOptions, faults: list[Fault], root: Node | None) -> Parsed:
    return Parsed("beir", read_beir_set(path, options.split, faults))


def _read_trec(path: Path, options: ReadOptions, faults: list[Fault], root: Node | None) -> Parsed:
    return Parsed("trec", read_trec_set(path, options.qrels, faults))


def _read_mapped(
    path: Path, options: ReadOptions, faults: list[Fault], root: Node | None
) -> Parsed:
    entries, min_relevance = read_mapped(path, options.map, faults)
    return Parsed("mapped", entries, min_relevance=min_relevance)


def _read_jsonl(path: Path, options: ReadOptions, faults: list[Fault], root: Node | None) -> Parsed:
    return Parsed("jsonl", read_jsonl_set(path, faults))


FORMATS: dict[str, GoldenFormat] = {
    "kebab": GoldenFormat("kebab's list of queries (YAML)", _read_kebab),
    "docserver": GoldenFormat("the Document Server's set, v0.2 or v0.1 (YAML)", _read_docserver),
    "beir": GoldenFormat("a BEIR folder", _read_beir),
    "trec": GoldenFormat("TREC topics, with golden.qrels", _read_trec),
    "mapped": GoldenFormat("any JSON array, JSON lines or CSV, through golden.map", _read_mapped),
    "jsonl": GoldenFormat("this project's own lines, as in a record's golden.jsonl", _read_jsonl),
}


def parse_golden(path: Path, options: ReadOptions | None = None) -> tuple[Parsed, list[Fault]]:
    """Return what a golden file says, and everything that is wrong with how it says it.

    Raises:
        GoldenError: the file cannot be read at all, or its format is not known.
    """
    options = options or ReadOptions()
    faults: list[Fault] = []
    with without_collector():
        name, root = (options.format, None) if options.format != AUTO else _detected(path, options)
        if name not in FORMATS:
            message = f"no golden format is called {name!r}{nearest(name, FORMATS)}; there are: "
            raise GoldenError(Fault(str(path), message + ", ".join(FORMATS)))
        if path.is_dir() and name != "beir":
            message = "golden set is a folder; name a file in it, or a BEIR folder"
            raise GoldenError(Fault(str(path), message, "unreadable"))
        parsed = FORMATS[name].read(path, options, faults, root)
        parsed.entries = [_with_span_documents(entry) for entry in parsed.entries]
    return parsed, faults


def detect(path: Path, options: ReadOptions | None = None) -> str:
    """Return the format of a file, by its ending and what stands in it.

    Raises:
        GoldenError: the file cannot be read, or it cannot be told.
    """
    return _detected(path, options or ReadOptions())[0]


def _detected(path: Path, options: ReadOptions) -> tuple[str, Node | None]:
    """Return the format of a file, and its root node if it had to be parsed for that."""
    suffix = path.suffix.lower()
    if path.is_dir():
        if any((path / f"queries.jsonl{end}").is_file() for end in ("", ".gz")):
            return "beir", None
        message = "golden set is a folder without queries.jsonl, so no BEIR folder; name a file"
        raise GoldenError(Fault(str(path), message, "unreadable"))
    if options.map is not None:
        return "mapped", None
    if options.qrels is not None or suffix in (".topics", ".trec", ".xml"):
        return "trec", None
    if suffix in (".jsonl", ".ndjson"):
        text = read_text(path, GoldenError, "golden set")
        return "jsonl" if is_jsonl_set(text) else "mapped", None
    if suffix in (".json", ".csv", ".tsv"):
        return "mapped", None
    text = read_text(path, GoldenError, "golden set")
    if looks_like_topics(text):
        return "trec", None
    if suffix not in ("", ".yaml", ".yml"):
        named = ", ".join(FORMATS)
        message = f"the ending {suffix!r} names no golden format; set golden.format to one: {named}"
        raise GoldenError(Fault(str(path), message, "unreadable"))
    root = parse_yaml(text, str(path), GoldenError)
    if root is None:
        return "kebab", None
    fields = {key.value for node in query_nodes(root, []) for key, _ in node.value}
    return "docserver" if fields & MARKS else "kebab", root


@contextmanager
def without_collector() -> Iterator[None]:
    """Hold the cycle collector: it would walk a million nodes, of which none is in a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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
