"""Answers of a model behind any ``/v1/chat/completions``: OpenAI, Ollama, vLLM.

Temperature 0 and a fixed seed; the prompt is a file of this package with a version, which the
record of each answer names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kebab_eval.backends.http_answers import open_client, read_json
from kebab_eval.config import ModelAnswers
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.records import Answer, Citation, Hit

if TYPE_CHECKING:
    import httpx

PROMPT_VERSION = "v1"
REFUSAL = "NO_ANSWER"
_MARKER = re.compile(r"\[(\d{1,3})\]")
_PASSAGE_CHARS = 4000


class OpenAiCompatible:
    """Asks a model with the first ``passages`` hits as numbered passages.

    Raises:
        UsageError: the address is none.
    """

    def __init__(self, section: ModelAnswers, texts: Mapping[str, str]) -> None:
        base = section.base_url.rstrip("/")
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("answer.base_url: an address begins with http:// or https://")
        self._url = f"{base if base.endswith('/v1') else base + '/v1'}/chat/completions"
        self._section = section
        self._texts = texts
        prompt = files("kebab_eval.answering").joinpath(f"prompt_{PROMPT_VERSION}.txt")
        self._prompt = prompt.read_text(encoding="utf-8").strip()
        self._client: httpx.AsyncClient | None = None

    async def answer(self, query: str, query_id: str, hits: Sequence[Hit]) -> Answer:
        chosen = hits[: self._section.passages]
        data = await self._asked(query, chosen)
        try:
            text = str(data["choices"][0]["message"]["content"] or "").strip()
        except (KeyError, IndexError, TypeError):
            raise BackendError("the model's response holds no choices[0].message.content") from None
        refused = not text or REFUSAL in text
        numbers = dict.fromkeys(int(number) for number in _MARKER.findall(text))
        # A number that no passage has is a citation all the same: of nothing.
        citations = tuple(
            Citation(chosen[n - 1].chunk_id, chosen[n - 1].doc_id, f"[{n}]")
            if 1 <= n <= len(chosen)
            else Citation(marker=f"[{n}]")
            for n in numbers
        )
        return Answer(
            text="" if refused else text,
            citations=() if refused else citations,
            refused=refused,
            refusal_reason="llm_self_judge" if refused else None,
            grounded=not refused,
            model=str(data.get("model") or self._section.model),
            prompt_version=PROMPT_VERSION,
            tokens=_tokens(data.get("usage")),
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
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
        client = self._client = self._client or open_client(self._section.timeout_s)
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        data, _ = await read_json(client, "POST", self._url, headers=headers, content=content)
        if not isinstance(data, Mapping):
            raise BackendError("the model's response is no JSON object")
        return data


def _tokens(usage: Any) -> dict[str, int]:
    if not isinstance(usage, Mapping):
        return {}
    found = {}
    for ours, theirs in (("prompt", "prompt_tokens"), ("completion", "completion_tokens")):
        try:
            found[ours] = int(usage[theirs])
        except (KeyError, TypeError, ValueError):
            continue
    return found
