"""``kebab-eval doctor``: what is installed, reachable, and wrong."""

from __future__ import annotations

from pathlib import Path

import click

from kebab_eval.cli.options import PATH, debug_option, json_option, tracking_uri_option

_MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


@click.command(
    epilog="""\b
Examples:
  kebab-eval doctor
  kebab-eval doctor --config configs/rrf_k60.yaml
"""
)
@click.option(
    "--config", "-c", "config_path", type=PATH, help="Check this config and its files too."
)
@tracking_uri_option
@json_option
@debug_option
def doctor(config_path: Path | None, tracking_uri: str | None, as_json: bool) -> int:
    """Say what is installed, reachable, and wrong.

    Exits 3 when something would keep an evaluation from working.
    """
    from kebab_eval.workflows.doctor import examine

    findings = examine(config_path, tracking_uri)
    if as_json:
        from kebab_eval.cli.output import print_json

        print_json([{"state": f.state, "what": f.what, "detail": f.detail} for f in findings])
    else:
        width = max(len(finding.what) for finding in findings)
        for finding in findings:
            click.echo(f"{_MARKS[finding.state]}  {finding.what:<{width}}  {finding.detail}")
    return 3 if any(finding.state == "fail" for finding in findings) else 0
