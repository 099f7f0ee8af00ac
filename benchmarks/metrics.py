"""Measure our metrics beside the peers: seven metrics, from Python dicts, files and as a process.

Interleaved in one process (every tool once a round, rounds until the table is stable), medians and
their ratios; a tool's peak memory is that of a process of its own. The peers are no dependency:

    python -m venv peers && peers/bin/pip install . ranx==0.3.21 ir_measures==0.4.3 \
        pytrec-eval-terrier==0.5.11
    peers/bin/python benchmarks/metrics.py

A ``trec_eval`` on the PATH is measured too.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

Groups = dict[str, dict[str, float]]
Means = dict[str, float]

SIZES = {"50x10": 51, "1000x100": 25, "10000x100": 9, "10000x1000": 3}
OURS = [
    "precision_at_5",
    "precision_at_10",
    "recall_at_10",
    "mrr_at_10",
    "ndcg_linear_at_10",
    "map",
    "hit_at_10",
]
N_JUDGED = 20


def write_files(size: str, folder: Path, *, shuffled: bool = False) -> None:
    """Write qrels and a run of made-up hits: half of the judged items are among them."""
    n_queries, depth = map(int, size.split("x"))
    random = np.random.default_rng(0)
    with (folder / "qrels").open("w") as qrels, (folder / "run").open("w") as run:
        for query in range(n_queries):
            docs = random.choice(8_000_000, depth + N_JUDGED // 2, replace=False).tolist()
            scores = np.sort(random.random(depth) * 30)[::-1].tolist()
            hits = list(enumerate(zip(docs[:depth], scores, strict=True), 1))
            if shuffled:
                random.shuffle(hits)
            run.writelines(f"q{query} Q0 D{doc} {rank} {s:.6f} bm25\n" for rank, (doc, s) in hits)
            found = random.choice(depth, min(depth, N_JUDGED // 2), replace=False)
            judged = [docs[i] for i in found] + docs[depth:]
            grades = random.integers(0, 4, len(judged)).tolist()
            qrels.writelines(f"q{query} 0 D{d} {g}\n" for d, g in zip(judged, grades, strict=True))


def load(folder: Path) -> tuple[Groups, Groups]:
    """Return the two files as dicts of dicts, as a program that has them in memory would."""
    groups: list[Groups] = []
    for name, column, kind in (("qrels", 3, int), ("run", 4, float)):
        held: Groups = {}
        with (folder / name).open() as stream:
            for line in stream:
                fields = line.split(" ")
                held.setdefault(fields[0], {})[fields[2]] = kind(fields[column])
        groups.append(held)
    return groups[0], groups[1]


class KebabEval:
    name = "kebab-eval"

    def __init__(self) -> None:
        from kebab_eval import evaluate
        from kebab_eval.api import evaluate_table
        from kebab_eval.formats.files import rank_run
        from kebab_eval.metrics import default_registry

        self.evaluate, self.evaluate_table = evaluate, evaluate_table
        self.rank = rank_run
        self.metrics = default_registry().parse_all(OURS)

    def dicts(self, qrels: Groups, run: Groups) -> Means:
        return self.evaluate(qrels, run, OURS).means

    def files(self, folder: Path) -> Means:
        judged = self.rank(folder / "qrels", folder / "run")
        return self.evaluate_table(judged.table, self.metrics, judged.query_ids).means


class PytrecEval:
    name = "pytrec_eval"
    measures = ("P_5", "P_10", "recall_10", "recip_rank", "ndcg_cut_10", "map", "success_10")

    def __init__(self) -> None:
        import pytrec_eval

        self.module = pytrec_eval

    def dicts(self, qrels: Groups, run: Groups) -> Means:
        asked = {"P.5,10", "recall.10", "recip_rank", "ndcg_cut.10", "map", "success.10"}
        found = self.module.RelevanceEvaluator(qrels, asked).evaluate(run)
        return {m: sum(q[m] for q in found.values()) / len(found) for m in self.measures}

    def files(self, folder: Path) -> Means:
        with (folder / "qrels").open() as stream:
            qrels = self.module.parse_qrel(stream)
        with (folder / "run").open() as stream:
            run = self.module.parse_run(stream)
        return self.dicts(qrels, run)


class Ranx:
    name = "ranx"
    measures = (
        "precision@5",
        "precision@10",
        "recall@10",
        "mrr@10",
        "ndcg@10",
        "map",
        "hit_rate@10",
    )

    def __init__(self) -> None:
        import ranx

        self.module = ranx

    def dicts(self, qrels: Groups, run: Groups) -> Means:
        ranx = self.module
        return ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), list(self.measures))

    def files(self, folder: Path) -> Means:
        ranx = self.module
        qrels = ranx.Qrels.from_file(str(folder / "qrels"), kind="trec")
        run = ranx.Run.from_file(str(folder / "run"), kind="trec")
        return ranx.evaluate(qrels, run, list(self.measures))


class IrMeasures:
    name = "ir_measures"

    def __init__(self) -> None:
        import ir_measures
        from ir_measures import AP, RR, P, R, Success, nDCG

        self.module = ir_measures
        self.measures = [P @ 5, P @ 10, R @ 10, RR @ 10, nDCG @ 10, AP, Success @ 10]

    def dicts(self, qrels: Groups, run: Groups) -> Means:
        found = self.module.calc_aggregate(self.measures, qrels, run)
        return {str(m): found[m] for m in self.measures}

    def files(self, folder: Path) -> Means:
        qrels = self.module.read_trec_qrels(str(folder / "qrels"))
        run = self.module.read_trec_run(str(folder / "run"))
        found = self.module.calc_aggregate(self.measures, qrels, run)
        return {str(m): found[m] for m in self.measures}


TOOLS = {tool.name: tool for tool in (KebabEval, PytrecEval, Ranx, IrMeasures)}


def process_commands(folder: Path) -> dict[str, list[str]]:
    """Return the commands that do the whole job as a process: read, score, print."""
    files = [str(folder / "qrels"), str(folder / "run")]
    ours = "from kebab_eval.cli.front import main; main()"
    theirs = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); "
        "from pathlib import Path; from metrics import PytrecEval; "
        f"print(PytrecEval().files(Path({str(folder)!r})))"
    )
    commands = {
        "kebab-eval": [sys.executable, "-c", ours, "score", *files, "-m", ",".join(OURS)],
        "pytrec_eval": [sys.executable, "-c", theirs],
    }
    if shutil.which("trec_eval"):
        asked = ["P.5,10", "recall.10", "recip_rank", "ndcg_cut.10", "map", "success.10"]
        flags = [part for measure in asked for part in ("-m", measure)]
        commands["trec_eval"] = ["trec_eval", *flags, *files]
    return commands


def seconds(work: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times


def interleaved(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median time of each, after a call that warms up (and compiles ranx).

    What takes less than 20 ms is called several times a round, as ``timeit`` does.
    """
    repeats = {}
    for name, call in work.items():
        call()
        repeats[name] = max(1, int(0.02 / seconds(call, 1)))
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        gc.collect()
        for name, call in work.items():
            times[name].append(seconds(call, repeats[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def check(means: dict[str, Means]) -> None:
    """Hold the numbers of all tools against ours; recip_rank of pytrec_eval is not cut at 10."""
    ours = list(means["kebab-eval"].values())
    for name, found in means.items():
        for place, (own, other) in enumerate(zip(ours, found.values(), strict=True)):
            if not (name == "pytrec_eval" and place == 3):
                assert abs(own - other) < 1e-6, (name, OURS[place], own, other)


MEMORY = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
import metrics
tool, folder = metrics.TOOLS[{tool!r}](), Path({folder!r})
held = metrics.load(folder) if {source!r} == "dicts" else None
tool.dicts(*held) if held else tool.files(folder)
# Not getrusage: its peak is inherited from the process that started this one.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]) // 1024)
"""


def memory(tool: str, folder: Path, source: str) -> int:
    """Return the peak in MiB of a process that does the work once, imports and data included."""
    script = MEMORY.format(
        here=str(Path(__file__).parent), tool=tool, folder=str(folder), source=source
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return int(found.stdout.split()[-1])


def measure_process(size: str, folder: Path, rounds: int) -> str:
    work = {
        name: partial(subprocess.run, command, capture_output=True, check=True)
        for name, command in process_commands(folder).items()
    }
    medians = interleaved(work, rounds)
    cells = [f"{1000 * medians[n]:,.0f}" if n in medians else "" for n in TOOLS]
    if "trec_eval" in medians:
        cells[-1] = f"trec_eval: {1000 * medians['trec_eval']:,.0f}"
    return row(size, "process", cells, medians, {})


def measure_tools(size: str, source: str, folder: Path, rounds: int, *, with_memory: bool) -> str:
    tools = {name: tool() for name, tool in TOOLS.items()}
    if source == "dicts":
        held = load(folder)
        work = {name: partial(tool.dicts, *held) for name, tool in tools.items()}
    else:
        work = {name: partial(tool.files, folder) for name, tool in tools.items()}
    check({name: call() for name, call in work.items()})
    medians = interleaved(work, rounds)
    work.clear()
    held = None
    peaks = {name: memory(name, folder, source) for name in tools} if with_memory else {}
    return row(size, source, [f"{1000 * v:,.1f}" for v in medians.values()], medians, peaks)


def row(
    size: str, source: str, cells: list[str], medians: dict[str, float], peaks: dict[str, int]
) -> str:
    own = medians["kebab-eval"]
    best, name = min((value, key) for key, value in medians.items() if key != "kebab-eval")
    peak = " · ".join(f"{value:,}" for value in peaks.values())
    return f"| {size} | {source} | {' | '.join(cells)} | {best / own:.2f} ({name}) | {peak} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--sources", default="dicts,files,process")
    parser.add_argument("--shuffled", action="store_true", help="hits in random order")
    parser.add_argument("--rounds", type=int, help="instead of each size's own number")
    parser.add_argument("--no-memory", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # numba's, while it compiles ranx
    load_average = os.getloadavg()[0]
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} cores, "
        f"load {load_average:.1f} at the start"
    )
    names = " | ".join(f"{name} ms" for name in TOOLS)
    print(f"\n| size | from | {names} | best peer / ours | peak MiB, same order |")
    print("|---|---|" + "--:|" * len(TOOLS) + "--:|---|")
    for size in options.sizes.split(","):
        rounds = options.rounds or SIZES[size]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_files(size, folder, shuffled=options.shuffled)
            for source in options.sources.split(","):
                if source == "process":
                    line = measure_process(size, folder, max(3, rounds // 5))
                else:
                    line = measure_tools(
                        size, source, folder, rounds, with_memory=not options.no_memory
                    )
                print(line, flush=True)


if __name__ == "__main__":
    main()
