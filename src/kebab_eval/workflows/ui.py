"""Starting MLflow's server on a store, and knowing which pages of it to open."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from dataclasses import dataclass
from pathlib import Path

from kebab_eval.config_file import load_config
from kebab_eval.errors import Fault, TrackerError, UsageError
from kebab_eval.tracking import keys, spool
from kebab_eval.tracking.store import Store, resolve_store
from kebab_eval.tracking.views import VIEW_KEY

_GRACE_S = 10
_OPENED = ("runs", "compare", "pairs")
_START_S = 120


@dataclass(frozen=True, slots=True)
class Plan:
    """What to print and what to start; ``command`` is None where a server has its UI already."""

    links: tuple[tuple[str, str], ...]
    command: tuple[str, ...] | None
    store: Store


def plan_ui(tracking_uri: str | None, config_path: Path | None, host: str, port: int) -> Plan:
    """Return the pages worth opening and the server to start for a store.

    Raises:
        UsageError: there is no store yet, or the port is taken.
    """
    configured = load_config(config_path).config.tracking.uri if config_path else None
    store = resolve_store(tracking_uri, configured)
    if store.uri.startswith(("http://", "https://")):
        return Plan(_links(store, store.ui_url), None, store)
    if store.database is not None and not store.database.exists():
        message = f"{store.shown} does not exist yet; 'kebab-eval track' makes it"
        raise UsageError(Fault("tracking uri", message))
    _check_port(host, port)
    command = [sys.executable, "-P", "-m", "mlflow", "server", "--host", host, "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", store.uri]
    if store.artifact_uri is not None:
        command += ["--default-artifact-root", store.artifact_uri]
    shown = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104  # only compared, never bound
    return Plan(_links(store, f"http://{shown}:{port}"), tuple(command), store)


def _links(store: Store, base: str) -> tuple[tuple[str, str], ...]:
    """The UI, the newest run of this store, and its comparison with the one before it."""
    links = [("UI", base)]
    infos = [
        info
        for info in spool.list_records()
        if spool.is_tracked(info) and info["mlflow"]["tracking_uri"] == store.shown
    ]
    runs = [
        (info["mlflow"]["experiment_id"], info["golden"]["digest"], info["mlflow"]["run_id"])
        for info in infos
    ]
    viewed = {info["mlflow"]["experiment_id"] for info in infos if info["mlflow"].get("view")}
    if runs:
        experiment, digest, newest = runs[0]
        view = VIEW_KEY if experiment in viewed else None
        links.append(("runs", keys.runs_url(base, experiment, view)))
        links.append(("newest", keys.run_url(base, experiment, newest)))
        links.append(("queries", keys.queries_url(base, experiment, newest)))
        before = [run for *same, run in runs[1:] if same == [experiment, digest]]
        if before:
            links.append(("compare", keys.compare_url(base, [experiment], [before[0], newest])))
            links.append(("pairs", keys.queries_url(base, experiment, newest, before[0])))
    return tuple(links)


def _check_port(host: str, port: int) -> None:
    try:
        with socket.create_server((host, port)):
            return
    except OSError as reason:
        message = f"cannot listen on {host}:{port} ({reason.strerror}); choose another with --port"
        raise UsageError(Fault("--port", message)) from reason


def open_pages(plan: Plan) -> threading.Thread:
    """Open the runs, the last comparison and its queries in a browser, once the server answers."""

    def work() -> None:
        base = plan.links[0][1]
        deadline = time.monotonic() + _START_S
        while not _answers(base) and time.monotonic() < deadline:
            time.sleep(0.3)
        wanted = [url for label, url in plan.links if label in _OPENED] or [base]
        for url in wanted:
            webbrowser.open(url)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _answers(base: str) -> bool:
    try:
        with urllib.request.urlopen(f"{base}/health", timeout=2):  # noqa: S310  # http by the store
            return True
    except urllib.error.HTTPError:
        return True  # it wants a password: the browser will be asked for it
    except OSError:
        return False


def serve(plan: Plan) -> int:
    """Run the server until it ends by itself, or until Ctrl-C or SIGTERM; return 0 for the latter.

    The server has helpers of its own: it gets a process group, and the whole group goes with us.
    """
    if plan.command is None:
        return 0
    environment = {
        **os.environ,
        "MLFLOW_TRACKING_URI": plan.store.uri,
        "PYTHONSAFEPATH": "1",  # a file mlflow.py in the working directory is not MLflow
        # Background jobs (online scoring) are seven more processes, and nothing here needs them.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    stopping = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    previous = {number: signal.signal(number, _interrupt) for number in stopping}
    try:
        process = subprocess.Popen(plan.command, env=environment, start_new_session=True)
        try:
            code = process.wait()
        except KeyboardInterrupt:
            return 0
        finally:
            _end_group(process)
    except OSError as reason:
        raise TrackerError(f"the MLflow server did not start: {reason.strerror}") from reason
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if code:
        raise TrackerError(f"the MLflow server ended with exit code {code}; see its lines above")
    return 0


def _interrupt(_signum: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=_GRACE_S)
        except (ProcessLookupError, PermissionError):
            return
        except subprocess.TimeoutExpired:
            continue
