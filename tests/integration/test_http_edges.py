"""The backend ``http`` where servers, networks and certificates misbehave, on real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend, SearchResponse
from kebab_eval.config import Config
from kebab_eval.errors import BackendError
from kebab_eval.redaction import register

Serving = Callable[..., AbstractContextManager[str]]
Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

PASSWORD = "pa/ss wörd-6174"  # noqa: S105  # planted, to be looked for


def opened(address: str, **section: Any) -> Backend:
    more = {name: section.pop(name) for name in ("search", "execution") if name in section}
    fields = {"hits": "results[]", "id": "id"}
    backend = {"type": "http", "url": address, "fields": fields, **section}
    return open_backend(
        Config.model_validate(
            {"name": "x", "golden": {"path": Path("g")}, "backend": backend, **more}
        )
    )


async def searched(backend: Backend, query: str = "q") -> SearchResponse:
    try:
        return await backend.search(query, "id")
    finally:
        await backend.close()


def ask(backend: Backend, query: str = "q") -> SearchResponse:
    return asyncio.run(searched(backend, query))


def failure(backend: Backend) -> BackendError:
    with pytest.raises(BackendError) as told:
        ask(backend)
    assert len(str(told.value).splitlines()) == 1
    return told.value


@asynccontextmanager
async def socket_server(handle: Handle) -> Any:
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


def raw(answer: bytes) -> BackendError:
    """Return the failure of a search that is answered by these bytes and the end."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def run() -> SearchResponse:
        async with socket_server(handle) as address:
            return await searched(opened(address))

    with pytest.raises(BackendError) as told:
        asyncio.run(run())
    assert len(str(told.value).splitlines()) == 1
    return told.value


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
        b"\x00" * 500,
    ],
)
def test_what_is_no_http_is_a_failure_that_may_pass(answer: bytes) -> None:
    told = raw(answer)
    assert told.retry
    assert str(told)


def test_a_body_that_cannot_be_decompressed(serving: Serving) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"not gzip", headers={"Content-Encoding": "gzip"})

    with serving(handle) as address:
        told = failure(opened(address))
    assert str(told).startswith("the response cannot be decompressed")
    assert told.retry


def test_a_small_body_that_becomes_large(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kebab_eval.backends.http_client.MAX_BYTES", 2**20)
    body = gzip.compress(b" " * 2**23)
    assert len(body) < 10_000

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    with serving(handle) as address:
        assert str(failure(opened(address))) == "the response is larger than 1 MiB"


def test_nobody_listens() -> None:
    told = failure(opened("http://127.0.0.1:1/x"))
    assert told.retry
    assert str(told).startswith("Cannot connect to host 127.0.0.1:1")


# --- who asks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["auth", "url"])
def test_a_password_is_sent_and_never_shown(serving: Serving, way: str) -> None:
    from base64 import b64decode
    from urllib.parse import quote

    seen: list[str] = []

    async def echo(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        told = f"{seen[-1]} is {PASSWORD} or {quote(PASSWORD, safe='')}, at {request.url}"
        return web.Response(status=403, text=told)

    register(PASSWORD, "${env:PASSWORD}")
    with serving(echo) as address:
        if way == "auth":
            backend = opened(address, auth={"username": "me", "password": PASSWORD})
        else:
            told = f"http://me:{quote(PASSWORD, safe='')}@"
            backend = opened(address.replace("http://", told))
        assert "me" not in str(backend.describe().snapshot["url"])
        told_error = str(failure(backend))
    scheme, _, pair = seen[0].partition(" ")
    assert (scheme, b64decode(pair).decode()) == ("Basic", f"me:{PASSWORD}")
    assert told_error.startswith("HTTP 403: Basic ")
    for form in (pair, PASSWORD, quote(PASSWORD), quote(PASSWORD, safe="")):
        assert form not in told_error


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(serving: Serving, status: int) -> None:
    asked: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=status, headers={"Location": "/elsewhere?t=1"})

    with serving(handle) as address:
        told = failure(opened(address + "/search", auth={"bearer": "token-1729"}))
    assert asked == ["/search"]
    assert f"HTTP {status}: redirected to /elsewhere, which is not followed" in str(told)


def test_no_cookie_of_one_search_decides_the_next(serving: Serving) -> None:
    """Each query is asked as the first one is: what was asked before must not change it."""
    sent: list[str | None] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        sent.append(request.headers.get("Cookie"))
        response = web.json_response({"results": []})
        response.set_cookie("session", "1")
        return response

    async def twice(backend: Backend) -> None:
        await backend.search("a", "1")
        await searched(backend, "b")

    with serving(handle) as address:
        asyncio.run(twice(opened(address.replace("127.0.0.1", "localhost"))))
    assert sent == [None, None]


# --- the client -----------------------------------------------------------------------------------


def test_all_of_the_concurrency_is_in_flight_at_once(serving: Serving) -> None:
    """120 requests are answered only when all of them are there."""
    waiting: list[asyncio.Event] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        waiting.append(asyncio.Event())
        if len(waiting) == 120:
            for event in waiting:
                event.set()
        await waiting[0].wait() if len(waiting) == 1 else await waiting[-1].wait()
        return web.json_response({"results": []})

    async def run(backend: Backend) -> int:
        found = await asyncio.gather(*(backend.search(f"q{n}", "id") for n in range(120)))
        await backend.close()
        return len(found)

    with serving(handle) as address:
        backend = opened(address, execution={"concurrency": 120, "timeout_s": 20})
        assert asyncio.run(run(backend)) == 120


def test_a_backend_outlives_the_loop_that_it_was_asked_in(serving: Serving) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.json_response({"results": [{"id": "a"}]})

    with serving(handle) as address:
        backend = opened(address)
        assert [len(ask(backend).hits) for _ in range(3)] == [1, 1, 1]
        asyncio.run(backend.close())  # once more is no fault


def test_a_cursor_that_stays_the_same_ends_the_search(serving: Serving) -> None:
    bodies: list[Any] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        return web.json_response({"results": [{"id": str(len(bodies))}], "next": [4, "x"]})

    fields = {"hits": "results[]", "id": "id", "next": "next"}
    with serving(handle) as address:
        backend = opened(address, body={"q": "{query}", "after": "{cursor}"}, fields=fields)
        hits = ask(backend).hits
    assert bodies == [{"q": "q"}, {"q": "q", "after": [4, "x"]}]
    assert [hit.chunk_id for hit in hits] == ["1", "2"]


def test_pages_without_end_are_bounded(serving: Serving) -> None:
    asked: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(request.query["page"])
        return web.json_response({"results": [{"id": "same"}]})

    with serving(handle) as address:
        backend = opened(address, params={"page": "{page}"}, search={"k": 1000})
        hits = ask(backend).hits
    assert asked == [str(n) for n in range(1, 101)]
    assert len(hits) == 100  # duplicates pass: the run counts them


def test_a_page_that_is_no_answer_fails_the_search(serving: Serving) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        if request.query["page"] == "2":
            return web.Response(status=503, headers={"Retry-After": "3"})
        return web.json_response({"results": [{"id": "a"}]})

    with serving(handle) as address:
        told = failure(opened(address, params={"page": "{page}"}))
    assert (str(told), told.retry, told.retry_after_s) == ("HTTP 503", True, 3.0)


# --- certificates ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody signed but itself, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path),
         "-out", str(path) + ".crt"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + Path(str(path) + ".crt").read_text())
    return path


@pytest.mark.parametrize("verify", [True, False])
def test_a_certificate_is_checked_unless_told_otherwise(certificate: Path, verify: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    body = json.dumps({"results": [{"id": "a"}]}).encode()
    head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + body)
        await writer.drain()
        writer.close()

    async def run() -> SearchResponse:
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
        async with server:
            port = server.sockets[0].getsockname()[1]
            backend = opened(f"https://127.0.0.1:{port}/", verify_tls=verify)
            return await searched(backend)

    if not verify:
        assert len(asyncio.run(run()).hits) == 1
        return
    with pytest.raises(BackendError, match="certificate verify failed"):
        asyncio.run(run())
