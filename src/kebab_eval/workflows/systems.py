"""Opening the system under test of a config."""

from __future__ import annotations

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend
from kebab_eval.backends.cache import CachedBackend
from kebab_eval.config_file import LoadedConfig


def open_system(loaded: LoadedConfig) -> Backend:
    """Return the system under test, behind the cache of its answers if the config has one."""
    backend = open_backend(loaded.config)
    cache = loaded.config.execution.cache
    return backend if cache is None else CachedBackend(backend, cache, loaded.snapshot)
