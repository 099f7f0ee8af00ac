"""Golden sets: reading, checking, choosing a part, and the digest over what they mean."""

from kebab_eval.golden.load import LoadedGolden, check_ids, load_golden, select
from kebab_eval.golden.registry import ReadOptions

__all__ = ["LoadedGolden", "ReadOptions", "check_ids", "load_golden", "select"]
