"""The backend ``kebab``: the real binary, asked in batches.

One process start loads a model of hundreds of megabytes, so queries are asked a hundred at a time
with ``search --bulk``; what a broken batch left is asked singly.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from kebab_eval import config as config_models
from kebab_eval.backends import kebab_wire as wire
from kebab_eval.backends.base import ItemIds, Param, SearchResponse, SingleSearch, SystemInfo
from kebab_eval.backends.kebab_process import Ended, run
from kebab_eval.config import Config
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.records import Answer, Hit

_SCORE_KINDS = {"hybrid": "rrf", "lexical": "bm25", "vector": "cosine"}
_SNIPPET_CHARS = 4000
_LONGEST_ARGUMENT = 100_000  # in bytes; Linux takes 128 KiB
_INSPECTED_AT_ONCE = 4


class KebabBackend(SingleSearch):
    """Runs the binary: for what it is, for each batch of queries, and for each chunk's text."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._section = cast("config_models.KebabBackend", config.backend)
        self._timeout_s = config.execution.timeout_s
        self._texts: dict[str, str] = {}
        own_config = self._own_config()
        schema, documents = asyncio.run(self._learn())
        by_path = self._section.document_id == "path"
        listed = documents if by_path else documents.values()
        self._docs = frozenset(unicodedata.normalize("NFC", doc) for doc in listed)
        self._ids_by_path = None if by_path else documents
        self._info = SystemInfo(
            "kebab",
            _SCORE_KINDS[config.search.mode],
            {**wire.read_snapshot(schema), **own_config},
            max_concurrency=1,  # each process holds the whole model in memory, and keeps busy
            batch_size=self._section.batch,
            answers=True,
        )

    def describe(self) -> SystemInfo:
        return self._info

    def item_ids(self) -> ItemIds:
        """Return the documents; kebab lists no chunks."""
        return ItemIds(None, self._docs)

    async def search(self, query: str, query_id: str) -> SearchResponse:
        asked = _encodable(query)
        if not _is_argument(asked):
            (response,) = await self.search_many([(query_id, query)])
            if isinstance(response, BackendError):
                raise response
            return response
        started = time.perf_counter()
        found = await self._object("search_response", "search", asked, *self._flags())
        wall_ms = (time.perf_counter() - started) * 1000
        response = wire.read_response(found, self._config.search.k, self._section.document_id)
        if response.latency_ms is None:
            response = replace(response, latency_ms=wall_ms)
        return await self._with_texts(response)

    async def search_many(
        self, queries: Sequence[tuple[str, str]]
    ) -> Sequence[SearchResponse | BackendError]:
        """Ask a batch; what a process that ended early left unanswered may be asked again.

        A batch is ended when it prints nothing for too long. The binary prints all of it at its
        end, so there is more time for the first line: ``timeout_s`` for the start and one search,
        and a tenth of it for each search more, which has the model loaded.
        """
        asked = [_encodable(query) for _, query in queries]
        first_s = later_s = None
        if len(asked) > 1:  # a single query's time-out is the caller's
            first_s, later_s = self._timeout_s * (1 + (len(asked) - 1) / 10), self._timeout_s
        given = "".join(json.dumps(self._item(query)) + "\n" for query in asked)
        ended = await self._call(
            "search", "--bulk", "--json", given=given, first_s=first_s, later_s=later_s
        )
        items = wire.read_items(ended.out, asked)
        missing = items.count(None)
        cause = _cause(ended, "search --bulk", f"{missing} of {len(asked)} queries unanswered")
        if len(asked) > 1:
            cause.retry = True  # one query may have taken the others with it
        return [cause if item is None else await self._read(item) for item in items]

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        asked = _encodable(query).replace("\0", " ")
        if asked.startswith("-"):
            asked = f" {asked}"  # `ask` takes no stdin, and would read it as a flag
        search = self._config.search
        options = ["--k", str(search.k), "--mode", search.mode, "--temperature", "0", "--seed", "0"]
        found = await self._object("answer", "ask", asked, *options)
        return wire.read_answer(found, self._ids_by_path)

    async def _learn(self) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """Return schema.v1, and document path -> id.

        Raises:
            BackendError: the binary cannot be started, fails, or takes over ``timeout_s``.
        """
        schema = await self._object("schema", "schema", first_s=self._timeout_s)
        ended = await self._call("list", "docs", "--json", first_s=self._timeout_s)
        if ended.code != 0:
            raise _cause(ended, "list docs")
        return schema, wire.read_documents(ended.out)

    async def _read(self, item: Mapping[str, Any]) -> SearchResponse | BackendError:
        try:
            naming = self._section.document_id
            return await self._with_texts(wire.read_item(item, self._config.search.k, naming))
        except BackendError as failure:
            return failure

    async def _with_texts(self, response: SearchResponse) -> SearchResponse:
        """Return a response whose hits carry the whole text of their chunks, if that is asked for.

        Raises:
            BackendError: a chunk has no text to be had.
        """
        if self._section.texts == "snippet":
            return response
        missing = list(
            dict.fromkeys(hit.chunk_id for hit in response.hits if hit.chunk_id not in self._texts)
        )
        for start in range(0, len(missing), _INSPECTED_AT_ONCE):
            ids = missing[start : start + _INSPECTED_AT_ONCE]
            for chunk_id, text in zip(
                ids, await asyncio.gather(*map(self._text, ids)), strict=True
            ):
                if isinstance(text, BackendError):
                    raise text
                self._texts[chunk_id] = text
        hits = (replace(hit, snippet=self._texts[hit.chunk_id]) for hit in response.hits)
        return replace(response, hits=tuple(hits))

    async def _text(self, chunk_id: str) -> str | BackendError:
        if not _is_argument(chunk_id):
            return BackendError(f"kebab printed a chunk_id that is none: {wire.shown(chunk_id)}")
        try:
            found = await self._object(
                "chunk_inspection", "inspect", "chunk", chunk_id, first_s=self._timeout_s
            )
            return wire.read_chunk_text(found)
        except BackendError as failure:
            said = f"{failure} (the text of a hit; backend.texts: snippet does without)"
            return BackendError(said, retry=failure.retry)

    async def _object(
        self, schema: str, *words: str, first_s: float | None = None
    ) -> Mapping[str, Any]:
        """Return the object that a command prints.

        What was printed counts, whatever the exit code: kebab ends a refusal with 1.
        """
        ended = await self._call(*words, "--json", first_s=first_s)
        try:
            return wire.read_object(ended.out, schema)
        except BackendError as unreadable:
            if ended.code == 0:
                raise
            command = " ".join(words[:2] if words[0] == "inspect" else words[:1])
            raise _cause(ended, command) from unreadable

    async def _call(
        self,
        *words: str,
        given: str = "",
        first_s: float | None = None,
        later_s: float | None = None,
    ) -> Ended:
        binary, own_config = self._section.binary, self._section.config
        where = [] if own_config is None else ["--config", str(own_config)]
        try:
            return await run([binary, *where, *words], given, first_s, later_s)
        except (OSError, ValueError) as reason:
            if isinstance(reason, OSError) and reason.errno == errno.E2BIG:
                raise BackendError("the query is too long for a command line") from reason
            said = getattr(reason, "strerror", None) or str(reason)
            raise BackendError(
                f"{binary} cannot be started ({said}); set backend.binary to where kebab is"
            ) from reason

    def _flags(self) -> list[str]:
        """Return a search's settings as flags."""
        flags = []
        for name, value in self._settings().items():
            flag = f"--{name.replace('_', '-')}"
            flags += [flag] if value is True else [flag, str(value)]
        return flags

    def _item(self, query: str) -> dict[str, Any]:
        return {"query": query, **self._settings()}

    def _settings(self) -> dict[str, Any]:
        search, section = self._config.search, self._section
        settings: dict[str, Any] = {"mode": search.mode, "k": search.k, "trace": True}
        if section.texts == "snippet":
            settings["snippet_chars"] = _SNIPPET_CHARS
        for name in ("lang", "path_glob"):
            if getattr(section, name) is not None:
                settings[name] = getattr(section, name)
        return settings

    def _own_config(self) -> dict[str, Param]:
        """Return a digest of kebab's config file: its levers move what the run's params tell."""
        path = self._section.config
        if path is None:
            return {}
        try:
            return {"config_fingerprint": hashlib.sha256(path.read_bytes()).hexdigest()[:16]}
        except OSError as reason:
            raise UsageError(f"backend.config: {path}: {reason.strerror}") from reason


def open_kebab(config: Config) -> KebabBackend:
    """Start the binary of a config, for what it says of itself.

    Raises:
        UsageError: its config file cannot be read.
        BackendError: it cannot be started, fails, or speaks another version.
    """
    return KebabBackend(config)


def _cause(ended: Ended, command: str, what: str = "") -> BackendError:
    """Return why a process printed less than was due."""
    told = wire.fatal_error(ended.err)
    if told is not None:
        return told
    if ended.code is None:
        said = f"timeout: kebab {command} was silent for too long and was ended"
    elif ended.code < 0:
        said = f"kebab {command} was ended by signal {-ended.code}"
    else:
        said = f"kebab {command} ended with exit code {ended.code}"
    last = ended.err.strip().rpartition("\n")[2] if ended.code != 0 else ""
    parts = (said, what, wire.shown(last))
    # Half an answer, a signal or silence may be chance; an exit code without a word is not.
    again = ended.code is None or ended.code < 0 or bool(ended.out.strip())
    return BackendError("; ".join(part for part in parts if part), retry=again)


def _encodable(query: str) -> str:
    """Return a query as UTF-8 can hold it: a lone surrogate is no character."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in query)


def _is_argument(text: str) -> bool:
    """Say whether a text is safe as an argument: no flag, one line, not blank, not too long.

    The wire knows no ``--``; what is none goes as a line of ``--bulk``, where nothing is a flag.
    """
    return (
        text.isprintable()
        and bool(text.strip())
        and not text.startswith("-")
        and len(text.encode()) <= _LONGEST_ARGUMENT
    )
