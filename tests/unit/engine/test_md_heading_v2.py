"""What md-heading-v2 cuts that v1 leaves whole, and what it leaves alone."""

from __future__ import annotations

import time
from pathlib import Path

from kebab_eval.config import Chunking
from kebab_eval.engine.chunking import Chunk, chunk_documents
from kebab_eval.engine.corpus import Document
from kebab_eval.formats.markdown import Block, Markdown


def chunks_of(document, target=20, overlap=0, version="md-heading-v2") -> tuple[Chunk, ...]:
    chunking = Chunking(version=version, target_tokens=target, overlap_tokens=overlap)
    return chunk_documents([document], chunking)


def texts(chunks):
    return [chunk.text for chunk in chunks]


def test_within_the_target_it_is_v1_but_for_the_version_in_the_id(document):
    made = document("intro\n\n# A\n\n- one\n- two\n\n## B\n\n```\nx = 1\n```\n")
    first, second = chunks_of(made, version="md-heading-v1"), chunks_of(made)
    assert [(c.start, c.end, c.heading_path) for c in first] == [
        (c.start, c.end, c.heading_path) for c in second
    ]
    stems = [chunk.chunk_id.rpartition(":")[0] for chunk in second]
    assert stems == [chunk.chunk_id.rpartition(":")[0] for chunk in first]
    assert not {c.chunk_id for c in first} & {c.chunk_id for c in second}


def test_code_is_cut_between_lines_and_keeps_its_indent(document):
    # A fence line is 1 token ("```"), each other line 3 ("x", "=", "1"): 1 + 3 * 3 = 10 fit.
    code = "```\n" + "\n".join(["  x = 1"] * 5) + "\n```"
    assert texts(chunks_of(document(code), target=10)) == [
        "```\n  x = 1\n  x = 1\n  x = 1",
        "  x = 1\n  x = 1\n```",
    ]


def test_a_table_is_cut_between_rows(document):
    rows = ["| a |", "|---|", "| 1 |", "| 2 |", "| 3 |", "| 4 |"]  # 3 tokens each
    assert texts(chunks_of(document("\n".join(rows)), target=12)) == [
        "\n".join(rows[:4]),
        "\n".join(rows[4:]),
    ]


def test_a_line_above_the_target_is_cut_between_words(document):
    # 25 words of one token in a line of code: 10, 10, and the 5 that are left with the next line.
    line = " ".join(["word"] * 25)
    chunks = chunks_of(document(f"    {line}\n    end"), target=10)
    ten = " ".join(["word"] * 10)
    assert texts(chunks) == [f"    {ten}", ten, f"{' '.join(['word'] * 5)}\n    end"]


def test_a_line_within_the_target_is_never_cut(document):
    lines = [" ".join([name] * 7) for name in ("one", "two", "three")]
    assert texts(chunks_of(document("```\n" + "\n".join(lines) + "\n```"), target=10)) == [
        f"```\n{lines[0]}",
        lines[1],
        f"{lines[2]}\n```",
    ]


def test_a_word_above_the_target_is_cut_between_characters(document):
    # Six letters are a token: 10 tokens are 60 letters.
    assert [len(chunk.text) for chunk in chunks_of(document("x" * 130), target=10)] == [60, 60, 10]


def test_an_indent_before_a_long_word_is_no_part(document):
    assert texts(chunks_of(document(f"    {'x' * 70}"), target=10)) == [
        f"    {'x' * 60}",
        "x" * 10,
    ]


def test_no_accent_is_parted_from_its_letter(document):
    accented = "e\u0301" * 40  # a letter and a mark, a token each: 5 pairs are 10
    assert texts(chunks_of(document(accented), target=11))[0] == "e\u0301" * 5
    assert "".join(texts(chunks_of(document(accented), target=11))) == accented


def test_a_heading_stays_with_the_start_of_what_it_names(document):
    # v1 leaves 2 + 11 + 8 tokens whole; the heading alone would say nothing.
    one, two = "One " + "word " * 8 + "end.", "Two " + "word " * 5 + "end."
    first, second = chunks_of(document(f"## A\n\n{one} {two}"), target=20)
    assert (first.text, second.text) == (f"## A\n\n{one}", two)
    assert first.heading_path == second.heading_path == ("A",)


def test_headings_without_text_are_cut_too(document):
    headings = "\n\n".join(f"# h{number}" for number in range(10, 20))  # 3 tokens each
    chunks = chunks_of(document(headings), target=15)
    assert [chunk.text.count("#") for chunk in chunks] == [5, 5]


def test_a_part_that_the_next_chunk_repeats_whole_is_left_out(document):
    # v1: heading 2 + 11 + 8 = 21 tokens; the next chunk repeats the sentence of 8 and holds 8 more.
    one, two = "One " + "word " * 9 + "x.", "Two " + "word " * 5 + "x."
    three = "Three " + "word " * 5 + "x."
    made = document(f"# A\n\n{one} {two}\n\n{three}")
    whole = chunks_of(made, target=20, overlap=10, version="md-heading-v1")
    assert texts(whole) == [f"# A\n\n{one} {two}", f"{two}\n\n{three}"]
    assert texts(chunks_of(made, target=20, overlap=10)) == [f"# A\n\n{one}", f"{two}\n\n{three}"]


def test_a_hundred_thousand_headings_take_little_time():
    """They took half a minute, each copying those before it."""
    count = 100_000
    text = "# h\n" * count
    blocks = [Block("heading", at, at + 3, 1, "h") for at in range(0, len(text), 4)]
    made = Document("a.md", text, "a", {}, Path("a.md"), Markdown(tuple(blocks)))
    began = time.process_time()
    assert len(chunks_of(made, version="md-heading-v1")) == 1
    assert len(chunks_of(made)) == count // 10  # 2 tokens each, 10 in a chunk of 20
    assert time.process_time() - began < 10
