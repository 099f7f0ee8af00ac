"""What the tests of real systems need: a real HTTP server on loopback, its answers by the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


Serving = Callable[[Handler], AbstractContextManager[str]]


@pytest.fixture
def serving() -> Serving:
    """Return a context manager that serves every path by one handler and yields the address."""
    return _serving


@contextmanager
def _serving(handler: Handler) -> Iterator[str]:
    """Serve in a thread of its own."""
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    address: list[str] = []

    def work() -> None:
        asyncio.set_event_loop(loop)

        async def start() -> web.AppRunner:
            application = web.Application(client_max_size=2**26)
            application.router.add_route("*", "/{path:.*}", handler)
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            server = site._server
            assert server is not None
            port = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
            address.append(f"http://127.0.0.1:{port}")
            return runner

        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
