"""Writing a golden set in another format, and saying what that format has no place for.

A writer is one file in this package and one line in :data:`WRITERS`, which names the fields that
the format holds. What a set says beyond them is counted here; what a writer has to bend, by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kebab_eval.errors import Fault, GoldenError
from kebab_eval.golden.losses import Losses
from kebab_eval.golden.write_docserver import write_v01, write_v02
from kebab_eval.golden.write_jsonl import write_jsonl
from kebab_eval.golden.write_kebab import write_kebab
from kebab_eval.golden.write_pairs import write_beir, write_trec
from kebab_eval.records import GoldenQuery, GoldenSet

Files = Mapping[str, str]
"""File name -> content; the name is empty where the format is one file."""


@dataclass(frozen=True, slots=True)
class GoldenWriter:
    """A format that a set can be written in.

    Args:
        title: what it is.
        write: returns the files and counts what it bends.
        holds: the fields of :data:`FIELDS` that it has a place for.
        endings: of its one file; none for a folder.
    """

    title: str
    write: Callable[[GoldenSet, Losses], Files]
    holds: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A set in another format: its files, and what is not in them."""

    files: Files
    losses: Losses

    @property
    def left_out(self) -> int:
        """How many queries are in none of the files."""
        kinds = self.losses.kinds
        return sum(loss.count for loss in kinds if (loss.what, loss.unit) == ("", "queries"))


FIELDS: dict[str, Callable[[GoldenQuery], object]] = {
    "language": lambda query: query.language,
    "category": lambda query: query.category,
    "difficulty": lambda query: query.difficulty,
    "group": lambda query: query.group,
    "ocr_derived": lambda query: query.ocr_derived is not None,
    "failure_expected": lambda query: query.failure_expected,
    "expected_chunk_ids": lambda query: query.judgments.chunk,
    "expected_spans": lambda query: query.spans,
    "must_contain": lambda query: query.must_contain,
    "forbidden": lambda query: query.forbidden,
    "notes": lambda query: query.notes,
    "v0.1 ids": lambda query: query.v01 is not None,
    "tags": lambda query: query.tags,
}
"""What a query may hold beyond id, text and judged documents -> whether it holds it."""

_ALL = frozenset(FIELDS)
_YAML = (".yaml", ".yml")

WRITERS: dict[str, GoldenWriter] = {
    "kebab": GoldenWriter(
        "kebab's list of queries (YAML)",
        write_kebab,
        _ALL - {"category", "ocr_derived", "v0.1 ids", "tags"},
        _YAML,
    ),
    "docserver-v0.2": GoldenWriter(
        "the Document Server's graded set (YAML)",
        write_v02,
        _ALL - {"expected_chunk_ids"},  # the writer tells which tags have no field
        _YAML,
    ),
    "docserver-v0.1": GoldenWriter(
        "the Document Server's binary set (YAML)",
        write_v01,
        frozenset({"category", "v0.1 ids"}),
        _YAML,
    ),
    "beir": GoldenWriter("a BEIR folder", write_beir),
    "trec": GoldenWriter("a folder with TREC topics and qrels", write_trec),
    "jsonl": GoldenWriter("this project's own lines", write_jsonl, _ALL, (".jsonl", ".ndjson")),
}


def write_golden(golden: GoldenSet, to: str) -> Written:
    """Return a golden set in another format.

    Args:
        to: a key of :data:`WRITERS`.

    Raises:
        GoldenError: with every id that the format cannot hold.
    """
    writer = WRITERS[to]
    losses = Losses(to)
    counts = Counter(
        name for query in golden.queries for name, said in FIELDS.items() if said(query)
    )
    for name in FIELDS:
        if name not in writer.holds:
            losses.drop(name, counts[name])
    files = writer.write(golden, losses)
    for name, text in files.items():
        try:
            text.encode()
        except UnicodeEncodeError as wrong:
            found = f"U+{ord(text[wrong.start]):04X}"
            message = f"holds {found}, half of a character, which no file can hold"
            raise GoldenError(Fault(name or golden.path, message, "encoding")) from None
    return Written(files, losses)
