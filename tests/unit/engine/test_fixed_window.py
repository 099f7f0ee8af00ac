"""Where the windows of fixed-window-v1 start and end."""

from __future__ import annotations

from kebab_eval.config import Chunking
from kebab_eval.engine.chunking import Chunk, chunk_documents


def windows(document, target=10, overlap=0) -> tuple[Chunk, ...]:
    chunking = Chunking(version="fixed-window-v1", target_tokens=target, overlap_tokens=overlap)
    return chunk_documents([document], chunking)


def numbers(first: int, last: int) -> str:
    """The numbers from first to last, a token each while they are below 1,000."""
    return " ".join(map(str, range(first, last + 1)))


def texts(chunks):
    return [chunk.text for chunk in chunks]


def test_windows_step_by_target_minus_overlap(document):
    assert texts(windows(document(numbers(1, 22)), target=10, overlap=4)) == [
        numbers(1, 10),
        numbers(7, 16),
        numbers(13, 22),
    ]


def test_the_last_window_is_no_tail_of_the_one_before(document):
    assert texts(windows(document(numbers(1, 16)), target=10, overlap=4)) == [
        numbers(1, 10),
        numbers(7, 16),
    ]
    assert texts(windows(document(numbers(1, 10)), target=10, overlap=9)) == [numbers(1, 10)]


def test_without_overlap_they_tile_the_text(document):
    assert texts(windows(document(numbers(1, 25)))) == [
        numbers(1, 10),
        numbers(11, 20),
        numbers(21, 25),
    ]


def test_no_word_is_cut(document):
    # 8 tokens, then a word of 4 (24 letters) that does not fit.
    text = f"{numbers(1, 8)} {'x' * 24} end"
    assert texts(windows(document(text))) == [numbers(1, 8), f"{'x' * 24} end"]


def test_a_step_shorter_than_a_word_goes_to_the_next_word(document):
    one, two, three = "x" * 24, "y" * 24, "z" * 24  # 4 tokens each, the step is 1
    assert texts(windows(document(f"{one} {two} {three}"), target=10, overlap=9)) == [
        f"{one} {two}",
        f"{two} {three}",
    ]


def test_every_window_reaches_further_than_the_one_before(document):
    # Repeating 6 and 7 would leave no room for the word of 9 tokens.
    text = f"{numbers(1, 7)} {'x' * 54} end"
    assert texts(windows(document(text), target=10, overlap=2)) == [
        numbers(1, 7),
        f"{'x' * 54} end",
    ]


def test_a_word_longer_than_a_window_is_cut_and_overlaps(document):
    # 10 tokens are 60 letters; each window starts 8 tokens, 48 letters, behind the one before.
    chunks = windows(document("x" * 150), target=10, overlap=2)
    assert [(chunk.start, chunk.end) for chunk in chunks] == [(0, 60), (48, 108), (96, 150)]


def test_structure_is_ignored_but_the_headings_above_the_start_are_named(document):
    text = f"# A\n\n{numbers(1, 6)}\n\n## B\n\n{numbers(7, 12)}\n\n# C\n\n{numbers(13, 20)}"
    # `# A` and six numbers are 8 tokens, `## B` 2 more: the first window ends with the heading.
    assert [(chunk.heading_path, chunk.text) for chunk in windows(document(text))] == [
        (("A",), f"# A\n\n{numbers(1, 6)}\n\n## B"),
        (("A", "B"), f"{numbers(7, 12)}\n\n# C\n\n{numbers(13, 14)}"),
        (("C",), numbers(15, 20)),
    ]


def test_a_window_that_starts_with_a_heading_has_it_in_its_path(document):
    chunks = windows(document(f"# A\n\n{numbers(1, 8)}\n\n# B\n\nx"))
    assert [chunk.heading_path for chunk in chunks] == [("A",), ("B",)]


def test_front_matter_is_in_no_window(document):
    (window,) = windows(document("---\ntitle: x\n---\n\none two"))
    assert window.text == "one two"


def test_a_document_without_text_has_no_windows(document):
    assert windows(document("")) == ()
    assert windows(document("---\ntitle: x\n---\n")) == ()
