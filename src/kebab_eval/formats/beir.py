"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``, each plain or gzip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kebab_eval.errors import Fault, FormatError
from kebab_eval.formats.columns import Columns, Rows
from kebab_eval.formats.jsonl import BadLine, Number, id_of, numbered_objects
from kebab_eval.formats.lines import numbered_lines
from kebab_eval.formats.trec_strict import number_fault
from kebab_eval.metrics.ranktable import normalise_id

HEADER = (b"query-id", b"corpus-id", b"score")


@dataclass(frozen=True)
class BeirDocument:
    """One line of ``corpus.jsonl``."""

    doc_id: str
    title: str
    text: str


@dataclass(frozen=True)
class BeirSet:
    """A BEIR folder without its corpus.

    Args:
        folder: where it is; :func:`beir_corpus` reads its documents.
        split: the qrels file that was read, without ending.
        queries: query id -> text, of all splits.
        qrels: query id -> document id -> grade, of this split.
    """

    folder: Path
    split: str
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]


def read_beir(folder: str | Path, split: str | None = None) -> BeirSet:
    """Return the queries and judgments of a BEIR folder.

    Args:
        folder: holds ``queries.jsonl`` and ``qrels/``.
        split: ``test``, ``dev``, …; None takes ``test``, or the only one there is.

    Raises:
        FormatError: a file is missing, with every malformed line, or a judged query has no text.
    """
    folder = Path(folder)
    qrels_path, name = _qrels_path(folder, split)
    queries = _texts(_existing(folder, "queries.jsonl"))
    qrels = beir_columns(qrels_path).by_query()
    unknown = [query for query in qrels if query not in queries]
    if unknown:
        raise FormatError(
            Fault(str(qrels_path), f"query {query!r} is judged but not in queries.jsonl")
            for query in unknown
        )
    grades = {q: {d: int(grade) for d, grade in judged.items()} for q, judged in qrels.items()}
    return BeirSet(folder, name, queries, grades)


def beir_corpus(folder: str | Path) -> Iterator[BeirDocument]:
    """Return the documents of a BEIR folder, one by one.

    Raises:
        FormatError: after the last document, with every malformed or repeated line.
    """
    path = _existing(Path(folder), "corpus.jsonl")
    rows = Rows(str(path))
    seen: dict[str, int] = {}
    for number, data in numbered_objects(path, rows):
        try:
            document = BeirDocument(
                id_of(data, ("_id",)), _text(data, "title", ""), _text(data, "text", None)
            )
        except BadLine as error:
            rows.fault(number, str(error))
            continue
        earlier = seen.setdefault(document.doc_id, number)
        if earlier != number:
            rows.fault(number, f"document {document.doc_id!r} stands on line {earlier} already")
            continue
        yield document
    rows.columns()


def beir_columns(path: Path) -> Columns:
    """Return the rows of a BEIR qrels file: a header, then query, document and grade by tabs.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    rows = Rows(str(path))
    header = False
    for number, line in numbered_lines(path):
        fields = [field.strip() for field in line.split(b"\t")]
        if not header:
            header = True
            if tuple(fields) != HEADER:
                rows.fault(number, "the header must be query-id, corpus-id and score, by tabs")
                break
            continue
        fault = ""
        if len(fields) != len(HEADER):
            rows.fault(number, f"{len(fields)} fields by tabs where qrels have 3")
            continue
        try:
            query, item, grade = (field.decode() for field in fields)
        except UnicodeDecodeError as error:
            rows.fault(number, f"not UTF-8 ({error.reason}); convert the file")
            continue
        fault = "an id is empty" if not query or not item else number_fault(grade, "judgments")
        if fault:
            rows.fault(number, fault)
            continue
        rows.add(number, normalise_id(query), normalise_id(item), float(grade))
    return rows.columns()


def is_beir_qrels(path: Path) -> bool:
    """Return whether a file starts with the header of BEIR qrels."""
    _number, line = next(numbered_lines(path), (0, b""))
    return tuple(field.strip() for field in line.split(b"\t")) == HEADER


def beir_folder_columns(folder: Path, split: str | None = None) -> Columns:
    """Return the judgments of a BEIR folder as columns; see :func:`read_beir`."""
    return beir_columns(_qrels_path(folder, split)[0])


def _texts(path: Path) -> dict[str, str]:
    rows = Rows(str(path))
    texts: dict[str, str] = {}
    for number, data in numbered_objects(path, rows):
        try:
            name, text = id_of(data, ("_id",)), _text(data, "text", None)
        except BadLine as error:
            rows.fault(number, str(error))
            continue
        if name in texts:
            rows.fault(number, f"query {name!r} stands there already")
        texts[name] = text
    rows.columns()
    return texts


def _text(data: dict[str, Any], key: str, default: str | None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str) or isinstance(value, Number):
        raise BadLine(f"{key} is {value!r}; it must be a text")
    return value


def _existing(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FormatError(Fault(str(folder), f"holds no {name}, which a BEIR folder must"))


def _qrels_path(folder: Path, split: str | None) -> tuple[Path, str]:
    found = {
        path.name.removesuffix(".gz").removesuffix(".tsv"): path
        for path in sorted((folder / "qrels").glob("*.tsv*"))
    }
    if not found:
        raise FormatError(Fault(str(folder), "holds no qrels/*.tsv, which a BEIR folder must"))
    name = split or ("test" if "test" in found or len(found) > 1 else next(iter(found)))
    if name not in found:
        there = ", ".join(found)
        raise FormatError(Fault(str(folder), f"has no split {name!r}; there are: {there}"))
    return found[name], name
