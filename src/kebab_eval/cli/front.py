"""The front page: which commands there are, told without importing any of them, nor click.

Start-up is part of the product. Importing click alone takes four times as long as starting Python,
so ``kebab-eval --help`` and ``--version`` are answered from here.
"""

from __future__ import annotations

import sys

from kebab_eval import __version__

# Section -> command -> (module:attribute, the first sentence of its help).
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Evaluate": {
        "track": ("kebab_eval.cli.track:track", "Evaluate a system and log one MLflow run."),
        "run": ("kebab_eval.cli.track:run", "Evaluate a system, local record only."),
        "resume": (
            "kebab_eval.cli.resume:resume",
            "Finish an interrupted run, asking only what is missing.",
        ),
        "upload": (
            "kebab_eval.cli.upload:upload",
            "Send a local record to MLflow.",
        ),
        "score": ("kebab_eval.cli.score:score", "Score a TREC run file against qrels."),
    },
    "Decide": {
        "compare": (
            "kebab_eval.cli.compare:compare",
            "Say which of two runs is better, and if it is real.",
        ),
        "ab": ("kebab_eval.cli.ab:ab", "Evaluate two addresses by one config and compare them."),
        "gate": ("kebab_eval.cli.gate:gate", "Say by rules whether a candidate may pass."),
        "baseline": (
            "kebab_eval.cli.baseline:baseline",
            "Freeze a run into files that stand in for it, and list them.",
        ),
    },
    "Understand": {
        "diagnose": (
            "kebab_eval.cli.diagnose:diagnose",
            "Say which stage lost each missed answer, and which lever could win it.",
        ),
        "variants": (
            "kebab_eval.cli.variants:variants",
            "Say whether a system finds the same documents whatever the words.",
        ),
    },
    "Read": {
        "report": ("kebab_eval.cli.report:report", "Print one run as json, md, html or csv."),
        "ui": ("kebab_eval.cli.ui:ui", "Start the MLflow UI on the right store."),
    },
    "Golden sets": {
        "golden": (
            "kebab_eval.cli.golden:golden",
            "Lint, compare, convert golden sets; keep their truth valid when the chunker changes.",
        ),
    },
    "Set up": {
        "init": ("kebab_eval.cli.init:init", "Write a small starting project."),
        "doctor": ("kebab_eval.cli.doctor:doctor", "Say what is installed, reachable, and wrong."),
    },
}
ENTRIES = {name: entry for section in COMMANDS.values() for name, entry in section.items()}

SUMMARY = "Evaluate search and RAG systems: run golden queries, judge the hits, log to MLflow."


def help_text() -> str:
    """Return what ``kebab-eval --help`` prints."""
    width = max(map(len, ENTRIES))
    lines = ["Usage: kebab-eval COMMAND [OPTIONS]", "", f"  {SUMMARY}"]
    for section, commands in COMMANDS.items():
        lines += ["", f"{section}:"]
        lines += [f"  {name:<{width}}  {text}" for name, (_, text) in commands.items()]
    return "\n".join(
        [
            *lines,
            "",
            "Options:",
            "  -h, --help  Show this page; after a command, its options and an example.",
            "  --version   Show the version.",
            "",
            "Start here:",
            "  kebab-eval init demo && cd demo",
            "  kebab-eval track --config configs/hybrid.yaml",
        ]
    )


def main(args: list[str] | None = None) -> None:
    """Run the program and exit: errors are lines on stderr, a traceback needs ``--debug``."""
    if args is None:
        args = sys.argv[1:]
    if args in (["--help"], ["-h"]):
        _answer(help_text())
    elif args == ["--version"]:
        _answer(f"kebab-eval {__version__}")
    else:
        from kebab_eval.cli.app import run

        run(args)


def _answer(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        sys.stderr.close()  # the reader left; the flush at exit must not complain a second time
