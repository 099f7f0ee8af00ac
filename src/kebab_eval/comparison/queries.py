"""What became of each query: win, loss, draw or regression, and both rankings as one list."""

from __future__ import annotations

from dataclasses import replace

from kebab_eval.comparison.model import ChunkerMatch, ItemMove, Kind, QueryDelta
from kebab_eval.comparison.pairs import Answer, Pair, pair_level, paired_values
from kebab_eval.metrics import normalise_id
from kebab_eval.metrics.judging import Relevance, relevance
from kebab_eval.records import GoldenQuery, Hit, Level


def query_delta(pair: Pair, primary: str, match: ChunkerMatch) -> QueryDelta:
    """Return what became of one query.

    Args:
        primary: the metric that ``delta`` is of.
        match: how the chunks of the two runs are lined up.
    """
    old, new = pair
    level = pair_level(pair, match)
    before, after = _first_rank(old, level), _first_rank(new, level)
    expected = bool(_relevant(old, level) and _relevant(new, level))
    kind, note = _outcome(pair, before, after, expected)
    values = paired_values([pair], primary)
    line = QueryDelta(
        query_id=old.golden.query_id,
        query=new.golden.query,
        kind=kind,
        baseline_rank=before,
        candidate_rank=after,
        delta=values[0][1] - values[0][0] if values else None,
        note=note,
        expected=expected,
        level=level,
        baseline_error=old.result.error,
        candidate_error=new.result.error,
    )
    return replace(line, items=_items(pair, match)) if line.changed else line


def _outcome(pair: Pair, before: int | None, after: int | None, expected: bool) -> tuple[Kind, str]:
    """Return the kind by kebab's rules, and what happened in words."""
    failed = [
        name
        for name, answer in zip(("baseline", "candidate"), pair, strict=True)
        if answer.result.error is not None
    ]
    aside = f" (failed in the {' and the '.join(failed)})" if failed else ""
    if before == after:
        if not expected:
            return _refusal(pair, aside)
        return "draw", (f"rank {before}" if before else "missed by both") + aside
    if before is None:
        return "win", f"miss→rank {after}{aside}"
    if after is None:
        return "regression" if expected else "loss", f"rank {before}→miss{aside}"
    return "win" if after < before else "loss", f"rank {before}→{after}"


def _refusal(pair: Pair, aside: str) -> tuple[Kind, str]:
    """A query that nothing answers is right to come back empty, where the golden set says so."""
    old, new = (bool(answer.result.hits) or answer.result.error is not None for answer in pair)
    if pair[0].golden.failure_expected and pair[1].golden.failure_expected and old != new:
        kind: Kind = "win" if old else "loss"
        return kind, ("hits→empty, as it should be" if old else "empty→hits") + aside
    return "draw", "nothing expected" + aside


def _relevant(answer: Answer, level: Level) -> frozenset[str]:
    """Return the ids of the relevant items at a level."""
    return frozenset(
        normalise_id(item)
        for item, grade in answer.golden.judgments.at(level).items()
        if grade >= answer.min_relevance
    )


def _first_rank(answer: Answer, level: Level) -> int | None:
    """Return the place of the first relevant hit, among the hits as they came back."""
    if answer.result.error is not None:
        return None
    wanted = _relevant(answer, level)
    for place, hit in enumerate(answer.result.hits, 1):
        if normalise_id(hit.chunk_id if level == "chunk" else hit.doc_id) in wanted:
            return place
    return None


def _items(pair: Pair, match: ChunkerMatch) -> tuple[ItemMove, ...]:
    """Return both rankings as one list: the candidate's order, then what left it."""
    level = pair_level(pair, match) if match != "same" else "chunk"
    old, new = (_places(answer, match) for answer in pair)
    moves = []
    for key in [*new, *(key for key in old if key not in new)]:
        _, hit = new.get(key) or old[key]
        answer = pair[1] if key in new else pair[0]
        moves.append(
            ItemMove(
                chunk_id=hit.chunk_id,
                doc_id=hit.doc_id,
                baseline_rank=old[key][0] if key in old else None,
                candidate_rank=new[key][0] if key in new else None,
                relevance=_said(answer, hit, level),
                snippet=hit.snippet,
            )
        )
    return tuple(moves)


def _places(answer: Answer, match: ChunkerMatch) -> dict[str, tuple[int, Hit]]:
    found: dict[str, tuple[int, Hit]] = {}
    result = answer.result
    held = _held_spans(answer.golden) if match == "span" else {}
    for place, hit in enumerate(result.hits if result.error is None else (), 1):
        # A system without chunks, and runs of two chunkers, are lined up by document; chunks that
        # hold the same spans are one item, whoever cut them.
        key = held.get(hit.chunk_id) or (
            hit.chunk_id if match == "same" and hit.chunk_id else hit.doc_id
        )
        found.setdefault(normalise_id(key), (place, hit))
    return found


def _held_spans(golden: GoldenQuery) -> dict[str, str]:
    """Return chunk id -> which spans of the query it holds, by their numbers."""
    held: dict[str, list[str]] = {}
    for number, span in enumerate(golden.spans):
        for chunk_id in span.chunk_ids or ():
            held.setdefault(chunk_id, []).append(str(number))
    return {chunk_id: f"span {' '.join(numbers)}" for chunk_id, numbers in held.items()}


def _said(answer: Answer, hit: Hit, level: Level) -> Relevance:
    judgments = answer.golden.judgments
    if level == "doc":
        judgments = replace(judgments, chunk={})
    return relevance(judgments, hit.chunk_id, hit.doc_id, answer.min_relevance)
