"""How long replayed sweeps take, in one process, on runs of made-up candidates.

    python benchmarks/replay.py [REPEATS]

1,000 combinations on 100 queries of 2 x 50 candidates, and 100 values of rrf_k on 10,000 queries of
2 x 100 candidates; from the run in memory to the table of points. Prints the median and range, and
the peak memory of the process.
"""

from __future__ import annotations

import random
import resource
import statistics
import sys
import time
from pathlib import Path

from kebab_eval.config import Config
from kebab_eval.grids import parse_grids
from kebab_eval.records import (
    Candidate,
    EvalRun,
    GoldenQuery,
    GoldenSet,
    Hit,
    Judgments,
    QueryResult,
)
from kebab_eval.sweeping import points_of
from kebab_eval.workflows import replay_sweep
from kebab_eval.workflows.lookup import Found

ITEMS = 5_000


def made_run(count: int, depth: int) -> EvalRun:
    """Return a run whose channels share about a third of their candidates."""
    chance = random.Random(1)  # noqa: S311  # sample data
    queries, results = [], []
    for number in range(count):
        pool = chance.sample(range(ITEMS), depth * 2)
        names = [f"d{item // 7}.md#c{item}" for item in pool]
        lexical, shared = names[:depth], names[: depth // 3]
        vector = [*shared, *names[depth : 2 * depth - len(shared)]]
        chance.shuffle(vector)
        channels = {
            name: tuple(
                Candidate(one, one.partition("#")[0], 1 - place / 1000)
                for place, one in enumerate(found)
            )
            for name, found in (("lexical", lexical), ("vector", vector))
        }
        wanted = chance.choice(names)
        judged = Judgments(chunk={wanted: 1.0}, doc={wanted.partition("#")[0]: 1.0})
        queries.append(GoldenQuery(f"q{number}", f"text {number}", judged))
        hits = tuple(
            Hit(rank, one, one.partition("#")[0], 1 / rank, "rrf")
            for rank, one in enumerate(lexical[:10], 1)
        )
        results.append(
            QueryResult(f"q{number}", f"text {number}", "hybrid", hits, 1.0, candidates=channels)
        )
    config = Config.model_validate(
        {
            "name": "made",
            "golden": {"path": Path("g")},
            "backend": {"type": "embedded", "corpus": Path("c")},
            "search": {"depth": depth},
        }
    ).model_dump(mode="json")
    info = {"id": "r", "name": "made", "status": "FINISHED", "system": {}}
    return EvalRun(info, config, GoldenSet("g", "1", "x", tuple(queries)), tuple(results), {})


def seconds(run: EvalRun, grids: list[str]) -> float:
    started = time.perf_counter()
    done = replay_sweep.replay("made", parse_grids(grids), (), lambda *_: None)
    points_of(done.combinations, done.measured, "ndcg_at_10_doc", done.base)
    return time.perf_counter() - started


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    cases = {
        "1,000 combinations, 100 queries x 2 x 50": (
            made_run(100, 50),
            ["fusion.rrf_k=1:100", "search.depth=5:50:5"],
        ),
        "1,000 with gates, 100 queries x 2 x 50": (
            made_run(100, 50),
            ["fusion.rrf_k=1:10", "score_gate=0:0.99:0.01"],
        ),
        "100 rrf_k, 10,000 queries x 2 x 100": (made_run(10_000, 100), ["fusion.rrf_k=1:100"]),
    }
    for name, (run, grids) in cases.items():
        replay_sweep.locate_run = lambda *_, run=run: Found(run)  # type: ignore[assignment]
        replay_sweep.with_candidates = lambda run, _: run
        found = [seconds(run, grids) for _ in range(repeats)]
        low, high = min(found), max(found)
        print(f"{name:<42} median {statistics.median(found):.2f} s ({low:.2f} to {high:.2f})")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
