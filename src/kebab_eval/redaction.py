"""Secrets that were resolved from the environment, kept out of every text that leaves memory.

``load_config`` registers each value under its reference; records, messages and links pass through
:func:`redact` on their way out. One process evaluates one config, so the register is the process's.
"""

from __future__ import annotations

import json
from urllib.parse import quote

MIN_LENGTH = 4
"""Shorter values would take ordinary words out of every text; they are no secrets."""

_forms: dict[str, str] = {}


def register(value: str, reference: str) -> None:
    """Have a value shown as its reference, also where it stands quoted for a URL or for JSON."""
    if len(value) < MIN_LENGTH:
        return
    in_json = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    for form in (value, quote(value), quote(value, safe=""), *in_json):
        _forms[form] = reference


def registered() -> dict[str, str]:
    """Return what is registered, for the :func:`register` of another process."""
    return dict(_forms)


def redact(text: str) -> str:
    """Return a text with every registered value replaced by its reference, longest first."""
    for form in sorted(_forms, key=len, reverse=True):
        text = text.replace(form, _forms[form])
    return text
