"""``kebab-eval golden anchor``: spans from today's chunk ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kebab_eval.cli.options import PATH, debug_option, json_option, writing_options


@click.command(
    epilog="""\b
Examples:
  kebab-eval golden anchor --config configs/base.yaml -o anchored.yaml
  kebab-eval golden anchor --config configs/base.yaml --in-place
"""
)
@click.argument("file", type=PATH, required=False)
@click.option(
    "--config", "-c", "config_path", type=PATH, required=True, help="Whose chunks the ids are."
)
@click.option("--all", "everything", is_flag=True, help="Also queries that have spans already.")
@writing_options
@json_option
@debug_option
def anchor(
    file: Path | None,
    config_path: Path,
    everything: bool,
    output: Path | None,
    in_place: bool,
    check: bool,
    as_json: bool,
) -> int:
    """Derive expected_spans from expected_chunk_ids, which stay.

    Each expected chunk gets a quote that names it and, where there is such a one, no other chunk.
    A query of which one chunk gets none is left as it is. No program knows which sentence answers:
    a quote that you choose is better. FILE is the golden set, else the config's. Without -o or
    --in-place the result is printed.
    """
    from kebab_eval.cli.output import print_json
    from kebab_eval.reports.texts import one_line
    from kebab_eval.workflows.golden_edit import anchor_golden

    new, done = anchor_golden(file, config_path, everything=everything)
    for found in done:
        for span in found.spans if not found.lost else ():
            which = f" (occurrence {span.occurrence})" if span.occurrence else ""
            shown = one_line(f"{found.query_id}: {span.doc}: {span.quote!r}{which}")
            click.echo(shown, err=True)
        for chunk in found.shared:
            said = f"{found.query_id}: the quote of {chunk} stands in another chunk too"
            click.echo(one_line(f"mind: {said}"), err=True)
        for chunk in found.lost:
            said = f"{found.query_id}: {chunk} is no chunk of this config, or says too little"
            click.echo(one_line(f"left as it is: {said}"), err=True)
    anchored = [found for found in done if not found.lost]
    spans, left = sum(len(found.spans) for found in anchored), len(done) - len(anchored)
    told = f"{spans} spans for {len(anchored)} queries, {left} queries left as they are"
    if not done:
        told = "nothing to do: no query with expected_chunk_ids is without spans (--all)"
    click.echo(told, err=True)
    document: dict[str, Any] = {
        "spans": spans,
        "left": left,
        "queries": [
            {
                "query_id": found.query_id,
                "spans": [span.meaning() for span in found.spans if not found.lost],
                "lost": list(found.lost),
                "shared": list(found.shared),
            }
            for found in done
        ],
    }
    if check:
        if as_json:
            print_json(document)
        return 2 if new.changed or left else 0
    target = new.path if in_place else output
    if target is not None and (new.changed or output is not None):
        new.write(target)
    if as_json:
        print_json({**document, "written": None if target is None else str(target)})
    elif target is None:
        click.echo(new.text, nl=False)
    else:
        click.echo(str(target))
    return 2 if left else 0
