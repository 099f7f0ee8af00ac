"""The objects that the kebab binary prints (wire v1), read into ours.

Fields that are not known here are ignored; a ``schema_version`` of another major is refused.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from kebab_eval.backends.base import Param, SearchResponse
from kebab_eval.errors import BackendError
from kebab_eval.records import Answer, Candidate, Citation, Hit
from kebab_eval.redaction import redact

Naming = Literal["path", "id"]
"""What names a document: its path, or kebab's own id."""

PASSING = frozenset({"timeout", "model_unreachable", "io_error"})
"""The codes of error.v1 after which asking again may help."""

_CHANNELS = ("lexical", "vector")
_MODELS = (
    "parser_version",
    "chunker_version",
    "embedding_version",
    "prompt_template_version",
    "index_version",
)
_TOKENS = {
    "prompt": ("prompt_tokens", "input_tokens"),
    "completion": ("completion_tokens", "output_tokens"),
}
_MOST_SHOWN = 300
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 8


# --- objects and their schema ------------------------------------------------------------------


def read_object(out: str, schema: str) -> Mapping[str, Any]:
    """Return the one object of a schema, such as ``answer``, among what a command printed.

    Raises:
        BackendError: there is none, or it is of another major.
    """
    for data in _objects(out):
        if _name(data) == schema:
            check_schema(data, schema)
            return data
    data = _json(out)
    if isinstance(data, dict):
        check_schema(data, schema)  # says which schema it is instead
    raise BackendError(f"kebab printed {_kind(data, out)} where {schema}.v1 was due")


def check_schema(data: Mapping[str, Any], schema: str) -> None:
    """Hold that an object is of a schema, and of major 1.

    Raises:
        BackendError: it is another one.
    """
    version = str(data.get("schema_version", ""))
    name, _, major = version.rpartition(".v")
    if name != schema or major.partition(".")[0] != "1":
        raise BackendError(
            f"kebab speaks {shown(version) or 'no schema_version'} where {schema}.v1 was due; this "
            "version of kebab-eval reads v1"
        )


def _objects(out: str) -> Iterator[dict[str, Any]]:
    """Yield the objects that stand in a line of their own, or are all there is."""
    whole = _json(out)
    for data in [whole] if isinstance(whole, dict) else map(_json, out.split("\n")):
        if isinstance(data, dict):
            yield data


def _json(text: str) -> Any:
    """Return what JSON says, None for what is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _name(data: Mapping[str, Any]) -> str:
    return str(data.get("schema_version", "")).rpartition(".v")[0]


def _kind(data: Any, out: str) -> str:
    if data is None:
        return f"no JSON ({shown(out)})" if out.strip() else "nothing"
    return f"a {type(data).__name__}"


# --- errors ------------------------------------------------------------------------------------


def fatal_error(err: str) -> BackendError | None:
    """Return the error.v1 line among what a process wrote to stderr, None without one."""
    for line in reversed(err.splitlines()):
        data = _json(line)
        if isinstance(data, dict) and _name(data) == "error":
            return read_error(data)
    return None


def read_error(data: Any) -> BackendError:
    """Return error.v1 as an error: its code, message and hint in one line."""
    if not isinstance(data, Mapping):
        return BackendError(f"kebab printed an error that is none: {shown(str(data))}")
    try:
        check_schema(data, "error")
    except BackendError as other:
        return other
    code = shown(str(data.get("code") or "generic"))
    parts = (f"kebab: {code}", data.get("message"), data.get("hint"))
    said = "; ".join(shown(str(part)) for part in parts if part)
    return BackendError(said, retry=code in PASSING)


def shown(text: str) -> str:
    """Return a foreign text as a message may hold it: one line, not long, without secrets.

    The binary has our environment, and may repeat what stands in it.
    """
    text = redact(text)
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET.search(name):
            text = text.replace(value, f"${{env:{name}}}")
    text = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


# --- search ------------------------------------------------------------------------------------


def read_items(out: str, asked: Sequence[str]) -> list[Mapping[str, Any] | None]:
    """Return the bulk_search_item.v1 of each query, None for one that got none.

    Items come in the order of the queries and repeat them. So a line that is no item (noise, or
    half of one), an item that is missing, or one for nothing that was asked moves no other.

    Raises:
        BackendError: the items are of another major.
    """
    items: list[Mapping[str, Any] | None] = [None] * len(asked)
    place = 0
    for data in map(_json, out.split("\n")):
        if isinstance(data, dict) and _name(data) == "bulk_search_item":
            check_schema(data, "bulk_search_item")
            echo = data.get("query")
            query = echo.get("query") if isinstance(echo, dict) else None
            if query in asked[place:]:
                place = asked.index(query, place) + 1
                items[place - 1] = data
    return items


def read_item(item: Mapping[str, Any], k: int, naming: Naming) -> SearchResponse:
    """Return the response that a bulk_search_item.v1 holds.

    Raises:
        BackendError: the error that it holds instead, or that it holds neither.
    """
    response, error = item.get("response"), item.get("error")
    if (response is None) == (error is None):
        raise BackendError("kebab printed an item without exactly one of response and error")
    if error is not None:
        raise read_error(error)
    if not isinstance(response, Mapping):
        raise BackendError(f"kebab printed a {type(response).__name__} where a response was due")
    return read_response(response, k, naming)


def read_response(data: Mapping[str, Any], k: int, naming: Naming) -> SearchResponse:
    """Return search_response.v1: up to k hits in the order of their ranks, and the trace's words.

    Raises:
        BackendError: it is none, or kebab cut it short.
    """
    check_schema(data, "search_response")
    found = sorted(
        (read_hit(hit, naming) for hit in _list(data, "hits", "a search_response")),
        key=lambda hit: hit.rank,
    )
    if data.get("truncated") is True and len(found) < k:
        raise BackendError(f"kebab cut its answer short: {len(found)} of {k} hits (truncated)")
    hits = tuple(
        Hit(rank, one.chunk_id, one.doc_id, one.score, one.score_kind, one.snippet, one.channels)
        for rank, one in enumerate(found[:k], 1)
    )
    trace = data.get("trace")
    if trace is None:
        return SearchResponse(hits)
    trace = _mapping(trace, "trace")
    candidates = {
        channel: ranking for channel in _CHANNELS if (ranking := _ranking(trace, channel, naming))
    }
    timing = _mapping(trace.get("timing") or {}, "timing")
    timings_ms = {
        name.removesuffix("_ms"): _number(timing, name, "timing")
        for name in timing
        if name.endswith("_ms") and timing[name] is not None
    }
    return SearchResponse(hits, timings_ms, candidates, latency_ms=timings_ms.get("total"))


def read_hit(data: Any, naming: Naming) -> Hit:
    """Return a search_hit.v1.

    Raises:
        BackendError: it lacks what a hit has.
    """
    hit = _checked(data, "search_hit")
    retrieval = _mapping(hit.get("retrieval") or {}, "retrieval")
    names = [f"{channel}_{what}" for channel in _CHANNELS for what in ("rank", "score")]
    return Hit(
        rank=int(_number(hit, "rank", "hit")),
        chunk_id=_text(hit, "chunk_id", "hit"),
        doc_id=_text(hit, f"doc_{naming}", "hit"),
        score=_number(hit, "score", "hit"),
        score_kind=_text(hit, "score_kind", "hit") if hit.get("score_kind") else "rrf",
        snippet=str(hit.get("snippet") or ""),
        channels={
            name: _number(retrieval, name, "retrieval")
            for name in names
            if retrieval.get(name) is not None
        },
    )


def _ranking(trace: Mapping[str, Any], channel: str, naming: Naming) -> tuple[Candidate, ...]:
    if trace.get(channel) is None:
        return ()
    ranked = []
    for one in (_mapping(one, "candidate") for one in _list(trace, channel, "a trace")):
        candidate = Candidate(
            _text(one, "chunk_id", "candidate"),
            _text(one, f"doc_{naming}", "candidate"),
            _number(one, "score", "candidate"),
        )
        ranked.append((_number(one, "rank", "candidate"), candidate))
    return tuple(candidate for _, candidate in sorted(ranked, key=lambda pair: pair[0]))


def read_chunk_text(data: Mapping[str, Any]) -> str:
    """Return the text of chunk_inspection.v1.

    Raises:
        BackendError: it has none.
    """
    return _text(data, "text", "chunk_inspection")


# --- what the system holds and is --------------------------------------------------------------


def read_documents(out: str) -> dict[str, str]:
    """Return document path -> id, from the doc_summary.v1 list of ``list docs``.

    Raises:
        BackendError: it is no such list.
    """
    listed = _json(out)
    if not isinstance(listed, list):
        raise BackendError(f"kebab list docs printed {_kind(listed, out)} where a list was due")
    documents = {}
    for summary in (_checked(one, "doc_summary") for one in listed):
        path = _text(summary, "doc_path", "doc_summary")
        documents[path] = _text(summary, "doc_id", "doc_summary")
    return documents


def read_snapshot(schema: Mapping[str, Any]) -> dict[str, Param]:
    """Return what schema.v1 says of the system, by the names that backends share.

    Raises:
        BackendError: it is no schema.
    """
    models = _mapping(schema.get("models") or {}, "models")
    stats = _mapping(schema.get("stats") or {}, "stats")
    snapshot: dict[str, Param] = {"kebab_version": _text(schema, "kebab_version", "schema")}
    for name in _MODELS:
        if models.get(name):
            snapshot[name] = str(models[name])
    model = models.get("embedding_model") or models.get("embedding_version")
    if model:  # kebab's word for the version of its vectors is the model's name
        snapshot["embedding_model"] = str(model)
    if models.get("corpus_revision") is not None:
        snapshot["corpus_fingerprint"] = str(models["corpus_revision"])
    chunkers = models.get("active_chunkers")
    if isinstance(chunkers, list) and chunkers:
        snapshot["active_chunkers"] = ", ".join(sorted(map(str, chunkers)))
    for name in ("rrf_k", "score_gate"):  # newer binaries may tell
        if isinstance(models.get(name), int | float):
            snapshot[name] = models[name]
    for name in ("doc_count", "chunk_count"):
        if stats.get(name) is not None:
            snapshot[name] = int(_number(stats, name, "stats"))
    return snapshot


# --- answers -----------------------------------------------------------------------------------


def read_answer(data: Mapping[str, Any], ids: Mapping[str, str] | None = None) -> Answer:
    """Return answer.v1; with a reason for a refusal it is one.

    Args:
        ids: document path -> id, where hits name documents by id: a citation knows the path alone.

    Raises:
        BackendError: it is no answer.
    """
    if not isinstance(data.get("grounded"), bool):
        raise BackendError("kebab printed an answer whose grounded is neither true nor false")
    reason, model = data.get("refusal_reason"), data.get("model")
    usage = _mapping(data.get("usage") or {}, "usage")
    return Answer(
        text=str(data.get("answer") or ""),
        citations=tuple(_citation(one, ids) for one in _list(data, "citations", "an answer")),
        refused=reason is not None,
        refusal_reason=None if reason is None else str(reason),
        grounded=data["grounded"],
        model=str((model.get("id") if isinstance(model, dict) else model) or ""),
        prompt_version=str(data.get("prompt_template_version") or ""),
        tokens={
            ours: int(_number(usage, theirs, "usage"))
            for ours, names in _TOKENS.items()
            for theirs in names
            if usage.get(theirs) is not None
        },
    )


def _citation(data: Any, ids: Mapping[str, str] | None) -> Citation:
    cited = _mapping(data, "citation")
    target = _checked(cited.get("citation"), "citation")
    path = _text(target, "path", "citation")
    return Citation(
        chunk_id=str(target.get("chunk_id") or ""),
        doc_id=path if ids is None else ids.get(path, path),
        marker=str(cited.get("marker") or ""),
    )


# --- fields ------------------------------------------------------------------------------------


def _checked(data: Any, schema: str) -> Mapping[str, Any]:
    """Return an object within another, whose schema is held where it names one."""
    found = _mapping(data, schema)
    if "schema_version" in found:
        check_schema(found, schema)
    return found


def _mapping(data: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise BackendError(f"kebab printed a {what} that is no object: {shown(str(data))}")
    return data


def _list(data: Mapping[str, Any], name: str, what: str) -> list[Any]:
    found = data.get(name)
    if not isinstance(found, list):
        raise BackendError(f"kebab printed {what} whose {name} is no list")
    return found


def _text(data: Mapping[str, Any], name: str, what: str) -> str:
    found = data.get(name)
    if not isinstance(found, str) or not found:
        said = "missing" if found is None else f"no text: {shown(str(found)) or 'empty'}"
        raise BackendError(f"kebab printed a {what} whose {name} is {said}")
    return found


def _number(data: Mapping[str, Any], name: str, what: str) -> float:
    found = data.get(name)
    try:
        if isinstance(found, int | float) and not isinstance(found, bool):
            number = float(found)
            if math.isfinite(number):
                return number
    except OverflowError:
        pass
    said = "missing" if found is None else f"no number: {shown(str(found))}"
    raise BackendError(f"kebab printed a {what} whose {name} is {said}")
