"""Options that several commands share, so that one name means one thing everywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)


def _note_debug(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and isinstance(ctx.obj, dict):
        ctx.obj["debug"] = True


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_note_debug,
    help="Show the traceback of an error.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
form_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "md", "json"]),
    default="text",
    show_default=True,
    help="What to print.",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress, no table.")
tracking_uri_option = click.option(
    "--tracking-uri", metavar="URI", help="The MLflow store. [default: MLFLOW_TRACKING_URI, config]"
)


def _checked_traces(_ctx: click.Context, _param: click.Parameter, given: str | None) -> str | None:
    if given is None:
        return None
    from kebab_eval.config import check_traces

    try:
        return check_traces(given)
    except ValueError as reason:
        raise click.BadParameter(f"{given!r} {reason}") from None


traces_option = click.option(
    "--traces",
    metavar="all|changed|failed|sample:N|none",
    callback=_checked_traces,
    help="Which queries become MLflow traces. [default: config, all]",
)


def traces_override(traces: str | None) -> tuple[str, ...]:
    """Return the override of the config that ``--traces`` stands for."""
    return () if traces is None else (f"tracking.traces={json.dumps(traces)}",)


def _split_commas(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    words = (word.strip() for text in given for word in text.split(","))
    return tuple(word for word in words if word)


eval_version_option = click.option(
    "--eval-version",
    type=click.Choice(["v0.1", "v0.2", "both"]),
    help="Which scores of a Document Server set. [default: both]",
)
allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="WORD",
    callback=_split_commas,
    help="Compare runs that differ in golden, corpus, k or metrics. Repeatable, or with commas.",
)


def _address_key(config_path: Path, settings: tuple[str, ...]) -> str:
    """Return the key that holds the address of a config's system: its type decides."""
    from kebab_eval.config_tree import section_type
    from kebab_eval.errors import ConfigError

    try:
        kind = section_type(config_path, settings, "backend")
    except ConfigError:  # the command reads the config again, and tells all that is wrong
        kind = None
    return "backend.url" if kind == "http" else "backend.base_url"


def config_options(command: Command, *, required: bool = True) -> Command:
    """Options that choose a config and turn its keys; the command gets ``overrides`` for them."""

    @click.option(
        "--config", "-c", "config_path", type=PATH, required=required, help="The config file."
    )
    @click.option(
        "--set",
        "-S",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override a key, as in fusion.rrf_k=20. Repeatable.",
    )
    @click.option("--golden", type=PATH, help="Another golden set.")
    @click.option(
        "--suite",
        metavar="NAME",
        help="A golden set by name: a key of 'suites', or fixtures/NAME_queries.yaml.",
    )
    @click.option("--mode", type=click.Choice(["lexical", "vector", "hybrid"]), help="Search mode.")
    @click.option("--k", type=click.IntRange(min=1), help="How many hits are asked for.")
    @click.option("--name", help="The run's name.")
    @click.option(
        "--experiment", help="The MLflow experiment. [default: MLFLOW_EXPERIMENT_NAME, config]"
    )
    @click.option("--concurrency", type=click.IntRange(min=1), help="Queries in flight.")
    @eval_version_option
    @click.option("--base-url", metavar="URL", help="The address of a docserver or http system.")
    @click.option("--cache", type=PATH, help="Keep answers here and take them again; not timed.")
    @click.option("--max-failed", type=click.IntRange(min=0), help="Failed queries tolerated.")
    @click.option(
        "--engine", type=click.Choice(["local", "ray"]), help="Where the queries are asked from."
    )
    @click.option("--ray-address", metavar="ADDRESS", help="A Ray cluster. [default: one here]")
    @wraps(command)
    def wrapped(
        *args: Any,
        settings: tuple[str, ...],
        golden: Path | None,
        mode: str | None,
        k: int | None,
        name: str | None,
        experiment: str | None,
        concurrency: int | None,
        max_failed: int | None,
        eval_version: str | None,
        cache: Path | None,
        base_url: str | None,
        engine: str | None,
        ray_address: str | None,
        **kwargs: Any,
    ) -> Any:
        variable = os.environ.get("MLFLOW_EXPERIMENT_NAME")
        shortcuts = {
            "golden.path": None if golden is None else str(golden),
            "search.mode": mode,
            "search.k": k,
            "name": name,
            "experiment": experiment if experiment is not None else variable or None,
            "execution.concurrency": concurrency,
            "execution.max_failed": max_failed,
            "metrics.eval_version": eval_version,
            "execution.cache": None if cache is None else str(cache),
            "execution.engine": engine,
            "execution.ray_address": ray_address,
        }
        if base_url is not None:
            shortcuts[_address_key(kwargs["config_path"], settings)] = base_url
        # JSON is YAML: quoting keeps a name such as `1e5` or `a: b` the text that was typed.
        overrides = [
            f"{key}={json.dumps(value)}" for key, value in shortcuts.items() if value is not None
        ]
        return command(*args, overrides=(*settings, *overrides), **kwargs)

    return wrapped  # type: ignore[return-value]  # click's decorators keep no signature


def selection_options(command: Command) -> Command:
    """Options that choose a part of the golden set."""
    for option in (
        click.option(
            "--query-id",
            "query_ids",
            multiple=True,
            metavar="ID",
            help="Only this query. Repeatable.",
        ),
        click.option("--limit", type=click.IntRange(min=1), help="Only the first N queries."),
    ):
        command = option(command)
    return command


def golden_source_options(command: Command) -> Command:
    """Options that say how a golden file is read, and which corpus it is about."""
    for option in (
        click.option(
            "--from",
            "golden_format",
            metavar="FORMAT",
            help="Its format: kebab, docserver, beir, trec, mapped or jsonl. [default: found out]",
        ),
        click.option(
            "--set",
            "-S",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help="Override a key of the config. Repeatable.",
        ),
        click.option(
            "--config", "-c", "config_path", type=PATH, help="The config whose corpus it is about."
        ),
    ):
        command = option(command)
    return command


def writing_options(command: Command) -> Command:
    """Options of a command that rewrites a file: where to, or whether it would."""

    @click.option("--output", "-o", type=PATH, help="Write the result here.")
    @click.option("--in-place", is_flag=True, help="Write it over the file.")
    @click.option("--check", is_flag=True, help="Write nothing; exit code 2 if it would change.")
    @wraps(command)
    def wrapped(*args: Any, output: Path | None, in_place: bool, check: bool, **kwargs: Any) -> Any:
        if sum((output is not None, in_place, check)) > 1:
            raise click.UsageError("--output, --in-place and --check exclude each other")
        return command(*args, output=output, in_place=in_place, check=check, **kwargs)

    return wrapped  # type: ignore[return-value]  # click's decorators keep no signature
