"""What the judgments of a query say of one hit, in the words of the reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kebab_eval.metrics.ranktable import normalise_id
from kebab_eval.records import Judgments

Relevance = Literal["relevant", "right document", "not relevant", "unjudged"]


def relevance(
    judgments: Judgments, chunk_id: str, doc_id: str, min_relevance: float = 1
) -> Relevance:
    """Say what the judgments say of a hit: by its chunk if chunks are judged, else by document.

    ``right document`` is another chunk of a relevant document. Ids are compared in NFC.
    """
    grade = grade_of(judgments.chunk, chunk_id)
    if grade is not None:
        return "relevant" if grade >= min_relevance else "not relevant"
    document = grade_of(judgments.doc, doc_id)
    if document is None:
        return "unjudged"
    if judgments.chunk:
        return "right document" if document >= min_relevance else "unjudged"
    return "relevant" if document >= min_relevance else "not relevant"


def grade_of(grades: Mapping[str, float], item: str) -> float | None:
    """Return the grade of an item, None where it is unjudged."""
    if item in grades:
        return grades[item]
    wanted = normalise_id(item)
    # Only ids beyond ASCII have a second form, and the form that a file has is nearly always NFC.
    if wanted.isascii():
        return None
    return next((grade for name, grade in grades.items() if normalise_id(name) == wanted), None)
