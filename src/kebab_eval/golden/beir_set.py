"""A BEIR folder as a golden set: ``queries.jsonl`` and ``qrels/<split>.tsv``."""

from __future__ import annotations

from pathlib import Path

from kebab_eval.errors import Fault, FormatError
from kebab_eval.formats.beir import read_beir
from kebab_eval.golden.entries import Entry
from kebab_eval.golden.judged import judged_entries


def read_beir_set(folder: Path, split: str | None, faults: list[Fault]) -> list[Entry]:
    """Return the judged queries of a split; what is wrong is added to ``faults``."""
    try:
        beir = read_beir(folder, split)
    except FormatError as wrong:
        faults += wrong.faults
        return []
    texts = {query: beir.queries[query] for query in beir.qrels}
    return judged_entries(texts, beir.qrels, str(folder / "queries.jsonl"), faults)
