"""``kebab-eval golden convert``: a golden set in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kebab_eval.cli.options import PATH, debug_option, json_option

TARGETS = ("kebab", "docserver-v0.2", "docserver-v0.1", "beir", "trec", "jsonl")
SOURCES = ("kebab", "docserver", "beir", "trec", "mapped", "jsonl")


def _field_map(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> dict[str, str] | None:
    pairs = [text.partition("=") for text in given]
    for text, (field, _, where) in zip(given, pairs, strict=True):
        if not field or not where:
            raise click.BadParameter(f"{text!r} is not FIELD=PATH, as in query=question")
    return {field.strip(): where.strip() for field, _, where in pairs} or None


@click.command(
    epilog="""\b
Examples:
  kebab-eval golden convert queries.yaml --to beir -o beir/
  kebab-eval golden convert questions.csv --to kebab -o golden.yaml \\
      --map query=question --map expected_doc_ids=sources
  kebab-eval golden convert topics.trec --qrels qrels.txt --to jsonl -o golden.jsonl
"""
)
@click.argument("source", metavar="[IN]", type=PATH, required=False)
@click.option("--to", type=click.Choice(TARGETS), required=True, help="The format to write.")
@click.option(
    "--output",
    "-o",
    type=PATH,
    required=True,
    metavar="OUT",
    help="A file; a folder for beir, trec.",
)
@click.option(
    "--from",
    "source_format",
    type=click.Choice(SOURCES),
    help="The format of IN. [default: found out]",
)
@click.option(
    "--config",
    "-c",
    "config_path",
    type=PATH,
    help="Says how IN is read; its documents resolve the references of a mapped set.",
)
@click.option(
    "--map",
    "field_map",
    multiple=True,
    metavar="FIELD=PATH",
    callback=_field_map,
    help="Where a field stands in a mapped set, as in query=question. Repeatable.",
)
@click.option("--qrels", type=PATH, help="The judgments of TREC topics.")
@click.option("--split", metavar="NAME", help="Which qrels of a BEIR folder. [default: test]")
@click.option("--force", is_flag=True, help="Overwrite what is there.")
@json_option
@debug_option
def convert(
    *,
    source: Path | None,
    to: str,
    output: Path,
    source_format: str | None,
    config_path: Path | None,
    field_map: dict[str, str] | None,
    qrels: Path | None,
    split: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a golden set in another format, and say what that has no place for.

    IN is the config's golden set when it is not named. What is dropped or changed is told on
    stderr, one line a kind. Nothing is overwritten without --force.
    """
    from kebab_eval.workflows.golden_convert import convert_golden

    named = {"format": source_format, "map": field_map, "qrels": qrels, "split": split}
    given: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    done = convert_golden(source, to, output, config_path=config_path, given=given, force=force)
    from kebab_eval.reports.texts import one_line

    for loss in done.losses.kinds:
        click.echo(one_line(str(loss)), err=True)
    if as_json:
        from kebab_eval.cli.output import print_json

        print_json(done.to_json())
        return
    count = done.total_queries
    files = ", ".join(map(str, done.paths))
    click.echo(f"{files}: {count} {'query' if count == 1 else 'queries'} as {to}")
