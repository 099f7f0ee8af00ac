"""The backends ``http`` and ``docserver``: a search API over HTTP, one request a query.

What goes wrong becomes one line that names the cause; whether asking again may help stands in the
error, and how often that is done is the fan-out's matter.
"""

from __future__ import annotations

import json
import math
import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit

from kebab_eval import config as config_models
from kebab_eval.backends.base import SearchResponse, SingleSearch, SystemInfo
from kebab_eval.backends.http_answers import (
    one_line_of,
    open_client,
    read_json,
    shown_address,
)
from kebab_eval.backends.json_paths import check_templates, fill, find_all, find_one, names_in
from kebab_eval.backends.presets import PRESETS, Preset
from kebab_eval.config import Config
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.levers import flatten
from kebab_eval.records import Hit
from kebab_eval.redaction import register

if TYPE_CHECKING:
    import httpx

_MAX_PAGES = 100


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent: templates, filled for each query."""

    method: str
    url: str
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    body: Any
    auth: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a response holds what; the paths below ``hits`` start at a hit."""

    hits: str
    id: str
    doc_id: str | None
    score: str | None
    text: str | None
    next: str | None
    timing_ms: str | None
    error: str | None
    score_kind: str


class HttpBackend(SingleSearch):
    """Asks a search API; one client lives as long as the backend.

    Raises:
        UsageError: a template names nothing, or the address is none.
    """

    def __init__(
        self, config: Config, request: Request, reading: Reading, snapshot: Mapping[str, Any]
    ) -> None:
        self._config = config
        self._request = request
        self._reading = reading
        levers = dict(flatten(config.model_dump(mode="json")))
        self._values = {
            **{key: value for key, value in levers.items() if not key.startswith("backend.")},
            "k": config.search.k,
            "mode": config.search.mode,
            "depth": config.search.depth,
        }
        known = ["query", "k", "mode", "depth", "cursor", *self._values]
        for where, template in (
            ("backend.url", request.url),
            ("backend.params", dict(request.params)),
            ("backend.headers", dict(request.headers)),
        ):
            check_templates(template, known, where)
        parts = urlsplit(request.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("backend.url: an address begins with http:// or https:// and a host")
        self._in_address = names_in(request.url)
        self._client: httpx.AsyncClient | None = None
        kind = reading.score_kind
        self._info = SystemInfo("http", kind, {"url": shown_address(request.url), **snapshot})

    def describe(self) -> SystemInfo:
        return self._info

    async def search(self, query: str, query_id: str) -> SearchResponse:
        hits: list[Hit] = []
        cursor: Any = None
        took: dict[str, float] = {}
        latency_ms = 0.0
        for _ in range(_MAX_PAGES):
            data, spent_ms = await self._ask(query, cursor)
            latency_ms += spent_ms
            page = self._hits(data, len(hits))
            hits += page
            timing = find_one(data, self._reading.timing_ms)
            if timing is not None and (ms := _number(timing)) is not None:
                took["total"] = took.get("total", 0.0) + ms
            cursor = find_one(data, self._reading.next)
            if cursor is None or not page or len(hits) >= self._config.search.k:
                break
        return SearchResponse(tuple(hits[: self._config.search.k]), took, latency_ms=latency_ms)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _ask(self, query: str, cursor: Any) -> tuple[Any, float]:
        """Return the JSON of one response, and the milliseconds until its last byte was here.

        Raises:
            BackendError: there is none, or it says that it is no answer.
        """
        if self._client is None:
            verify = getattr(self._config.backend, "verify_tls", True)
            self._client = open_client(self._config.execution.timeout_s, verify=verify)
        client = self._client
        values = {**self._values, "query": query, "cursor": "" if cursor is None else cursor}
        address = self._request.url
        if self._in_address:
            address = fill(address, {name: _quoted(values[name]) for name in self._in_address})
        params = {
            key: value
            for key, value in fill(dict(self._request.params), values).items()
            if value not in (None, "") or key == "q"
        }
        headers = {**fill(dict(self._request.headers), values)}
        body = self._request.body
        content = None
        if body is not None and self._request.method != "GET":
            content = json.dumps(fill(body, values), ensure_ascii=False).encode("utf-8", "replace")
            headers.setdefault("Content-Type", "application/json")
        return await read_json(
            client,
            self._request.method,
            address,
            params={key: str(value) for key, value in params.items()} or None,
            headers=headers,
            content=content,
            auth=self._request.auth,
            error_path=self._reading.error,
        )

    def _hits(self, data: Any, before: int) -> list[Hit]:
        reading = self._reading
        found = find_all(data, reading.hits)
        if not found and not _has_list(data, reading.hits):
            raise BackendError(
                f"the response holds no list of hits at {reading.hits!r}; it has {_keys(data)}"
            )
        hits = []
        for rank, item in enumerate(found, before + 1):
            chunk_id = find_one(item, reading.id)
            if chunk_id is None or isinstance(chunk_id, Mapping | list):
                raise BackendError(f"hit {rank} has no id at {reading.id!r}; it has {_keys(item)}")
            document = find_one(item, reading.doc_id)
            score = find_one(item, reading.score)
            number = 1 / rank if score is None else _number(score)
            if number is None:
                raise BackendError(f"the score of hit {rank} is no number: {str(score)[:40]!r}")
            text = find_one(item, reading.text)
            hits.append(
                Hit(
                    rank,
                    _text(chunk_id),
                    _text(chunk_id if document is None else document),
                    number,
                    reading.score_kind,
                    "" if text is None else _text(text),
                )
            )
        return hits


def open_http(config: Config) -> HttpBackend:
    """Return the backend of a section ``http``, with or without a preset.

    Raises:
        UsageError: the section lacks what its API needs.
    """
    section = cast("config_models.HttpBackend", config.backend)
    preset = PRESETS[section.preset] if section.preset else None
    fields = section.fields
    if preset is None and (fields.hits is None or fields.id is None):
        raise UsageError(
            "backend.fields: say where the hits are (hits: results[]) and each one's id (id: id), "
            "or take a preset"
        )
    if preset is not None and preset.needs_index and section.index is None:
        raise UsageError(f"backend.index: the preset {section.preset} needs the name of one")
    if preset is not None and preset.needs_body and section.body is None:
        raise UsageError(
            f"backend.body: {section.preset} searches by vectors that only you can name; give the "
            "request's body, with {query} where its own inference takes a text"
        )
    base = section.url.rstrip("/") if preset else section.url
    index = section.index or ""
    url = base + _with_index(preset.path, quote(index, safe="")) if preset else base
    headers, auth = _credentials(section.auth, preset, section.headers)
    body = section.body
    if body is None and preset is not None:
        body = _with_index(preset.body, index)
    request = Request(
        section.method or (preset.method if preset else "POST" if body is not None else "GET"),
        url,
        {**(preset.params if preset else {}), **section.params},
        headers,
        body,
        auth,
    )
    reading = _reading(fields, preset, index, section.score_kind)
    snapshot = {**({"preset": section.preset} if preset else {}), **section.versions}
    return HttpBackend(config, request, reading, snapshot)


def open_docserver(config: Config) -> HttpBackend:
    """Return the backend of a section ``docserver``.

    Raises:
        UsageError: the address is none.
    """
    section = cast("config_models.DocserverBackend", config.backend)
    preset = PRESETS["docserver"]
    token = section.token
    if token is None and preset.token_variable is not None:
        token = os.environ.get(preset.token_variable) or None
        if token is not None:
            register(token, f"${{env:{preset.token_variable}}}")
    auth = config_models.Auth(bearer=token)
    headers, basic = _credentials(auth, preset, {})
    request = Request(
        preset.method,
        section.base_url.rstrip("/") + section.search_path,
        {**preset.params, **section.params},
        headers,
        None,
        basic,
    )
    reading = _reading(config_models.Fields(), preset, "", "score")
    return HttpBackend(config, request, reading, section.versions)


def _with_index(template: Any, index: str) -> Any:
    """Return a preset's template with the name of the index in it, other templates left alone."""
    if isinstance(template, Mapping):
        return {key: _with_index(value, index) for key, value in template.items()}
    if isinstance(template, list):
        return [_with_index(value, index) for value in template]
    return template.replace("{index}", index) if isinstance(template, str) else template


def _credentials(
    auth: config_models.Auth, preset: Preset | None, given: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, str] | None]:
    headers = {**(preset.headers if preset else {}), **given}
    if auth.bearer is not None:
        name, before = preset.auth if preset else ("Authorization", "Bearer ")
        headers[name] = before + auth.bearer
    if auth.username is not None and auth.password is not None:
        pair = b64encode(f"{auth.username}:{auth.password}".encode()).decode()
        register(pair, "${basic authentication}")  # as the header has it; an echo would show it
        return headers, (auth.username, auth.password)
    return headers, None


def _reading(
    fields: config_models.Fields, preset: Preset | None, index: str, score_kind: str
) -> Reading:
    def path(name: str) -> str | None:
        own: str | None = getattr(fields, name, None)
        return own if own is not None else getattr(preset, name, None)

    kind = preset.score_kind if preset is not None and score_kind == "score" else score_kind
    return Reading(
        hits=str(path("hits")).replace("{index}", index),
        id=str(path("id")),
        doc_id=path("doc_id"),
        score=path("score"),
        text=path("text"),
        next=fields.next,
        timing_ms=path("timing_ms"),
        error=preset.error if preset else None,
        score_kind=kind,
    )


def _has_list(data: Any, path: str) -> bool:
    """Say whether a path leads to a list, be it empty."""
    for way in path.split("|"):
        stem = way.strip().removesuffix("[]")
        if not stem:
            if isinstance(data, list):
                return True
        elif any(isinstance(value, list) for value in find_all(data, stem)):
            return True
    return False


def _keys(data: Any) -> str:
    if isinstance(data, Mapping):
        return ", ".join(one_line_of(str(key)) for key in list(data)[:10]) or "nothing"
    return (
        "a list"
        if isinstance(data, list)
        else one_line_of(data)[:40]
        if data is not None
        else "null"
    )


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _quoted(value: Any) -> str:
    return quote(str(value), safe="")
