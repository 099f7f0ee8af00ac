"""Which queries of a run become traces: a trace costs milliseconds, and thousands add up."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from kebab_eval.records import QueryResult

Previous = Mapping[str, QueryResult]
"""Query id -> its result in the run before, over the same golden set."""


def choose(
    policy: str, results: Sequence[QueryResult], primary: str, previous: Previous | None = None
) -> list[QueryResult]:
    """Return the results that ``tracking.traces`` asks for, in the order given.

    Args:
        policy: ``all``, ``none``, ``changed``, ``failed`` or ``sample:N``, as the config holds it.
        primary: the metric whose change counts as a change of the query.
        previous: what ``changed`` is measured against; None where there is no run before, and then
            everything is new.
    """
    if policy == "none":
        return []
    if policy == "failed":
        return [result for result in results if _failed(result)]
    if policy == "changed" and previous is not None:
        return [one for one in results if _changed(one, previous.get(one.query_id), primary)]
    if policy.startswith("sample:"):
        drawn = _sample([result.query_id for result in results], int(policy.partition(":")[2]))
        return [result for result in results if result.query_id in drawn]
    return list(results)


def _failed(result: QueryResult) -> bool:
    """The search or the answer failed, or all that was expected was missed."""
    answer = result.answer
    return (
        result.error is not None
        or (answer is not None and answer.error is not None)
        or result.miss_stage is not None
    )


def _changed(now: QueryResult, before: QueryResult | None, primary: str) -> bool:
    return before is None or _outcome(now, primary) != _outcome(before, primary)


def _outcome(result: QueryResult, primary: str) -> tuple[Any, ...]:
    """What of a result is compared: the ranking, the primary metric, the answer; no time, no score.

    Scores and times differ from one server to the next where nothing that a user sees does.
    """
    answer = result.answer
    return (
        [(hit.chunk_id, hit.doc_id) for hit in result.hits],
        result.error is None,
        result.metrics.get(primary),
        None if answer is None else (answer.text, answer.refused, answer.error is None),
    )


def _sample(query_ids: Sequence[str], size: int) -> set[str]:
    """Draw by a hash of the id: the same queries in every run of a golden set."""
    return set(sorted(query_ids, key=lambda one: (_hash(one), one))[:size])


def _hash(query_id: str) -> str:
    return hashlib.sha256(query_id.encode("utf-8", "backslashreplace")).hexdigest()
