"""``kebab-eval ui``: MLflow's own pages, on the store that the runs went to."""

from __future__ import annotations

from pathlib import Path

import click

from kebab_eval.cli.options import PATH, debug_option, tracking_uri_option


@click.command(
    epilog="""\b
Examples:
  kebab-eval ui
  kebab-eval ui --port 5001 --tracking-uri sqlite:///other/mlflow.db
"""
)
@click.option("--config", "-c", "config_path", type=PATH, help="Take the store of this config.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=5000,
    show_default=True,
    help="The port to listen on.",
)
@click.option(
    "--open", "opening", is_flag=True, help="Open the runs and the last comparison in a browser."
)
@tracking_uri_option
@debug_option
def ui(
    *, config_path: Path | None, host: str, port: int, opening: bool, tracking_uri: str | None
) -> int:
    """Start the MLflow UI on the right store.

    Prints the addresses of the newest run and of its comparison, then serves until Ctrl-C. For a
    tracking server, which has its UI already, it only prints them.
    """
    from kebab_eval.workflows.ui import open_pages, plan_ui, serve

    plan = plan_ui(tracking_uri, config_path, host, port)
    for label, url in plan.links:
        click.echo(f"{label:<9}{url}")
    if opening:
        pages = open_pages(plan)
    if plan.command is None:
        if opening:
            pages.join()
        return 0
    click.echo("stop with Ctrl-C", err=True)
    return serve(plan)
