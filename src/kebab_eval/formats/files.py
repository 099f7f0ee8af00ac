"""Judgments and runs from whatever file they are in: the ending, or a header, says its format.

``.jsonl`` and ``.ndjson`` are JSON lines, a folder or a file with its header is BEIR, and
everything else TREC; each may be gzip.
"""

from __future__ import annotations

from pathlib import Path

from kebab_eval.formats.beir import beir_columns, beir_folder_columns, is_beir_qrels
from kebab_eval.formats.columns import Columns
from kebab_eval.formats.jsonl import jsonl_columns
from kebab_eval.formats.judged import Judge, JudgedRun
from kebab_eval.formats.trec import rank_columns, rank_trec_run, trec_columns, trec_judge


def read_judgments(path: str | Path) -> dict[str, dict[str, float]]:
    """Return query id -> item id -> grade, in file order; ids in NFC.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    return judgment_columns(Path(path)).by_query()


def read_rankings(path: str | Path) -> dict[str, dict[str, float]]:
    """Return query id -> item id -> score, in file order; ids in NFC.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    return run_columns(Path(path)).by_query()


def rank_run(qrels: Path, run: Path, min_relevance: float = 1.0) -> JudgedRun:
    """Return the rank table of a run file: score descending (as double), then id descending.

    Args:
        qrels: judgments in any format.
        run: a TREC or JSONL file.
        min_relevance: grade from which an item is relevant for the binary metrics.

    Raises:
        FormatError: with every malformed or repeated line, or no judgment at all.
    """
    judge = trec_judge(qrels) if _is_trec(qrels) else Judge(judgment_columns(qrels))
    if _is_jsonl(run):
        return rank_columns(judge, jsonl_columns(run, "run"), min_relevance)
    return rank_trec_run(judge, run, min_relevance)


def judgment_columns(path: Path) -> Columns:
    """Return judgments as columns.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    if path.is_dir():
        return beir_folder_columns(path)
    if _is_jsonl(path):
        return jsonl_columns(path, "judgments")
    return trec_columns(path, "judgments") if _is_trec(path) else beir_columns(path)


def run_columns(path: Path) -> Columns:
    """Return a run as columns.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    return jsonl_columns(path, "run") if _is_jsonl(path) else trec_columns(path, "run")


def _is_jsonl(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))


def _is_trec(path: Path) -> bool:
    if path.is_dir() or _is_jsonl(path):
        return False
    return not (path.name.removesuffix(".gz").endswith(".tsv") and is_beir_qrels(path))
