"""TREC files at the speed of pyarrow, slice by slice, as long as they are plain.

Plain is what can only be read in one way: one kind of separator, every line with its columns,
finite numbers. Anything else raises :class:`NotPlain`, and :mod:`trec_strict` reads the file from
its start: it decides what is wrong and names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kebab_eval.formats.columns import Columns, What
from kebab_eval.formats.lines import BOM, open_bytes, unpacking
from kebab_eval.formats.texts import Texts
from kebab_eval.formats.trec_strict import LAYOUT, number_fault
from kebab_eval.metrics.ranktable import normalise_id

FloatArray = NDArray[np.float64]

SLICE_BYTES = 1 << 22
_BLOCK_BYTES = 1 << 20  # what one thread parses at a time
_AROUND_TAB = re.compile(rb" *\t *")
_AROUND_SPACE = re.compile(rb"  +")
_AROUND_LINE = re.compile(rb"[ \t]*\n[ \t]*")


class NotPlain(Exception):
    """The file has to be read line by line."""


def plain_slices(path: Path, what: What) -> Iterator[Columns]:
    """Return the columns of a file, in pieces of whole lines of about 4 MB.

    Raises:
        NotPlain: at any piece.
        FormatError: the file cannot be read.
    """
    delimiter = b""
    for piece in _pieces(path):
        delimiter = delimiter or _delimiter(piece)
        clean = _cleaned(piece, delimiter)
        if clean:
            yield _parsed(clean, delimiter, what)


def _pieces(path: Path) -> Iterator[bytes]:
    with open_bytes(path) as stream, unpacking(path):
        piece = stream.read(SLICE_BYTES).removeprefix(BOM)
        while piece:
            yield piece if piece.endswith(b"\n") else piece + stream.readline()
            piece = stream.read(SLICE_BYTES)


def _delimiter(piece: bytes) -> bytes:
    line = piece.lstrip().partition(b"\n")[0]
    return b"\t" if b"\t" in line else b" "


def _cleaned(piece: bytes, delimiter: bytes) -> bytes:
    """Return the piece with single separators and without blank lines.

    Raises:
        NotPlain: other white space, or both kinds of separator where either could be meant.
    """
    if b"\r" in piece:
        piece = piece.replace(b"\r\n", b"\n")
    if b"\r" in piece or b"\x0b" in piece or b"\x0c" in piece:
        raise NotPlain
    if delimiter == b" " and b"\t" in piece:
        raise NotPlain
    space = np.frombuffer(piece, dtype=np.uint8) <= 0x20
    if not (space[1:] & space[:-1]).any() and not space[0]:
        return piece
    around, separator = (_AROUND_TAB, b"\t") if delimiter == b"\t" else (_AROUND_SPACE, b" ")
    piece = _AROUND_LINE.sub(b"\n", around.sub(separator, piece.strip(b" \n"))).strip(b"\n")
    if b"\t\t" in piece:
        raise NotPlain  # an empty field
    return piece


def _parsed(piece: bytes, delimiter: bytes, what: What) -> Columns:
    import pyarrow as pa
    from pyarrow import csv

    layout = LAYOUT[what]
    value = layout[3] if what == "judgments" else layout[4]
    types = {"query": pa.string(), "item": pa.string(), value: pa.float64()}
    if what == "judgments":
        types[value] = pa.string()  # pyarrow would read 0x1F as a whole number
    try:
        table = csv.read_csv(
            pa.BufferReader(piece),
            csv.ReadOptions(
                column_names=list(layout),
                block_size=max(_BLOCK_BYTES, piece.find(b"\n") + 1),
                # A thread pool costs more than it saves on a small file.
                use_threads=len(piece) > 2 * _BLOCK_BYTES,
            ),
            csv.ParseOptions(delimiter=delimiter.decode(), quote_char=False, escape_char=False),
            csv.ConvertOptions(
                include_columns=["query", "item", value], column_types=types, null_values=[]
            ),
        )
    except pa.ArrowInvalid as error:
        raise NotPlain from error
    query, item = (_ids(table[name].combine_chunks(), delimiter) for name in ("query", "item"))
    return Columns(query, item, _values(table[value].combine_chunks(), what))


def _ids(array: Any, delimiter: bytes) -> Texts:
    texts = Texts.of_arrow(array)
    if delimiter == b"\t" and (texts.data == 0x20).any():
        raise NotPlain  # an id with spaces, or a line that is separated by them
    if (texts.data >= 0x80).any():
        texts = Texts.of([normalise_id(text) for text in texts.tolist()])
    return texts


def _values(array: Any, what: What) -> FloatArray:
    # Buffers, not to_numpy or dictionary_encode: those import pandas or pyarrow.compute, which
    # takes longer than scoring a small run does.
    if what == "run":
        if array.null_count:
            raise NotPlain
        scores = np.frombuffer(array.buffers()[1], dtype=np.float64)[array.offset :][: len(array)]
        if not np.isfinite(scores).all():
            raise NotPlain
        return scores
    column = Texts.of_arrow(array)
    digits = column.compact().data
    if len(digits) == len(array) and (column.lengths == 1).all() and (digits - 0x30 < 10).all():
        return (digits - 0x30).astype(np.float64)  # the usual grades, one digit each
    texts = column.tolist()
    distinct = set(texts)
    if any(number_fault(text, what) for text in distinct):
        raise NotPlain
    grades = {text: float(text) for text in distinct}
    return np.array([grades[text] for text in texts], dtype=np.float64)
