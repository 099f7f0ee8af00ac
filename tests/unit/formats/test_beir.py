from __future__ import annotations

import gzip

import pytest

from kebab_eval.errors import FormatError
from kebab_eval.formats import BeirDocument, beir_corpus, read_beir, read_judgments

HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "1", "text": "질문"}\n{"_id": "2", "text": "x"}'
    )
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "02142", "title": "T", "text": "t"}\n{"_id": "b", "text": "u", "metadata": {}}\n'
    )
    (tmp_path / "qrels" / "test.tsv").write_text(f"{HEADER}1\t02142\t2\n1\ta doc\t0\n")
    return tmp_path


def test_a_folder(folder):
    found = read_beir(folder)
    assert found.queries == {"1": "질문", "2": "x"}
    assert found.qrels == {"1": {"02142": 2, "a doc": 0}}
    assert found.split == "test"
    assert list(beir_corpus(folder)) == [
        BeirDocument("02142", "T", "t"),
        BeirDocument("b", "", "u"),
    ]
    assert read_judgments(folder) == found.qrels
    assert read_judgments(folder / "qrels" / "test.tsv") == found.qrels


def test_gzip(folder):
    for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv"):
        path = folder / name
        (folder / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert read_beir(folder).qrels == {"1": {"02142": 2, "a doc": 0}}
    assert len(list(beir_corpus(folder))) == 2


def test_splits(folder):
    (folder / "qrels" / "dev.tsv").write_text(f"{HEADER}2\tb\t1\n")
    assert read_beir(folder).split == "test"
    assert read_beir(folder, "dev").qrels == {"2": {"b": 1}}
    with pytest.raises(FormatError, match="has no split 'train'; there are: dev, test"):
        read_beir(folder, "train")
    (folder / "qrels" / "test.tsv").unlink()
    assert read_beir(folder).split == "dev"


@pytest.mark.parametrize(
    ("text", "places", "message"),
    [
        ("1\ta\t1\n", [":1"], "the header must be query-id, corpus-id and score"),
        (f"{HEADER}1\ta\n1\tb\t1.5\n", [":2", ":3"], "2 fields by tabs where qrels have 3"),
        (f"{HEADER}1\ta\t1\n1\ta\t1\n", [":3"], "holds item 'a' already, on line 2"),
        (f"{HEADER}1\t\t1\n", [":2"], "an id is empty"),
        (f"{HEADER}9\ta\t1\n", ["test.tsv"], "query '9' is judged but not in queries.jsonl"),
    ],
)
def test_malformed_qrels_are_named(folder, text, places, message):
    (folder / "qrels" / "test.tsv").write_text(text)
    with pytest.raises(FormatError) as caught:
        read_beir(folder)
    faults = caught.value.faults
    assert [f.place.endswith(p) for f, p in zip(faults, places, strict=True)] == [True] * len(
        places
    )
    assert message in faults[0].message


def test_malformed_queries_are_named(folder):
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": 7}\n{"_id": "2", "text": "a"}\n{\n')
    with pytest.raises(FormatError) as caught:
        read_beir(folder)
    assert [fault.place[-2:] for fault in caught.value.faults] == [":1", ":3"]


def test_a_malformed_corpus_is_named_at_its_end(folder):
    (folder / "corpus.jsonl").write_text('{"_id": "a", "text": "t"}\n' * 2 + '{"text": "t"}\n')
    documents = beir_corpus(folder)
    assert next(documents).doc_id == "a"
    with pytest.raises(FormatError) as caught:
        list(documents)
    assert [fault.place[-2:] for fault in caught.value.faults] == [":2", ":3"]


def test_missing_files_are_named(folder):
    (folder / "queries.jsonl").unlink()
    with pytest.raises(FormatError, match=r"holds no queries\.jsonl"):
        read_beir(folder)
    (folder / "qrels" / "test.tsv").unlink()
    with pytest.raises(FormatError, match=r"holds no qrels/\*\.tsv"):
        read_beir(folder)
