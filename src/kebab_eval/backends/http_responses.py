"""What a search API answered: its JSON, its hits, and what it says when that is no answer.

A response is another program's text: it is bounded, checked, and shown in one redacted line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from kebab_eval.backends.json_paths import find_all, find_one
from kebab_eval.errors import BackendError
from kebab_eval.formats.jsonl import Number
from kebab_eval.records import Hit
from kebab_eval.redaction import redact

_SHOWN = 200  # characters of what a system says
_LOOKED_AT = 20_000  # bytes of an error body
_SAID = "error.message|error.reason|error|message|detail"


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a response holds what, as paths.

    Args:
        hits: the list of hits; ``id`` to ``text`` start at a hit.
        total: how many hits there are; 0 makes an answer without a list an empty one.
        error: what the system says in a response that is no answer in spite of its 200.
        timed_out: what is true when the system gave up before it had seen everything.
    """

    hits: str
    id: str
    doc_id: str | None = None
    score: str | None = None
    text: str | None = None
    total: str | None = None
    next: str | None = None
    timing_ms: str | None = None
    error: str | None = None
    timed_out: str = "timed_out"
    score_kind: str = "score"


@dataclass(frozen=True, slots=True)
class Response:
    """A response as it came: its body is whole, decompressed and not yet looked at."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_answer(response: Response, reading: Reading) -> Any:
    """Return the JSON of a response that is an answer; its numbers are the texts that stand there.

    Raises:
        BackendError: another status, no JSON, or the system says that it failed; 429 and 5xx are
            worth another attempt.
    """
    status, headers = response.status, response.headers
    if 300 <= status < 400:
        target = shown_address(headers.get("location", "nowhere"))
        raise BackendError(
            f"HTTP {status}: redirected to {target}, which is not followed, so that no credentials "
            "go there; name that address"
        )
    if status != 200:
        raise BackendError(
            f"HTTP {status}{_body_said(response.body, reading.error)}",
            retry=status in (408, 425, 429) or status >= 500,
            retry_after_s=_retry_after(headers.get("retry-after")),
        )
    try:
        data = json.loads(response.body.decode("utf-8-sig"), parse_int=Number, parse_float=Number)
    except (ValueError, RecursionError):
        kind = short_line(headers.get("content-type", "no content type").partition(";")[0])
        empty = " and is empty" if not response.body.strip() else ""
        said = _body_said(response.body, None)
        raise BackendError(f"the response is no JSON ({kind}){empty}{said}") from None
    if isinstance(data, Mapping):
        said = find_one(data, reading.error)
        if said is not None:
            raise BackendError(f"the system says: {short_line(said)}")
        if find_one(data, reading.timed_out) is True:
            raise BackendError("the system says that it timed out", retry=True)
    return data


def read_hits(data: Any, reading: Reading, before: int) -> list[Hit]:
    """Return the hits of an answer, in its order.

    Args:
        before: how many hits the pages before this one had.

    Raises:
        BackendError: there is no list, or a hit has no id or a score that is no number.
    """
    found = _list_at(data, reading.hits)
    if found is None and _number(find_one(data, reading.total)) == 0:
        found = []
    if found is None:
        raise BackendError(
            f"the response holds no list of hits at {reading.hits!r}; it has {_keys(data)}"
        )
    hits = []
    for rank, item in enumerate(found, before + 1):
        chunk_id = _id(find_one(item, reading.id))
        if not chunk_id:
            raise BackendError(f"hit {rank} has no id at {reading.id!r}; it has {_keys(item)}")
        score = find_one(item, reading.score)
        number = 1 / rank if score is None else _number(score)
        if number is None:
            raise BackendError(f"the score of hit {rank} is no number: {short_line(score)[:40]!r}")
        document = _id(find_one(item, reading.doc_id))
        text = find_one(item, reading.text)
        hits.append(
            Hit(
                rank,
                chunk_id,
                document or chunk_id,
                number,
                reading.score_kind,
                "" if text is None else _text(text),
            )
        )
    return hits


def number_at(data: Any, path: str | None) -> float | None:
    """Return the number at a path, None where there is none."""
    return _number(find_one(data, path))


def shown_address(address: str) -> str:
    """Return an address without user, password, query and fragment, which may hold secrets."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return short_line(f"{parts.scheme}://{host}{port}{parts.path}" if host else parts.path)


def _list_at(data: Any, path: str) -> list[Any] | None:
    """Return the list that a path leads to, null items too; None where it leads to none.

    Of ``a|b`` the first list that holds anything is taken.
    """
    empty = None
    for way in path.split("|"):
        stem = way.strip().removesuffix("[]")
        lists = [one for one in (find_all(data, stem) if stem else [data]) if isinstance(one, list)]
        if lists:
            empty = [item for one in lists for item in one]
            if empty:
                return empty
    return empty


def _id(value: Any) -> str | None:
    """Return an id as the text that stands there; None for what is no id."""
    return str(value) if isinstance(value, str) else None  # a number is a text here: Number


def _number(value: Any) -> float | None:
    if not isinstance(value, str | float):  # parsed numbers are texts, NaN is a float
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _keys(data: Any) -> str:
    if isinstance(data, Mapping):
        return ", ".join(short_line(str(key))[:40] for key in list(data)[:10]) or "nothing"
    return "a list" if isinstance(data, list) else "null" if data is None else short_line(data)[:40]


def _body_said(body: bytes, error_path: str | None) -> str:
    """Return what an error body says, as one short line that follows a colon."""
    try:
        data = json.loads(body) if len(body) <= _LOOKED_AT else None
    except (ValueError, RecursionError):
        data = None
    said = None
    if isinstance(data, Mapping):
        said = find_one(data, f"{error_path}|{_SAID}" if error_path else _SAID)
    if said is None:
        said = data if data is not None else _beginning(body)
    line = short_line(said)
    return f": {line}" if line else ""


def _beginning(body: bytes) -> str:
    """Return the first words of a body; none is cut, which might be half a secret."""
    words = body[:_LOOKED_AT].decode("utf-8", "replace").split()
    if len(body) > _LOOKED_AT and words and len(words[-1]) < _LOOKED_AT - _SHOWN:
        words.pop()
    return " ".join(words)


def short_line(value: Any) -> str:
    """Return what a system says as one short line without secrets."""
    # Secrets first: one that the cut goes through would not be known any more.
    text = " ".join(redact(_text(value)).split())
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return "".join(c if c.isprintable() else " " for c in text)


def _retry_after(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or as a date."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
