"""Which part of a chunk is shown."""

from __future__ import annotations

from kebab_eval.engine.snippets import SNIPPET_CHARS, snippet


def test_short_text_is_shown_whole_on_one_line():
    assert snippet("one\n\n  two\tthree ", ["x"]) == "one two three"


def test_the_window_with_most_terms_is_shown():
    text = "fsync " + "filler " * 60 + "the wal calls fsync on commit " + "filler " * 60
    shown = snippet(text, ["wal", "fsync", "commit"])
    assert "wal calls fsync on commit" in shown
    assert shown.startswith("…filler")
    assert shown.endswith("filler…")
    assert len(shown) <= SNIPPET_CHARS + 2


def test_bigrams_and_stems_are_found_within_words():
    text = "채움말 " * 80 + "색인을 다시 만든다. Rotating nightly. " + "채움말 " * 80
    assert "색인을 다시" in snippet(text, ["색인", "인을"])
    assert "Rotating" in snippet(text, ["rotat"])


def test_without_a_term_the_beginning_is_shown():
    text = "begin " + "filler " * 100
    assert snippet(text, ["absent"]).startswith("begin filler")
    assert snippet(text, []) == snippet(text, ["absent"])


def test_terms_are_no_patterns():
    assert snippet("a" * 300, ["(", "[", "a+", "\\"]) == "a" * 240 + "…"


def test_a_very_long_text_takes_no_time():
    text = "ab " * 200_000
    assert len(snippet(text, ["a", "b", "ab"])) <= SNIPPET_CHARS + 2
