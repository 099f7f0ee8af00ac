"""TREC qrels and runs, plain or gzip.

    qrels: query  iteration  item  grade
    run:   query  Q0         item  rank  score  tag

The rank column is not read: a run is ordered by score descending (as double), then id descending,
as trec_eval does. CRLF, a BOM, blank lines and interleaved queries are fine; everything else that
is not as above is an error with its line.
"""

from __future__ import annotations

from pathlib import Path

from kebab_eval.formats.columns import Columns, What, joined
from kebab_eval.formats.judged import Judge, JudgedRun, Regroup, grouped
from kebab_eval.formats.texts import codes, has_repeats, salted
from kebab_eval.formats.trec_plain import NotPlain, plain_slices
from kebab_eval.formats.trec_strict import read_strictly


def read_trec_qrels(path: str | Path) -> dict[str, dict[str, int]]:
    """Return query id -> item id -> grade, in file order; ids in NFC.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    columns = trec_columns(Path(path), "judgments")
    return {
        query: {item: int(grade) for item, grade in judged.items()}
        for query, judged in columns.by_query().items()
    }


def read_trec_run(path: str | Path) -> dict[str, dict[str, float]]:
    """Return query id -> item id -> score, in file order; ids in NFC.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    return trec_columns(Path(path), "run").by_query()


def trec_columns(path: Path, what: What) -> Columns:
    """Return the rows of a file.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    try:
        columns = joined(list(plain_slices(path, what)))
    except NotPlain:
        return read_strictly(path, what)
    if has_repeats(salted(columns.item.keys(), codes(columns.query)[0])):
        return read_strictly(path, what)
    return columns


def trec_judge(path: Path) -> Judge:
    """Return the judgments of qrels, ready to be looked up in a run.

    Raises:
        FormatError: with every malformed or repeated line, or no judgment at all.
    """
    try:
        return Judge(joined(list(plain_slices(path, "judgments"))))
    except (NotPlain, Regroup):
        return Judge(read_strictly(path, "judgments"))


def rank_trec_run(judge: Judge, path: Path, min_relevance: float = 1.0) -> JudgedRun:
    """Return the rank table of a run file, without holding the run.

    Raises:
        FormatError: with every malformed or repeated line.
    """
    try:
        return judge.rank(plain_slices(path, "run"), min_relevance)
    except (NotPlain, Regroup):
        return rank_columns(judge, trec_columns(path, "run"), min_relevance)


def rank_columns(judge: Judge, columns: Columns, min_relevance: float = 1.0) -> JudgedRun:
    """Return the rank table of a run in memory, in which no hit is repeated."""
    return judge.rank([grouped(columns)], min_relevance)
