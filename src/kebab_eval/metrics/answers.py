"""Metrics of an answer, one query at a time; None where the query is not scored."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from kebab_eval.records import GoldenQuery, QueryResult

ANSWER_METRICS = ("groundedness", "citation_coverage", "refusal_correctness")


def answer_scores(query: GoldenQuery, result: QueryResult) -> dict[str, float]:
    """Return the metrics of a query's answer; what it is not scored for has no key.

    A refusal is no answer, so it is neither grounded nor cites anything. A citation points at what
    was retrieved when its chunk, or where the system names none its document, is among the hits.
    """
    answer = result.answer
    if answer is None or answer.error is not None:
        return {}
    chunks = {_nfc(hit.chunk_id) for hit in result.hits}
    documents = {_nfc(hit.doc_id) for hit in result.hits}
    points = [
        _nfc(one.chunk_id) in chunks
        if one.chunk_id
        else bool(one.doc_id) and _nfc(one.doc_id) in documents
        for one in answer.citations
    ]
    text = None if answer.refused else answer.text
    grounded = not answer.refused and answer.grounded is not False
    scores = {
        "groundedness": groundedness(text, query.must_contain, query.forbidden),
        "citation_coverage": citation_coverage(points, grounded=grounded),
        "refusal_correctness": refusal_correctness(
            answer.refused, should_refuse=query.should_refuse
        ),
    }
    return {name: value for name, value in scores.items() if value is not None}


def answer_summary(results: Sequence[QueryResult]) -> dict[str, Any] | None:
    """Return how many were answered, refused and failed, with times and tokens; None without any.

    ``latency_ms`` holds p50 and p95 of the answers alone, ``tokens`` the sums of what was counted.
    """
    answers = [result.answer for result in results if result.answer is not None]
    if not answers:
        return None
    times = [a.latency_ms for a in answers if a.error is None and a.latency_ms is not None]
    p50, p95 = np.percentile(times, (50, 95)).tolist() if times else (None, None)
    names = sorted({name for answer in answers for name in answer.tokens})
    return {
        "answered": sum(a.error is None and not a.refused for a in answers),
        "refused": sum(a.error is None and a.refused for a in answers),
        "failed": sum(a.error is not None for a in answers),
        "latency_ms": {"p50": p50, "p95": p95},
        "tokens": {name: sum(a.tokens.get(name, 0) for a in answers) for name in names},
    }


def groundedness(
    answer: str | None, must_contain: Sequence[str], forbidden: Sequence[str]
) -> float | None:
    """Return 1 if the answer holds every ``must_contain`` and no ``forbidden`` text, else 0.

    Args:
        answer: what the system said, None when it was not asked or failed.
        must_contain: texts that have to stand in the answer.
        forbidden: texts that must not.

    Returns:
        None without an answer, or when both lists are empty. Texts are compared in NFC, as written.

    Source: kebab ``groundedness``.
    """
    if answer is None or not (must_contain or forbidden):
        return None
    text = _nfc(answer)
    holds = all(_nfc(part) in text for part in must_contain)
    return float(holds and not any(_nfc(part) in text for part in forbidden))


def citation_coverage(points_at_retrieved: Sequence[bool], *, grounded: bool) -> float | None:
    """Return the share of an answer's citations that point at a retrieved chunk, in [0, 1].

    Args:
        points_at_retrieved: for each citation, whether the chunk it names was retrieved.
        grounded: whether the system calls its answer grounded.

    Returns:
        0 for a grounded answer without citations, None for an answer that is not grounded.

    Source: kebab ``citation_coverage``.
    """
    if not grounded:
        return None
    if not points_at_retrieved:
        return 0.0
    return sum(map(bool, points_at_retrieved)) / len(points_at_retrieved)


def refusal_correctness(refused: bool | None, *, should_refuse: bool) -> float | None:
    """Return 1 if the system refused as it should, 0 if it answered, None where it should answer.

    Args:
        refused: None when there is no answer at all, as after an error.
        should_refuse: ``GoldenQuery.should_refuse``.

    Source: kebab ``refusal_correctness``.
    """
    if refused is None or not should_refuse:
        return None
    return float(refused)


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
