"""Answers out of sentences: which are taken, in what order, and when there is none."""

from __future__ import annotations

import asyncio
from typing import Any

from kebab_eval.answering.extractive import Extractive
from kebab_eval.config import ExtractiveAnswers
from kebab_eval.records import Answer, Citation, Hit


def extract(query: str, *texts: str, **settings: Any) -> Answer:
    """Answer from chunks c1, c2, … of documents d1, d2, …"""
    hits = tuple(Hit(n, f"c{n}", f"d{n}", 1 / n, "rrf", text) for n, text in enumerate(texts, 1))
    section = ExtractiveAnswers(type="extractive", **settings)
    return asyncio.run(Extractive(section, {}).answer(query, "q", hits))


def test_a_paragraph_right_under_its_heading_is_read() -> None:
    text = "# Pumps\nThe pump runs at sixty bar."
    assert extract("pump bar", text).text == "The pump runs at sixty bar. [1]"
    assert extract("pump bar", "Pumps\n---\nThe pump runs at sixty bar.").text == (
        "The pump runs at sixty bar. [1]"
    )


def test_a_heading_alone_answers_nothing() -> None:
    answer = extract("pump bar", "# Pump bar\n\nPump bar\n========\n")
    assert (answer.refused, answer.refusal_reason) == (True, "no_chunks")


def test_the_gate_is_a_share_of_the_query() -> None:
    # pump, bar, weight, colour: the sentence holds two of the four words, 0.5.
    query, text = "pump bar weight colour", "The pump runs at sixty bar."
    assert not extract(query, text, min_score=0.5).refused
    answer = extract(query, text, min_score=0.51)
    assert (answer.refused, answer.refusal_reason, answer.grounded) == (True, "score_gate", False)


def test_korean_is_counted_in_pairs_of_letters() -> None:
    # 방화벽을 = 방화, 화벽, 벽을; the sentence holds the first two: 2/3.
    text = "방화벽 규칙은 매주 본다."
    assert not extract("방화벽을", text, min_score=0.66).refused
    assert extract("방화벽을", text, min_score=0.67).refused


def test_what_overlapping_chunks_share_is_said_once_and_by_the_better() -> None:
    said = "The pump runs at sixty bar."
    answer = extract("pump bar", f"Intro. {said}", f"{said} Outro.", sentences=3)
    assert answer.text == f"{said} [1]"
    assert answer.citations == (Citation("c1", "d1", "[1]"),)


def test_sentences_without_a_word_of_the_query_are_no_part_of_it() -> None:
    text = "It rains. The pump runs at sixty bar. It snows."
    assert extract("pump bar", text, sentences=3).text == "The pump runs at sixty bar. [1]"


def test_equal_sentences_stand_by_the_rank_of_their_chunk() -> None:
    # pump alone scores 1/2 twice, and only one may stay: that of the better chunk.
    answer = extract("pump bar", "A pump here.", "A pump there.", sentences=1)
    assert answer.text == "A pump here. [1]"


def test_marks_count_the_chunks_that_are_cited() -> None:
    answer = extract("pump bar", "Nothing of it.", "The pump. The bar.", sentences=2)
    assert answer.text == "The pump. [1] The bar. [1]"
    assert answer.citations == (Citation("c2", "d2", "[1]"),)


def test_only_the_first_chunks_are_read() -> None:
    assert extract("pump", "Nothing.", "The pump.", chunks=1).refused
    assert not extract("pump", "Nothing.", "The pump.", chunks=2).refused


def test_a_query_without_words_and_hits_without_text_are_refused() -> None:
    assert extract("?!", "The pump.").refusal_reason == "score_gate"
    assert extract("pump", "").refusal_reason == "no_chunks"
