"""The objects that the kebab binary prints (v1), read into ours.

Fields that are not known here are ignored; a ``schema_version`` of another major is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kebab_eval.backends.base import SearchResponse
from kebab_eval.errors import BackendError
from kebab_eval.records import Answer, Candidate, Citation, Hit

#: error.v1 codes after which asking again may help.
PASSING = frozenset({"timeout", "model_unreachable", "io_error"})
_MAX_SAID = 300


def parse_line(line: str, schema: str) -> Mapping[str, Any]:
    """Return one JSON object of the given schema, such as ``search_response``.

    Raises:
        BackendError: it is no JSON object, or of another schema or major.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise BackendError(f"kebab printed no JSON where {schema} was due: {_said(line)}") from None
    if not isinstance(data, dict):
        raise BackendError(f"kebab printed {type(data).__name__} where {schema} was due")
    check_schema(data, schema)
    return data


def check_schema(data: Mapping[str, Any], schema: str) -> None:
    """Hold that an object is of a schema and of major 1.

    Raises:
        BackendError: it is another one.
    """
    version = str(data.get("schema_version", ""))
    name, _, major = version.rpartition(".v")
    if name != schema or major.partition(".")[0] != "1":
        raise BackendError(
            f"kebab speaks {version or 'no schema_version'} where {schema}.v1 was due: this "
            "version of kebab-eval reads v1"
        )


def read_error(data: Any) -> BackendError:
    """Return error.v1 as an error: its code, message and hint."""
    if not isinstance(data, Mapping):
        return BackendError(f"kebab printed an error that is none: {_said(str(data))}")
    code = str(data.get("code", "generic"))
    parts = [f"kebab: {code}", str(data.get("message") or ""), str(data.get("hint") or "")]
    said = "; ".join(_said(part) for part in parts if part)
    return BackendError(said, retry=code in PASSING)


def read_response(data: Mapping[str, Any], k: int) -> SearchResponse:
    """Return search_response.v1 as hits in the order of their ranks, with what the trace says.

    Raises:
        BackendError: a hit lacks what every hit has.
    """
    try:
        hits = sorted((_hit(hit) for hit in data["hits"]), key=lambda hit: hit.rank)
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise BackendError(f"kebab printed a hit that is none ({_why(reason)})") from reason
    trace = data.get("trace")
    if not isinstance(trace, Mapping):
        return SearchResponse(tuple(hits[:k]))
    try:
        candidates = {
            channel: tuple(
                Candidate(str(one["chunk_id"]), str(one["doc_path"]), float(one["score"]))
                for one in sorted(trace[channel], key=lambda one: int(one["rank"]))
            )
            for channel in ("lexical", "vector")
            if trace.get(channel)
        }
        timing = {
            name.removesuffix("_ms"): float(value)
            for name, value in (trace.get("timing") or {}).items()
            if name.endswith("_ms") and value is not None
        }
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise BackendError(f"kebab printed a trace that is none ({_why(reason)})") from reason
    return SearchResponse(tuple(hits[:k]), timing, candidates, latency_ms=timing.get("total"))


def _hit(data: Mapping[str, Any]) -> Hit:
    retrieval = data.get("retrieval") or {}
    channels = {
        name: float(retrieval[name])
        for name in ("lexical_rank", "lexical_score", "vector_rank", "vector_score")
        if retrieval.get(name) is not None
    }
    return Hit(
        rank=int(data["rank"]),
        chunk_id=str(data["chunk_id"]),
        # kebab's golden sets name documents by their path.
        doc_id=str(data.get("doc_path") or data["doc_id"]),
        score=float(data["score"]),
        score_kind=str(data.get("score_kind") or "rrf"),
        snippet=str(data.get("snippet") or ""),
        channels=channels,
    )


def read_answer(data: Mapping[str, Any]) -> Answer:
    """Return answer.v1; a reason for a refusal makes it one.

    Raises:
        BackendError: it is no answer.
    """
    try:
        citations = tuple(_citation(one) for one in data.get("citations") or ())
        usage = data.get("usage") or {}
        tokens = {
            ours: int(usage[theirs])
            for ours, names in (
                ("prompt", ("prompt_tokens", "input_tokens")),
                ("completion", ("completion_tokens", "output_tokens")),
            )
            for theirs in names
            if usage.get(theirs) is not None
        }
        reason = data.get("refusal_reason")
        return Answer(
            text=str(data.get("answer") or ""),
            citations=citations,
            refused=reason is not None,
            refusal_reason=None if reason is None else str(reason),
            grounded=bool(data["grounded"]),
            model=str(data.get("model") or ""),
            prompt_version=str(data.get("prompt_template_version") or ""),
            tokens=tokens,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise BackendError(f"kebab printed an answer that is none ({_why(reason)})") from reason


def _citation(data: Mapping[str, Any]) -> Citation:
    citation = data["citation"]
    return Citation(
        chunk_id=str(citation.get("chunk_id") or ""),
        doc_id=str(citation.get("path") or ""),
        marker=str(data.get("marker") or ""),
    )


def _why(reason: Exception) -> str:
    return f"without {reason}" if isinstance(reason, KeyError) else _said(str(reason))


def _said(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))[:_MAX_SAID]
