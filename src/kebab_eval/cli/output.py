"""Where results go: one JSON document on stdout, or a report file by its ending."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kebab_eval.errors import Fault, RecordError, UsageError

if TYPE_CHECKING:
    from kebab_eval.records import EvalRun

FORMATS = {".json": "json", ".md": "md", ".html": "html", ".csv": "csv"}


def print_json(document: Any) -> None:
    """Print exactly one JSON document."""
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(document, ensure_ascii=not readable, indent=2, allow_nan=False))
    sys.stdout.write("\n")


def check_output(path: Path, formats: Mapping[str, str] = FORMATS) -> None:
    """Refuse an output file that could not be written later.

    Args:
        formats: which endings there are.

    Raises:
        UsageError: the ending names no format, or the folder is not there.
    """
    faults = []
    if path.suffix not in formats:
        message = f"the ending {path.suffix!r} names no format; use {', '.join(formats)}"
        faults.append(Fault(f"--output {path}", message))
    if not path.parent.is_dir():
        faults.append(Fault(f"--output {path}", f"the folder {path.parent} does not exist"))
    elif path.is_dir():
        faults.append(Fault(f"--output {path}", "is a folder; name a file"))
    elif not os.access(path.parent, os.W_OK):
        faults.append(Fault(f"--output {path}", f"the folder {path.parent} is not writable"))
    if faults:
        raise UsageError(faults)


def write_report(run: EvalRun, path: Path) -> None:
    """Write a run's report in the format of the path's ending, whole or not at all."""
    from kebab_eval.reports import render

    write_text(path, render(run, FORMATS[path.suffix]))


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, without any secret that a hit or an answer echoed."""
    from kebab_eval.redaction import redact

    text = redact(text)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.replace(path)
    except OSError as reason:
        temporary.unlink(missing_ok=True)
        raise RecordError(f"{path}: cannot be written: {reason.strerror}") from reason


def warn(message: str) -> None:
    """Print a warning on stderr, if there is any, in one line without secrets."""
    import click

    from kebab_eval.redaction import redact
    from kebab_eval.reports.texts import one_line

    if message:
        click.echo(f"warning: {one_line(redact(message))}", err=True)


def log_or_warn(what: str, log: Callable[[], str | None]) -> str | None:
    """Log something to MLflow; a tracker that fails costs a warning, the answer is there already.

    Args:
        log: returns the artifact folder, None where there was nothing to log to.
    """
    from kebab_eval.errors import TrackerError

    try:
        return log()
    except TrackerError as reason:
        warn(f"{what} is not in MLflow: {reason}")
        return None
