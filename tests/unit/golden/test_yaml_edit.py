"""Only the values that change are written anew."""

from __future__ import annotations

import difflib
import json

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
        '+     - "새 것"    # the best one',
        '-     - "y"',
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


def only(text: str, value: list[object], field: str = "ids") -> str:
    return edit_fields(text, "g", [FieldEdit(0, field, value, "query")])


def test_items_that_stay_keep_their_line_and_the_others_leave_their_comments() -> None:
    text = """\
- id: a
  ids:
    - x  # the old way
    # about y
    - 'y'   # the second
    - z
"""
    assert (
        only(text, ["y"])
        == """\
- id: a
  ids:
    # the old way
    # about y
    - 'y'   # the second
"""
    )
    assert only(text, ["n", "y", "z", "m"]) == text.replace("- x", '- "n"') + '    - "m"\n'


def test_comments_within_an_item_and_within_brackets_stay() -> None:
    spans = "- id: a\n  spans:\n    - doc: d  # the note\n      quote: 'q # 1'\n"
    assert only(spans, [{"doc": "e", "quote": "r"}], "spans") == (
        '- id: a\n  spans:\n    # the note\n    - doc: "e"\n      quote: "r"\n'
    )
    flow = "- id: a\n  ids: [  # both\n    x,  # one\n    y  # two\n  ]\n"
    assert only(flow, ["y"]) == flow.replace("x,", "")
    assert only(flow, ["z"]) == flow.replace("x,", '"z",').replace("y ", " ")
    assert only(flow, []) == flow.replace("x,", "").replace("y ", " ")


@pytest.mark.parametrize("nothing", ["", " ~", " null", " !!null", "   # nothing yet"])
def test_a_field_that_holds_nothing(nothing: str) -> None:
    text = f"- id: a\n  ids:{nothing}\n- id: b\n"
    assert yaml.safe_load(only(text, ["x"])) == [{"id": "a", "ids": ["x"]}, {"id": "b"}]


@pytest.mark.parametrize("mark", ["|", ">-", "|+", "|2-  # a text"])
def test_a_new_field_behind_a_block_scalar_stays_in_its_entry(mark: str) -> None:
    text = f"- id: a\n  query: {mark}\n    one\n    # two\n\n# next\n- id: b\n"
    edited = only(text, ["x"])
    before, after = yaml.safe_load(text), yaml.safe_load(edited)
    assert after == [{**before[0], "ids": ["x"]}, {"id": "b"}]


@pytest.mark.parametrize("mark", ["&k", "!!seq", "&k !!seq", "!!seq  # all of them"])
def test_an_anchor_or_a_tag_before_a_list_stays(mark: str) -> None:
    text = f"- id: a\n  ids: {mark}\n    - x\n    - y\n"
    assert only(text, ["z", "y"]) == text.replace("- x", '- "z"')
    assert yaml.safe_load(only(text, [])) == [{"id": "a", "ids": []}]


def test_json_stays_json() -> None:
    text = json.dumps([{"id": "a", "query": "q", "ids": ["x"]}], indent=1)
    edited = edit_fields(
        text, "g", [FieldEdit(0, "ids", ["y", "x"]), FieldEdit(0, "spans", [{"doc": "d"}])]
    )
    assert json.loads(edited) == [
        {"id": "a", "query": "q", "ids": ["x", "y"], "spans": [{"doc": "d"}]}
    ]


def test_what_would_not_read_back_is_refused_with_every_place() -> None:
    # A line of blanks below a block scalar belongs to its text: what follows it would be text too.
    odd = "- id: {}\n  query: |\n    one\n\n      \n"
    text = odd.format("a") + "- id: b\n" + odd.format("c")
    with pytest.raises(GoldenError) as refused:
        edit_fields(text, "g", [FieldEdit(n, "ids", ["x"], "query") for n in range(3)])
    assert [fault.place for fault in refused.value.faults] == ["g:1:3", "g:7:3"]
    assert "one field a line" in refused.value.faults[0].message


def test_an_anchor_that_comes_twice_is_refused() -> None:
    with pytest.raises(GoldenError, match=r"g:2:7: found duplicate anchor"):
        only("- id: &k a\n- id: &k b\n", ["x"])
