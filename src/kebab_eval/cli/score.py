"""``kebab-eval score``: judgments and a run in, metrics out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kebab_eval.cli.options import debug_option, json_option

if TYPE_CHECKING:
    from kebab_eval.api import Evaluation

SCHEMA = "kebab_eval.score.v1"


@click.command(
    epilog="""\b
Example:
  kebab-eval score qrels.txt run.txt.gz --metrics ndcg_at_10,mrr_at_10 --per-query
"""
)
@click.argument("qrels", type=click.Path(path_type=Path))
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--metrics",
    "-m",
    "metrics",
    multiple=True,
    metavar="NAME[,NAME…]",
    help="Metrics such as ndcg_at_10 or recall_at_100_rel2, or trec_eval's names. Repeatable.",
)
@click.option("--per-query", is_flag=True, help="Print each query's values too.")
@click.option(
    "--min-relevance",
    "-l",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Grade from which an item is relevant for the binary metrics.",
)
@click.option(
    "--complete/--returned",
    default=True,
    show_default=True,
    help="Count judged queries without results as 0, or leave them out.",
)
@json_option
@debug_option
def score(
    *,
    qrels: Path,
    run: Path,
    metrics: tuple[str, ...],
    per_query: bool,
    min_relevance: int,
    complete: bool,
    as_json: bool,
) -> None:
    """Score a TREC run file against qrels.

    A run is ordered as trec_eval does: score descending, then id descending, whatever its rank
    column says. Both files may be gzip; JSONL files and BEIR qrels are read too.
    """
    from kebab_eval.api import DEFAULT_METRICS, evaluate_table
    from kebab_eval.formats.files import rank_run
    from kebab_eval.metrics.registry import default_registry
    from kebab_eval.metrics.trec_names import own_name

    wanted = [name.strip() for given in metrics for name in given.split(",")] or DEFAULT_METRICS
    chosen = default_registry().parse_all(own_name(name) for name in wanted)
    judged = rank_run(qrels, run, float(min_relevance))
    evaluation = evaluate_table(
        judged.table,
        chosen,
        judged.query_ids,
        without_results=judged.without_results,
        without_judgments=judged.without_judgments,
    )
    if not complete:
        evaluation = evaluation.returned()
    _note(evaluation, complete)
    if as_json:
        click.echo(_json(evaluation, per_query, complete))
        return
    click.echo("\n".join(_lines(evaluation, per_query)))


def _note(evaluation: Evaluation, complete: bool) -> None:
    """Say on stderr what the two files do not share."""
    missing, others = len(evaluation.without_results), len(evaluation.without_judgments)
    if missing:
        outcome = "they count as 0" if complete else "they are left out"
        click.echo(f"{_queries(missing)} without results in the run: {outcome}", err=True)
    if others:
        click.echo(f"{_queries(others)} of the run without judgments: not scored", err=True)


def _queries(count: int) -> str:
    return f"{count} {'query' if count == 1 else 'queries'}"


def _lines(evaluation: Evaluation, per_query: bool) -> list[str]:
    width = max(22, *(len(metric.name) for metric in evaluation.metrics))
    lines: list[str] = []
    if per_query:
        for query_id, values in evaluation.per_query().items():
            lines += [f"{name:<{width}}\t{query_id}\t{v:.4f}" for name, v in values.items()]
    lines.append(f"{'num_q':<{width}}\tall\t{len(evaluation.query_ids)}")
    lines.append(f"{'num_q_without_results':<{width}}\tall\t{len(evaluation.without_results)}")
    for name, value in evaluation.means.items():
        lines.append(f"{name:<{width}}\tall\t{'-' if value is None else f'{value:.4f}'}")
    return lines


def _json(evaluation: Evaluation, per_query: bool, complete: bool) -> str:
    import json

    n, intervals = evaluation.n, evaluation.intervals()
    document: dict[str, Any] = {
        "schema_version": SCHEMA,
        "total_queries": len(evaluation.query_ids),
        "complete": complete,
        "without_results": list(evaluation.without_results),
        "without_judgments": list(evaluation.without_judgments),
        "metrics": {
            name: {"value": value, "n": n[name], "ci95": intervals[name]}
            for name, value in evaluation.means.items()
        },
    }
    if per_query:
        document["per_query"] = evaluation.per_query()
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
