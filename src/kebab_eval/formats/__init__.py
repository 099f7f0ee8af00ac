"""Readers of judgments and runs: TREC, BEIR and JSONL, strict, with the line of every fault."""

from kebab_eval.formats.beir import BeirDocument, BeirSet, beir_corpus, read_beir
from kebab_eval.formats.files import read_judgments, read_rankings
from kebab_eval.formats.trec import read_trec_qrels, read_trec_run

__all__ = [
    "BeirDocument",
    "BeirSet",
    "beir_corpus",
    "read_beir",
    "read_judgments",
    "read_rankings",
    "read_trec_qrels",
    "read_trec_run",
]
