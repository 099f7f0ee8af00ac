"""The backend ``kebab``: the real binary, asked in batches.

One process start loads a model of hundreds of megabytes, so queries are asked a hundred at a time
with ``search --bulk``; what a broken batch left is asked singly.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from kebab_eval import config as config_models
from kebab_eval.backends.base import ItemIds, SearchResponse, SingleSearch, SystemInfo
from kebab_eval.backends.kebab_wire import (
    check_schema,
    parse_line,
    read_answer,
    read_error,
    read_response,
)
from kebab_eval.config import Config
from kebab_eval.errors import BackendError
from kebab_eval.records import Answer, Hit
from kebab_eval.redaction import redact

_OPENING_S = 120.0  # the first start may load a model
_SNIPPET_CHARS = 4000  # long enough that spans are found in it
_VERSIONS = {
    "chunker_version": "chunker_version",
    "embedding_version": "embedding_model",
    "index_version": "index_version",
    "corpus_revision": "corpus_fingerprint",
    "parser_version": "parser_version",
    "prompt_template_version": "prompt_template_version",
}


class KebabBackend(SingleSearch):
    """Runs the binary: once for what it is, then once for each batch of queries."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._section = cast("config_models.KebabBackend", config.backend)
        self._running: set[asyncio.subprocess.Process] = set()
        schema = parse_line(self._learn("schema", "--json"), "schema")
        self._docs = self._documents()
        self._info = self._described(schema)

    def describe(self) -> SystemInfo:
        return self._info

    def item_ids(self) -> ItemIds:
        return ItemIds(None, self._docs)

    async def search(self, query: str, query_id: str) -> SearchResponse:
        (response,) = await self.search_many([(query_id, query)])
        if isinstance(response, BackendError):
            raise response
        return response

    async def search_many(
        self, queries: Sequence[tuple[str, str]]
    ) -> Sequence[SearchResponse | BackendError]:
        """Ask a batch; the queries that a process which ended early did not answer may be retried.

        A query is always asked as a line of ``--bulk``: none can be taken for an option there.
        """
        lines = [json.dumps(self._item(query), ensure_ascii=True) for _, query in queries]
        out, err, code = await self._run(
            "search", "--bulk", "--json", given="\n".join(lines) + "\n"
        )
        printed = [line for line in out.split("\n") if line.strip()]
        whole = out.endswith("\n")
        responses: list[SearchResponse | BackendError] = []
        for number, line in enumerate(printed[: len(queries)]):
            if number == len(printed) - 1 and not whole:
                break  # half a line: the process ended while it was writing
            responses.append(self._read(line))
        if len(responses) < len(queries):
            cause = _fatal(err) or BackendError(
                f"kebab ended (exit code {code}) after {len(responses)} of {len(queries)} answers"
                + (f": {_last_line(err)}" if err.strip() else "")
            )
            # A single query that is refused for good is not asked again and again.
            cause.retry = cause.retry or len(queries) > 1 or code < 0
            responses += [cause] * (len(queries) - len(responses))
        return responses

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        search = self._config.search
        options = ["--json", "--k", str(search.k), "--mode", search.mode]
        options += ["--temperature", "0", "--seed", "0"]
        # The wire knows no `--`: a query that looks like an option gets a blank before it.
        asked = f" {query}" if query.startswith("-") else query
        out, err, code = await self._run("ask", asked.replace("\0", " "), *options)
        if code != 0:
            raise _fatal(err) or BackendError(f"kebab ask: exit code {code}: {_last_line(err)}")
        return read_answer(parse_line(out.strip(), "answer"))

    async def close(self) -> None:
        for process in list(self._running):
            await _ended(process)

    def _item(self, query: str) -> dict[str, Any]:
        search, section = self._config.search, self._section
        item: dict[str, Any] = {
            "query": query,
            "mode": search.mode,
            "k": search.k,
            "trace": True,
            "snippet_chars": _SNIPPET_CHARS,
        }
        if section.lang is not None:
            item["lang"] = section.lang
        if section.path_glob is not None:
            item["path_glob"] = section.path_glob
        return item

    def _read(self, line: str) -> SearchResponse | BackendError:
        try:
            item = parse_line(line, "bulk_search_item")
            if item.get("error") is not None:
                return read_error(item["error"])
            response = item.get("response")
            if not isinstance(response, Mapping):
                return BackendError("kebab printed an item with neither response nor error")
            check_schema(response, "search_response")
            return read_response(response, self._config.search.k)
        except BackendError as wrong:
            return wrong

    def _command(self, *words: str) -> list[str]:
        config = self._section.config
        where = [] if config is None else ["--config", str(config)]
        return [self._section.binary, *where, *words]

    async def _run(self, *words: str, given: str = "") -> tuple[str, str, int]:
        """Run the binary to its end; a time-out or a stopped run ends it and its children."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command(*words),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as reason:
            raise BackendError(_not_started(self._section.binary, reason)) from reason
        self._running.add(process)
        try:
            out, err = await process.communicate(given.encode("utf-8", "replace"))
        except BaseException:
            await _ended(process)
            raise
        finally:
            self._running.discard(process)
        return (
            out.decode("utf-8", "replace"),
            err.decode("utf-8", "replace"),
            process.returncode or 0,
        )

    def _learn(self, *words: str) -> str:
        """Return what a command of one answer printed.

        Raises:
            BackendError: it could not be started, failed, or took too long.
        """
        try:
            done = subprocess.run(
                self._command(*words),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_OPENING_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            said = f"kebab {words[0]}: no answer within {_OPENING_S:g} s"
            raise BackendError(said) from None
        except (OSError, ValueError) as reason:
            raise BackendError(_not_started(self._section.binary, reason)) from reason
        err = done.stderr.decode("utf-8", "replace")
        if done.returncode != 0:
            raise _fatal(err) or BackendError(
                f"kebab {words[0]}: exit code {done.returncode}: {_last_line(err)}"
            )
        return done.stdout.decode("utf-8", "replace").strip()

    def _documents(self) -> frozenset[str]:
        out = self._learn("list", "docs", "--json")
        try:
            data: Any = json.loads(out)
            listed: Any = (
                data.get("docs", data.get("items", [])) if isinstance(data, dict) else data
            )
            return frozenset(str(one.get("doc_path") or one["doc_id"]) for one in listed)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as reason:
            raise BackendError("kebab list docs printed no list of documents") from reason

    def _described(self, schema: Mapping[str, Any]) -> SystemInfo:
        models, stats = schema.get("models") or {}, schema.get("stats") or {}
        snapshot: dict[str, Any] = {"kebab_version": str(schema.get("kebab_version") or "unknown")}
        for theirs, ours in _VERSIONS.items():
            if models.get(theirs) is not None:
                snapshot[ours] = str(models[theirs])
        for name in ("doc_count", "chunk_count"):
            if isinstance(stats.get(name), int):
                snapshot[name] = stats[name]
        return SystemInfo(
            "kebab",
            {"hybrid": "rrf", "lexical": "bm25", "vector": "cosine"}[self._config.search.mode],
            snapshot,
            # Each process holds the whole model in memory, and a batch keeps it busy.
            max_concurrency=1,
            batch_size=self._section.batch,
            answers=True,
        )


def open_kebab(config: Config) -> KebabBackend:
    """Start the binary of a config once, for what it says of itself.

    Raises:
        BackendError: it cannot be started, fails, or speaks another version.
    """
    return KebabBackend(config)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Kill a process with its children, and wait until it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _fatal(err: str) -> BackendError | None:
    """Return the error.v1 line among what a process wrote to stderr."""
    for line in reversed(err.splitlines()):
        if line.lstrip().startswith("{"):
            try:
                data = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(data, dict) and str(data.get("schema_version", "")).startswith("error."):
                return read_error(data)
    return None


def _not_started(binary: str, reason: Exception) -> str:
    said = getattr(reason, "strerror", None) or str(reason)
    return f"{binary} cannot be started ({said}); set backend.binary to where kebab is"


def _last_line(err: str) -> str:
    lines = [line for line in err.splitlines() if line.strip()]
    text = lines[-1] if lines else "it said nothing"
    return redact("".join(c if c.isprintable() else " " for c in text))[:300]
