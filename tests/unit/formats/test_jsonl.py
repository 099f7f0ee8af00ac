from __future__ import annotations

import pytest

from kebab_eval.errors import FormatError
from kebab_eval.formats import read_judgments, read_rankings


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="file.jsonl"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_file


def test_judgments_and_runs(write):
    path = write(
        '{"query_id": "q", "doc_id": "a", "relevance": 2, "note": [1, {"x": null}]}\n\n'
        '{"query_id": "q", "chunk_id": "b", "grade": -1}\r\n'
    )
    assert read_judgments(path) == {"q": {"a": 2.0, "b": -1.0}}
    path = write('{"query_id": "q", "item_id": "a b", "score": 1.5e-3}\n', "run.ndjson")
    assert read_rankings(path) == {"q": {"a b": 0.0015}}


def test_an_id_that_is_a_number_is_the_text_in_the_file(write):
    path = write('{"query_id": 3856, "item_id": 1e5, "grade": 1}\n')
    assert read_judgments(path) == {"3856": {"1e5": 1.0}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "no JSON: Expecting property name enclosed in double quotes at column 2"),
        ("[1]", "a line holds one JSON object, not '[1]'"),
        ('{"query_id": "q"}', "a line needs one of item_id, doc_id, chunk_id; it has query_id"),
        ('{"query_id": "q", "item_id": "a", "doc_id": "a", "score": 1}', "a line needs one of"),
        ('{"query_id": "q", "item_id": "", "score": 1}', "an id is a text that is not empty"),
        ('{"query_id": null, "item_id": "a", "score": 1}', "query_id is None"),
        ('{"query_id": "q", "item_id": "a", "score": NaN}', "NaN is no JSON number"),
        ('{"query_id": "q", "item_id": "a", "score": -Infinity}', "-Infinity is no JSON number"),
        ('{"query_id": "q", "item_id": "a", "score": 1e999}', "the score '1e999' is beyond"),
        ('{"query_id": "q", "item_id": "a", "score": "1.5"}', "score is '1.5'; it must be a num"),
        ('{"query_id": "q", "item_id": "a", "score": true}', "score is True; it must be a number"),
        ('{"query_id": "q", "item_id": "a", "score": 1, "score": 2}', "a key stands twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"query_id": "q", "item_id": "x", "score": 1}', "holds item 'x' already, on line 1"),
    ],
)
def test_a_malformed_line_is_named(write, line, message):
    path = write(f'{{"query_id": "q", "item_id": "x", "score": 1}}\n{line}\n')
    with pytest.raises(FormatError) as caught:
        read_rankings(path)
    (fault,) = caught.value.faults
    assert fault.place == f"{path}:2"
    assert message in fault.message


def test_a_fractional_grade_is_refused(write):
    with pytest.raises(FormatError, match=r"the grade is '1\.5'"):
        read_judgments(write('{"query_id": "q", "item_id": "a", "grade": 1.5}\n'))
