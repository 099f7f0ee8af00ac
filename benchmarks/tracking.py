"""How fast a run with its traces is logged, beside mlflow.genai.evaluate and MLflow's fluent API.

    python benchmarks/tracking.py [REPEATS] [SIZES]  # as in 3 50,500
    python benchmarks/tracking.py large              # 5,000 queries, whole processes

The same rows in one process, in turn: queries with ten hits and six metrics each. Ours logs the
whole run (params, metrics, dataset, files, traces with feedback and expectation); genai.evaluate
gets the hits and the metrics' values ready, from code scorers; the fluent API opens two spans and
logs the feedback of each query. On sqlite, and over HTTP to a real server with one worker.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# By default genai.evaluate asks for more connections than a pool of SQLAlchemy has; at 500 queries
# on sqlite it then waits 30 s for one, many times over, and drops traces. So it gets fewer workers.
os.environ.setdefault("MLFLOW_GENAI_EVAL_MAX_WORKERS", "2")
METRICS = tuple(
    f"{name}_at_10_doc" for name in ("ndcg", "hit", "precision", "recall", "mrr", "err")
)
SIZES = (50, 500)


# --- the rows -------------------------------------------------------------------------------


def make_run(count: int) -> Any:
    """Return a judged run of so many queries."""
    from kebab_eval.config import Config
    from kebab_eval.metrics import evaluate_run
    from kebab_eval.records import EvalRun, GoldenQuery, GoldenSet, Hit, Judgments, QueryResult

    queries = tuple(
        GoldenQuery(f"q-{n:05}", f"what is written about {n}?", Judgments(doc={f"d{n % 13}": 1.0}))
        for n in range(count)
    )
    results = tuple(
        QueryResult(
            query.query_id,
            query.query,
            "hybrid",
            tuple(
                Hit(rank, f"d{rank}#{n}", f"d{rank}", 1 / rank, "rrf", f"passage {rank} " * 20)
                for rank in range(1, 11)
            ),
            12.5,
            metrics=dict.fromkeys(METRICS, n % 11 / 10),
            started_at="2026-12-01T12:00:00.000000Z",
        )
        for n, query in enumerate(queries)
    )
    golden = GoldenSet("bench", "1", "d" * 32, queries)
    config = Config.model_validate_json(
        '{"name":"bench","golden":{"path":"g"},"backend":{"corpus":"c"},'
        '"tracking":{"feedback":"all"}}'
    ).model_dump(mode="json")
    about = {
        "name": "bench", "version": "1", "digest": golden.digest, "path": "g", "queries": count,
        "min_relevance": 1,
    }  # fmt: skip
    info = {
        "status": "FINISHED", "golden": about, "system": {}, "duration_s": 1.0, "git": None,
        "lever": None, "tags": {}, "versions": {"kebab_eval": "0"}, "tracking": None,
    }  # fmt: skip
    return EvalRun(info, config, golden, results, evaluate_run(golden, results).aggregate)


def make_record(root: Path, run: Any) -> Any:
    """Write the run as a record, without plots; return the run as the record has it."""
    from kebab_eval.tracking import spool

    lines = "".join(spool.dump_line(query.to_json()) + "\n" for query in run.golden.queries)
    files = {"config.json": spool.dump_json(run.config), "golden.jsonl": lines}
    writer = spool.RecordWriter.create(root, "bench", run.info, files)
    writer.write_results(run.results)
    writer.write("aggregate.json", spool.dump_json(run.aggregate))
    return spool.read_record(writer.folder), writer.folder


# --- the three ways -------------------------------------------------------------------------


def ours(uri: str, run: Any, folder: Path) -> int:
    from kebab_eval.tracking.run import Tracker
    from kebab_eval.tracking.store import resolve_store

    tracker = Tracker(resolve_store(uri), "ours")
    tags = {"mlflow.runType": "genai_evaluate", "kebab_eval.golden_digest": run.golden.digest}
    tracker.start("bench", run.run_id, tags, run.info["created_at"])
    return tracker.finish(run, folder, "# bench", "FINISHED").new


def documents(result: Any) -> list[dict[str, Any]]:
    return [
        {"page_content": hit.snippet, "metadata": {"doc_uri": hit.doc_id, "rank": hit.rank}}
        for hit in result.hits
    ]


def genai(uri: str, run: Any, _folder: Path) -> int:
    import mlflow
    from mlflow.genai.scorers import scorer

    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("genai")
    by_id = {result.query_id: result for result in run.results}

    def predict(query_id: str, query: str) -> list[str]:
        with mlflow.start_span("search", span_type="RETRIEVER") as span:
            span.set_inputs({"query": query})
            span.set_outputs(documents(by_id[query_id]))
        return [hit.doc_id for hit in by_id[query_id].hits]

    def judge(name: str) -> Any:
        return scorer(lambda inputs: by_id[inputs["query_id"]].metrics[name], name=name)

    data = [
        {
            "inputs": {"query_id": query.query_id, "query": query.query},
            "expectations": {"expected_ids": sorted(query.judgments.doc)},
        }
        for query in run.golden.queries
    ]
    found = mlflow.genai.evaluate(
        data=data, predict_fn=predict, scorers=[judge(n) for n in METRICS]
    )
    mlflow.flush_trace_async_logging()
    return len(found.result_df)


def fluent(uri: str, run: Any, _folder: Path) -> int:
    import mlflow
    from mlflow.entities import AssessmentSource

    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("fluent")
    code = AssessmentSource(source_type="CODE", source_id="bench")
    people = AssessmentSource(source_type="HUMAN", source_id="bench")
    with mlflow.start_run():
        ids = []
        for result in run.results:
            with mlflow.start_span("query", span_type="CHAIN") as root:
                root.set_inputs({"query_id": result.query_id, "query": result.query})
                with mlflow.start_span("search", span_type="RETRIEVER") as span:
                    span.set_inputs({"query": result.query})
                    span.set_outputs(documents(result))
                root.set_outputs([hit.doc_id for hit in result.hits])
            ids.append(root.trace_id)
        mlflow.flush_trace_async_logging()
        for trace_id, result, query in zip(ids, run.results, run.golden.queries, strict=True):
            for name in METRICS:
                mlflow.log_feedback(
                    trace_id=trace_id, name=name, value=result.metrics[name], source=code
                )
            mlflow.log_expectation(
                trace_id=trace_id,
                name="expected_ids",
                value=sorted(query.judgments.doc),
                source=people,
            )
    return len(ids)


WAYS: dict[str, Callable[[str, Any, Path], int]] = {
    "kebab-eval": ours,
    "genai.evaluate": genai,
    "fluent": fluent,
}


# --- measuring ------------------------------------------------------------------------------


@contextmanager
def server(folder: Path) -> Iterator[str]:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
    command += ["--port", str(port), "--backend-store-uri", f"sqlite:///{folder}/server.db"]
    command += ["--artifacts-destination", str(folder / "served")]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    uri = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                with urllib.request.urlopen(f"{uri}/health"):  # noqa: S310  # our own server
                    break
            except OSError:
                time.sleep(0.2)
        yield uri
    finally:
        process.terminate()
        process.wait()


def measure(where: str, uri: str, folder: Path, repeats: int, sizes: tuple[int, ...]) -> None:
    for way in WAYS.values():  # tables, experiments and imports are made before
        way(uri, *make_record(folder / "warm", make_run(2)))
    for size in sizes:
        run, record = make_record(folder / "records", make_run(size))
        times: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(repeats):
            for name, way in WAYS.items():
                started = time.perf_counter()
                logged = way(uri, run, record)
                times[name].append(time.perf_counter() - started)
                assert logged == size, (name, logged)
        median = {name: statistics.median(found) for name, found in times.items()}
        cells = [f"{median[name] * 1000 / size:>8.1f}" for name in WAYS]
        ratios = [median[name] / median["kebab-eval"] for name in WAYS if name != "kebab-eval"]
        print(
            f"{where:<7}{size:>7} {' '.join(f'{cell:>14}' for cell in cells)}"
            f"  {ratios[0]:>6.1f} {ratios[1]:>6.1f}",
            flush=True,
        )


def large(folder: Path) -> None:
    """5,000 queries by whole ``upload`` processes: seconds, and the peak of their memory."""
    _, record = make_record(folder / "mlruns" / "spool", make_run(5000))
    size = sum(path.stat().st_size for path in record.iterdir())
    print(f"5,000 queries, a record of {size / 2**20:.0f} MiB")
    for policy in ("none", "sample:500", "all", "all"):
        uri = f"sqlite:///{folder}/mlruns/{policy.partition(':')[0]}.db"
        command = [sys.executable, "-m", "kebab_eval", "upload", str(record), "--traces", policy]
        command += ["--tracking-uri", uri, "--json"]
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)
        assert process.stdout is not None
        told = json.loads(process.stdout.read())
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0
        spent = time.perf_counter() - started
        print(f"{policy:<11}{spent:>7.1f} s {used.ru_maxrss / 1024:>6.0f} MiB  {told['traces']}")


def main() -> None:
    warnings.simplefilter("ignore")
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if sys.argv[1:] == ["large"]:
            large(folder)
            return
        os.chdir(folder)
        repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
        sizes = tuple(map(int, sys.argv[2].split(","))) if len(sys.argv) > 2 else SIZES
        print(f"milliseconds a query, medians of {repeats}")
        print(f"{'store':<7}queries {' '.join(f'{name:>14}' for name in WAYS)}  x genai x fluent")
        measure("sqlite", f"sqlite:///{folder}/mlflow.db", folder, repeats, sizes)
        with server(folder) as uri:
            measure("http", uri, folder, repeats, sizes)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory of this process: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
