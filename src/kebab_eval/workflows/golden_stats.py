"""A golden file, and the corpus of a config if there is one, counted."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from kebab_eval.errors import GoldenError
from kebab_eval.golden.references import resolve_documents
from kebab_eval.golden.statistics import GoldenStats, describe_set
from kebab_eval.workflows.golden_source import open_source


def describe_golden(
    path: Path | None,
    config_path: Path | None = None,
    overrides: Sequence[str] = (),
    golden_format: str | None = None,
) -> GoldenStats:
    """Count what is in a golden set.

    Raises:
        InputError: neither file nor config is given, or one of them is wrong.
    """
    source = open_source(path, config_path, overrides, golden_format)
    loaded = source.read()
    if source.ids is None:
        return describe_set(loaded.golden)
    loaded, faults = resolve_documents(loaded, source.ids.docs)
    if faults:
        raise GoldenError(faults)
    passages = source.listing.passages if source.listing is not None else ()
    owners = {_nfc(p.chunk_id): _nfc(p.doc_id) for p in passages}
    return describe_set(loaded.golden, source.ids.docs, owners)


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
