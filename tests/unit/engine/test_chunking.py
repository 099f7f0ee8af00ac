"""Where md-heading-v1 cuts, and the ids of what it cuts."""

from __future__ import annotations

import hashlib

import pytest

from kebab_eval.config import Chunking
from kebab_eval.engine.chunking import Chunk, chunk_documents, heading_slug


def chunks_of(document, target=200, overlap=0) -> tuple[Chunk, ...]:
    return chunk_documents([document], Chunking(target_tokens=target, overlap_tokens=overlap))


def shape(chunks):
    return [(chunk.heading_path, chunk.text) for chunk in chunks]


def words(first: str, count: int) -> str:
    """A sentence of ``count`` tokens: ``count - 1`` short words and a full stop."""
    return " ".join([first, *["word"] * (count - 2)]) + "."


def test_sections_carry_their_nested_heading_path(document):
    text = "# A\n\none\n\n## B\n\ntwo\n\n### C\n\nthree\n\n## D\n\nfour\n\n# E\n\nfive\n"
    assert shape(chunks_of(document(text))) == [
        (("A",), "# A\n\none"),
        (("A", "B"), "## B\n\ntwo"),
        (("A", "B", "C"), "### C\n\nthree"),
        (("A", "D"), "## D\n\nfour"),
        (("E",), "# E\n\nfive"),
    ]


def test_setext_headings_of_one_and_two_lines(document):
    text = "Title\n=====\n\none\n\nLong\nheading\n---\n\ntwo"
    assert shape(chunks_of(document(text))) == [
        (("Title",), "Title\n=====\n\none"),
        (("Title", "Long heading"), "Long\nheading\n---\n\ntwo"),
    ]


def test_text_before_the_first_heading_is_a_chunk(document):
    first, second = chunks_of(document("intro\n\n# A\n\none"))
    assert (first.heading_path, first.text) == ((), "intro")
    assert first.chunk_id.startswith("a.md#_top:")
    assert second.text == "# A\n\none"


def test_a_document_without_headings(document):
    assert shape(chunks_of(document("one\n\ntwo\n"))) == [((), "one\n\ntwo")]


@pytest.mark.parametrize("text", ["", "\n\n  \n", "---\ntitle: x\n---\n", "---\na: 1\n---"])
def test_a_document_without_text_has_no_chunks(document, text):
    assert chunks_of(document(text)) == ()


def test_front_matter_is_in_no_chunk(document):
    (chunk,) = chunks_of(document("---\ntitle: x\n---\n\n# A\n\none"))
    assert chunk.text == "# A\n\none"
    assert chunk.start == len("---\ntitle: x\n---\n\n")


def test_a_hash_in_a_code_fence_is_no_heading(document):
    text = "# A\n\n```sh\n# comment\n## more\n```\n\n    # indented code\n\n\\# escaped"
    assert [chunk.heading_path for chunk in chunks_of(document(text))] == [("A",)]


def test_headings_in_quotes_and_lists_open_no_section(document):
    text = "# A\n\n> # quoted\n\n- # listed\n"
    assert [chunk.heading_path for chunk in chunks_of(document(text))] == [("A",)]


def test_a_heading_without_text_goes_with_what_follows(document):
    text = "# A\n\n## B\n\n## C\n\ntext"
    assert shape(chunks_of(document(text))) == [(("A", "C"), text)]


def test_trailing_headings_go_with_what_stands_before(document):
    text = "# A\n\ntext\n\n## B\n\n## C"
    assert shape(chunks_of(document(text))) == [(("A",), text)]


def test_a_document_of_headings_alone_is_one_chunk(document):
    assert shape(chunks_of(document("# A\n\n## B\n"))) == [(("A", "B"), "# A\n\n## B")]


def test_a_bare_heading_mark_is_no_part_of_the_path(document):
    (chunk,) = chunks_of(document("#\n\ntext"))
    assert chunk.heading_path == ()


def test_link_definitions_are_in_a_chunk(document):
    text = "# A\n\nsee [x]\n\n[x]: http://example.org\n\n# B\n\n[y]: http://example.org/y\n"
    assert [chunk.text for chunk in chunks_of(document(text))] == [
        "# A\n\nsee [x]\n\n[x]: http://example.org",
        "# B\n\n[y]: http://example.org/y",
    ]


def test_a_long_section_is_cut_between_blocks(document):
    one, two, three = words("one", 8), words("two", 8), words("three", 8)
    text = f"# A\n\n{one}\n\n{two}\n\n{three}"
    # Heading 2 tokens + 8 + 8 = 18 fit into 20; the third block opens a new chunk.
    assert shape(chunks_of(document(text), target=20)) == [
        (("A",), f"# A\n\n{one}\n\n{two}"),
        (("A",), three),
    ]


def test_overlap_repeats_whole_blocks(document):
    one, two, three = words("one", 8), words("two", 8), words("three", 8)
    text = f"{one}\n\n{two}\n\n{three}"
    # 8 + 8 = 16 fit; the next chunk repeats block two (8 <= 10) and holds 16.
    assert [chunk.text for chunk in chunks_of(document(text), target=20, overlap=10)] == [
        f"{one}\n\n{two}",
        f"{two}\n\n{three}",
    ]


def test_overlap_repeats_the_last_sentences_of_a_paragraph(document):
    one, two, three = words("One", 8), words("Two", 5), words("Three", 8)
    text = f"{one} {two}\n\n{three}"
    assert [chunk.text for chunk in chunks_of(document(text), target=15, overlap=6)] == [
        f"{one} {two}",
        f"{two}\n\n{three}",
    ]


def test_overlap_never_makes_a_chunk_longer_than_the_target(document):
    one, two, three = words("One", 8), words("Two", 8), words("Three", 18)
    text = f"{one}\n\n{two}\n\n{three}"
    assert [chunk.text for chunk in chunks_of(document(text), target=20, overlap=10)] == [
        f"{one}\n\n{two}",
        three,
    ]


def test_a_long_paragraph_is_cut_between_sentences(document):
    sentences = [words("One", 8), words("Two", 8), words("Three", 8)]
    chunks = chunks_of(document(" ".join(sentences)), target=17)
    assert [chunk.text for chunk in chunks] == [" ".join(sentences[:2]), sentences[2]]


def test_korean_sentences_are_cut_too(document):
    text = "색인은 매일 새벽에 다시 만든다. 실패하면 이전 것을 쓴다! 왜 그런가? 안전해서다."
    chunks = chunks_of(document(text), target=18)
    assert [chunk.text for chunk in chunks] == [
        "색인은 매일 새벽에 다시 만든다.",
        "실패하면 이전 것을 쓴다! 왜 그런가?",
        "안전해서다.",
    ]


def test_a_long_list_is_cut_between_items_and_keeps_nested_ones(document):
    items = [f"- {words(name, 9)}" for name in ("one", "two", "three")]
    items[1] += "\n  - nested"
    chunks = chunks_of(document("\n".join(items)), target=25)
    assert [chunk.text for chunk in chunks] == ["\n".join(items[:2]), items[2]]


def test_code_and_tables_stay_whole(document):
    code = "```\n" + "\n\n".join(["x = 1"] * 30) + "\n```"
    table = "| a | b |\n|---|---|\n" + "\n".join(["| 1 | 2 |"] * 30)
    chunks = chunks_of(document(f"intro\n\n{code}\n\n{table}\n\nend"), target=20)
    assert [chunk.text for chunk in chunks] == ["intro", code, table, "end"]


def test_a_heading_stays_with_a_block_that_is_too_long_for_both(document):
    text = f"# A\n\n{words('one', 20)}"
    assert shape(chunks_of(document(text), target=20)) == [(("A",), text)]


def test_the_same_text_in_lf_and_crlf_gives_the_same_chunks(write_corpus):
    from kebab_eval.engine.corpus import read_corpus

    text = "# A\n\none\n\n- x\n- y\n\nB\n---\n\ntwo\n"
    root = write_corpus({"a.md": text})
    lf = chunk_documents(read_corpus(root).documents, Chunking())
    (root / "a.md").write_bytes(text.replace("\n", "\r\n").encode())
    assert chunk_documents(read_corpus(root).documents, Chunking()) == lf


def test_an_id_is_document_heading_and_digest_of_version_and_text(document):
    (chunk,) = chunks_of(document("# 청킹 정책: v2\n\none", doc_id="rag/정책.md"))
    digest = hashlib.sha256("md-heading-v1\n# 청킹 정책: v2\n\none".encode()).hexdigest()[:8]
    assert chunk.chunk_id == f"rag/정책.md#청킹-정책-v2:{digest}"


def test_ids_do_not_depend_on_sizes_where_the_text_is_the_same(document):
    made = document("# A\n\none\n\n# B\n\ntwo")
    small = chunks_of(made, target=20, overlap=5)
    assert [c.chunk_id for c in small] == [c.chunk_id for c in chunks_of(made, target=900)]


def test_the_same_text_under_the_same_heading_gets_a_number(document):
    first, other, second, third = chunks_of(
        document("# A\n\nsame\n\n# B\n\nx\n\n# A\n\nsame\n\n# A\n\nsame")
    )
    assert second.chunk_id == f"{first.chunk_id}-2"
    assert third.chunk_id == f"{first.chunk_id}-3"
    assert other.chunk_id.startswith("a.md#b:")


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("How p99 is measured", "how-p99-is-measured"),
        ("청킹 정책 v2 (폐기)", "청킹-정책-v2-폐기"),
        ("ﬁle ① ＡＢ", "file-1-ab"),
        ("snake_case & C++", "snake-case-c"),
        ("???", "_"),
        ("a" * 50, "a" * 40),
        (
            "one two three four five six seven eight nine ten",
            "one-two-three-four-five-six-seven-eight",
        ),
    ],
)
def test_slugs_are_readable_and_short(heading, slug):
    assert heading_slug(heading) == slug


def test_indexed_text_names_title_and_headings_once(document):
    (chunk,) = chunks_of(document("# A\n\n## B\n\nbody", title="A"))
    assert chunk.indexed_text == "A\nB\n# A\n\n## B\n\nbody"
