"""What becomes a document, under which id, and every way in which a folder can be wrong."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from pathlib import Path

import pytest

from kebab_eval.engine.corpus import read_corpus
from kebab_eval.errors import CorpusError


def faults_of(root: Path) -> list[tuple[str, str]]:
    with pytest.raises(CorpusError) as caught:
        read_corpus(root)
    return [(fault.place, fault.message) for fault in caught.value.faults]


def test_ids_are_paths_within_the_corpus_in_sorted_order(write_corpus):
    root = write_corpus({"b.md": "b", "sub/deep/a.md": "a", "A.MD": "x", "notes.txt": "no"})
    assert [doc.doc_id for doc in read_corpus(root).documents] == ["A.MD", "b.md", "sub/deep/a.md"]


def test_hidden_files_and_folders_are_left_out(write_corpus):
    root = write_corpus({"a.md": "a", ".draft.md": "x", ".git/b.md": "x"})
    assert [doc.doc_id for doc in read_corpus(root).documents] == ["a.md"]


def test_a_decomposed_file_name_gives_a_composed_id(write_corpus):
    name = unicodedata.normalize("NFD", "청킹-정책.md")
    assert name != "청킹-정책.md"
    corpus = read_corpus(write_corpus({name: "본문"}))
    assert corpus.documents[0].doc_id == "청킹-정책.md"
    assert corpus.documents[0].path.name == name


def test_line_ends_become_lf_and_a_byte_order_mark_goes(write_corpus):
    root = write_corpus({"a.md": b"\xef\xbb\xbf# A\r\n\r\none\rtwo\n"})
    assert read_corpus(root).documents[0].text == "# A\n\none\ntwo\n"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: From front matter\n---\n# Heading\n", "From front matter"),
        ("intro\n\n## `code` and *marks*\n", "code and marks"),
        ("Setext\n===\n", "Setext"),
        ("---\ntitle: 2024\n---\n", "2024"),
        ("---\ntitle:\n---\ntext", "note"),
        ("#\n\ntext", "note"),
        ("", "note"),
    ],
)
def test_title_is_front_matter_then_heading_then_file_name(write_corpus, text, title):
    assert read_corpus(write_corpus({"sub/note.md": text})).documents[0].title == title


def test_front_matter_is_kept_as_meta(write_corpus):
    root = write_corpus({"a.md": "---\nlang: ko\nocr_derived: true\ntags: [a, b]\n---\ntext"})
    assert read_corpus(root).documents[0].meta == {
        "lang": "ko",
        "ocr_derived": True,
        "tags": ["a", "b"],
    }


@pytest.mark.parametrize(
    "text", ["---\nno end\n", "--- x\na: 1\n---\n", "text\n\n---\na: [\n---\n"]
)
def test_a_thematic_break_is_no_front_matter(write_corpus, text):
    assert read_corpus(write_corpus({"a.md": text})).documents[0].meta == {}


def test_all_faults_come_at_once_each_with_its_place(write_corpus):
    root = write_corpus(
        {
            "a.md": "fine",
            "b.md": b"one\ntw\xffo",
            "c.md": b"PK\x00\x01",
            "d.md": "---\ntitle: [open\n---\ntext",
            "e.md": "---\n- a list\n---\ntext",
        }
    )
    (root / "f.md").symlink_to(root / "missing.md")
    places = dict(faults_of(root))
    assert list(places) == [
        f"{root}/b.md:2:3",
        f"{root}/c.md",
        f"{root}/d.md:3:1",
        f"{root}/e.md:2:1",
        f"{root}/f.md",
    ]
    assert "not UTF-8 (byte 0xff)" in places[f"{root}/b.md:2:3"]
    assert "binary" in places[f"{root}/c.md"]
    assert "not valid YAML" in places[f"{root}/d.md:3:1"]
    assert "'key: value'" in places[f"{root}/e.md:2:1"]
    assert "cannot be read" in places[f"{root}/f.md"]


def test_places_name_the_folder_as_configured(write_corpus, monkeypatch):
    root = write_corpus({"a.md": b"\xff"})
    monkeypatch.chdir(root.parent)
    assert faults_of(Path("corpus"))[0][0] == "corpus/a.md:1:1"


def test_names_that_are_one_id_after_normalisation_are_a_fault(write_corpus):
    composed = "노트.md"
    root = write_corpus({composed: "1", unicodedata.normalize("NFD", composed): "2"})
    if len(list(root.iterdir())) == 1:
        pytest.skip("this file system normalises names itself")
    (_, message), *more = faults_of(root)
    assert "same document id" in message
    assert not more


def test_a_name_that_is_not_text_is_a_fault(write_corpus):
    root = write_corpus({"a.md": "a"})
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/\xff.md")).write_text("x")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    (root / "b\nc.md").write_text("x")
    found = faults_of(root)
    assert [message for _, message in found] == [
        "file name is not UTF-8; rename it",
        "file name holds a control character; rename it",
    ]
    for place, _ in found:
        place.encode()
        assert "\n" not in place


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing", "does not exist"), ("file.md", "is a file"), ("empty", "holds no .md file")],
)
def test_a_folder_that_is_none_or_empty(tmp_path, name, message):
    (tmp_path / "file.md").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.txt").write_text("x")
    ((place, said),) = faults_of(tmp_path / name)
    assert place == str(tmp_path / name)
    assert message in said


def test_an_unreadable_file_is_named(write_corpus, monkeypatch):
    root = write_corpus({"a.md": "a", "b.md": "b"})
    opened = Path.open

    def refuse(path: Path, *args: object, **kwargs: object) -> object:
        if path.name == "a.md":  # a mode of 0 would not stop root
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    assert faults_of(root) == [(f"{root}/a.md", "corpus file cannot be read: Permission denied")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_does_not_block(write_corpus):
    root = write_corpus({"a.md": "a"})
    os.mkfifo(root / "b.md")
    assert faults_of(root) == [(f"{root}/b.md", "corpus file is not a regular file")]


def test_links_are_followed_only_within_the_corpus(write_corpus, tmp_path, caplog):
    root = write_corpus({"a.md": "a", "sub/b.md": "b"})
    (tmp_path / "secret.md").write_text("secret")
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "in.md").symlink_to(root / "a.md")
    (root / "loop").symlink_to(root)
    assert [doc.doc_id for doc in read_corpus(root).documents] == ["a.md", "in.md", "sub/b.md"]
    assert "out.md" in caplog.text
    assert "loop" in caplog.text


def test_fingerprint_is_the_digest_of_ids_and_texts_with_their_lengths(write_corpus):
    root = write_corpus({"b.md": "한", "a.md": "x\r\ny"})
    expected = hashlib.sha256(b"4:a.md" + b"3:x\ny" + b"4:b.md" + b"3:" + "한".encode())
    assert read_corpus(root).fingerprint == expected.hexdigest()
