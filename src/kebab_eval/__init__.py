"""kebab-eval: evaluate search and RAG systems, one MLflow run for each evaluation.

The names below are the public Python API; each is imported when it is first used, so that
``import kebab_eval`` costs nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # importing typing for the real one doubles the time of `kebab-eval --help`

if TYPE_CHECKING:
    from typing import Any

    from kebab_eval.api import evaluate
    from kebab_eval.errors import KebabEvalError
    from kebab_eval.programs import check_gate, compare, track

_EXPORTS = {
    "KebabEvalError": "kebab_eval.errors",
    "check_gate": "kebab_eval.programs",
    "compare": "kebab_eval.programs",
    "evaluate": "kebab_eval.api",
    "track": "kebab_eval.programs",
}

__all__ = ["KebabEvalError", "__version__", "check_gate", "compare", "evaluate", "track"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        from importlib import import_module

        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'kebab_eval' has no attribute {name!r}")
