"""Answers of a model behind any ``/v1/chat/completions``: OpenAI, Ollama, vLLM.

Temperature 0 and a fixed seed; the prompt is a file of this package with a version, which the
record of each answer names. Whatever a server says that is no completion is a failed answer, and
never one that counts as a refusal: a model that is down must not look like a careful one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from kebab_eval.answering.deadline import within
from kebab_eval.backends.http_client import Client
from kebab_eval.backends.http_responses import Reading, read_answer, short_line
from kebab_eval.config import ModelAnswers
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.records import Answer, Citation, Hit

PROMPT_VERSION = "v1"
REFUSAL = "NO_ANSWER"
# [1], and what models write besides: [1, 2], [1; 2], 【1】.
_MARKER = re.compile(r"[\[【]\s*(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\s*[\]】]")
# The word alone, or with reasons behind it; inside a sentence it is no refusal.
_REFUSED = re.compile(rf"[\s\"'`*_(\[]*{REFUSAL}\b")
_PASSAGE_CHARS = 4000
_MAX_TOKENS = 2**53
_COMPLETION = Reading(hits="choices[]", id="id")


class OpenAiCompatible:
    """Asks a model with the first ``passages`` hits as numbered passages.

    Raises:
        UsageError: the address is none, or has more behind its path.
    """

    def __init__(self, section: ModelAnswers, texts: Mapping[str, str]) -> None:
        base = section.base_url.rstrip("/")
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("answer.base_url: an address begins with http:// or https://")
        if parts.query or parts.fragment:
            raise UsageError("answer.base_url: the address ends with its path, without ? or #")
        self._url = f"{base if base.endswith('/v1') else base + '/v1'}/chat/completions"
        self._section = section
        self._texts = texts
        prompt = files("kebab_eval.answering").joinpath(f"prompt_{PROMPT_VERSION}.txt")
        self._prompt = prompt.read_text(encoding="utf-8").strip()
        self._client: Client | None = None

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        chosen = hits[: self._section.passages]
        data = await within(self._section.timeout_s, self._asked(query, chosen))
        text, declined = _said(data)
        if declined or _REFUSED.match(text):
            text = ""
        refused = not text
        return Answer(
            text=text,
            citations=_citations(text, chosen),
            refused=refused,
            refusal_reason="llm_self_judge" if refused else None,
            grounded=not refused,
            model=short_line(data.get("model") or self._section.model),
            prompt_version=PROMPT_VERSION,
            tokens=_tokens(data.get("usage")),
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _asked(self, query: str, hits: Sequence[Hit]) -> Mapping[str, Any]:
        passages = "\n\n".join(
            f"[{number}] {self._texts.get(hit.chunk_id, hit.snippet)[:_PASSAGE_CHARS]}"
            for number, hit in enumerate(hits, 1)
        )
        body = {
            "model": self._section.model,
            "messages": [
                {"role": "system", "content": self._prompt},
                {"role": "user", "content": f"{passages}\n\nQuestion: {query}"},
            ],
            "temperature": 0,
            "seed": self._section.seed,
            "max_tokens": self._section.max_tokens,
            "stream": False,
        }
        headers = {"Content-Type": "application/json"}
        if self._section.api_key is not None:
            headers["Authorization"] = f"Bearer {self._section.api_key}"
        client = self._client = self._client or Client(self._section.timeout_s)
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        response, _ = await client.exchange("POST", self._url, headers=headers, content=content)
        data = read_answer(response, _COMPLETION)
        if not isinstance(data, Mapping):
            raise BackendError("the model's response is no JSON object")
        return data


def _said(data: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text of a completion, and whether its model declined to say anything.

    Raises:
        BackendError: there is none, or it is empty: a model that declines says so.
    """
    try:
        choice = data["choices"][0]
        message = choice["message"]
        content = message["content"]
        if isinstance(content, list):  # parts, of which the texts are the answer
            content = "".join(part["text"] for part in content if part["type"] == "text")
        if content is not None and type(content) is not str:  # a number is a str of its own kind
            raise TypeError
        declined = bool(message.get("refusal"))
        reason = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise BackendError("the model's response holds no choices[0].message.content") from None
    text = (content or "").strip()
    if not text and not declined:
        raise BackendError(
            f"the model said nothing (finish_reason: {short_line(reason)}); "
            "where that is length, raise answer.max_tokens"
        )
    return text, declined


def _citations(text: str, hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """Return what the marks of a text point at, each passage once, in the order of the marks.

    A number that no passage has is a citation all the same: of nothing.
    """
    marks = _MARKER.findall(text)
    numbers = dict.fromkeys(int(n) for mark in marks for n in re.findall(r"\d+", mark))
    return tuple(
        Citation(hits[n - 1].chunk_id, hits[n - 1].doc_id, f"[{n}]")
        if 1 <= n <= len(hits)
        else Citation(marker=f"[{n}]")
        for n in numbers
    )


def _tokens(usage: Any) -> dict[str, int]:
    """Return what was counted; a count that is none has no key."""
    found: dict[str, int] = {}
    if not isinstance(usage, Mapping):
        return found
    for ours, theirs in (("prompt", "prompt_tokens"), ("completion", "completion_tokens")):
        try:
            count = int(usage[theirs])
        except (KeyError, TypeError, ValueError):
            continue
        if 0 <= count < _MAX_TOKENS:
            found[ours] = count
    return found
