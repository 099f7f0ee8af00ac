"""Any text survives a TREC file, and the fast reader never says what the strict one does not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unicodedata import normalize

from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval.errors import FormatError
from kebab_eval.formats import read_trec_qrels, read_trec_run
from kebab_eval.formats.trec import trec_columns
from kebab_eval.formats.trec_strict import read_strictly

#: Any id that a line can hold: no ASCII white space, which separates its fields.
IDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\x0b\x0c"),
    min_size=1,
    max_size=6,
).filter(lambda text: not text.startswith("\ufeff"))
SCORES = st.floats(allow_nan=False, allow_infinity=False)


def with_file(content, read):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(content)
        return read(path)


def nfc(groups):
    return {
        normalize("NFC", q): {normalize("NFC", i): v for i, v in group.items()}
        for q, group in groups.items()
    }


def survives(groups):
    return len(nfc(groups)) == len(groups) and all(
        len({normalize("NFC", item) for item in group}) == len(group) for group in groups.values()
    )


def groups_of(values):
    return st.dictionaries(
        IDS, st.dictionaries(IDS, values, min_size=1, max_size=4), min_size=1, max_size=4
    ).filter(survives)


@settings(max_examples=200, deadline=None)
@given(groups_of(st.integers(-5, 10)))
def test_any_id_survives_in_qrels(groups):
    lines = [f"{q} 0 {i} {g}\n" for q, group in groups.items() for i, g in group.items()]
    assert with_file("".join(lines).encode(), read_trec_qrels) == nfc(groups)


@settings(max_examples=200, deadline=None)
@given(groups_of(SCORES))
def test_any_id_and_any_score_survive_in_a_run(groups):
    lines = [f"{q} Q0 {i} 1 {s!r} t\n" for q, group in groups.items() for i, s in group.items()]
    assert with_file("".join(lines).encode(), read_trec_run) == nfc(groups)


PIECES = st.sampled_from(
    ["q", "r", "a", "b", "0", "1", "-1", "2.5", "1e5", "nan", "inf", "0x1", "1_0", "+1", "1,5",
     ".5", "5.", " ", " ", " ", "  ", "\t", "\t", "\n", "\n", "\r\n", "\r", "\x0b", "\u00a0", '"',
     "'", "문", "\\", "#", "\x00", "\x1c", "\x85", "\u2028"]
)  # fmt: skip
LINES = st.sampled_from(
    ["q 0 a 1\n", "q 0 b 2\n", "q\t0\tc\t1\n", "r Q0 a 1 0.5 t\n", "r\tQ0\tb\t2\t 1.5\tt\n", "\n"]
)


def outcome(read):
    def result(path):
        try:
            columns = read(path)
        except FormatError as error:
            return [(fault.place, fault.message) for fault in error.faults]
        return columns.by_query()

    return result


@settings(max_examples=1000, deadline=None)
@given(st.lists(PIECES | LINES, max_size=25), st.sampled_from(["judgments", "run"]))
def test_the_fast_reader_agrees_with_the_strict_one(parts, what):
    content = "".join(parts).encode()

    def both(path):
        fast = outcome(lambda p: trec_columns(p, what))(path)
        strict = outcome(lambda p: read_strictly(p, what))(path)
        return fast, strict

    fast, strict = with_file(content, both)
    assert fast == strict
