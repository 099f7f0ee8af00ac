"""A column of texts as one array of bytes: ids are compared without a Python object for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
IntArray = NDArray[np.int64]

# Odd numbers with well-mixed bits (the first is 2^64 / golden ratio).
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_AGAIN = np.uint64(0xD6E8FEB86659FD93)
_MASK = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)


@dataclass(frozen=True)
class Texts:
    """Texts in UTF-8, one after the other.

    Args:
        bounds: int64, (n + 1,), where each text starts in ``data``, and the end of the last one.
        data: uint8, the bytes.
    """

    bounds: IntArray
    data: NDArray[np.uint8]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        encoded = [text.encode() for text in texts]
        bounds = np.array([0, *map(len, encoded)], dtype=np.int64).cumsum()
        return cls(bounds, np.frombuffer(b"".join(encoded), dtype=np.uint8))

    @classmethod
    def of_arrow(cls, array: Any) -> Texts:
        """Return the texts of a pyarrow string array without nulls; the bytes are shared."""
        _validity, offsets, data = array.buffers()
        if not len(array):
            return cls.of([])
        bounds = np.frombuffer(offsets, dtype=np.int32)[array.offset :][: len(array) + 1]
        held = np.frombuffer(data if data is not None else b"", dtype=np.uint8)
        return cls(bounds.astype(np.int64), held)

    @classmethod
    def joined(cls, parts: Iterable[Texts]) -> Texts:
        held = [part.compact() for part in parts]
        shifts = np.array([0, *(len(part.data) for part in held)], dtype=np.int64).cumsum()
        starts = [part.bounds[:-1] + shift for part, shift in zip(held, shifts, strict=False)]
        return cls(
            np.concatenate([*starts, shifts[-1:]]), np.concatenate([part.data for part in held])
        )

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, row: int) -> str:
        row %= len(self)  # -1 is the last one
        return self.data[self.bounds[row] : self.bounds[row + 1]].tobytes().decode()

    def slice(self, start: int, stop: int) -> Texts:
        return Texts(self.bounds[start : stop + 1], self.data)

    def compact(self) -> Texts:
        """Return the same texts without the bytes before and after them."""
        first, last = int(self.bounds[0]), int(self.bounds[-1])
        return Texts(self.bounds - first, self.data[first:last])

    def take(self, rows: IntArray) -> Texts:
        starts, lengths = self.bounds[rows], self.lengths[rows]
        bounds = np.concatenate((np.zeros(1, dtype=np.int64), lengths.cumsum()))
        places = np.arange(bounds[-1]) + (starts - bounds[:-1]).repeat(lengths)
        return Texts(bounds, self.data[places])

    def tolist(self) -> list[str]:
        held = self.compact()
        data, bounds = held.data.tobytes(), held.bounds.tolist()
        if data.isascii():
            text = data.decode()
            return [text[start:stop] for start, stop in pairwise(bounds)]
        return [data[start:stop].decode() for start, stop in pairwise(bounds)]

    @cached_property
    def lengths(self) -> IntArray:
        """Bytes of each text; int64, (n,)."""
        return self.bounds[1:] - self.bounds[:-1]

    @cached_property
    def _words(self) -> Keys:
        """The eight bytes from every position on, as one number; they overlap."""
        padded = np.concatenate((self.data, np.zeros(8, dtype=np.uint8)))
        return np.ndarray((len(self.data) + 1,), dtype="<u8", buffer=padded, strides=(1,))

    def _all_words(self, done: int) -> Keys:
        """Return the bytes of every text from ``done`` on, at most eight; 0 beyond its end."""
        words: Keys = self._words[np.minimum(self.bounds[:-1] + done, len(self.data))]
        return words & _MASK[np.clip(self.lengths - done, 0, 8)]

    def _word(self, rows: IntArray, done: int) -> Keys:
        """Return the bytes from ``done`` on, at most eight, of texts that are longer than that."""
        left = np.minimum(self.lengths[rows] - done, 8)
        word: Keys = self._words[self.bounds[:-1][rows] + done] & _MASK[left]
        return word

    def keys(self) -> Keys:
        """Return a key for each text: equal for equal texts, hardly ever for others.

        Whoever must be sure compares the texts (:meth:`same`) where keys are equal.
        """
        keys = self.lengths.astype(np.uint64) * _MIX
        for done in range(0, int(self.lengths.max(initial=0)), 8):
            longer = self.lengths > done
            if longer.all():
                keys = mixed(keys ^ self._all_words(done))
            else:
                rows = longer.nonzero()[0]
                keys[rows] = mixed(keys[rows] ^ self._word(rows, done))
        return keys

    def same(self, rows: IntArray, other: Texts, other_rows: IntArray) -> NDArray[np.bool_]:
        """Return whether the texts at ``rows`` are the other's at ``other_rows``, pair by pair."""
        lengths = self.lengths[rows]
        same: NDArray[np.bool_] = lengths == other.lengths[other_rows]
        for done in range(0, int(lengths.max(initial=0)), 8):
            left = (same & (lengths > done)).nonzero()[0]
            same[left] = self._word(rows[left], done) == other._word(other_rows[left], done)
        return same

    def runs(self) -> IntArray:
        """Return where each run of one text starts, and the end; int64, (n_runs + 1,)."""
        same = self.lengths[1:] == self.lengths[:-1]
        for done in range(0, int(self.lengths.max(initial=0)), 8):
            word = self._all_words(done)
            same &= word[1:] == word[:-1]
        changes = (~same).nonzero()[0] + 1
        return np.concatenate((np.zeros(1, dtype=np.int64), changes, [len(self)]))


def mixed(keys: Keys) -> Keys:
    """Return the keys with every bit spread over the whole word, one to one."""
    keys = (keys ^ (keys >> np.uint64(32))) * _MIX
    return (keys ^ (keys >> np.uint64(29))) * _MIX_AGAIN


def salted(keys: Keys, salt: IntArray) -> Keys:
    """Return the keys told apart by a number each: those of a query's items by the query."""
    return mixed(keys + salt.astype(np.uint64) * _MIX_AGAIN)


def has_repeats(keys: Keys) -> bool:
    """Return whether two keys are equal."""
    ordered = np.sort(keys)
    return bool((ordered[1:] == ordered[:-1]).any())


def codes(texts: Texts) -> tuple[IntArray, list[str]]:
    """Return a number for each row's text, in the order of first appearance, and the texts."""
    starts = texts.runs() if len(texts) else np.zeros(1, dtype=np.int64)
    number: dict[str, int] = {}
    runs = [number.setdefault(n, len(number)) for n in texts.take(starts[:-1]).tolist()]
    return np.array(runs, dtype=np.int64).repeat(starts[1:] - starts[:-1]), list(number)
