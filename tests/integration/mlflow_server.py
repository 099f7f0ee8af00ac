"""A real MLflow server on loopback, and a wire to it that can be cut."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Server:
    port: int
    database: Path

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@contextmanager
def mlflow_server(folder: Path) -> Iterator[Server]:
    """Serve a store in a folder, with artifacts through the server."""
    server = Server(free_port(), folder / "server.db")
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
    command += ["--port", str(server.port), "--backend-store-uri", f"sqlite:///{server.database}"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            start_new_session=True,
        )
        try:
            _await(server.port)
            yield server
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _await(port: int) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=2)) as connection:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


class Wire:
    """Forwards to a server until a request comes that it waits for, and then does as it is told.

    Args:
        port: the server's.
        watched: what begins the requests that are counted, as in ``POST /api/3.0/mlflow/traces``.
        after: how many of them pass.
        then: what happens at the next one, once: ``silence`` answers nothing any more, ``cut``
            closes every connection, and anything callable is called before the request passes.
    """

    def __init__(
        self, port: int, watched: str, after: int, then: str | Callable[[], object]
    ) -> None:
        self._port, self._watched, self._left, self._then = port, watched.encode(), after, then
        self._dead: str | None = None
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def reached(self) -> bool:
        """Whether the request came that was waited for."""
        return self._left < 0

    def close(self) -> None:
        self._dead = "cut"
        self._listener.close()
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(client)
            if self._dead == "cut":
                client.close()
            elif self._dead is None:
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._port))
        self._sockets.append(server)
        threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()
        self._pump(client, server, True)

    def _pump(self, source: socket.socket, target: socket.socket, asking: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if asking and data.startswith(self._watched):
                    self._count()
                if self._dead == "silence":
                    return
                if self._dead == "cut":
                    break
                target.sendall(data)
        for one in (source, target):
            one.close()

    def _count(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left != -1:
                return
            if callable(self._then):
                self._then()
            else:
                self._dead = self._then
