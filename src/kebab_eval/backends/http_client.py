"""Talking HTTP: one client for a run, and what a connection that breaks is told as.

Redirects are not followed, so that credentials stay with the host that was named.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from kebab_eval.backends.http_responses import Response
from kebab_eval.errors import BackendError
from kebab_eval.redaction import redact

if TYPE_CHECKING:
    import aiohttp

MAX_BYTES = 64 * 1024 * 1024
_SAID = 200  # characters of what the transport says


class Client:
    """One client for a run: it keeps no cookies, and has no limit of its own.

    What one query was answered must not change what the next one is; how many are in flight is the
    fan-out's matter. aiohttp is asked without httpx above it, whose requests and responses cost as
    much again, and at a thousand requests a second the queue for that would be measured as latency.
    """

    def __init__(self, timeout_s: float, *, verify_tls: bool = True) -> None:
        import aiohttp
        import httpx

        context = httpx.create_ssl_context(verify=verify_tls, trust_env=False)
        # The connector's own limit is 100, and waiting for a place would be measured; 0 is none.
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "kebab-eval", "Accept": "application/json"},
            # The fan-out's own time-out comes first.
            timeout=aiohttp.ClientTimeout(sock_connect=timeout_s * 2, sock_read=timeout_s * 2),
        )

    async def exchange(
        self,
        method: str,
        address: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        auth: tuple[str, str] | None = None,
    ) -> tuple[Response, float]:
        """Return a response, and the milliseconds until its last byte was here.

        Raises:
            BackendError: there is none, or it is too large.
        """
        import aiohttp
        from yarl import URL

        given = dict(headers or {})
        if auth is not None:
            given["Authorization"] = _basic(*auth)
        started = time.perf_counter()
        try:
            url = URL(address).update_query(params) if params else URL(address)
            async with self._session.request(
                method, url, headers=given, data=content, allow_redirects=False
            ) as response:
                raw = await _read(response)
            spent_ms = (time.perf_counter() - started) * 1000
        except BackendError:
            raise
        except (aiohttp.InvalidURL, ValueError) as reason:
            said = " ".join(redact(str(reason)).split())
            raise BackendError(f"the request could not be made: {said}") from reason
        except (aiohttp.ClientError, OSError) as reason:
            raise BackendError(_broken(reason), retry=True) from reason
        # Answers of other queries that lie ready are read, and timed, before this one is parsed.
        await asyncio.sleep(0)
        return Response(response.status, response.headers, raw), spent_ms

    async def close(self) -> None:
        await self._session.close()


@lru_cache(maxsize=8)
def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def _read(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_BYTES:
            response.close()  # what is left is not read
            raise BackendError(f"the response is larger than {MAX_BYTES // 2**20} MiB")
        parts.append(part)
    return b"".join(parts)


def _broken(reason: Exception) -> str:
    """Say what happened to a connection, in one line without secrets."""
    import aiohttp

    said = " ".join(redact(str(reason)).split())[:_SAID]
    if isinstance(reason, aiohttp.ClientConnectorError):
        return said
    encoded = aiohttp.http_exceptions.ContentEncodingError
    if isinstance(reason, encoded) or isinstance(reason.__cause__, encoded):
        return f"the response cannot be decompressed ({said})"
    if isinstance(reason, TimeoutError):
        return "the connection was silent for too long"
    return f"the connection broke ({said or type(reason).__name__})"
