"""Talking HTTP: one client for a run, and what a response is when it is no answer.

Every failure is one line that names the cause, without secrets, and says whether asking again may
help. Redirects are not followed, so that credentials stay with the host that was named.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kebab_eval.backends.json_paths import find_one
from kebab_eval.errors import BackendError
from kebab_eval.formats.jsonl import Number
from kebab_eval.redaction import redact

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 64 * 1024 * 1024
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_SAID = 200  # of an error body: it is hostile text


def open_client(timeout_s: float, *, verify: bool = True) -> httpx.AsyncClient:
    """Return a client for a run; how many requests are in flight is the fan-out's matter."""
    import httpx
    from httpx_aiohttp import AiohttpTransport

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx.AsyncClient(
        transport=AiohttpTransport(verify=verify, limits=limits, trust_env=False),
        timeout=httpx.Timeout(timeout_s * 2),  # the fan-out's own time-out comes first
        follow_redirects=False,
        headers={"User-Agent": "kebab-eval", "Accept": "application/json"},
    )


async def read_json(
    client: httpx.AsyncClient,
    method: str,
    address: str,
    *,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    auth: tuple[str, str] | None = None,
    error_path: str | None = None,
) -> tuple[Any, float]:
    """Return the JSON of a response, and the milliseconds until its last byte was here.

    Args:
        error_path: where a system says, in spite of a 200, that it is no answer.

    Raises:
        BackendError: there is none, or it says that it is no answer.
    """
    import httpx

    started = time.perf_counter()
    try:
        async with client.stream(
            method, address, params=params, headers=headers, content=content, auth=auth
        ) as response:
            raw = await _read(response)
            spent_ms = (time.perf_counter() - started) * 1000
    except BackendError:
        raise
    except (httpx.TransportError, httpx.StreamError) as reason:
        said = " ".join(str(reason).split())[:_SAID]
        cause = f"{type(reason).__name__}: {said}" if said else type(reason).__name__
        raise BackendError(redact(cause), retry=True) from reason
    except (httpx.InvalidURL, UnicodeError, ValueError) as reason:
        raise BackendError(redact(f"the request could not be made: {reason}")) from reason
    # Answers of other queries that lie ready are read, and timed, before this one is parsed.
    await asyncio.sleep(0)
    return _answer(response, raw, error_path), spent_ms


async def _read(response: httpx.Response) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_BYTES:
            raise BackendError(f"the response is larger than {MAX_BYTES // 2**20} MiB")
        parts.append(part)
    return b"".join(parts)


def _answer(response: httpx.Response, raw: bytes, error_path: str | None) -> Any:
    """Return the JSON of a response that is an answer."""
    status = response.status_code
    if 300 <= status < 400:
        target = shown_address(response.headers.get("location", "nowhere"))[:_SAID]
        raise BackendError(
            f"HTTP {status}: redirected to {target}, which is not followed; name that address"
        )
    if status != 200:
        raise BackendError(
            redact(f"HTTP {status}{_body_said(raw, error_path)}"),
            retry=status in _BUSY,
            retry_after_s=_retry_after(response.headers.get("retry-after")),
        )
    try:
        data = json.loads(raw.decode("utf-8-sig"), parse_int=Number, parse_float=Number)
    except (ValueError, RecursionError):
        kind = response.headers.get("content-type", "no content type").partition(";")[0]
        empty = " and is empty" if not raw.strip() else ""
        raise BackendError(
            redact(f"the response is no JSON ({kind[:80]}){empty}{_body_said(raw, None)}")
        ) from None
    said = find_one(data, error_path) if isinstance(data, Mapping) else None
    if said is not None and not find_one(data, "hits|result|root.children|data.Get"):
        raise BackendError(redact(f"the system says: {one_line_of(said)}"))
    if isinstance(data, Mapping) and data.get("timed_out") is True:
        raise BackendError("the system says that it timed out", retry=True)
    return data


def _body_said(raw: bytes, error_path: str | None) -> str:
    """Return what an error body says, cut to one short line."""
    text = raw[:4000].decode("utf-8", "replace")
    try:
        data = json.loads(raw) if len(raw) < 100_000 else None
    except (ValueError, RecursionError):
        data = None
    paths = (
        f"{error_path}|error.message|error|message|detail"
        if error_path
        else "error.message|error|message|detail"
    )
    said = find_one(data, paths) if isinstance(data, Mapping) else None
    shown = one_line_of(text if said is None else said)
    return f": {shown}" if shown else ""


def one_line_of(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))[:_SAID]


def _retry_after(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or as a date."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def shown_address(address: str) -> str:
    """Return an address without user, password and query, which may hold secrets."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    shown = f"{parts.scheme}://{host}{port}{parts.path}" if host else parts.path
    return redact(one_line_of(shown))
