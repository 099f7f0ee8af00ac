"""Metrics of an answer, one query at a time; None where the query is not scored."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


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
