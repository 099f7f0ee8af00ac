"""``kebab-eval golden migrate``: the chunk ids of one chunker become those of another."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from kebab_eval.cli.options import PATH, debug_option, json_option, writing_options


@click.command(
    epilog="""\b
Examples:
  kebab-eval golden migrate --from-config configs/base.yaml --to-config configs/chunk_v2.yaml \\
    -o golden_v2.yaml
  kebab-eval golden migrate --from-config old.yaml --to-config new.yaml --check

\b
Exit codes:
  0  every chunk has a successor (with --check: and nothing changes)
  2  chunks are lost and --allow-lost was not given; nothing was written
"""
)
@click.argument("file", type=PATH, required=False)
@click.option("--from-config", type=PATH, required=True, help="Whose chunks the ids are.")
@click.option("--to-config", type=PATH, required=True, help="Whose chunks they become.")
@click.option("--allow-lost", is_flag=True, help="Leave chunks without a successor out.")
@writing_options
@json_option
@debug_option
def migrate(
    file: Path | None,
    from_config: Path,
    to_config: Path,
    allow_lost: bool,
    output: Path | None,
    in_place: bool,
    check: bool,
    as_json: bool,
) -> int:
    """Rewrite expected_chunk_ids for another chunker.

    By the spans of a query where it has them, else by where the old chunks stand. Comments and
    order of the file stay; only lists that change are written anew. FILE is the golden set, else
    that of the first config. Without -o or --in-place the result is printed.
    """
    from kebab_eval.cli.output import print_json
    from kebab_eval.golden.migration import OUTCOMES
    from kebab_eval.reports.texts import one_line
    from kebab_eval.workflows.golden_edit import migrate_golden

    new, done = migrate_golden(file, from_config, to_config)
    counts = Counter(found.outcome for found in done)
    for found in done:
        if found.outcome == "kept":
            continue
        said = f"{found.outcome:6} {one_line(found.query_id)}: {len(found.before)} → " + str(
            len(found.after)
        )
        click.echo(said + (" chunks, by its spans" if found.by_span else " chunks"), err=True)
        for item, why in found.lost:
            click.echo("       " + one_line(f"{item} {why}"), err=True)
        if found.lost and not found.after:
            click.echo("       no expected chunk is left: judge this query anew", err=True)
    click.echo(", ".join(f"{counts[name]} {name}" for name in OUTCOMES), err=True)
    refused = bool(counts["lost"]) and not allow_lost
    target = None if check or refused else new.path if in_place else output
    if target is not None and (new.changed or output is not None):
        new.write(target)
    if as_json:
        print_json(
            {
                "counts": {name: counts[name] for name in OUTCOMES},
                "changed": new.changed,
                "written": None if target is None else str(target),
                "queries": [
                    {
                        "query_id": found.query_id,
                        "outcome": found.outcome,
                        "by_span": found.by_span,
                        "before": list(found.before),
                        "after": list(found.after),
                        "lost": [{"item": item, "why": why} for item, why in found.lost],
                    }
                    for found in done
                ],
            }
        )
    elif target is not None:
        click.echo(str(target))
    elif not (check or refused):
        click.echo(new.text, nl=False)
    if refused:
        click.echo("error: chunks are lost; nothing was written (--allow-lost)", err=True)
    return 2 if refused or (check and new.changed) else 0
