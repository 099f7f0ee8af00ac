"""Which config keys are levers: those that decide what is measured, and not what a run is called.

MLflow's params and the diff of a comparison read the same list, so that two runs differ in what
was moved and in nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# The config keys that have a standard name, shared by every backend: the system's own snapshot
# fills them, so that a search for `params.rrf_k` finds runs of all systems.
STANDARD_NAMES = {
    "chunking.version": "chunker_version",
    "fusion.rrf_k": "rrf_k",
    "score_gate": "score_gate",
    "search.mode": "mode",
    "search.k": "k",
}
# Keys that name or steer a run without deciding what is measured: never params, never levers.
NOT_LEVERS = frozenset(
    {
        "name",
        "experiment",
        "lever",
        "golden",
        "suites",
        "tracking",
        "execution",
        "tags",
        "backend.cache",
        "metrics.eval_version",
    }
)

# Systems that come with levers of their own: these sections of a config move nothing in them.
_NOT_READ = {
    system: frozenset({"chunking", "lexical", "embedding", "fusion", "rerank", "score_gate"})
    for system in ("kebab", "python", "replay")
}


def levers_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted key -> value of what a config moves in the system that it names."""
    backend = config.get("backend")
    system = backend.get("type") if isinstance(backend, Mapping) else None
    unread = _NOT_READ.get(str(system), frozenset())
    return dict(flatten({key: value for key, value in config.items() if key not in unread}))


def flatten(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) for each config key that says what is measured."""
    for key, value in config.items():
        if prefix + key in NOT_LEVERS:
            continue
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
