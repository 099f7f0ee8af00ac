"""Talking HTTP: one client for a run, and what a connection that breaks is told as.

Redirects are not followed, so that credentials stay with the host that was named.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kebab_eval.backends.http_responses import Response
from kebab_eval.errors import BackendError
from kebab_eval.redaction import redact

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 64 * 1024 * 1024
_SAID = 200  # characters of what the transport says


def open_client(timeout_s: float, *, verify_tls: bool = True) -> httpx.AsyncClient:
    """Return a client for a run: it keeps no cookies, and has no limit of its own.

    What one query was answered must not change what the next one is; how many are in flight is the
    fan-out's matter.
    """
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import aiohttp
    import httpx
    from httpx_aiohttp import AiohttpTransport

    context = httpx.create_ssl_context(verify=verify_tls, trust_env=False)

    def session() -> aiohttp.ClientSession:
        # The connector's own limit is 100, and waiting for a place would be measured; 0 is none.
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    return httpx.AsyncClient(
        transport=AiohttpTransport(client=session),
        timeout=httpx.Timeout(timeout_s * 2),  # the fan-out's own time-out comes first
        follow_redirects=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        headers={"User-Agent": "kebab-eval", "Accept": "application/json"},
    )


async def exchange(
    client: httpx.AsyncClient,
    method: str,
    address: str,
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | Sequence[tuple[bytes, bytes]] | None = None,
    content: bytes | None = None,
    auth: tuple[str, str] | None = None,
) -> tuple[Response, float]:
    """Return a response, and the milliseconds until its last byte was here.

    Raises:
        BackendError: there is none, or it is too large.
    """
    import aiohttp
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
    except (httpx.HTTPError, httpx.StreamError, aiohttp.ClientError, OSError) as reason:
        raise BackendError(_broken(reason), retry=True) from reason
    except (httpx.InvalidURL, ValueError) as reason:
        said = " ".join(redact(str(reason)).split())
        raise BackendError(f"the request could not be made: {said}") from reason
    # Answers of other queries that lie ready are read, and timed, before this one is parsed.
    await asyncio.sleep(0)
    return Response(response.status_code, response.headers, raw), spent_ms


async def _read(response: httpx.Response) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_BYTES:
            raise BackendError(f"the response is larger than {MAX_BYTES // 2**20} MiB")
        parts.append(part)
    return b"".join(parts)


def _broken(reason: Exception) -> str:
    """Say what happened to a connection, in one line without secrets."""
    import aiohttp
    import httpx

    said = " ".join(redact(str(reason)).split())[:_SAID]
    if isinstance(reason.__cause__, aiohttp.ClientConnectorError):
        return said
    if isinstance(reason, httpx.DecodingError):
        return f"the response cannot be decompressed ({said})"
    if isinstance(reason, httpx.TimeoutException) and isinstance(reason.__cause__, TimeoutError):
        return "the connection was silent for too long"
    return f"the connection broke ({said or type(reason).__name__})"
