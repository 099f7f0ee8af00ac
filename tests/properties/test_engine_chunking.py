"""Whatever the Markdown: spans are exact, nothing is lost, ids are distinct."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval.config import Chunking
from kebab_eval.engine.chunking import CHUNKERS, Chunk, chunk_documents, heading_slug
from kebab_eval.engine.corpus import Document
from kebab_eval.engine.snippets import SNIPPET_CHARS, snippet
from kebab_eval.engine.tokenizers import TOKENIZERS
from kebab_eval.engine.tokens import Ruler, count_tokens
from kebab_eval.formats.markdown import Block, parse_markdown

PIECES = [
    "# 제목", "## Heading `x`", "###### deep", "#", "Setext", "===", "---", "- item", "  - nested",
    "1. one", "> quote", "> # q", "```", "~~~sh", "    code", "| a | b |", "|---|---|", "[x]: y",
    "<div>", "</div>", "***", "One. Two! 셋이다. 넷? ", "가나다라", "text", "a: 1", "\t", "", "",
    " ", "\u00a0", "\u3000x", "\x0c", "\u2028", "\\", "<!--", "-->", "- - a", "* # h", "--- x",
    "...", "x" * 90, "word " * 30, "漢字変換" * 12, "e\u0301" * 9, "1234567" * 9, "One. " * 20,
]  # fmt: skip

lines = st.one_of(
    st.sampled_from(PIECES),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=30),
)
texts = st.lists(lines, max_size=40).map("\n".join)
sizes = st.tuples(st.integers(10, 60), st.integers(0, 9))
each_chunker = pytest.mark.parametrize("version", list(CHUNKERS))
BIGRAM = TOKENIZERS["bigram"]()


def made(text: str) -> Document:
    return Document("a.md", text, "t", {}, Path("a.md"), parse_markdown(text))


def cut(document: Document, version: str, target: int, overlap: int) -> tuple[Chunk, ...]:
    chunking = Chunking.model_validate(
        {"version": version, "target_tokens": target, "overlap_tokens": overlap}
    )
    return chunk_documents([document], chunking)


@each_chunker
@settings(max_examples=300, deadline=None)
@given(text=texts, sizes=sizes)
def test_chunks_cover_the_text_with_exact_spans(
    version: str, text: str, sizes: tuple[int, int]
) -> None:
    document = made(text)
    chunks = cut(document, version, *sizes)
    covered = bytearray(len(text))
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text.strip()
        covered[chunk.start : chunk.end] = b"\1" * (chunk.end - chunk.start)
    front = document.markdown.front_matter
    body = 0 if front is None else text.index(front, text.index("\n")) + len(front)
    missed = [index for index in range(body, len(text)) if not covered[index]]
    left_out = "".join(text[index] for index in missed)
    if front is not None:  # the closing marker
        left_out = left_out.lstrip().lstrip("-.")
    assert not left_out.strip()
    for one, two in pairwise(chunks):
        assert one.start < two.start
        assert one.end < two.end
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    assert cut(document, version, *sizes) == chunks


@pytest.mark.parametrize("version", ["md-heading-v2", "fixed-window-v1"])
@settings(max_examples=300, deadline=None)
@given(text=texts, sizes=sizes)
def test_no_chunk_is_above_the_target(version: str, text: str, sizes: tuple[int, int]) -> None:
    assert all(count_tokens(c.text) <= sizes[0] for c in cut(made(text), version, *sizes))


@settings(max_examples=300, deadline=None)
@given(texts, sizes)
def test_v2_keeps_what_v1_cuts_within_the_target(text: str, sizes: tuple[int, int]) -> None:
    document = made(text)
    kept = [
        (chunk.start, chunk.end, chunk.heading_path)
        for chunk in cut(document, "md-heading-v1", *sizes)
        if count_tokens(chunk.text) <= sizes[0]
    ]
    cuts = {(c.start, c.end, c.heading_path) for c in cut(document, "md-heading-v2", *sizes)}
    assert cuts.issuperset(kept)


@settings(max_examples=300, deadline=None)
@given(texts, sizes)
def test_windows_cut_only_words_above_the_target(text: str, sizes: tuple[int, int]) -> None:
    for chunk in cut(made(text), "fixed-window-v1", *sizes):
        for place in (chunk.start, chunk.end):
            before, behind = text[:place].split(None), text[place:].split(None)
            if text[:place][-1:].strip() and text[place:][:1].strip():
                assert count_tokens(before[-1] + behind[0]) > sizes[0]


@given(texts, st.integers(1, 30), st.data())
def test_the_ruler_reaches_as_far_as_the_count_allows(
    text: str, tokens: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    reach = Ruler(text, 0, len(text)).reach(start, tokens)
    assert count_tokens(text[start:reach]) <= tokens
    if reach < len(text):
        assert count_tokens(text[start : reach + 1]) > tokens


@each_chunker
@settings(max_examples=200, deadline=None)
@given(text=texts)
def test_overlap_zero_gives_disjoint_chunks(version: str, text: str) -> None:
    for one, two in pairwise(cut(made(text), version, 20, 0)):
        assert one.end <= two.start


@settings(max_examples=200, deadline=None)
@given(texts)
def test_children_tile_their_container(text: str) -> None:
    def check(block: Block) -> None:
        for child in block.children:
            assert block.start <= child.start < child.end <= block.end
            check(child)
        for one, two in pairwise(block.children):
            assert not text[one.end : two.start].strip()

    blocks = parse_markdown(text).blocks
    for block in blocks:
        check(block)
    for one, two in pairwise(blocks):
        assert one.end <= two.start


@given(st.text(max_size=120))
def test_any_text_survives(text: str) -> None:
    assert count_tokens(text) >= 0
    assert 1 <= len(heading_slug(text)) <= 40
    assert "\n" not in snippet(text, BIGRAM(text))
    assert len(snippet(text * 20, BIGRAM(text))) <= SNIPPET_CHARS + 2
    assert all(BIGRAM(text))
