"""Edited YAML says what was meant and keeps what it held, in whatever layout it stands."""

from __future__ import annotations

import re
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval.errors import GoldenError
from kebab_eval.golden.yaml_edit import FieldEdit, edit_fields

IDS = ("a", "b/c.md#1-2", "02142", "말: 뭉치", "- x", "d # e")
IDENTIFIERS = st.lists(st.sampled_from(IDS), unique=True, max_size=4)
COMMENT = re.compile(r"# <\d+>")
SPANS = st.lists(
    st.fixed_dictionaries(
        {"doc": st.sampled_from(IDS), "quote": st.text(max_size=12)},
        optional={"occurrence": st.integers(1, 3)},
    ),
    max_size=2,
)


class Written:
    """YAML with a comment of its own wherever one may stand."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.comments = 0

    def comment(self) -> str:
        """Return nothing, or a comment at the end of a line."""
        if not self.draw(st.booleans()):
            return ""
        self.comments += 1
        return f"  # <{self.comments}>"

    def line(self, indent: str) -> str:
        """Return nothing, or a blank line or a line with a comment."""
        if not self.draw(st.booleans()):
            return ""
        comment = self.comment().strip()
        return (
            f"{self.draw(st.sampled_from(['', indent, '      ']))}{comment}\n" if comment else "\n"
        )

    def scalar(self, text: str) -> str:
        plain = re.fullmatch(r"[\w./-]+(#[\w-]+)?", text) and not text.startswith("-")
        ways = ["'{}'", '"{}"', *(["{}"] if plain else [])]
        return self.draw(st.sampled_from(ways)).format(text)

    def prose(self, indent: str) -> str:
        """Return a text of one or more lines after a key."""
        ways = (
            "one",
            '"a # b"',
            f"one\n{indent}  two",
            f"|\n{indent}  one\n{indent}  # two\n",
            f"|+\n{indent}  one\n\n",
            f">-{self.comment()}\n{indent}  one\n\n{indent}  two",
            "",
        )
        return self.draw(st.sampled_from(ways))

    def block(self, ids: list[str], indent: str, number: int) -> str:
        deeper = indent + self.draw(st.sampled_from(["", "  ", "    "]))
        tag = self.draw(st.sampled_from(["", " !!seq", " &k{}", " &k{} !!seq"]))
        text = f"{tag.format(number)}{self.comment()}\n"
        for one in ids:
            dash = self.draw(st.sampled_from(["- ", "-   ", f"-\n{deeper}    "]))
            text += self.line(deeper) + f"{deeper}{dash}{self.scalar(one)}{self.comment()}\n"
        return text

    def flow(self, ids: list[str], indent: str, _: int) -> str:
        shown = [self.scalar(one) for one in ids]
        if not self.draw(st.booleans()):
            return f" [{', '.join(shown)}]{self.comment()}\n"
        text = f" [{self.comment()}\n"
        for one in shown:
            text += f"{self.line(indent)}{indent}  {one},{self.comment()}\n"
        return f"{text}{indent}  ]{self.comment()}\n"

    def entry(self, number: int, ids: list[str] | None) -> str:
        """Return an entry that starts at the margin, with the list field where there is one."""
        if self.draw(st.integers(0, 4)) == 0:
            listed = "" if ids is None else f", ids: [{', '.join(map(self.scalar, ids))}]"
            return f"- {{id: q{number}{listed}, query: one}}{self.comment()}\n"
        fields = [f"query: {self.prose('  ')}".rstrip(" ") + "\n"]
        if ids is not None:
            written = (self.block if ids and self.draw(st.booleans()) else self.flow)(
                ids, "  ", number
            )
            if not ids and self.draw(st.booleans()):
                written = self.draw(st.sampled_from(["", " ~", " null", " []"])) + "\n"
            fields.append(f"ids:{written}")
        fields = self.draw(st.permutations(fields))
        text = f"- id: q{number}{self.comment()}\n"
        return text + "".join(self.line("  ") + "  " + field for field in fields)


@st.composite
def edited_files(draw: st.DrawFn) -> tuple[str, list[FieldEdit]]:
    written = Written(draw)
    text, edits = written.line(""), []
    for number in range(draw(st.integers(1, 3))):
        before = draw(st.none() | IDENTIFIERS)
        text += written.entry(number, before) + written.line("")
        if draw(st.booleans()):
            value: Any = draw(IDENTIFIERS)
            edits.append(FieldEdit(number, "ids", value, after="query"))
        if draw(st.booleans()):
            edits.append(FieldEdit(number, "spans", draw(SPANS), after="ids"))
    return text, edits


@settings(max_examples=200)
@given(edited_files())
def test_what_is_written_reads_back_as_meant(made: tuple[str, list[FieldEdit]]) -> None:
    text, edits = made
    wanted = yaml.BaseLoader(text).get_single_data()
    try:
        new = edit_fields(text, "g", edits)
    except GoldenError as refused:
        raise AssertionError(text) from refused
    for edit in edits:
        wanted[edit.index][edit.field] = [texts(item) for item in edit.value]
    found = yaml.BaseLoader(new).get_single_data()
    for entry in (*wanted, *found):
        for field in {"ids", "spans"} & entry.keys():
            entry[field] = sorted(entry[field] or [], key=repr)
    assert found == wanted
    assert sorted(COMMENT.findall(new)) == sorted(COMMENT.findall(text))


def texts(item: Any) -> Any:
    return {key: str(one) for key, one in item.items()} if isinstance(item, dict) else item
