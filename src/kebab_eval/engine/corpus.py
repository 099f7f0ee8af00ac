"""Read a folder of Markdown notes into documents with stable ids.

A document's id is its path within the corpus, with ``/`` between the parts and normalised to NFC: a
file from macOS (NFD on disk) has the same id as the same file from Linux. Line ends become LF, so
that spans and chunk ids do not depend on how git checked the files out; nothing else of the text is
changed, and every span of the engine counts characters of ``Document.text``.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from kebab_eval.errors import CorpusError, Fault
from kebab_eval.formats.markdown import Markdown, parse_markdown
from kebab_eval.yaml_source import parse_yaml, read_text

_log = logging.getLogger("kebab_eval")


@dataclass(frozen=True, slots=True)
class Document:
    """One note.

    Args:
        doc_id: the POSIX path within the corpus, NFC.
        text: the whole file with LF line ends and without a byte-order mark; front matter included.
        title: ``title`` of the front matter, else the first heading, else the file's name.
        meta: the front matter as it stands (values read as YAML 1.2); empty when there is none.
        path: where it was read from, as configured.
        markdown: the blocks of the text, parsed once for title, front matter and chunker.
    """

    doc_id: str
    text: str
    title: str
    meta: Mapping[str, Any]
    path: Path
    markdown: Markdown = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documents in order of their ids; ``path`` is the folder as configured."""

    path: Path
    documents: tuple[Document, ...]

    @property
    def fingerprint(self) -> str:
        """Return sha256 (hex) over the id and the text of every document, in order.

        Each part goes in with its length before it, so that no two corpora run together alike.
        """
        digest = hashlib.sha256()
        for document in self.documents:
            for part in (document.doc_id, document.text):
                data = part.encode()
                digest.update(b"%d:" % len(data))
                digest.update(data)
        return digest.hexdigest()


def read_corpus(path: Path) -> Corpus:
    """Return the documents of a folder: every ``.md`` file in it, at any depth.

    Files and folders whose name starts with a dot are left out. Linked folders are not entered; a
    linked file is read when its target lies in the corpus, and otherwise left out with a warning.

    Raises:
        CorpusError: with every fault at once: no such folder, no ``.md`` file in it, a file that
            cannot be read or is not UTF-8 text, front matter that is no YAML mapping, a file name
            that is no text, two names that are the same id.
    """
    if not path.is_dir():
        found = "is a file, not a folder" if path.exists() else "does not exist"
        raise CorpusError(Fault(str(path), f"corpus folder {found}; check backend.corpus"))
    faults: list[Fault] = []
    files: dict[str, Path] = {}
    for file in _markdown_files(path, faults):
        doc_id = unicodedata.normalize(
            "NFC", PurePosixPath(*file.relative_to(path).parts).as_posix()
        )
        problem = _name_problem(doc_id)
        if problem:
            faults.append(Fault(_printable(file), problem))
        elif doc_id in files:
            message = (
                f"has the same document id as {str(files[doc_id])!r} (ids are NFC; one of the "
                "names is stored decomposed); rename or remove one"
            )
            faults.append(Fault(str(file), message))
        else:
            files[doc_id] = file
    documents = []
    for doc_id in sorted(files):
        try:
            documents.append(_read_document(doc_id, files[doc_id]))
        except CorpusError as error:
            faults.extend(error.faults)
    if faults:
        raise CorpusError(sorted(faults, key=lambda fault: fault.place))
    if not documents:
        raise CorpusError(Fault(str(path), "corpus folder holds no .md file"))
    return Corpus(path, tuple(documents))


def _markdown_files(root: Path, faults: list[Fault]) -> Iterator[Path]:
    real_root = root.resolve()

    def unreadable(reason: OSError) -> None:
        place = _printable(Path(str(reason.filename)))
        faults.append(Fault(place, f"corpus folder cannot be read: {reason.strerror}"))

    for folder, folders, names in os.walk(root, onerror=unreadable):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            if (here / name).is_symlink():
                _log.warning("%s: linked folder is left out of the corpus", _printable(here / name))
        for name in sorted(names):
            if name.startswith(".") or not name.lower().endswith(".md"):
                continue
            file = here / name
            if file.is_symlink() and not _stays_in(file, real_root):
                _log.warning("%s: link leads out of the corpus and is left out", _printable(file))
                continue
            yield file


def _stays_in(link: Path, real_root: Path) -> bool:
    try:
        return link.resolve(strict=True).is_relative_to(real_root)
    except (OSError, RuntimeError):  # broken or circular: let the reader name the fault
        return True


def _name_problem(doc_id: str) -> str:
    try:
        doc_id.encode()
    except UnicodeEncodeError:
        return "file name is not UTF-8; rename it"
    if any(unicodedata.category(character) == "Cc" for character in doc_id):
        return "file name holds a control character; rename it"
    return ""


def _printable(path: Path) -> str:
    """Return a path that can be printed whatever bytes its name holds."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if unicodedata.category(c) != "Cc" else repr(c)[1:-1] for c in text)


def _read_document(doc_id: str, file: Path) -> Document:
    place = str(file)
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe would block for ever
            raise CorpusError(Fault(place, "corpus file is not a regular file"))
    except OSError as reason:
        raise CorpusError(
            Fault(place, f"corpus file cannot be read: {reason.strerror}")
        ) from reason
    raw = read_text(file, CorpusError, "corpus file")
    text = raw.replace("\r\n", "\n").replace("\r", "\n")
    markdown = parse_markdown(text)
    meta = _front_matter(markdown, place)
    return Document(doc_id, text, _title(markdown, meta, doc_id), meta, file, markdown)


def _front_matter(markdown: Markdown, place: str) -> Mapping[str, Any]:
    if markdown.front_matter is None:
        return {}
    # An empty line stands for the opening marker, so that lines count from the file's first.
    root = parse_yaml("\n" + markdown.front_matter, place, CorpusError)
    if root is None or root.is_null:
        return {}
    if root.kind != "mapping":
        message = (
            f"front matter must hold 'key: value' lines, found {root.describe()}; if the first "
            "line is a thematic break, put an empty line before it"
        )
        raise CorpusError(Fault(root.place, message))
    meta: dict[str, Any] = root.python()
    return meta


def _title(markdown: Markdown, meta: Mapping[str, Any], doc_id: str) -> str:
    written = meta.get("title")
    if isinstance(written, str | int | float) and str(written).strip():
        return " ".join(str(written).split())
    for block in markdown.blocks:
        if block.kind == "heading" and block.heading:
            return block.heading
    return PurePosixPath(doc_id).stem
