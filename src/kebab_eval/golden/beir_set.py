"""A BEIR folder as a golden set: ``queries.jsonl`` and ``qrels/<split>.tsv``."""

from __future__ import annotations

from dataclasses import replace
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
        faults += [replace(fault, code="unreadable") for fault in wrong.faults]
        return []
    if not beir.qrels:
        message = f"no query is judged in qrels/{beir.split}.tsv; a golden set needs one"
        faults.append(Fault(str(folder), message, "empty"))
    texts = {query: text for query, text in beir.queries.items() if query in beir.qrels}
    return judged_entries(texts, beir.qrels, str(folder / "queries.jsonl"), faults)
