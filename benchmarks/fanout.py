"""How much the fan-out adds to a server's own time, beside plain asynchronous httpx.

    python benchmarks/fanout.py [QUERIES] [REPEATS]

A server in a process of its own takes 50 ms for each request and notes how long it really took. The
ideal is QUERIES / in flight x 50 ms. Measured are the whole fan-out against the ideal, and the 95th
percentile of the measured latency against the server's own; in turn, so a busy moment hits all.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

SERVER = """
import asyncio, json, sys, time
from aiohttp import web
taken = []
async def search(request):
    started = time.perf_counter()
    await asyncio.sleep(0.05)
    hits = [{"id": f"d{n}", "score": 1 / (n + 1)} for n in range(10)]
    body = web.json_response({"results": hits})
    taken.append((time.perf_counter() - started) * 1000)
    return body
async def told(request):
    found = list(taken)
    taken.clear()
    return web.json_response(found)
async def main():
    application = web.Application()
    application.router.add_get("/search", search)
    application.router.add_get("/taken", told)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
TAKES_S = 0.05


def config(address: str, in_flight: int) -> Any:
    from kebab_eval.config import Config

    return Config.model_validate(
        {
            "name": "fanout",
            "golden": {"path": Path("g")},
            "backend": {
                "type": "http",
                "url": f"{address}/search",
                "params": {"q": "{query}"},
                "fields": {"hits": "results[]", "id": "id", "score": "score"},
            },
            "execution": {"concurrency": in_flight, "warmup": in_flight},
        }
    )


def ours(address: str, count: int, in_flight: int) -> tuple[float, list[float]]:
    from kebab_eval.backends import open_backend
    from kebab_eval.records import GoldenQuery
    from kebab_eval.workflows.fanout import fan_out

    settings = config(address, in_flight)
    backend = open_backend(settings)
    queries = [GoldenQuery(f"q{n}", f"text {n}") for n in range(count)]
    times: list[float] = []

    async def run() -> float:
        warm = settings.execution.model_copy(update={"warmup": 0})
        await fan_out(backend, queries[: in_flight * 2], warm, "hybrid", lambda *_: None)
        await asyncio.to_thread(taken, address)
        started = time.perf_counter()
        await fan_out(
            backend, queries, warm, "hybrid", lambda _, found: times.append(found.latency_ms or 0.0)
        )
        spent = time.perf_counter() - started
        await backend.close()
        return spent

    return asyncio.run(run()), times


def plain(address: str, count: int, in_flight: int) -> tuple[float, list[float]]:
    import httpx

    times: list[float] = []

    async def run() -> float:
        limit = asyncio.Semaphore(in_flight)
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=in_flight)) as client:

            async def one(number: int) -> None:
                async with limit:
                    started = time.perf_counter()
                    response = await client.get(f"{address}/search", params={"q": f"text {number}"})
                    response.json()
                    times.append((time.perf_counter() - started) * 1000)

            await asyncio.gather(*(one(number) for number in range(in_flight * 2)))
            times.clear()
            await asyncio.to_thread(taken, address)
            started = time.perf_counter()
            await asyncio.gather(*(one(number) for number in range(count)))
            return time.perf_counter() - started

    return asyncio.run(run()), times


def taken(address: str) -> list[float]:
    """Return the milliseconds of each request since the last time this was asked."""
    from urllib.request import urlopen

    with urlopen(f"{address}/taken") as response:  # noqa: S310  # our own server on loopback
        found: list[float] = json.load(response)
    return found


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    print(f"{count} queries of 50 ms, medians of {repeats} runs")
    print("in flight  client       whole/ideal  p95/server's p95")
    try:
        for in_flight in (16, 64):
            ideal = -(-count // in_flight) * TAKES_S
            wholes: dict[str, list[float]] = {"kebab-eval": [], "plain httpx": []}
            tails: dict[str, list[float]] = {"kebab-eval": [], "plain httpx": []}
            for _ in range(repeats):
                for name, run in (("kebab-eval", ours), ("plain httpx", plain)):
                    spent, times = run(address, count, in_flight)
                    own = taken(address)
                    wholes[name].append(spent / ideal)
                    tails[name].append(
                        float(np.percentile(times, 95)) / float(np.percentile(own, 95))
                    )
            for name, found in wholes.items():
                whole, tail = statistics.median(found), statistics.median(tails[name])
                print(f"{in_flight:>9}  {name:<11}  {whole:>11.3f}  {tail:>16.3f}")
    finally:
        server.kill()


if __name__ == "__main__":
    main()
