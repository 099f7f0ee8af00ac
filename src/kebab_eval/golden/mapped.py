"""People's own sets: any JSON array, JSON lines or CSV, through a map of fields.

    golden:
      path: questions.json
      format: mapped
      map: {query: question, expected_doc_ids: sources.path, failure_expected: type=negative}

On the left stand this project's fields, on the right where they stand in the file's objects: a key,
a dotted path (``sources.path`` or ``sources[].path`` through a list), or for a yes or no
``path=value``. A field without an entry is looked for under its usual names.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kebab_eval.errors import Fault, nearest
from kebab_eval.formats.jsonl import Number
from kebab_eval.golden.entries import MAX_GRADE, Entry, span_of
from kebab_eval.golden.objects import Item, as_node, cell_value, read_objects
from kebab_eval.records import GoldenQuery, Judgments, Level, Span

#: Our field -> the names it usually has; the first that any object holds is taken.
USUAL: dict[str, tuple[str, ...]] = {
    "id": ("id", "query_id", "question_id", "qid", "_id"),
    "query": ("query", "question", "text"),
    "lang": ("lang", "language"),
    "category": ("category", "question_type"),
    "difficulty": ("difficulty",),
    "group": ("group",),
    "expected_doc_ids": (
        "expected_doc_ids",
        "ground_truth_sources",
        "relevant_docs",
        "relevant_ids",
        "expected_sources",
        "sources",
    ),
    "expected_chunk_ids": ("expected_chunk_ids", "relevant_chunks"),
    "relevance": ("relevance", "graded_relevance", "judgments"),
    "expected_spans": ("expected_spans",),
    "quote": ("quote", "quotes", "chunk_text_snippet"),
    "quote_doc": ("quote_doc",),
    "must_contain": ("must_contain",),
    "forbidden": ("forbidden",),
    "notes": ("notes",),
    "failure_expected": ("failure_expected", "question_type=negative"),
    "ocr_derived": ("ocr_derived",),
}
FIELDS = tuple(USUAL)
_ITEM_KEYS: dict[str, Level] = {
    "doc_id": "doc",
    "document_id": "doc",
    "doc": "doc",
    "source": "doc",
    "path": "doc",
    "id": "doc",
    "chunk_id": "chunk",
    "chunk": "chunk",
}
_GAIN_KEYS = ("gain", "grade", "relevance", "score", "rel")
_SECTION = re.compile(r"(?P<doc>.*\.\w{1,8})#(?P<section>.+)", re.DOTALL)
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0", "")
_CELL_LIST = re.compile(r"\s*[;|]\s*")


def map_faults(given: Mapping[str, Any] | None) -> list[str]:
    """Return what is wrong with a map, whatever file it is for."""
    return [
        f"{name!r} is no field{nearest(name, FIELDS)}; there are {', '.join(FIELDS)} and tags.NAME"
        for name in given or {}
        if name not in USUAL and not (name.startswith("tags.") and len(name) > len("tags."))
    ]


def read_mapped(
    path: Path, given: Mapping[str, Any] | None, faults: list[Fault]
) -> tuple[list[Entry], float]:
    """Return the entries of a file, and the gain from which an item is relevant.

    That is 1, and the least positive gain where there are fractional ones. What is wrong is added
    to ``faults``.

    Raises:
        GoldenError: the file cannot be read at all.
    """
    wrong = [Fault("golden.map", message, "unknown-field") for message in map_faults(given)]
    faults += wrong
    before = len(faults)
    items = read_objects(path, faults)
    if not items:
        if len(faults) == before:
            message = "golden set is empty; it needs at least one query"
            faults.append(Fault(str(path), message, "empty"))
        return [], 1
    paths = _paths(items, given or {}, path, faults)
    if "query" not in paths:
        if "query" not in (given or {}):
            keys = ", ".join(list(dict.fromkeys(k for item in items[:20] for k in item.data))[:20])
            message = f"no field holds the query; name it in golden.map (found: {keys})"
            faults.append(Fault(str(path), message, "missing-field"))
        return [], 1
    reader = _Reader(paths, faults)
    entries = _with_ids([entry for item in items if (entry := reader.entry(item))])
    gains = [
        gain
        for entry in entries
        for judged in (entry.query.judgments.chunk, entry.query.judgments.doc)
        for gain in judged.values()
    ]
    fractional = any(not gain.is_integer() for gain in gains)
    return entries, min((g for g in gains if g > 0), default=1.0) if fractional else 1.0


def _paths(
    items: Sequence[Item], given: Mapping[str, Any], path: Path, faults: list[Fault]
) -> dict[str, str]:
    """Return our field -> where it stands, of the fields that stand anywhere."""
    paths: dict[str, str] = {}
    for name, where in given.items():
        if name not in USUAL and not name.startswith("tags."):
            continue
        step = str(where).partition("=")[0]
        if any(_stands(item.data, step) for item in items):
            paths[name] = str(where)
        else:
            keys = list(dict.fromkeys(key for item in items[:100] for key in item.data))
            inner = dict.fromkeys(path for item in items[:100] for path in _inner(item.data))
            hint = nearest(step, [*keys, *inner]) or f"; they have {', '.join(keys[:20])}"
            message = f"no object of {path} has {step!r}{hint}"
            faults.append(Fault(f"golden.map.{name}", message, "unknown-field"))
    taken = {str(where).partition("=")[0] for where in given.values()}
    for name, usual in USUAL.items():
        if name in given:
            continue
        for where in usual:
            key = where.partition("=")[0]
            if key not in taken and any(key in item.data for item in items):
                paths[name] = where
                break
    return paths


def _found(data: Any, path: str) -> list[Any]:
    """Return what stands at a dotted path: every value, through lists; no empty ones."""
    if isinstance(data, Mapping) and path in data:
        return _flat(data[path])
    step, dot, rest = path.partition(".")
    step = step.removesuffix("[]")
    if not isinstance(data, Mapping) or step not in data or not (dot or path.endswith("[]")):
        return []
    if not dot:
        return _flat(data[step])
    return [value for part in _flat(data[step]) for value in _found(part, rest)]


def _stands(data: Mapping[str, Any], path: str) -> bool:
    """Say whether a path leads anywhere, be it to nothing (``null``, an empty list)."""
    if path in data:
        return True
    above, dot, last = path.rpartition(".")
    return any(isinstance(one, Mapping) and last.removesuffix("[]") in one
               for one in (_found(data, above) if dot else [data]))  # fmt: skip


def _inner(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the dotted paths one level down."""
    for key, value in data.items():
        many = "[]" if isinstance(value, list) else ""
        for child in _flat(value):
            if isinstance(child, Mapping):
                yield from (f"{key}{many}.{name}" for name in child)


def _flat(value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    return [one for one in values if one is not None and one != ""]


class _Reader:
    """Reads the fields of one object after the other; what is wrong goes to ``faults``."""

    def __init__(self, paths: Mapping[str, str], faults: list[Fault]) -> None:
        self.paths = paths
        self.faults = faults
        self.item = Item({}, "")

    def entry(self, item: Item) -> Entry | None:
        self.item = item
        before = len(self.faults)
        query = self.text("query")
        if query is None:
            if len(self.faults) == before:
                self.fault(f"{self.paths['query']!r} (the query) is missing", "missing-field")
            return None
        failure = self.boolean("failure_expected")
        documents, sections = self.references()
        graded = self.graded()
        doc = dict.fromkeys(documents, 1.0) | graded["doc"]
        sections = [replace(span, grade=doc[span.doc]) for span in sections]
        chunk = dict.fromkeys(self.texts("expected_chunk_ids"), 1.0) | graded["chunk"]
        spans = (*sections, *self.spans(doc), *self.quotes(doc))
        if failure and (doc or chunk or spans):
            message = "a query that nothing answers (failure_expected) has no judgments"
            self.fault(message, "failure-judged")
        tags = {
            name.removeprefix("tags."): value
            for name in self.paths
            if name.startswith("tags.") and (value := self.text(name)) is not None
        }
        golden_query = GoldenQuery(
            query_id=self.text("id") or "",
            query=query,
            judgments=Judgments(chunk=chunk, doc=doc),
            language=self.text("lang"),
            category=self.text("category"),
            difficulty=self.text("difficulty"),
            group=self.text("group"),
            ocr_derived=self.boolean("ocr_derived"),
            failure_expected=bool(failure),
            must_contain=tuple(self.texts("must_contain")),
            forbidden=tuple(self.texts("forbidden")),
            tags=tags,
            spans=spans,
            notes=self.text("notes") or "",
            place=item.place,
        )
        judged: dict[Level, Iterable[str]] = {"doc": doc, "chunk": chunk}
        places = {(level, name): item.place for level, names in judged.items() for name in names}
        return Entry(golden_query, places, {}, sound=len(self.faults) == before)

    def fault(self, message: str, code: str) -> None:
        self.faults.append(Fault(self.item.place, message, code))

    def values(self, name: str) -> list[Any]:
        where = self.paths.get(name)
        return [] if where is None else _found(self.item.data, where)

    def text(self, name: str) -> str | None:
        values = self.values(name)
        if not values:
            return None
        if len(values) > 1 or isinstance(values[0], (dict, list)):
            self.fault(f"{self.paths[name]!r} ({name}) must be one text", "type")
            return None
        return _text(values[0]) or None

    def texts(self, name: str) -> list[str]:
        found: dict[str, None] = {}
        for value in self.values(name):
            if isinstance(value, (dict, list, bool)):
                where = self.paths[name]
                hint = f"; for a key of its objects, map {name} to '{where}.KEY'"
                message = f"{where!r} ({name}) must hold texts"
                self.fault(message + (hint if isinstance(value, dict) else ""), "type")
                return []
            for text in self.cells(value):
                found.setdefault(text)
        return list(found)

    def cells(self, value: Any) -> list[str]:
        """Return the texts of a value: several in a CSV's cell, as a JSON list or with ; or |."""
        text = _text(value)
        if not self.item.flat:
            return [text] if text else []
        if text.startswith("[") and text.endswith("]"):
            listed = cell_value(text)
            if not isinstance(listed, list):
                message = f'the cell {text[:40]!r} is no JSON list; write ["a.md"] or a.md;b.md'
                self.fault(message, "type")
                return []
            return [_text(one) for one in listed if isinstance(one, str) and one.strip()]
        return [part for part in _CELL_LIST.split(text) if part]

    def boolean(self, name: str) -> bool | None:
        where = self.paths.get(name)
        if where is None:
            return None
        path, condition, wanted = where.partition("=")
        values = [_text(value).lower() for value in _found(self.item.data, path)]
        if condition:
            return _text(wanted).lower() in values
        if not values:
            return None
        if len(values) > 1 or values[0] not in _YES + _NO:
            self.fault(f"{path!r} ({name}) must be true or false, found {values[0]!r}", "type")
            return None
        return values[0] in _YES

    def references(self) -> tuple[list[str], list[Span]]:
        """Return the expected documents, and a span for each that names a section."""
        documents: dict[str, None] = {}
        spans = []
        for text in self.texts("expected_doc_ids"):
            match = _SECTION.fullmatch(text)
            documents.setdefault(match["doc"] if match else text)
            if match:
                spans.append(Span(match["doc"], section=match["section"], place=self.item.place))
        return list(documents), spans

    def graded(self) -> dict[Level, dict[str, float]]:
        """Return the gains of ``relevance``: ``{id: gain}``, or objects with an id and a gain."""
        found: dict[Level, dict[str, float]] = {"doc": {}, "chunk": {}}
        for value in self.objects("relevance"):
            if not isinstance(value, dict):
                message = f"{self.paths['relevance']!r} must hold objects such as "
                self.fault(message + '{"doc_id": "a.md", "gain": 0.5}', "type")
                break
            gain_key = next((key for key in _GAIN_KEYS if key in value), None)
            item_key = next((key for key in _ITEM_KEYS if isinstance(value.get(key), str)), None)
            if item_key and gain_key and _text(value[item_key]):
                pairs = [(_ITEM_KEYS[item_key], _text(value[item_key]), value[gain_key])]
            elif gain_key or (item_key and not isinstance(value[item_key], Number)):
                needs = "a gain" if item_key else f"an id ({', '.join(_ITEM_KEYS)})"
                self.fault(
                    f"an object of {self.paths['relevance']!r} lacks {needs}", "missing-field"
                )
                continue
            else:
                pairs = [("doc", _text(key), gain) for key, gain in value.items()]
            for level, item, gain in pairs:
                number = self.gain(item, gain)
                if number is not None:
                    found[level][item] = number
        return found

    def objects(self, name: str) -> list[Any]:
        """Return the objects of a field; in a CSV they stand as JSON in its cell."""
        values = self.values(name)
        if self.item.flat:
            parsed = [cell_value(value) for value in values]
            return [one for part in parsed for one in (part if isinstance(part, list) else [part])]
        return values

    def gain(self, item: str, value: Any) -> float | None:
        try:
            number = float(value) if isinstance(value, str) else math.nan
        except ValueError:
            number = math.nan
        if not abs(number) <= MAX_GRADE:
            message = f"the gain of {item!r} must be a number up to {MAX_GRADE}, found {value!r}"
            self.fault(message, "grade")
            return None
        return number

    def spans(self, documents: Mapping[str, float]) -> list[Span]:
        """Return the spans of ``expected_spans``, objects as in this project's own YAML."""
        found = []
        for value in self.objects("expected_spans"):
            if not isinstance(value, dict):
                message = f"{self.paths['expected_spans']!r} must hold objects with doc and quote"
                self.fault(message, "type")
                break
            node = as_node(value, self.item.place)
            span = span_of(node, self.faults, lambda doc: documents.get(doc) or 1.0)
            if span is not None:
                found.append(span)
        return found

    def quotes(self, judged: Mapping[str, float]) -> list[Span]:
        """Return a span for each quote: of the one document there is, or each of its own."""
        quotes = [_text(value) for value in self.values("quote") if isinstance(value, str)]
        if not quotes:
            return []
        documents = [_text(value) for value in self.values("quote_doc")] or list(judged)
        if len(documents) == 1:
            documents = documents * len(quotes)
        if len(documents) != len(quotes):
            message = (
                f"{len(quotes)} {'quote' if len(quotes) == 1 else 'quotes'} for {len(documents)} "
                "documents: one document, or one for each quote, says where they stand; quote_doc "
                "in golden.map names them"
            )
            self.fault(message, "span")
            return []
        return [
            Span(doc, quote, grade=judged.get(doc) or 1.0, place=self.item.place)
            for doc, quote in zip(documents, quotes, strict=True)
            if quote
        ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return unicodedata.normalize("NFC", str(value)).strip()


def _with_ids(entries: Sequence[Entry]) -> list[Entry]:
    """Give an entry without an id one that follows from its text: the same in any order."""
    made: Counter[str] = Counter()
    named = []
    for entry in entries:
        if not entry.query.query_id:
            digest = hashlib.sha256(entry.query.query.encode("utf-8", "surrogatepass")).hexdigest()
            query_id = f"q-{digest[:8]}"
            made[query_id] += 1
            if made[query_id] > 1:
                query_id = f"{query_id}-{made[query_id]}"
            named.append(replace(entry, query=replace(entry.query, query_id=query_id)))
        else:
            named.append(entry)
    return named
