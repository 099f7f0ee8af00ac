"""The backend ``python``: a function or a class of the user's, run in this process."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from kebab_eval import config as config_models
from kebab_eval.backends.base import SearchResponse, SingleSearch, SystemInfo
from kebab_eval.config import Config
from kebab_eval.errors import BackendError, UsageError, nearest
from kebab_eval.records import Hit

_ID_KEYS = ("chunk_id", "id")
_DOC_KEYS = ("doc_id", "document_id", "path")
_TEXT_KEYS = ("text", "snippet", "content")


class PythonBackend(SingleSearch):
    """Calls ``search(query, k, …)``; what it returns is read leniently and checked strictly.

    A plain function runs in a thread, so that several searches may be in flight and a time-out is
    told in time; a coroutine function is awaited.
    """

    def __init__(self, search: Callable[..., Any], owner: object, config: Config) -> None:
        section = cast("config_models.PythonBackend", config.backend)
        self._search = search
        self._owner = owner
        self._k = config.search.k
        self._options = {} if owner is not None else dict(section.options)
        self._threads = ThreadPoolExecutor(
            config.execution.concurrency, thread_name_prefix="kebab-eval-search"
        )
        snapshot = {"target": section.target, **_told(owner), **section.versions}
        self._info = SystemInfo("python", "score", snapshot)

    def describe(self) -> SystemInfo:
        return self._info

    async def search(self, query: str, query_id: str) -> SearchResponse:
        call = (query, self._k)
        if inspect.iscoroutinefunction(self._search):
            found = await self._search(*call, **self._options)
        else:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(
                self._threads, lambda: self._search(*call, **self._options)
            )
        return SearchResponse(read_hits(found, self._k))

    async def close(self) -> None:
        closing = getattr(self._owner, "close", None)
        if callable(closing):
            done = closing()
            if inspect.isawaitable(done):
                await done
        self._threads.shutdown(wait=False, cancel_futures=True)


def open_python(config: Config) -> PythonBackend:
    """Import what the config names.

    Raises:
        UsageError: it cannot be imported, is nothing that searches, or refuses its options.
    """
    section = cast("config_models.PythonBackend", config.backend)
    module_name, _, name = section.target.partition(":")
    folder = None if section.path is None else str(section.path)
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as reason:  # a user's module may raise anything when it is imported
        said = " ".join(f"{type(reason).__name__}: {reason}".split())
        raise UsageError(f"backend.target: {module_name} cannot be imported ({said})") from reason
    found = getattr(module, name, None)
    if found is None:
        known = [other for other in dir(module) if not other.startswith("_")]
        raise UsageError(f"backend.target: {module_name} has no {name!r}{nearest(name, known)}")
    owner = None
    if inspect.isclass(found):
        try:
            owner = found(**section.options)
        except Exception as reason:
            said = " ".join(f"{type(reason).__name__}: {reason}".split())
            raise UsageError(f"backend.target: {name}(…) failed ({said})") from reason
        found = getattr(owner, "search", None)
    if not callable(found):
        message = f"backend.target: {section.target} is neither a function nor a class with search"
        raise UsageError(message)
    return PythonBackend(found, owner, config)


def _told(owner: object) -> dict[str, Any]:
    """Return what an object says of its versions, if it has a ``describe`` that says any."""
    describe = getattr(owner, "describe", None)
    if not callable(describe):
        return {}
    said = describe()
    if not isinstance(said, Mapping):
        raise UsageError("backend.target: describe() must return a mapping of versions")
    plain = (str, int, float, bool, type(None))
    return {str(key): value for key, value in said.items() if isinstance(value, plain)}


def read_hits(found: Any, k: int) -> tuple[Hit, ...]:
    """Return the first ``k`` hits of whatever a search returned, best first.

    A hit is an id; an (id, score) pair; or a mapping or object with ``chunk_id`` or ``id``, and as
    it has them ``doc_id``, ``score``, ``text``. Without a score it is 1/rank, without a document
    the chunk is its own.

    Raises:
        BackendError: it is no list, or a hit has no id.
    """
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise BackendError(f"search must return a list of hits, found {type(found).__name__}")
    hits = []
    for rank, item in enumerate(found, 1):
        if rank > k:
            break
        hits.append(_hit(rank, item))
    return tuple(hits)


def _hit(rank: int, item: Any) -> Hit:
    if isinstance(item, Hit):
        return item
    if isinstance(item, str):
        return Hit(rank, item, item, 1 / rank, "score")
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return Hit(rank, item[0], item[0], _score(rank, item[1]), "score")
    document = _text(item, _DOC_KEYS)
    chunk = _text(item, _ID_KEYS) or document
    if not chunk:
        raise BackendError(f"hit {rank} has no chunk_id, id or doc_id")
    score = _value(item, "score")
    return Hit(
        rank,
        chunk,
        document or chunk,
        1 / rank if score is None else _score(rank, score),
        str(_value(item, "score_kind") or "score"),
        _text(item, _TEXT_KEYS),
    )


def _value(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, Mapping) else getattr(item, key, None)


def _text(item: Any, keys: tuple[str, ...]) -> str:
    return next((str(value) for key in keys if (value := _value(item, key)) is not None), "")


def _score(rank: int, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise BackendError(f"the score of hit {rank} is no number: {value!r:.40}") from None
