"""Paths into a response, and templates into a request."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from kebab_eval.backends.json_paths import fill, find_all, find_one, names_in
from kebab_eval.config import Fields

DATA = {
    "hits": {"hits": [{"_id": "1", "_source": {"t": ["a", "b"]}}, {"_id": "2", "_source": {}}]},
    "rows": [[10, 11], [20, 21]],
    "null": None,
    "zero": 0,
    "odd key": {"x-y": 1},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("hits.hits[]._id", ["1", "2"]),
        ("hits.hits._id", ["1", "2"]),
        ("hits.hits[1]._id", ["2"]),
        ("hits.hits[7]._id", []),
        ("hits.hits[]._source.t[0]", ["a"]),
        ("rows[][1]", [11, 21]),
        ("rows[0][1]", [11]),
        ("nothing|zero", [0]),
        ("null|zero", [0]),
        ("null", []),
        ("zero.deeper", []),
        ("odd key.x-y", [1]),
        ("hits[]", []),
    ],
)
def test_a_path_finds(path: str, found: list[Any]) -> None:
    assert find_all(DATA, path) == found
    assert find_one(DATA, path) == (found[0] if found else None)
    assert Fields(hits=path).hits == path


@pytest.mark.parametrize(
    "path",
    ["", "a[", "a]", "a..b", ".a", "a.", "a|", "|a", "a[x]", "a[-1]", "a[1", "a" * 500 + "["],
)
def test_what_is_no_path_is_told_when_the_config_is_read(path: str) -> None:
    with pytest.raises(ValidationError, match="must be a path"):
        Fields(hits=path)


def test_fill_leaves_other_braces_alone() -> None:
    values = {"a": 1, "b.c": "x"}
    assert fill({"{a}": ["{a}", "{b.c}-{a}", "{ a }", "{}", "{unknown}"]}, values) == {
        "1": [1, "x-1", "{ a }", "{}", "{unknown}"]
    }


def test_names_of_a_tree() -> None:
    assert names_in({"{a}": ["{b.c}", {"x": "1 {d} { e }"}], "n": 3}) == {"a", "b.c", "d"}
