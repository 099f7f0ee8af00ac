"""How long a golden set of 10,000 queries takes to load and to lint, as whole processes.

    python benchmarks/golden.py [REPEATS]

Prints the median of each beside a process that only imports what loading needs: most of a short
command is starting Python.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUERIES = 10_000
SYLLABLES = (
    "검색순위재문서조각색인평가질의정답기준임계값후보점수합치사전형태소벡터 abcdefghijklmnop"
)

LOAD = (
    "from pathlib import Path; from kebab_eval.golden import load_golden; load_golden(Path({!r}))"
)
IMPORT = "from kebab_eval.golden import load_golden"


def write_set(path: Path) -> None:
    """Write a set in kebab's form: two queries a group, two documents and one span each."""
    chance = random.Random(1)  # noqa: S311  # sample data
    words = ["".join(chance.choices(SYLLABLES, k=4)).strip() or "a" for _ in range(3000)]
    parts = []
    for number in range(QUERIES):
        text = " ".join(chance.choices(words, k=9))
        quote = " ".join(chance.choices(words, k=8))
        group = number // 2
        parts.append(
            f'- id: q-{number:05d}\n  query: "{text}"\n  lang: mixed\n  difficulty: hard\n'
            f"  group: g{group}\n  expected_doc_ids: [d/{group % 997}.md, e/{group % 991}.md]\n"
            f'  expected_spans:\n    - {{doc: d/{group % 997}.md, quote: "{quote}"}}\n'
            f'  must_contain: ["{chance.randrange(100)}"]\n'
        )
    path.write_text("".join(parts), encoding="utf-8")


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.yaml"
        write_set(path)
        commands = {
            "imports": [sys.executable, "-c", IMPORT],
            "load": [sys.executable, "-c", LOAD.format(str(path))],
            "golden lint": [sys.executable, "-m", "kebab_eval", "golden", "lint", str(path)],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(repeats):  # in turn, so that a busy moment hits all of them
            for name, command in commands.items():
                times[name].append(seconds(command))
        print(f"{QUERIES:,} queries, {path.stat().st_size / 1e6:.1f} MB, median of {repeats} runs")
        for name, found in times.items():
            print(f"{name:12} {statistics.median(found):.2f} s")


if __name__ == "__main__":
    main()
