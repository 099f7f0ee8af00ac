"""Golden sets: reading, checking, choosing a part, and the digest over what they mean."""

from kebab_eval.golden.load import check_ids, load_golden, select

__all__ = ["check_ids", "load_golden", "select"]
