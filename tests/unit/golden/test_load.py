"""From a golden file to a checked set: duplicates, groups, ids of the corpus, parts, digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab_eval.errors import GoldenError, UsageError
from kebab_eval.golden import check_ids, load_golden, select
from kebab_eval.golden import load as load_module
from kebab_eval.golden.load import LoadedGolden, digest
from kebab_eval.records import GoldenQuery, Judgments


def load(folder: Path, text: str) -> LoadedGolden:
    (folder / "g.yaml").write_text(text, encoding="utf-8")
    return load_golden(folder / "g.yaml")


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(GoldenError) as told:
        load(folder, text)
    return [str(fault).replace(f"{folder}/", "") for fault in told.value.faults]


def test_a_set_is_named_after_its_file(tmp_path: Path) -> None:
    golden = load(tmp_path, "- {id: a, query: t}\n").golden
    assert (golden.name, golden.version, golden.min_relevance) == ("g", "1", 1)
    assert golden.path == str(tmp_path / "g.yaml")


def test_min_relevance_is_taken_from_the_config(tmp_path: Path) -> None:
    load(tmp_path, "- {id: a, query: t}\n")
    assert load_golden(tmp_path / "g.yaml", 2).golden.min_relevance == 2


@pytest.mark.parametrize("text", ["", "# words", "[]", "null", "---\n"])
def test_an_empty_set_is_refused(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, text) == ["g.yaml: golden set is empty; it needs at least one query"]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="golden set does not exist"):
        load_golden(tmp_path / "nope.yaml")


def test_ids_are_unique_and_every_further_one_is_told(tmp_path: Path) -> None:
    told = faults(
        tmp_path, "- {id: a, query: t}\n- {id: b, query: t}\n" + "- {id: a, query: u}\n" * 2
    )
    assert [fault.replace(f"{tmp_path}/", "") for fault in told] == [
        "g.yaml:3:3: id 'a' stands twice (first at g.yaml:1:3); ids are unique",
        "g.yaml:4:3: id 'a' stands twice (first at g.yaml:1:3); ids are unique",
    ]


def test_an_id_in_nfd_is_the_same_id(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, "- {id: é, query: t}\n- {id: e\u0301, query: t}\n")
    assert "id 'é' stands twice" in fault


def test_the_members_of_a_group_expect_the_same_set_of_documents(tmp_path: Path) -> None:
    agree = (
        "- {id: a, query: t, group: g, expected_doc_ids: [x, y]}\n"
        "- {id: b, query: u, group: g, expected_doc_ids: [y, x]}\n"
    )
    assert len(load(tmp_path, agree).golden.queries) == 2
    (fault,) = faults(tmp_path, agree + "- {id: c, query: v, group: g, expected_doc_ids: [x]}\n")
    assert fault.replace(f"{tmp_path}/", "") == (
        "g.yaml:3:3: group 'g': 'c' expects x, but 'a' (g.yaml:1:3) expects x, y; "
        "the members of a group expect the same documents"
    )
    (fault,) = faults(tmp_path, agree + "- {id: c, query: v, group: g}\n")
    assert "'c' expects no document, but" in fault


def test_a_member_whose_documents_could_not_be_read_is_not_said_to_disagree(tmp_path: Path) -> None:
    text = (
        "- {id: a, query: t, group: g, expected_doc_ids: x}\n"
        "- {id: b, query: u, group: g, expected_doc_ids: [x]}\n"
    )
    assert len(faults(tmp_path, text)) == 1


DOCS = {"a.md", "b.md"}
CHUNKS = {"a.md#intro:11111111", "a.md#usage:22222222", "b.md#intro:33333333"}


def missing(folder: Path, doc: str, chunk: str, chunks: set[str] | None = CHUNKS) -> list[str]:
    text = f"- {{id: q, query: t, expected_doc_ids: ['{doc}'], expected_chunk_ids: ['{chunk}']}}\n"
    loaded = load(folder, text)
    with pytest.raises(GoldenError) as told:
        check_ids(loaded, chunks, DOCS)
    return [str(fault).replace(f"{folder}/", "") for fault in told.value.faults]


def test_known_ids_pass(tmp_path: Path) -> None:
    text = (
        "- {id: q, query: t, expected_doc_ids: [a.md], expected_chunk_ids: ['a.md#intro:11111111']}"
    )
    check_ids(load(tmp_path, text), CHUNKS, DOCS)


def test_every_unknown_id_is_told_with_the_nearest_one(tmp_path: Path) -> None:
    assert missing(tmp_path, "aa.md", "a.md#intor:11111111") == [
        "g.yaml:1:40: document 'aa.md' is not in the corpus (did you mean 'a.md'?)",
        "g.yaml:1:71: chunk 'a.md#intor:11111111' is not in the corpus"
        " (did you mean 'a.md#intro:11111111'?)",
    ]


def test_a_chunk_whose_text_has_changed_is_told_its_new_id(tmp_path: Path) -> None:
    (fault,) = missing(tmp_path, "a.md", "a.md#intro:99999999")
    assert fault.endswith("its text or the chunker has changed: now 'a.md#intro:11111111'")


def test_chunks_are_not_checked_where_the_system_cannot_list_them(tmp_path: Path) -> None:
    told = missing(tmp_path, "zzzzzz", "nothing like it", chunks=None)
    assert told == ["g.yaml:1:40: document 'zzzzzz' is not in the corpus"]


def test_a_large_corpus_is_searched_for_a_few_hints_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ", ".join(f"nope-{number}.md" for number in range(300))
    loaded = load(tmp_path, f"- {{id: q, query: t, expected_doc_ids: [{ids}]}}\n")
    docs = {f"folder{number % 7}/some-note-{number}.md" for number in range(120_000)}
    asked: list[str] = []
    monkeypatch.setattr(load_module, "nearest", lambda word, _: asked.append(word) or "")
    with pytest.raises(GoldenError) as told:
        check_ids(loaded, None, docs)
    assert len(told.value.faults) == 300
    assert len(asked) == 3  # each is 0.3 s or more
    asked.clear()
    with pytest.raises(GoldenError):
        check_ids(loaded, None, DOCS)
    assert len(asked) == 30


def test_a_part_has_a_digest_of_its_own_and_the_whole_keeps_its(tmp_path: Path) -> None:
    golden = load(tmp_path, "".join(f"- {{id: q{n}, query: t}}\n" for n in range(3))).golden
    part = select(golden, limit=2)
    assert [query.query_id for query in part.queries] == ["q0", "q1"]
    assert part.digest == digest(part.queries) != golden.digest
    assert select(golden, limit=3) is golden
    assert select(golden) is golden


def test_queries_are_chosen_by_id_in_the_order_of_the_file(tmp_path: Path) -> None:
    golden = load(tmp_path, "".join(f"- {{id: q{n}, query: t}}\n" for n in range(3))).golden
    chosen = select(golden, query_ids=["q2", "q0", "q2"])
    assert [query.query_id for query in chosen.queries] == ["q0", "q2"]
    assert [q.query_id for q in select(golden, limit=1, query_ids=["q2", "q1"]).queries] == ["q1"]


def test_unknown_query_ids_are_told_together(tmp_path: Path) -> None:
    golden = load(tmp_path, "- {id: alpha, query: t}\n").golden
    with pytest.raises(UsageError) as told:
        select(golden, query_ids=["alpah", "alpha", "zzz"])
    assert [str(fault).replace(f"{tmp_path}/", "") for fault in told.value.faults] == [
        "--query-id: 'alpah' is not in g.yaml (did you mean 'alpha'?)",
        "--query-id: 'zzz' is not in g.yaml",
    ]


def test_the_digest_says_what_is_meant_and_not_how_it_is_written(tmp_path: Path) -> None:
    one = load(tmp_path, "- {id: a, query: t, expected_doc_ids: [x, y]}\n- {id: b, query: u}\n")
    two = load(
        tmp_path, "# words\n- id: b\n  query: 'u'\n- {id: a, expected_doc_ids: [y, x], query: t}\n"
    )
    assert one.golden.digest == two.golden.digest
    assert len(one.golden.digest) == 32


@pytest.mark.parametrize(
    "changed",
    [
        GoldenQuery("b", "t", Judgments(doc={"x": 1.0})),
        GoldenQuery("a", "T", Judgments(doc={"x": 1.0})),
        GoldenQuery("a", "t", Judgments(doc={"y": 1.0})),
        GoldenQuery("a", "t", Judgments(doc={"x": 2.0})),
        GoldenQuery("a", "t", Judgments(chunk={"x": 1.0})),
        GoldenQuery("a", "t", Judgments(doc={"x": 1.0}), must_contain=("x",)),
        GoldenQuery("a", "t", Judgments(doc={"x": 1.0}), group="g"),
    ],
)
def test_any_change_of_meaning_changes_the_digest(changed: GoldenQuery) -> None:
    assert digest([changed]) != digest([GoldenQuery("a", "t", Judgments(doc={"x": 1.0}))])


def test_the_digest_takes_any_text() -> None:
    assert len(digest([GoldenQuery("\ud800", "\0\u2028")])) == 32


def test_only_the_wanted_levels_are_judged(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text("- {id: a, query: x, expected_doc_ids: [d], expected_chunk_ids: ['d#h:1']}\n")
    loaded = load_golden(path, levels=["doc"])
    assert not loaded.golden.queries[0].judgments.chunk
    check_ids(loaded, chunks=set(), docs={"d"})
    path.write_text("- {id: a, query: x, expected_chunk_ids: ['d#h:1']}\n")
    with pytest.raises(GoldenError, match=r"'a' is judged at no level of golden\.levels"):
        load_golden(path, levels=["doc"])


def test_chunk_ids_of_another_chunker_are_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(
        "".join(f"- {{id: q{i}, query: x, expected_chunk_ids: ['d#h:{i}']}}\n" for i in range(6))
    )
    with pytest.raises(GoldenError) as wrong:
        check_ids(load_golden(path), chunks={"d#h:9"}, docs={"d"})
    assert len(wrong.value.faults) == 7
    assert "6 of 6 chunk ids belong to other chunk settings" in wrong.value.faults[-1].message
    assert "-S golden.levels=[doc]" in wrong.value.faults[-1].message
