from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kebab_eval.errors import FormatError
from kebab_eval.formats import read_trec_qrels, read_trec_run
from kebab_eval.formats import trec_plain as plain
from kebab_eval.formats.files import rank_run
from kebab_eval.formats.trec_plain import NotPlain, plain_slices
from kebab_eval.formats.trec_strict import read_strictly


@pytest.fixture
def write(tmp_path: Path):
    def write_file(text, name="file"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def faults(read, path):
    with pytest.raises(FormatError) as caught:
        read(path)
    return [(fault.place.rpartition(":")[2], fault.message) for fault in caught.value.faults]


def test_qrels(write):
    path = write("q1 0 a 2\nq1 0 b -1\nq2 0 a 0\n")
    assert read_trec_qrels(path) == {"q1": {"a": 2, "b": -1}, "q2": {"a": 0}}


def test_a_run_whatever_its_rank_column_says(write):
    path = write("q1 Q0 a 9 1.5 tag\nq1 Q0 b x -2e-3 tag\n")
    assert read_trec_run(path) == {"q1": {"a": 1.5, "b": -0.002}}


@pytest.mark.parametrize(
    "text",
    [
        "q 0 a 1\r\nq 0 b 2\r\n",
        "q 0 a 1\rq 0 b 2\r",
        "\ufeffq 0 a 1\nq 0 b 2",
        "\n\nq 0 a 1\n   \n\t\nq 0 b 2\n\n",
        "q\t0\ta\t1\nq\t0\tb\t2\n",
        "q\t0\ta\t 1\n q\t0\tb\t  2 \n",
        "q   0 a\t1\n  q 0\t\tb  2  \n",
        "q 0 a 1\nq\t0\tb\t2\n",
        "q\t0\ta\t1\nq 0 b 2\n",
        "q\x0b0\x0ca 1\nq 0 b 2\n",
        "q 0 a +1\nq 0 b 02\n",
    ],
)
def test_line_ends_white_space_and_bom(write, text):
    assert read_trec_qrels(write(text)) == {"q": {"a": 1, "b": 2}}


def test_gzip_is_known_by_its_content(write):
    path = write(gzip.compress(b"q 0 a 1\n"), "qrels.txt")
    assert read_trec_qrels(path) == {"q": {"a": 1}}


@pytest.mark.parametrize(
    "item",
    ["02142", "3856", "1e5", "null", "NaN", "NA", '"quoted"', "'", "a,b", "a#b", "#a", "\\", "a:b",
     "https://x/y?z=1", "문서/가이드.md", "Ω", "\u00a0", "a\u3000b", "😀", "-", "=1+1"],
)  # fmt: skip
def test_ids_are_the_text_that_stands_in_the_file(write, item):
    from unicodedata import normalize

    expected = normalize("NFC", item)
    assert read_trec_qrels(write(f"{item} 0 {item} 1\n")) == {expected: {expected: 1}}
    assert read_trec_run(write(f"{item} Q0 {item} 1 0.5 t\n")) == {expected: {expected: 0.5}}


def test_ids_with_spaces_survive_in_a_file_with_tabs(write):
    assert read_trec_qrels(write("my query\t0\tmy doc.md\t1\n")) == {"my query": {"my doc.md": 1}}


def test_both_sides_are_compared_in_nfc(write):
    qrels = write("q 0 \u1100\u1161 1\n", "qrels")
    assert rank_run(qrels, write("q Q0 \uac00 1 1 t\n", "run")).table.rank.tolist() == [1]


def test_words_after_the_tag_are_passed_over_as_trec_eval_does(write):
    assert read_trec_run(write("q Q0 a 1 0.5 tag more words\n")) == {"q": {"a": 0.5}}


QRELS_FAULTS = {
    "q 0 a": "3 fields where a line has 4: query iteration item grade",
    "q 0 a 1 x": "5 fields where a line has 4",
    "q 0 a 1.0": "the grade is '1.0'; a grade is a whole number",
    "q 0 a 0x1F": "the grade is '0x1F'",
    "q 0 a 1_0": "the grade is '1_0'",
    "q 0 a ١": "the grade is '١'",
    "q 0 a x": "the grade is 'x'",
    "q 0 a 99999999999999999999": "the grade is '99999999999999999999'",
    "q\t0\t\t1": "an id is empty",
}
RUN_FAULTS = {
    "q Q0 a 1 0.5": "5 fields where a line has 6: query Q0 item rank score tag",
    "q Q0 a  0.5 t": "5 fields",
    "q Q0 a 1 nan t": "the score is 'nan'; a score is a finite decimal number",
    "q Q0 a 1 NaN t": "the score is 'NaN'",
    "q Q0 a 1 inf t": "the score is 'inf'",
    "q Q0 a 1 -Infinity t": "the score is '-Infinity'",
    "q Q0 a 1 1e999 t": "the score '1e999' is beyond double precision",
    "q Q0 a 1 0,5 t": "the score is '0,5'; a score is a finite decimal number; write the decimal "
    "point as '.'",
    "q Q0 a 1 1_0 t": "the score is '1_0'",
    "q Q0 a 1 0x1p3 t": "the score is '0x1p3'",
    "q Q0 a 1 ٣ t": "the score is '٣'",
    "q Q0 a 1 t 0.5": "the score is 't'",
    "q\tQ0\ta\t1\t\tt": "the score is ''",
}


@pytest.mark.parametrize(("line", "message"), QRELS_FAULTS.items())
def test_a_malformed_judgment_is_named(write, line, message):
    good = "q\t0\tx\t1" if "\t" in line else "q 0 x 1"
    (found,) = faults(read_trec_qrels, write(f"{good}\n\n{line}\n"))
    assert found[0] == "3"
    assert found[1].startswith(message)


@pytest.mark.parametrize(("line", "message"), RUN_FAULTS.items())
def test_a_malformed_hit_is_named(write, line, message):
    good = "q\tQ0\tx\t1\t0.5\tt" if "\t" in line else "q Q0 x 1 0.5 t"
    path = write(f"{good}\r\n\r\n{line}\r\n")
    (found,) = faults(read_trec_run, path)
    assert found[0] == "3"
    assert found[1].startswith(message)
    qrels = write("q 0 x 1\n", "qrels")
    assert faults(lambda p: rank_run(qrels, p), path) == [found]


def test_every_malformed_line_is_named(write):
    text = "q 0 a 1\nq 0 b\nq 0 c x\nq 0 d 1\n\nq 0 a 2\n"
    found = faults(read_trec_qrels, write(text))
    assert [line for line, _ in found] == ["2", "3", "6"]
    assert found[2][1] == "query 'q' holds item 'a' already, on line 1; keep one of them"


def test_a_repeated_hit_is_named_with_both_lines(write):
    path = write("q Q0 a 1 3 t\nr Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 a 3 1 t\n")
    expected = [("4", "query 'q' holds item 'a' already, on line 1; keep one of them")]
    assert faults(read_trec_run, path) == expected
    qrels = write("z 0 x 1\n", "qrels")
    assert faults(lambda p: rank_run(qrels, p), path) == expected


def test_ids_that_are_the_same_in_nfc_are_repeated(write):
    (found,) = faults(read_trec_qrels, write("q 0 \uac00 1\nq 0 \u1100\u1161 1\n"))
    assert found[0] == "2"


def test_what_is_not_utf_8_is_named(write):
    found = faults(read_trec_qrels, write(b"q 0 a 1\nq 0 \xff 1\n"))
    assert found == [("2", "not UTF-8 (invalid start byte); convert the file")]


def test_a_flood_of_faults_is_cut_and_counted(write):
    found = faults(read_trec_qrels, write("q 0 a\n" * 1500))
    assert len(found) == 1001
    assert found[-1][1] == "500 more lines are wrong"


def test_files_that_cannot_be_read(tmp_path: Path, write):
    with pytest.raises(FormatError, match="no such file"):
        read_trec_qrels(tmp_path / "none")
    damaged = write(gzip.compress(b"q 0 a 1\n" * 1000)[:-10], "damaged.gz")
    with pytest.raises(FormatError, match="cannot be read to its end"):
        read_trec_run(damaged)


def test_an_empty_file_has_no_rows(write):
    assert read_trec_run(write("")) == {}
    assert read_trec_run(write("\n\n")) == {}


def test_pieces_of_any_size_read_the_same(write, monkeypatch):
    text = "".join(f"q{i // 7} Q0 d{i} {i % 7} {100 - i}.5 t\n" for i in range(60))
    path = write(text)
    whole = read_trec_run(path)
    for size in (1, 10, 17, 100, 1000):
        monkeypatch.setattr(plain, "SLICE_BYTES", size)
        assert read_trec_run(path) == whole
        assert len(list(plain_slices(path, "run"))) >= min(60, len(text) // (size + 25))


def test_a_plain_file_is_not_read_line_by_line(write, monkeypatch):
    def strict(path, what):
        raise AssertionError("read line by line")

    monkeypatch.setattr("kebab_eval.formats.trec.read_strictly", strict)
    read_trec_run(write("q Q0 문서 1 0.5 t\r\n\r\nq Q0  b 2 0.4 t\r\n"))
    read_trec_run(write("q\tQ0\ta\t1\t 0.5\tt\n"))


@pytest.mark.parametrize("line", [*QRELS_FAULTS, "q 0 a +1"])
def test_what_is_not_plain_is_left_to_the_strict_reader(write, line):
    good = "q\t0\tx\t1" if "\t" in line else "q 0 x 1"
    path = write(f"{good}\n{line}\n")
    try:
        rows = [row for part in plain_slices(path, "judgments") for row in part.value.tolist()]
    except NotPlain:
        return
    assert rows == read_strictly(path, "judgments").value.tolist()
