"""``kebab-eval gate``: a verdict by rules, for people and for CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kebab_eval.cli.options import (
    PATH,
    allow_option,
    debug_option,
    json_option,
    tracking_uri_option,
)

if TYPE_CHECKING:
    from kebab_eval.gate import GateVerdict

_FORMATS = ("text", "md", "json", "junit", "github")
_ENDINGS = {".json": "json", ".md": "md", ".xml": "junit", ".txt": "text"}


@click.command(
    epilog="""\b
Examples:
  kebab-eval gate --baseline rrf_k60 --candidate latest
  kebab-eval gate --baseline baselines/v1_baseline_2026-12-01.json --candidate latest \\
    --rules configs/gate.yaml --junit gate.xml --github
  kebab-eval gate --baseline latest~1 --candidate latest \\
    --rule 'ndcg_at_10_doc >= baseline - 0.02 [significant]' --rule 'regressions <= 0'

\b
Exit codes:
  0  every rule holds, or only warned
  1  a rule failed
  4  a rule is undecided, or the runs are not comparable
"""
)
@click.option("--baseline", metavar="RUN", help="The run, or the frozen file, to compare with.")
@click.option("--candidate", metavar="RUN", required=True, help="The run to judge.")
@click.option(
    "--rules", "rules_path", type=PATH, help="A file of rules, such as configs/gate.yaml."
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="RULE",
    help="A rule, as in 'hit_at_5_chunk >= baseline - 0.03'. Repeatable.",
)
@click.option(
    "--on-fail",
    type=click.Choice(["fail", "warn"]),
    help="For rules that do not say. [default: fail]",
)
@click.option(
    "--require",
    type=click.Choice(["point", "significant"]),
    help="For rules that do not say. [default: point]",
)
@allow_option
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="What to print; md fits a comment on a pull request.",
)
@click.option("--output", "-o", type=PATH, help="Also write it here: .json, .md, .xml, .txt.")
@click.option("--junit", type=PATH, metavar="FILE", help="Also write JUnit XML here.")
@click.option(
    "--github",
    is_flag=True,
    help="Also print annotations, and append to $GITHUB_STEP_SUMMARY when it is set.",
)
@click.option(
    "--no-log", is_flag=True, help="Do not add the verdict to the candidate's MLflow run."
)
@json_option
@tracking_uri_option
@debug_option
def gate(as_json: bool, form: str, **options: Any) -> int:
    """Say by rules whether a candidate may pass.

    Without rules, hit@5 must not be more than three points below the baseline. A RUN is an id, a
    name, latest, baseline, baseline:LABEL, a record folder, or the .json of a frozen baseline.
    docs/gate.md has the grammar of rules.
    """
    from kebab_eval.cli.output import log_or_warn, write_text
    from kebab_eval.reports.gate import render_gate
    from kebab_eval.workflows.gate import GateRequest, log_verdict, run_gate

    files = _files(options["output"], options["junit"])
    judged = run_gate(
        GateRequest(
            candidate=options["candidate"],
            baseline=options["baseline"],
            rules_path=options["rules_path"],
            rules=options["rules"],
            allow=options["allow"],
            on_fail=options["on_fail"],
            require=options["require"],
            tracking_uri=options["tracking_uri"],
        )
    )
    verdict = judged.verdict
    for path, kind in files.items():
        write_text(path, render_gate(verdict, kind))
    form = "json" if as_json else form
    click.echo(render_gate(verdict, form), nl=False)
    if options["github"]:
        _tell_github(verdict, form)
    if not options["no_log"]:
        log_or_warn("the verdict", lambda: log_verdict(judged))
    return verdict.exit_code


def _files(output: Path | None, junit: Path | None) -> dict[Path, str]:
    """Return file -> format, refusing before anything runs what could not be written later."""
    from kebab_eval.errors import Fault, UsageError

    faults, files = [], {}
    if output is not None:
        if output.suffix in _ENDINGS:
            files[output] = _ENDINGS[output.suffix]
        else:
            message = f"the ending {output.suffix!r} names no format; use {', '.join(_ENDINGS)}"
            faults.append(Fault(f"--output {output}", message))
    if junit is not None:
        files[junit] = "junit"
    for option, path in (("--output", output), ("--junit", junit)):
        if path is None:
            continue
        if not path.parent.is_dir():
            faults.append(Fault(f"{option} {path}", f"the folder {path.parent} does not exist"))
        elif path.is_dir():
            faults.append(Fault(f"{option} {path}", "this is a folder; name a file in it"))
    if faults:
        raise UsageError(faults)
    return files


def _tell_github(verdict: GateVerdict, form: str) -> None:
    """Annotate and summarise. Both streams are read by GitHub; stdout stays one document."""
    from kebab_eval.reports.gate import render_gate

    if form != "github":
        text = render_gate(verdict, "github")
        click.echo(text, nl=False, err=form in ("json", "junit"))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return
    try:
        with Path(summary).open("a", encoding="utf-8", newline="") as file:
            file.write(render_gate(verdict, "md") + "\n")
    except OSError as reason:  # the verdict must not depend on where it is shown
        click.echo(f"warning: GITHUB_STEP_SUMMARY: {reason.strerror}", err=True)
