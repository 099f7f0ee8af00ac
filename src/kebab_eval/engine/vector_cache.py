"""Passage vectors kept on disk, by model and version, by the sha256 of the text.

One file for each model, read at once: a line of JSON, the text digests, the vectors, and a sha256
over all of it. A file that is cut short, altered or of another layout counts as empty and is
written anew. Writes replace the whole file in one step, with what another process has added
meanwhile, so two processes at once cost each other at most some encoding. A folder that cannot be
written is worth a warning: the run goes on without it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LAYOUT = "kebab-eval vectors 1: float32 unit rows on a 2^-20 grid"
MAX_ROWS = 200_000
"""The oldest rows beyond this are dropped: 400 MB at 512 dimensions."""

_KEY_BYTES = 32
_log = logging.getLogger("kebab_eval")


def text_key(text: str) -> bytes:
    """Return the key of a text: sha256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode()).digest()


class VectorCache:
    """The vectors of one model: in memory, and in a file when a folder is given."""

    def __init__(self, folder: Path | None, model: str, version: str, dimensions: int) -> None:
        self._head = {
            "layout": LAYOUT,
            "model": model,
            "version": version,
            "dimensions": dimensions,
        }
        self._dimensions = dimensions
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", f"{model}-{version}")
        self.path = None if folder is None else folder / f"{name}.vectors"
        self._rows = self._read()
        self._changed = False

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """Return the vectors of the keys, (n, dimensions); every key must be there."""
        out = np.empty((len(keys), self._dimensions), dtype=np.float32)
        for index, key in enumerate(keys):
            out[index] = self._rows[key]
        return out

    def add(self, keys: Sequence[bytes], rows: NDArray[np.float32]) -> None:
        """Keep a row for each key."""
        self._rows.update(zip(keys, rows, strict=True))
        self._changed = True

    def save(self) -> None:
        """Write the file if something was added. Never raises for a disk that refuses."""
        if self.path is None or not self._changed:
            return
        merged = {**self._read(), **self._rows}
        kept = list(merged.items())[-MAX_ROWS:]
        try:
            _make_folder(self.path.parent)
            _replace(self.path, self._encode(kept))
        except OSError as reason:
            said = reason.strerror or reason
            _log.warning(
                "vector cache %s cannot be written (%s); vectors are encoded again next time",
                self.path,
                said,
            )
        self._changed = False

    def _encode(self, rows: Sequence[tuple[bytes, NDArray[np.float32]]]) -> bytes:
        head = json.dumps({**self._head, "rows": len(rows)}, sort_keys=True).encode() + b"\n"
        keys = b"".join(key for key, _ in rows)
        vectors = b"".join(row.astype("<f4").tobytes() for _, row in rows)
        body = head + keys + vectors
        return body + hashlib.sha256(body).digest()

    def _read(self) -> dict[bytes, NDArray[np.float32]]:
        if self.path is None:
            return {}
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as reason:
            _log.warning("vector cache %s cannot be read (%s)", self.path, reason.strerror)
            return {}
        rows = self._decode(data)
        if rows is None:
            _log.warning("vector cache %s is damaged and is built anew", self.path)
        return rows or {}

    def _decode(self, data: bytes) -> dict[bytes, NDArray[np.float32]] | None:
        body, checksum = memoryview(data)[:-_KEY_BYTES], data[-_KEY_BYTES:]
        if hashlib.sha256(body).digest() != checksum:
            return None
        try:
            head = json.loads(data[: data.index(b"\n")])
            count = int(head.pop("rows"))
        except (ValueError, KeyError, AttributeError, TypeError):
            return None
        start = data.index(b"\n") + 1
        keys_end = start + count * _KEY_BYTES
        if head != self._head or len(body) != keys_end + count * self._dimensions * 4:
            return None
        vectors = np.frombuffer(body[keys_end:], dtype="<f4").reshape(count, self._dimensions)
        keys = (data[at : at + _KEY_BYTES] for at in range(start, keys_end, _KEY_BYTES))
        return dict(zip(keys, vectors.astype(np.float32, copy=False), strict=True))


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
