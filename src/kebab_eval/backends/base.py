"""The protocol of a system under test, and what it answers with.

A backend is opened from a config (:func:`kebab_eval.backends.open_backend`), so mode, k and every
other lever are bound before the first query; a search is given nothing but the query. What a
backend has to learn from its system (versions, ids) it learns while it is opened: ``describe`` and
``item_ids`` only report it. This module stays light: no numpy, no HTTP client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kebab_eval.errors import BackendError
from kebab_eval.records import Answer, Candidate, Hit, Listing

Param = str | int | float | bool | None
"""The value of one snapshot parameter."""

Progress = Callable[[int, int], None]
"""Called as ``progress(done, total)`` while a backend prepares (encoding of passages)."""


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """What a system says of itself.

    Args:
        name: the backend's type, as in the config (``embedded``).
        score_kind: what a hit's score is: ``rrf`` (0..1), ``bm25``, ``cosine`` or the system's own
            word.
        snapshot: version parameters by name. The names that backends share: ``chunker_version``,
            ``embedding_model``, ``embedding_version``, ``embedding_dimensions``, ``rrf_k``,
            ``score_gate``, ``index_version``, ``index_fingerprint``, ``corpus_fingerprint``,
            ``doc_count``, ``chunk_count``. What a system does not tell has no key; None means that
            it told of having none (``score_gate``).
        max_concurrency: how many searches may be in flight at once; None is no limit of its own.
        batch_size: how many queries :meth:`Backend.search_many` takes at most; above 1 it is used.
        answers: whether the system has an :meth:`Backend.answer` of its own.
    """

    name: str
    score_kind: str
    snapshot: Mapping[str, Param]
    max_concurrency: int | None = None
    batch_size: int = 1
    answers: bool = False


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """The hits of one search, in the system's order, and what else it said of it.

    Args:
        timings_ms: a stage (``lexical``, ``vector``, ``fusion``, ``total``) -> milliseconds as the
            system measured them; the caller's own wall time is not in it.
        candidates: a channel -> its own ranking, best first, where the system shows it.
        latency_ms: the time of this search where the call's wall time is not it: one of a batch.
        timed: False for an answer that no system gave just now, which has no latency.
    """

    hits: tuple[Hit, ...]
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    candidates: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    latency_ms: float | None = None
    timed: bool = True


@dataclass(frozen=True, slots=True)
class ItemIds:
    """Every id that the system can return, to check a golden set against before anything runs.

    ``chunks`` is None where the system lists its documents only.
    """

    chunks: frozenset[str] | None
    docs: frozenset[str]


class Backend(Protocol):
    """A system under test. :class:`SingleSearch` has what most of them need not write."""

    def describe(self) -> SystemInfo:
        """Return what the system said of itself when it was opened; no I/O."""
        ...

    def prepare(self, progress: Progress | None = None) -> None:
        """Do what takes long before the first search (encoding, indexing); blocks.

        Apart from opening, so that a golden set is held against the ids before anybody waits.

        Args:
            progress: called as ``progress(done, total)`` while there is something to do.
        """
        ...

    async def search(self, query: str, query_id: str) -> SearchResponse:
        """Return the hits for a query.

        ``query_id`` is for systems that answer from a recording and for messages; it must not
        change what a live system returns.

        Raises:
            BackendError: the system failed; the message is the cause in one line.
        """
        ...

    async def search_many(
        self, queries: Sequence[tuple[str, str]]
    ) -> Sequence[SearchResponse | BackendError]:
        """Return a response, or the cause that there is none, for each (query id, query).

        Only asked of systems with a ``batch_size``. A failure of the whole call is raised.

        Raises:
            BackendError: the system failed before it answered anything.
        """
        ...

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        """Return the system's own answer; only asked of systems with ``answers``.

        Args:
            hits: what the search returned, for systems that answer from it.

        Raises:
            BackendError: the system failed; the message is the cause in one line.
        """
        ...

    def item_ids(self) -> ItemIds | None:
        """Return the ids that the system holds, or None when it has no listing; no I/O."""
        ...

    def list_chunks(self) -> Listing | None:
        """Return the system's chunks with their texts, or None when it cannot list them.

        Spans of a golden set are resolved from it; without one, from the texts of the hits.
        """
        ...

    async def close(self) -> None:
        """Release connections and threads. May be called more than once."""
        ...


class SingleSearch:
    """What a system has that takes one query at a time, lists nothing and gives no answers."""

    def prepare(self, progress: Progress | None = None) -> None:
        """Be ready at once."""

    async def search_many(
        self, queries: Sequence[tuple[str, str]]
    ) -> Sequence[SearchResponse | BackendError]:
        raise BackendError("this system takes one query at a time")

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        raise BackendError("this system gives no answers of its own")

    def item_ids(self) -> ItemIds | None:
        return None

    def list_chunks(self) -> Listing | None:
        return None

    async def close(self) -> None:
        """Hold nothing that has to be released."""
