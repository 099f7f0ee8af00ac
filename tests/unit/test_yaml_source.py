"""YAML with places: raw texts, bounded depth and aliases, faults where they stand."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from kebab_eval import yaml_source
from kebab_eval.errors import ConfigError, GoldenError, InputError
from kebab_eval.yaml_source import MAX_DEPTH, Node, parse_yaml, read_text, resolve_scalar


def parse(text: str) -> Node:
    node = parse_yaml(text, "f.yaml", ConfigError)
    assert node is not None
    return node


def fault(text: str) -> str:
    with pytest.raises(ConfigError) as told:
        parse_yaml(text, "f.yaml", ConfigError)
    return str(told.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("12", 12),
        ("-3", -3),
        ("02142", 2142),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        (".inf", ".inf"),
        ("٣", "٣"),
        ("12\n", "12\n"),
    ],
)
def test_plain_scalars_follow_the_core_schema(text: str, value: Any) -> None:
    found = resolve_scalar(text)
    assert found == value
    assert type(found) is type(value)


def test_a_number_too_long_to_be_one_stays_text() -> None:
    assert resolve_scalar("9" * 400) == int("9" * 400)
    assert resolve_scalar("9" * 401) == "9" * 401
    assert resolve_scalar("9" * 100_000) == "9" * 100_000


def test_every_node_keeps_its_place_and_its_raw_text() -> None:
    root = parse('id: 02142\nlist:\n  - "x"\n  - {a: 1e5}\n')
    (_, identifier), (key, items) = root.value
    assert (identifier.value, identifier.place) == ("02142", "f.yaml:1:5")
    assert key.place == "f.yaml:2:1"
    assert [item.place for item in items.value] == ["f.yaml:3:5", "f.yaml:4:5"]
    inner = items.value[1].value[0][1]
    assert (inner.value, inner.place) == ("1e5", "f.yaml:4:9")


def test_columns_count_characters() -> None:
    root = parse("{한글: [가, 나]}")
    assert root.value[0][1].value[1].place == "f.yaml:1:10"  # {한글: [가, is nine


def test_quotes_and_the_str_tag_keep_a_number_text() -> None:
    assert parse("[1, '1', \"1\", !!str 1]").python() == [1, "1", "1", "1"]


def test_no_tag_makes_an_object() -> None:
    root = parse("!!python/object/apply:os.system ['x']")
    assert root.python() == ["x"]


def test_a_text_without_a_document_is_none() -> None:
    assert parse_yaml("", "f", ConfigError) is None
    assert parse_yaml("# words\n", "f", ConfigError) is None


def test_an_empty_document_is_null() -> None:
    assert parse("---\n").is_null


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: key 'a' stands twice (first on line 1); keep one"),
        ("x: {b: 1, b: 2}", "f.yaml:1:11: key 'b' stands twice (first on line 1); keep one"),
        ("? [a]\n: 1\n", "f.yaml:1:3: a key must be a word, found a list"),
        ("a: *b", "f.yaml:1:4: alias *b has no anchor before it"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document starts here; only one is allowed"),
        ("a: 'x", "f.yaml:1:6: not valid YAML:"),
        ("a: b: c", "f.yaml:1:5: not valid YAML:"),
        ("\ta: 1", "f.yaml:1:1: not valid YAML:"),
        ("%YAML 3.0\n---\na", "f.yaml:1:1: not valid YAML:"),
        ('"\\ud800"', "f.yaml:1:4: not valid YAML:"),
        ("a\nbc\x01d", "f.yaml:2:3: not valid YAML: character U+0001 may not stand in it"),
        ("a\x00", "f.yaml:1:2: not valid YAML: character U+0000 may not stand in it"),
        ("- \udcff", "f.yaml:1:3: not valid YAML: character U+DCFF may not stand in it"),
        ("a\ufffe", "f.yaml:1:2: not valid YAML: character U+FFFE may not stand in it"),
        ("a: \x1b[31m", "f.yaml:1:4: not valid YAML: character U+001B may not stand in it"),
    ],
)
def test_what_is_no_yaml_is_told_where_it_stands(text: str, said: str) -> None:
    assert fault(text).startswith(said)


def test_all_repeated_keys_are_told_together() -> None:
    assert len(fault("a: 1\na: 2\nb: {c: 1, c: 2}\n").splitlines()) == 2


def test_nesting_is_bounded_whatever_its_style() -> None:
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert "nested deeper than 60 levels" in fault("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    block = "\n".join(" " * depth + "a:" for depth in range(3000))
    assert fault(block) == "f.yaml:61:61: nested deeper than 60 levels"
    assert "nest" in fault("[" * 10_000)
    assert "nest" in fault("{a: " * 10_000)
    assert "nest" in fault("- " * 10_000)
    assert "nest" in fault("? " * 10_000)


def bomb(width: int, levels: int) -> str:
    lines = ["a0: &a0 [" + ",".join("x" * width) + "]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [" + ",".join([f"*a{level - 1}"] * width) + "]")
    return "\n".join(lines)


def test_aliases_expand_within_bounds() -> None:
    root = parse("base: &b {x: 1}\ntwo: [*b, *b]\n")
    assert root.python() == {"base": {"x": 1}, "two": [{"x": 1}, {"x": 1}]}


@pytest.mark.parametrize(("width", "levels"), [(10, 9), (9, 7), (2, 40), (400, 3)])
def test_an_alias_bomb_is_refused_before_it_expands(width: int, levels: int) -> None:
    assert "expands to more than 100,000 values by its aliases" in fault(bomb(width, levels))


def test_a_large_file_without_aliases_is_no_bomb() -> None:
    assert len(parse("[" + "1," * 150_000 + "]").value) == 150_000


def test_more_values_than_allowed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_source, "MAX_NODES", 10)
    assert fault("[" + "1," * 10 + "]") == "f.yaml:1:20: holds more than 10 values"


def test_a_node_that_holds_itself_is_refused() -> None:
    assert fault("a: &a [*a]") == "f.yaml:1:8: alias *a has no anchor before it"
    assert "no anchor" in fault("&a {x: {y: *a}}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "a list"),
        ("{}", "a mapping"),
        ("null", "nothing"),
        ("12", "12"),
        ("'12'", "'12'"),
        ("true", "true"),
        ("x" * 50, repr("x" * 37 + "...")),
    ],
)
def test_a_node_describes_itself_in_few_words(text: str, said: str) -> None:
    assert parse(text).describe() == said


def read(path: Path) -> str:
    return read_text(path, GoldenError, "golden set")


def test_a_byte_order_mark_is_taken_off(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa: \xed\x95\x9c")
    assert read(tmp_path / "f") == "a: 한"


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"caf\xe9", ":1:4"),
        (b"a\nb\xff\n", ":2:2"),
        ("한글".encode() + b"\xff", ":1:3"),  # characters, not bytes
        (b"\xef\xbb\xbfab\xff", ":1:3"),  # not counting the mark
        (b"a\n\xed\xa0\x80", ":2:1"),  # a surrogate in UTF-8
    ],
)
def test_bytes_that_are_not_utf8_are_told_where_they_stand(
    tmp_path: Path, data: bytes, place: str
) -> None:
    path = tmp_path / "f"
    path.write_bytes(data)
    with pytest.raises(GoldenError) as told:
        read(path)
    assert told.value.faults[0].place == f"{path}{place}"
    assert "golden set is not UTF-8 (byte 0x" in told.value.faults[0].message


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.write_bytes(b"a\0b"), "is a binary file"),
        (lambda path: path.write_bytes("a".encode("utf-16")), "is a binary file"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_by_name(tmp_path: Path, make: Any, said: str) -> None:
    path = tmp_path / "f"
    make(path)
    with pytest.raises(GoldenError, match=said) as told:
        read(path)
    assert told.value.faults[0].place == str(path)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_an_impossible_name_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(GoldenError, match="cannot be read"):
        read(tmp_path / name)


def test_a_file_without_permission_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")  # root would be let in

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(GoldenError, match="cannot be read: Permission denied"):
        read(tmp_path / "f")


def test_a_file_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_source, "MAX_BYTES", 2**20)
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read(Path("/dev/zero"))
