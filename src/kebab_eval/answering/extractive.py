"""Answers without a model: the sentences of the best chunks that hold most of the query's words.

A floor that any model has to beat, deterministic and free. It cites every sentence, and refuses
where no sentence holds enough of the query.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kebab_eval.config import ExtractiveAnswers
from kebab_eval.engine.sentences import sentence_starts
from kebab_eval.engine.tokenizers import TOKENIZERS
from kebab_eval.records import Answer, Citation, Hit

MODEL = "extractive-1"
# A heading names a subject and answers nothing: `# one`, or a line above a row of = or -.
_HEADING = re.compile(r"^ {0,3}#{1,6}(?:[ \t].*)?$|^\S.*\n {0,3}(?:=+|-{2,})[ \t]*$", re.MULTILINE)
_MARK = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+", re.MULTILINE)
_LONGEST = 400  # characters of a sentence: a table is one


@dataclass(frozen=True, slots=True)
class _Sentence:
    chunk: int
    place: int
    text: str
    score: float


class Extractive:
    """Takes the best ``sentences`` out of the first ``chunks`` hits.

    A sentence scores the share of the query's words that it holds, 0 to 1; of equal ones the better
    chunk's, then the earlier one comes first. One without any of them is never part of an answer.

    Args:
        section: the settings.
        texts: chunk id -> its whole text; a chunk that is not there is read from the hit's snippet.
    """

    def __init__(self, section: ExtractiveAnswers, texts: Mapping[str, str]) -> None:
        self._section = section
        self._texts = texts
        self._tokenize = TOKENIZERS["bigram"]()

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        wanted = set(self._tokenize(query))
        chosen = hits[: self._section.chunks]
        found: dict[str, _Sentence] = {}
        for number, hit in enumerate(chosen):
            text = self._texts.get(hit.chunk_id, hit.snippet)
            for sentence in self._sentences(number, text, wanted):
                found.setdefault(sentence.text, sentence)  # chunks overlap: it is said once
        best = sorted(found.values(), key=lambda one: (-one.score, one.chunk, one.place))
        best = [one for one in best if one.score > 0][: self._section.sentences]
        if not best or best[0].score < self._section.min_score:
            reason = "score_gate" if found else "no_chunks"
            return Answer(refused=True, refusal_reason=reason, grounded=False, model=MODEL)
        kept = sorted(best, key=lambda one: (one.chunk, one.place))
        cited = list(dict.fromkeys(one.chunk for one in kept))
        markers = {chunk: f"[{number}]" for number, chunk in enumerate(cited, 1)}
        return Answer(
            text=" ".join(f"{one.text} {markers[one.chunk]}" for one in kept),
            citations=tuple(
                Citation(chosen[chunk].chunk_id, chosen[chunk].doc_id, markers[chunk])
                for chunk in cited
            ),
            grounded=True,
            model=MODEL,
        )

    def _sentences(self, chunk: int, text: str, wanted: set[str]) -> list[_Sentence]:
        """Return the sentences of a chunk, each with the share of the query's words it holds."""
        found = []
        place = 0
        for block in re.split(r"\n\s*\n", _HEADING.sub("\n\n", text.replace("\r\n", "\n"))):
            starts = sentence_starts(block, 0, len(block))
            for start, end in zip(starts, [*starts[1:], len(block)], strict=True):
                sentence = " ".join(_MARK.sub("", block[start:end]).split())[:_LONGEST]
                held = wanted & set(self._tokenize(sentence))
                score = len(held) / len(wanted) if wanted else 0.0
                if sentence:
                    found.append(_Sentence(chunk, place, sentence, score))
                    place += 1
        return found

    async def close(self) -> None: ...
