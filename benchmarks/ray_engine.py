"""100,000 queries on two Ray workers, one of which is killed in the middle; nothing may be lost.

    python benchmarks/ray_engine.py [QUERIES] [replay|embedded]

For ``replay`` the answers are a TREC run, for ``embedded`` the fixture corpus is searched by words.
The run without Ray stands beside, and both are held against each other, result by result.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORKER = b"ray::_ask_shard"


def prepare(folder: Path, kind: str, count: int) -> None:
    """Write the config, and a golden set in JSON lines."""
    import yaml

    from kebab_eval.golden import load_golden

    fixture = load_golden(ROOT / "fixtures" / "golden_queries.yaml").golden.queries
    with (folder / "golden.jsonl").open("w", encoding="utf-8") as golden:
        for number in range(count):
            query = fixture[number % len(fixture)]
            row = {"id": f"q{number:06d}", "query": f"{query.query} {number}"}
            row["expected_doc_ids"] = list(query.judgments.doc)
            golden.write(json.dumps(row, ensure_ascii=False) + "\n")
    config: dict[str, object] = {
        "golden": {"path": "golden.jsonl", "format": "mapped"},
        "search": {"k": 10, "depth": 10, "mode": "lexical"},
        "execution": {"concurrency": 2},
    }
    if kind == "replay":
        with (folder / "run.txt").open("w", encoding="utf-8") as run:
            for number in range(count):
                for rank in range(10):
                    run.write(
                        f"q{number:06d} Q0 d{(number + rank) % 997} {rank + 1} {10 - rank} t\n"
                    )
        config["backend"] = {"type": "replay", "source": "run.txt"}
    else:
        config["backend"] = {"type": "embedded", "corpus": str(ROOT / "fixtures" / "corpus")}
    (folder / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def run(folder: Path, name: str, *arguments: str, kill: bool = False) -> tuple[float, Path]:
    """Run once; return the seconds and the record."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "kebab_eval", "run", "-q", "-c", "c.yaml", "--name", name]
    process = subprocess.Popen([*command, *arguments], cwd=folder)
    killed = not kill
    while process.poll() is None:
        time.sleep(0.2)
        if not killed and (folder / "mlruns").exists():
            lines = sum(
                path.stat().st_size for path in folder.glob("mlruns/spool/*/per_query.jsonl")
            )
            if lines > 2_000_000 and (found := workers()):
                os.kill(found[0], signal.SIGKILL)
                killed = True
    spent = time.perf_counter() - started
    if process.returncode != 0 or not killed:
        raise SystemExit(f"{name}: exit {process.returncode}, killed {killed}")
    (record,) = folder.glob(f"mlruns/spool/*-{name}-*")
    return spent, record


def workers() -> list[int]:
    """Return the workers that have a shard at this moment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(WORKER):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return sorted(found)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for kind in sys.argv[2:] or ("replay", "embedded"):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            prepare(folder, kind, count)
            by_ray, first = run(folder, "ray", "--engine", "ray", kill=True)
            alone, second = run(folder, "local")
            different = lines = 0
            with (
                (first / "per_query.jsonl").open(encoding="utf-8") as one,
                (second / "per_query.jsonl").open(encoding="utf-8") as two,
            ):
                for old, new in zip(one, two, strict=True):
                    pair = [{**json.loads(text), "latency_ms": 0, "timings_ms": 0, "started_at": 0}
                            for text in (old, new)]  # fmt: skip
                    different += pair[0] != pair[1]
                    lines += 1
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            print(
                f"{kind:<9} {lines:,} queries, one of two workers killed: {different} differ; "
                f"Ray {by_ray:.0f} s, alone {alone:.0f} s, ratio {by_ray / alone:.2f}; "
                f"largest process {peak:,.0f} MiB"
            )


if __name__ == "__main__":
    main()
