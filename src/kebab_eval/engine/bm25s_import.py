"""Import bm25s without what it would drag in.

bm25s imports jax, numba, scipy.sparse and tqdm when they are installed. jax and numba cost seconds
and choose other code paths, so that scores would depend on what else is in the environment;
scipy.sparse costs 0.15 s and is not used by the numpy path. Python takes a name mapped to None in
``sys.modules`` for a package that is not installed.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from threading import Lock
from types import ModuleType

_UNWANTED = ("jax", "jax.lax", "numba", "scipy.sparse", "tqdm", "tqdm.auto")
_lock = Lock()


def import_bm25s() -> ModuleType:
    """Return the bm25s module, its logger turned down to warnings."""
    with _lock:
        if "bm25s" not in sys.modules:
            hidden = {name: sys.modules.get(name) for name in _UNWANTED}
            sys.modules.update(dict.fromkeys(_UNWANTED))  # type: ignore[arg-type]  # None: not to be had
            try:
                import_module("bm25s")
            finally:
                for name, module in hidden.items():
                    if module is None:
                        sys.modules.pop(name, None)
                    else:
                        sys.modules[name] = module
            logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets DEBUG on import
        return sys.modules["bm25s"]
