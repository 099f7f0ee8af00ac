"""Answers on top of the hits: from the system itself, from a model, or from sentences alone.

A way of answering is one file and one line in :func:`open_answerer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kebab_eval.answering.deadline import within
from kebab_eval.backends.base import Backend
from kebab_eval.config import Config, ExtractiveAnswers, ModelAnswers, SystemAnswers
from kebab_eval.errors import UsageError
from kebab_eval.records import Answer, Hit

__all__ = ["Answerer", "open_answerer"]


class Answerer(Protocol):
    """Writes an answer from what a search returned."""

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        """Return the answer.

        Raises:
            BackendError: there is none; the message is the cause in one line.
        """
        ...

    async def close(self) -> None:
        """Release connections. May be called more than once."""
        ...


def open_answerer(config: Config, backend: Backend) -> Answerer | None:
    """Return what answers by a config, None where nothing does.

    Raises:
        UsageError: the system under test gives no answers of its own, or a model's address is none.
    """
    section = config.answer
    if isinstance(section, ExtractiveAnswers):
        from kebab_eval.answering.extractive import Extractive

        return Extractive(section, _texts(backend))
    if isinstance(section, ModelAnswers):
        from kebab_eval.answering.openai_compatible import OpenAiCompatible

        return OpenAiCompatible(section, _texts(backend))
    if isinstance(section, SystemAnswers):
        if not backend.describe().answers:
            name = backend.describe().name
            raise UsageError(f"answer.type: the system {name} gives no answers of its own")
        return _System(section, backend)
    return None


class _System:
    """The system's own answers; it is closed by whoever opened it."""

    def __init__(self, section: SystemAnswers, backend: Backend) -> None:
        self._timeout_s = section.timeout_s
        self._backend = backend

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        return await within(self._timeout_s, self._backend.answer(query, query_id, hits))

    async def close(self) -> None: ...


def _texts(backend: Backend) -> Mapping[str, str]:
    """Return chunk id -> its whole text, where the system lists them; hits then carry it all."""
    listing = backend.list_chunks()
    if listing is None:
        return {}
    return {passage.chunk_id: passage.text for passage in listing.passages}
