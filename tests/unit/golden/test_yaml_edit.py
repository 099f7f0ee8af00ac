"""Only the values that change are written anew."""

from __future__ import annotations

import difflib

import pytest
import yaml

from kebab_eval.errors import GoldenError
from kebab_eval.golden.yaml_edit import FieldEdit, edit_fields

SET = """\
# What people ask.
- id: a   # the first
  query: "하나"
  expected_chunk_ids:   # by hand
    - x    # the best one
    - "y"

# --- the second
- {id: b, query: two, expected_chunk_ids: [x, y]}   # short
- id: c
  query: three
  expected_chunk_ids: []
  group: g
"""


def changed(text: str, edited: str) -> list[str]:
    lines = difflib.ndiff(text.splitlines(), edited.splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_a_block_list_is_replaced_where_it_stands() -> None:
    edited = edit_fields(SET, "g", [FieldEdit(0, "expected_chunk_ids", ["새 것", "02142"])])
    assert changed(SET, edited) == [
        "-     - x    # the best one",
        '-     - "y"',
        '+     - "새 것"',
        '+     - "02142"',
    ]
    assert yaml.safe_load(edited)[0]["expected_chunk_ids"] == ["새 것", "02142"]


def test_flow_lists_stay_flow_lists() -> None:
    edits = [FieldEdit(1, "expected_chunk_ids", ["z"]), FieldEdit(2, "expected_chunk_ids", ["w"])]
    edited = edit_fields(SET, "g", edits)
    assert '- {id: b, query: two, expected_chunk_ids: ["z"]}   # short' in edited
    assert '  expected_chunk_ids: ["w"]\n  group: g\n' in edited


def test_a_list_that_becomes_empty() -> None:
    edited = edit_fields(SET, "g", [FieldEdit(0, "expected_chunk_ids", [])])
    assert yaml.safe_load(edited)[0]["expected_chunk_ids"] == []


def test_a_new_field_goes_behind_another_one() -> None:
    spans = [{"doc": "d.md", "quote": 'say "60"', "occurrence": 2}]
    edits = [FieldEdit(n, "expected_spans", spans, "expected_chunk_ids") for n in range(3)]
    edited = edit_fields(SET, "g", edits)
    added = [
        "+   expected_spans:",
        '+     - doc: "d.md"',
        '+       quote: "say \\"60\\""',
        "+       occurrence: 2",
    ]
    assert changed(SET, edited)[:4] == added
    assert '    - "y"\n  expected_spans:\n' in edited  # before the blank line and the comment
    for entry in yaml.safe_load(edited):
        assert entry["expected_spans"] == spans


@pytest.mark.parametrize("text", ["- id: a\n  query: q", "- id: a\n  query: q\n\n\n", "- {id: a}"])
def test_the_end_of_the_file(text: str) -> None:
    edited = edit_fields(text, "g", [FieldEdit(0, "expected_spans", ["s"], "nothing")])
    assert yaml.safe_load(edited)[0]["expected_spans"] == ["s"]


def test_windows_line_ends_stay() -> None:
    text = SET.replace("\n", "\r\n")
    edited = edit_fields(text, "g", [FieldEdit(0, "expected_spans", ["s"], "expected_chunk_ids")])
    assert edited.count("\n") == edited.count("\r\n") == text.count("\n") + 2
    assert yaml.safe_load(edited)[0]["expected_spans"] == ["s"]


def test_a_set_within_a_mapping() -> None:
    text = "version: 2\nqueries:\n- id: a\n  expected_chunk_ids:\n  - x\n"
    edited = edit_fields(text, "g", [FieldEdit(0, "expected_chunk_ids", ["y"])])
    assert edited == text.replace("- x", '- "y"')


def test_aliases_are_refused() -> None:
    text = "- id: a\n  expected_chunk_ids: &same [x]\n- id: b\n  expected_chunk_ids: *same\n"
    with pytest.raises(GoldenError, match=r"g:4:23: alias \*same stands for text elsewhere"):
        edit_fields(text, "g", [FieldEdit(0, "expected_chunk_ids", ["y"])])


def test_nothing_to_do_changes_nothing() -> None:
    assert edit_fields(SET, "g", []) == SET
