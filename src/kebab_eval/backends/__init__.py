"""Systems under test, opened by the ``type`` of a config's backend section.

A backend is one file and one line in :data:`BACKENDS`. Its module is imported when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from kebab_eval.backends.base import (
    Backend,
    ItemIds,
    Param,
    Progress,
    SearchResponse,
    SystemInfo,
)

if TYPE_CHECKING:
    from kebab_eval.config import Config

__all__ = [
    "BACKENDS",
    "Backend",
    "ItemIds",
    "Param",
    "Progress",
    "SearchResponse",
    "SystemInfo",
    "open_backend",
]

BACKENDS: dict[str, str] = {
    "embedded": "kebab_eval.backends.embedded:open_embedded",
    "http": "kebab_eval.backends.http:open_http",
    "docserver": "kebab_eval.backends.http:open_docserver",
    "python": "kebab_eval.backends.python:open_python",
    "kebab": "kebab_eval.backends.kebab:open_kebab",
    "postgres": "kebab_eval.backends.postgres:open_postgres",
    "replay": "kebab_eval.backends.replay:open_replay",
}


def open_backend(config: Config) -> Backend:
    """Return the system under test of a config; ``prepare`` makes it ready for its first search.

    Raises:
        CorpusError, UsageError: what the config names cannot be used.
        BackendError: the system cannot be reached.
    """
    module, _, name = BACKENDS[config.backend.type].partition(":")
    opener: Callable[[Config], Backend] = getattr(import_module(module), name)
    return opener(config)
