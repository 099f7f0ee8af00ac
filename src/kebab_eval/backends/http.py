"""The backends ``http`` and ``docserver``: a search API over HTTP, one request a query and page.

What goes wrong becomes one line that names the cause; whether asking again may help stands in the
error, and how often that is done is the fan-out's matter.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from kebab_eval import config as config_models
from kebab_eval.backends.base import Param, SearchResponse, SingleSearch, SystemInfo
from kebab_eval.backends.http_client import Client
from kebab_eval.backends.http_requests import Page, Request, Templates
from kebab_eval.backends.http_responses import (
    Reading,
    number_at,
    read_answer,
    read_hits,
    shown_address,
)
from kebab_eval.backends.http_versions import learn
from kebab_eval.backends.json_paths import find_one, names_in
from kebab_eval.backends.presets import PRESETS, Preset
from kebab_eval.config import Config
from kebab_eval.errors import UsageError
from kebab_eval.levers import flatten
from kebab_eval.records import Hit
from kebab_eval.redaction import redact, register

_MAX_PAGES = 100


class HttpBackend(SingleSearch):
    """Asks a search API; one client lives as long as the backend, or as the loop that it runs in.

    Args:
        page_size: the most hits that one request may ask for; no limit when None.

    Raises:
        UsageError: a template names nothing, or the address is none; all of it is told.
    """

    def __init__(
        self,
        config: Config,
        request: Request,
        reading: Reading,
        page_size: int | None,
        verify_tls: bool,
    ) -> None:
        self._config = config
        self._request = request
        self._reading = reading
        self._page_size = page_size
        self._verify_tls = verify_tls
        search = config.search
        self._size = search.k if page_size is None else min(search.k, page_size)
        levers = flatten(config.model_dump(mode="json"))
        values = {
            **{key: value for key, value in levers if not key.startswith("backend.")},
            "mode": search.mode,
            "depth": search.depth,
            "k": search.k,
            "size": self._size,
        }
        self._templates = Templates(request, values)
        self._paged = self._templates.paged or reading.next is not None
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._snapshot: dict[str, Param] = {"url": shown_address(request.url)}

    def describe(self) -> SystemInfo:
        return SystemInfo(self._config.backend.type, self._reading.score_kind, dict(self._snapshot))

    def tell(self, versions: Mapping[str, Param]) -> None:
        """Add to what the system says of itself; the last word on a name counts."""
        self._snapshot.update(versions)

    async def search(self, query: str, query_id: str) -> SearchResponse:
        k, reading = self._config.search.k, self._reading
        hits: list[Hit] = []
        took: dict[str, float] = {}
        latency_ms = 0.0
        page = Page()
        for _ in range(_MAX_PAGES):
            data, spent_ms = await self._ask(query, page)
            latency_ms += spent_ms
            found = read_hits(data, reading, len(hits))
            hits += found
            timing = number_at(data, reading.timing_ms)
            if timing is not None:
                took["total"] = took.get("total", 0.0) + timing
            cursor = find_one(data, reading.next)
            if len(hits) >= k or self._is_last(data, found, len(hits), cursor, page):
                break
            page = Page(page.number + 1, len(hits), cursor)
        return SearchResponse(tuple(hits[:k]), took, latency_ms=latency_ms)

    async def close(self) -> None:
        client, self._client, self._loop = self._client, None, None
        if client is not None:
            await client.close()

    def _is_last(self, data: Any, found: list[Hit], have: int, cursor: Any, page: Page) -> bool:
        if not self._paged or not found:
            return True
        if self._reading.next is not None and cursor in (None, "", page.cursor):
            return True
        if self._page_size is not None and len(found) < self._size:
            return True
        total = number_at(data, self._reading.total)
        return total is not None and have >= total

    async def _ask(self, query: str, page: Page) -> tuple[Any, float]:
        """Return the JSON of one response, and the milliseconds until its last byte was here.

        Raises:
            BackendError: there is none, or it says that it is no answer.
        """
        request = self._templates.fill(query, page)
        response, spent_ms = await self._opened().exchange(
            self._request.method,
            request.address,
            params=request.params or None,
            headers=request.headers,
            content=request.content,
            auth=self._request.auth,
        )
        return read_answer(response, self._reading), spent_ms

    def _opened(self) -> Client:
        """Return the client of the running loop; one of a loop that ended would be of no use."""
        loop = asyncio.get_running_loop()
        if self._client is not None and self._loop is loop:
            return self._client
        self._loop = loop
        self._client = Client(self._config.execution.timeout_s, verify_tls=self._verify_tls)
        return self._client


def open_http(config: Config) -> HttpBackend:
    """Return the backend of a section ``http``, with or without a preset.

    Raises:
        UsageError: the section lacks what its API needs.
        BackendError: a preset's system cannot be reached.
    """
    section = cast("config_models.HttpBackend", config.backend)
    preset = PRESETS[section.preset] if section.preset else None
    if preset is None:
        return _opened(config, section.url, section, None)
    if preset.needs_index and section.index is None:
        raise UsageError(f"backend.index: the preset {section.preset} needs the name of one")
    if preset.needs_body is not None and section.body is None:
        raise UsageError(
            f"backend.body: {section.preset} searches by vectors, and only you know how a query "
            f"becomes one; give the request's body, as in {preset.needs_body}"
        )
    named = _with_index(preset, section.index or "")
    return _opened(config, section.url.rstrip("/") + named.path, section, named)


def open_docserver(config: Config) -> HttpBackend:
    """Return the backend of a section ``docserver``.

    Raises:
        UsageError: the address is none.
    """
    section = cast("config_models.DocserverBackend", config.backend)
    as_http = config_models.HttpBackend(
        url=section.base_url,
        auth=config_models.Auth(bearer=section.token),
        **{name: getattr(section, name) for name in _SHARED},
    )
    url = section.base_url.rstrip("/") + "/" + section.search_path.lstrip("/")
    return _opened(config, url, as_http, PRESETS["docserver"])


_SHARED = ("params", "headers", "fields", "page_size", "versions", "verify_tls")


def _opened(
    config: Config, url: str, section: config_models.HttpBackend, preset: Preset | None
) -> HttpBackend:
    """Return the backend of a section; ``preset`` has the name of its index in it."""
    fields = section.fields
    if preset is None and (fields.hits is None or fields.id is None):
        raise UsageError(
            "backend.fields: say where the hits are (hits: results[]) and each one's id (id: id), "
            "or take a preset"
        )
    url, auth = _credentials(url, section.auth)
    body, default = section.body, "GET" if section.body is None else "POST"
    if preset is not None and body is None:
        body, default = preset.body, preset.method
    request = Request(
        section.method or default,
        url,
        {**(preset.params if preset else {}), **section.params},
        _headers(section, preset),
        body,
        auth,
    )
    reading = _reading(fields, preset, section.score_kind)
    page_size = section.page_size or (preset.page_size if preset else None)
    backend = HttpBackend(config, request, reading, page_size, section.verify_tls)
    if section.preset:
        backend.tell({"preset": section.preset})
    if preset is not None and preset.learn:
        server, _ = _credentials(section.url.rstrip("/"), section.auth)
        asked = {server + path: names for path, names in preset.learn.items()}
        headers = {key: text for key, text in request.headers.items() if not names_in(text)}
        timeout_s = config.execution.timeout_s
        backend.tell(learn(asked, headers, auth, section.verify_tls, timeout_s))
    backend.tell(section.versions)
    return backend


def _with_index(preset: Preset, index: str) -> Preset:
    """Return a preset with the name of the index in it; other templates are left alone."""
    quoted = quote(index, safe="")
    return replace(
        preset,
        path=preset.path.replace("{index}", quoted),
        reading=replace(preset.reading, hits=preset.reading.hits.replace("{index}", index)),
        body=_replaced(preset.body, index),
        learn={path.replace("{index}", quoted): names for path, names in preset.learn.items()},
    )


def _replaced(template: Any, index: str) -> Any:
    if isinstance(template, Mapping):
        return {key: _replaced(value, index) for key, value in template.items()}
    return template.replace("{index}", index) if isinstance(template, str) else template


def _credentials(url: str, auth: config_models.Auth) -> tuple[str, tuple[str, str] | None]:
    """Return the address without user and password, and whose request it is."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, None  # told with the other faults
    user_info, at, host = parts.netloc.rpartition("@")
    pair = None
    if at:
        name, _, password = user_info.partition(":")
        pair = (unquote(name), unquote(password))
    if auth.username is not None and auth.password is not None:
        pair = (auth.username, auth.password)
    if pair is not None:
        _keep_secret(pair[1])
        _keep_secret(base64.b64encode(":".join(pair).encode()).decode())
    return urlunsplit(parts._replace(netloc=host)) if at else url, pair


def _headers(section: config_models.HttpBackend, preset: Preset | None) -> dict[str, str]:
    headers, token = dict(section.headers), section.auth.bearer
    if token is None and preset is not None and preset.token_variable is not None:
        token = os.environ.get(preset.token_variable) or None
        if token is not None:
            register(token, f"${{env:{preset.token_variable}}}")
    if token is not None:
        _keep_secret(token)
        name, before = preset.auth if preset else ("Authorization", "Bearer ")
        headers[name] = before + token
    return headers


def _keep_secret(value: str) -> None:
    """Have a secret shown as ``***``, unless it is shown as its reference already."""
    if redact(value) == value:
        register(value, "***")


def _reading(fields: config_models.Fields, preset: Preset | None, score_kind: str) -> Reading:
    """Return where a response holds what: the preset's paths, and the config's own over them."""
    own = {name: path for name, path in fields.model_dump().items() if path is not None}
    if preset is None:
        return Reading(**own, score_kind=score_kind)
    if score_kind != "score":
        own["score_kind"] = score_kind
    return replace(preset.reading, **own)
