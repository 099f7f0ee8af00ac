"""Whatever the Markdown: spans are exact, nothing is lost, ids are distinct."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kebab_eval.config import Chunking
from kebab_eval.engine.chunking import chunk_documents, heading_slug
from kebab_eval.engine.corpus import Document
from kebab_eval.engine.markdown import Block, parse_markdown
from kebab_eval.engine.snippets import SNIPPET_CHARS, snippet
from kebab_eval.engine.tokenizers import TOKENIZERS
from kebab_eval.engine.tokens import count_tokens

PIECES = [
    "# 제목", "## Heading `x`", "###### deep", "#", "Setext", "===", "---", "- item", "  - nested",
    "1. one", "> quote", "> # q", "```", "~~~sh", "    code", "| a | b |", "|---|---|", "[x]: y",
    "<div>", "</div>", "***", "One. Two! 셋이다. 넷? ", "가나다라", "text", "a: 1", "\t", "", "",
    " ", "\u00a0", "\u3000x", "\x0c", "\u2028", "\\", "<!--", "-->", "- - a", "* # h", "--- x",
    "...",
]  # fmt: skip

lines = st.one_of(
    st.sampled_from(PIECES),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=30),
)
texts = st.lists(lines, max_size=40).map("\n".join)
chunkings = st.tuples(st.integers(10, 60), st.integers(0, 9)).map(
    lambda sizes: Chunking(target_tokens=sizes[0], overlap_tokens=sizes[1])
)
BIGRAM = TOKENIZERS["bigram"]()


def made(text: str) -> Document:
    return Document("a.md", text, "t", {}, Path("a.md"), parse_markdown(text))


@settings(max_examples=400, deadline=None)
@given(texts, chunkings)
def test_chunks_cover_the_text_with_exact_spans(text: str, chunking: Chunking) -> None:
    document = made(text)
    chunks = chunk_documents([document], chunking)
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
    assert [c.start for c in chunks] == sorted(c.start for c in chunks)
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


@settings(max_examples=200, deadline=None)
@given(texts)
def test_overlap_zero_gives_disjoint_chunks(text: str) -> None:
    chunks = chunk_documents([made(text)], Chunking(target_tokens=20, overlap_tokens=0))
    for one, two in pairwise(chunks):
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
