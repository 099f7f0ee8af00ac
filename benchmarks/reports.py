"""How long the reports of a run of 10,000 queries take, as whole processes, and how big they are.

    python benchmarks/reports.py [REPEATS]

Two runs of 10,000 queries with 10 hits each are recorded, then reported and compared. The time
that only reading the record takes stands beside.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUERIES = 10_000
SYSTEM = """
def search(query, k, seed=0):
    number = int(query.split()[1])
    place = (number * 7 + seed * number) % 13
    ids = [f"doc{(number + n) % 997}.md" for n in range(1, k + 1)]
    if place < k:
        ids[place] = f"doc{number % 997}.md"
    return [{"id": f"{doc}#part-{n}", "doc_id": doc, "score": 1 / (n + 1),
             "text": f"{query}: 검색 결과의 조각, and what stands around it. " * 4}
            for n, doc in enumerate(dict.fromkeys(ids))]
"""
CONFIG = (
    'golden: golden.yaml\nbackend: {type: python, target: "system:search", path: ., '
    "options: {seed: SEED}}\nsearch: {k: 10}\nexecution: {concurrency: 8, warmup: 0}\n"
)
READ = "from kebab_eval.workflows.lookup import find_run; find_run('before')"


def prepare(folder: Path) -> None:
    """Record the runs ``before`` and ``after``."""
    (folder / "system.py").write_text(SYSTEM, encoding="utf-8")
    lines = [
        f"- {{id: q{n:05d}, query: query {n} of many, lang: {'ko' if n % 2 else 'en'}, "
        f"expected_doc_ids: [doc{n % 997}.md]}}\n"
        for n in range(QUERIES)
    ]
    (folder / "golden.yaml").write_text("".join(lines), encoding="utf-8")
    for name, seed in (("before", "0"), ("after", "1")):
        (folder / f"{name}.yaml").write_text(CONFIG.replace("SEED", seed), encoding="utf-8")
        run(folder, "run", "-q", "-c", f"{name}.yaml", "--name", name)


def run(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "kebab_eval", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def seconds(folder: Path, command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    program = [sys.executable, "-m", "kebab_eval"]
    commands = {
        "reading alone": [sys.executable, "-c", READ],
        "report.html": [*program, "report", "before", "-o", "report.html"],
        "report.md": [*program, "report", "before", "-o", "report.md"],
        "compare.html": [*program, "compare", "before", "after", "-o", "compare.html"],
        "compare.json": [*program, "compare", "before", "after", "-o", "compare.json"],
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(repeats):
            for name, command in commands.items():
                times[name].append(seconds(folder, command))
        for name, found in times.items():
            path = folder / name
            size = f"{path.stat().st_size / 1e6:6.2f} MB" if path.exists() else ""
            print(f"{name:<14} {statistics.median(found):6.2f} s  {size}")


if __name__ == "__main__":
    main()
