"""Workflow commands of GitHub Actions, which show what is said beside the code."""

from __future__ import annotations

from collections.abc import Mapping

from kebab_eval.reports.texts import one_line


def annotation(level: str, properties: Mapping[str, object], text: str) -> str:
    """Return one annotation.

    Args:
        level: ``error``, ``warning`` or ``notice``.
        properties: ``file``, ``line``, ``col``, ``title``; None leaves one out.
    """
    shown = ",".join(
        f"{name}={_property(str(value))}" for name, value in properties.items() if value is not None
    )
    return f"::{level} {shown}::{_message(text)}"


def _message(text: str) -> str:
    return one_line(text).replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
