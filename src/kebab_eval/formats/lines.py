"""Files as lines of text: gzip or plain, UTF-8 with or without BOM, any line ending."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kebab_eval.errors import Fault, FormatError

_GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading; gzip is known by its first bytes, whatever its name.

    Raises:
        FormatError: there is no such file, or it cannot be read.
    """
    try:
        stream = path.open("rb")
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise FormatError(Fault(str(path), f"cannot be read: {reason}")) from error
    start = stream.read(2)
    stream.seek(0)
    if start != _GZIP:
        return stream
    stream.close()
    return gzip.open(path, "rb")  # type: ignore[return-value]  # a GzipFile reads as a BinaryIO


def read_bytes(path: Path) -> bytes:
    """Return a whole file without its BOM, unpacked if it is gzip.

    Raises:
        FormatError: it cannot be read, or the gzip data is damaged.
    """
    with open_bytes(path) as stream, unpacking(path):
        data = stream.read()
    return data.removeprefix(BOM)


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Turn the errors of damaged gzip data into a fault of the file."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        fault = Fault(str(path), f"the file cannot be read to its end: {error}")
        raise FormatError(fault) from error


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""Return the lines that are not blank with their numbers, from 1, without line ends.

    A line ends with ``\n``, ``\r\n`` or ``\r``.
    """
    data = read_bytes(path)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for number, line in enumerate(data.split(b"\n"), 1):
        if line and not line.isspace():
            yield number, line
