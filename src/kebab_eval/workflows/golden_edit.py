"""Rewriting a golden file: anchoring and migrating, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kebab_eval.errors import Fault, GoldenError, UsageError
from kebab_eval.golden import LoadedGolden
from kebab_eval.golden.anchoring import Anchoring, anchor_query, as_fields
from kebab_eval.golden.anchors import Corpus
from kebab_eval.golden.migration import Migration, migrate_query
from kebab_eval.golden.yaml_edit import FieldEdit, edit_fields
from kebab_eval.records import LEVELS, Listing
from kebab_eval.workflows.golden_source import OpenedSource, open_source
from kebab_eval.yaml_source import read_text


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A golden file as it would be written; ``changed`` says whether that is another text."""

    path: Path
    text: str
    changed: bool

    def write(self, output: Path) -> None:
        """Write it whole or not at all; a link, and the rights of a file, stay what they are.

        Raises:
            UsageError: the file cannot be written.
        """
        target = Path(os.path.realpath(output))
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(self.text.encode("utf-8"))
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
        except OSError as reason:
            temporary.unlink(missing_ok=True)
            message = f"cannot be written: {reason.strerror}"
            raise UsageError(Fault(str(output), message)) from reason


def anchor_golden(
    path: Path | None, config_path: Path, overrides: Sequence[str] = (), *, everything: bool = False
) -> tuple[Rewritten, list[Anchoring]]:
    """Derive spans from the expected chunk ids of a golden set.

    A query of which one chunk gets no span stays as it is: with spans for the others alone, that
    chunk would no longer count.

    Args:
        everything: also for queries that have spans already.

    Raises:
        InputError: config, corpus or golden set is wrong, or the file's format holds no chunk ids.
    """
    source = open_source(path, config_path, overrides)
    loaded, corpus = _read(source), Corpus(_listing(source, config_path))
    done: dict[int, Anchoring] = {}
    for number, entry in enumerate(loaded.entries):
        query = entry.query
        if query.judgments.chunk and (everything or not query.spans):
            done[number] = anchor_query(query, corpus)
    edits = [
        FieldEdit(
            number,
            "expected_spans",
            [as_fields(span) for span in found.spans],
            after="expected_chunk_ids",
        )
        for number, found in done.items()
        if not found.lost
    ]
    return _edited(source.path, edits), list(done.values())


def migrate_golden(
    path: Path | None, from_config: Path, to_config: Path
) -> tuple[Rewritten, list[Migration]]:
    """Rewrite the expected chunk ids of a golden set for another chunker.

    Raises:
        InputError: a config, a corpus or the golden set is wrong, or the two corpora differ.
    """
    old_source = open_source(path, from_config)
    new_source = open_source(old_source.path, to_config)
    old, new = _listing(old_source, from_config), _listing(new_source, to_config)
    _same_documents(old, new, to_config)
    loaded = _read(old_source)
    old_corpus, new_corpus = Corpus(old), Corpus(new)
    done: dict[int, Migration] = {}
    for number, entry in enumerate(loaded.entries):
        if entry.query.judgments.chunk:
            done[number] = migrate_query(entry.query, old_corpus, new_corpus)
    edits = [
        FieldEdit(number, "expected_chunk_ids", found.after)
        for number, found in done.items()
        if found.outcome != "kept" and set(found.after) != set(found.before)
    ]
    return _edited(old_source.path, edits), list(done.values())


def _read(source: OpenedSource) -> LoadedGolden:
    # A config may have chunks not count in its runs; the file that is rewritten holds them still.
    loaded = replace(source, levels=LEVELS).read()
    if loaded.golden.format != "kebab":
        message = (
            f"a {loaded.golden.format} set holds no expected_chunk_ids; only kebab's YAML does "
            "('kebab-eval golden convert' writes it)"
        )
        raise GoldenError(Fault(str(source.path), message))
    return loaded


def _listing(source: OpenedSource, config_path: Path) -> Listing:
    if source.listing is None:
        message = "the system of this config lists no chunks; take one of the embedded engine"
        raise UsageError(Fault(str(config_path), message))
    return source.listing


def _same_documents(old: Listing, new: Listing, to_config: Path) -> None:
    changed = sorted(
        doc
        for doc in old.documents.keys() | new.documents.keys()
        if old.documents.get(doc) != new.documents.get(doc)
    )
    if changed:
        shown = ", ".join(changed[:3]) + (" …" if len(changed) > 3 else "")
        message = f"its corpus is not that of the other config ({len(changed)} differ: {shown})"
        raise UsageError(Fault(str(to_config), message))


def _edited(path: Path, edits: Sequence[FieldEdit]) -> Rewritten:
    """Return the file with the fields set; a byte-order mark stays where it was."""
    raw = path.read_bytes()
    mark = "\ufeff" if raw.startswith(b"\xef\xbb\xbf") else ""
    text = read_text(path, GoldenError, "golden set")
    new = edit_fields(text, str(path), edits) if edits else text
    return Rewritten(path, mark + new, new != text)
