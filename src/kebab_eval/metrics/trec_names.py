"""trec_eval's names of the metrics that it shares with this package."""

from __future__ import annotations

import re

_FIXED = {
    "map": "map",
    "recip_rank": "mrr",
    "Rprec": "rprec",
    "bpref": "bpref",
    "set_P": "precision",
    "set_recall": "recall",
}
_CUT = {
    "P": "precision",
    "recall": "recall",
    "success": "hit",
    "ndcg_cut": "ndcg_linear",
    "map_cut": "map",
}
_NAME = re.compile(r"(P|recall|success|ndcg_cut|map_cut)[_.]([0-9]+)")


def own_name(name: str) -> str:
    """Return our name of a metric that trec_eval calls ``name`` (``P_5``, ``ndcg_cut.10``).

    Any other text is returned as it is. ``ndcg`` stays ours, with its exponential gain; trec_eval's
    is ``ndcg_linear``.
    """
    match = _NAME.fullmatch(name)
    if match:
        return f"{_CUT[match[1]]}_at_{int(match[2])}"
    return _FIXED.get(name, name)
