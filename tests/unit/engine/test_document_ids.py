"""A file that gives the notes other ids, and every fault of one."""

from __future__ import annotations

import unicodedata

import pytest

from kebab_eval.engine.document_ids import read_document_ids
from kebab_eval.errors import CorpusError

PATHS = ["a.md", "b.md", "rag/정책.md"]


@pytest.fixture
def ids_file(tmp_path):
    def write(text: str):
        path = tmp_path / "ids.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_ids_are_texts_as_written_and_others_keep_their_path(ids_file):
    path = ids_file("a.md: 101\nrag/정책.md: 007\n")
    assert read_document_ids(path, PATHS) == {"a.md": "101", "b.md": "b.md", "rag/정책.md": "007"}


def test_a_decomposed_path_names_the_same_note(ids_file):
    path = ids_file(unicodedata.normalize("NFD", "rag/정책.md") + ": 5\n")
    assert read_document_ids(path, PATHS)["rag/정책.md"] == "5"


def test_every_fault_is_told_at_once(ids_file):
    path = ids_file("a.md: 1\nc.md: 2\nb.md: 1\nrag/정책.md: [3]\n")
    with pytest.raises(CorpusError) as error:
        read_document_ids(path, PATHS)
    told = [(f.place.removeprefix(f"{path}:"), f.message) for f in error.value.faults]
    assert [place for place, _ in told] == ["2:1", "3:7", "4:12"]
    assert "'c.md' is not in the corpus" in told[0][1]
    assert "id '1' is that of 'a.md' already" in told[1][1]
    assert "found a list" in told[2][1]


def test_an_id_that_is_the_path_of_an_unnamed_note_is_told(ids_file):
    with pytest.raises(CorpusError, match=r"id 'b\.md' is the path of a document"):
        read_document_ids(ids_file("a.md: b.md\n"), PATHS)
    assert read_document_ids(ids_file("a.md: b.md\nb.md: a.md\n"), PATHS)["a.md"] == "b.md"


@pytest.mark.parametrize("text", ["", "- a.md\n", "a.md\n"])
def test_a_file_that_is_no_mapping_is_told(ids_file, text):
    with pytest.raises(CorpusError, match="mapping of path: id"):
        read_document_ids(ids_file(text), PATHS)
