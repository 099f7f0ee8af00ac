"""A query result as an MLflow trace: its spans, its metrics as feedback, what was expected.

The input of a trace is the query's id and text and nothing else, so that MLflow pairs the rows of
any two runs over one golden set. All its ids follow from the run and the query: a trace that is
sent twice is the same trace.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kebab_eval.errors import MetricError
from kebab_eval.metrics import default_registry
from kebab_eval.metrics.answers import ANSWER_METRICS
from kebab_eval.metrics.ranktable import normalise_id
from kebab_eval.records import LEVELS, EvalRun, GoldenQuery, Hit, Level, QueryResult
from kebab_eval.redaction import redact

if TYPE_CHECKING:
    from mlflow.entities import Assessment, Span, TraceInfo

DIGEST_KEY = "kebab_eval.trace_digest"
_PREVIEW, _METADATA, _REQUEST_ID = 1000, 8000, 50  # what the columns of MLflow's store hold
_PAGE, _NAME = 4000, 100  # characters of a text that a trace shows; the record has all of it
_MAIN_FAMILIES = ("hit", "precision", "recall", "ndcg", "mrr")
_NS = 1_000_000  # nanoseconds of a millisecond
_ROOT, _SEARCH = ("query", "CHAIN"), ("search", "RETRIEVER")


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace as it is sent: ``info`` carries the assessments; ``digest`` is of its content."""

    info: TraceInfo
    spans: list[Span]
    digest: str


@dataclass(frozen=True, slots=True)
class TraceMaker:
    """Makes the traces of one run.

    Args:
        run: the judged run.
        run_id, experiment_id: where they go in MLflow.
    """

    run: EvalRun
    run_id: str
    experiment_id: str
    _queries: Mapping[str, tuple[int, GoldenQuery]] = field(init=False)
    _names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        placed = {q.query_id: (place, q) for place, q in enumerate(self.run.golden.queries)}
        object.__setattr__(self, "_queries", placed)
        settings = self.run.config
        every = (settings.get("tracking") or {}).get("feedback") == "all"
        metrics = settings["metrics"]
        names = () if every else feedback_names(str(metrics["primary"]), metrics.get("cutoffs"))
        object.__setattr__(self, "_names", names)

    def trace_id(self, query_id: str) -> str:
        """Return the id of a query's trace in this run: always the same."""
        return f"tr-{_hex('trace', self.run_id, query_id)[:32]}"

    def digest(self, result: QueryResult) -> str:
        """Return a digest of all that a trace is made of, in memory and read from disk alike."""
        place, query = self._queries[result.query_id]
        read = QueryResult.from_json(result.to_json())  # a score of 1 is 1.0 in a record
        shown = [read.to_json(), query.to_json(), self._names, place]
        return _hex(redact(json.dumps(shown, sort_keys=True, ensure_ascii=False)))[:32]

    def make(self, result: QueryResult) -> Trace:
        """Return the trace of a result."""
        from mlflow.entities import TraceInfo, TraceLocation, TraceState

        place, query = self._queries[result.query_id]
        trace_id, digest = self.trace_id(result.query_id), self.digest(result)
        start_ns = self._start_ns(result, place)
        spans = _Spans(trace_id)
        asked = {"query_id": result.query_id, "query": result.query}
        given = _outputs(result)
        end_ns = self._add_spans(spans, result, query, start_ns)
        spans.add(_ROOT, (start_ns, end_ns), asked, given, error=result.error)
        request, response = _text(asked), _text(given)
        info = TraceInfo(
            trace_id=trace_id,
            trace_location=TraceLocation.from_experiment_id(self.experiment_id),
            request_time=start_ns // _NS,
            execution_duration=(end_ns - start_ns) // _NS,
            state=TraceState.OK if result.error is None else TraceState.ERROR,
            request_preview=request[:_PREVIEW],
            response_preview=response[:_PREVIEW],
            client_request_id=request_id(result.query_id),
            trace_metadata={
                "mlflow.sourceRun": self.run_id,
                "mlflow.traceInputs": request[:_METADATA],
                "mlflow.traceOutputs": response[:_METADATA],
                DIGEST_KEY: digest,
            },
            tags={"mlflow.traceName": "query"},
            assessments=list(self._assessments(result, query, trace_id, end_ns // _NS)),
        )
        return Trace(info, list(spans.made()), digest)

    def _start_ns(self, result: QueryResult, place: int) -> int:
        """When the search began; in an older record when the run did, in golden order."""
        begun = result.started_at or str(self.run.info["created_at"])
        return round(datetime.fromisoformat(begun).timestamp() * 1e6) * 1000 + (
            0 if result.started_at else place * _NS
        )

    def _add_spans(
        self, spans: _Spans, result: QueryResult, query: GoldenQuery, start_ns: int
    ) -> int:
        """Add the search, its stages and the answer; return when the last of them ended."""
        end_ns = start_ns + round((result.latency_ms or 0) * _NS)
        grades = _grades(query)
        documents = [_document(hit, grades) for hit in result.hits]
        asked = {"query": result.query}
        spans.add(_SEARCH, (start_ns, end_ns), asked, documents, error=result.error)
        stages = {name: ms for name, ms in result.timings_ms.items() if name != "total"}
        at_ns = start_ns
        for name, spent_ms in stages.items():
            # A system says how long a stage took, not when it began: one stands behind the other.
            until_ns = at_ns + round(max(spent_ms, 0) * _NS)
            spans.add((name, "TASK"), (at_ns, until_ns), {}, {"ms": spent_ms}, parent=_SEARCH)
            at_ns = until_ns
        answer = result.answer
        if answer is None:
            return end_ns
        until_ns = end_ns + round((answer.latency_ms or 0) * _NS)
        said = {
            "answer": answer.text,
            "refused": answer.refused,
            "citations": [citation.to_json() for citation in answer.citations],
        }
        times = (end_ns, until_ns)
        failed, tokens = answer.error, answer.tokens
        spans.add(("answer", "LLM"), times, asked, said, error=failed, tokens=tokens)
        return until_ns

    def _assessments(
        self, result: QueryResult, query: GoldenQuery, trace_id: str, at_ms: int
    ) -> Iterator[Assessment]:
        from mlflow.entities import AssessmentSource, Expectation, Feedback

        judge = AssessmentSource(source_type="CODE", source_id="kebab-eval")
        metadata = {"mlflow.assessment.sourceRunId": self.run_id}
        values: dict[str, float | str] = {
            name: float(result.metrics[name])
            for name in self._names or result.metrics
            if name in result.metrics and math.isfinite(result.metrics[name])
        }
        wanted = expected_ids(query, self.run.golden.min_relevance)
        if wanted or result.miss_stage is not None:
            values["miss_stage"] = result.miss_stage or "found"
        times = {"create_time_ms": at_ms, "last_update_time_ms": at_ms}
        for name, value in values.items():
            made = Feedback(
                name=name, value=value, source=judge, trace_id=trace_id, metadata=metadata, **times
            )
            made.assessment_id = f"a-{_hex(trace_id, name)[:32]}"
            yield made
        people = AssessmentSource(
            source_type="HUMAN", source_id=_plain(self.run.golden.name)[:_NAME]
        )
        expected = Expectation(
            name="expected_ids",
            value=wanted,
            source=people,
            trace_id=trace_id,
            **times,
        )
        expected.assessment_id = f"a-{_hex(trace_id, 'expected_ids')[:32]}"
        yield expected


def feedback_names(primary: str, cutoffs: Sequence[int] | None) -> tuple[str, ...]:
    """Return the metrics that a trace shows: the primary one, and its companions at its cutoff.

    A query has some fifty metrics, and the record holds all of them. MLflow makes a column of each,
    and writing them takes four times as long as writing these.
    """
    try:
        metric = default_registry().parse(primary)
    except MetricError:
        return (primary, *ANSWER_METRICS)
    cutoff = metric.cutoff or max(cutoffs or (10,))
    level = metric.level or "doc"
    companions = [f"{family}_at_{cutoff}_{level}" for family in _MAIN_FAMILIES]
    return tuple(dict.fromkeys((primary, *companions, f"mrr_at_10_{level}", *ANSWER_METRICS)))


def expected_ids(query: GoldenQuery, min_relevance: float) -> dict[str, list[str]]:
    """Return level -> the relevant ids, the highest grade first; a level without any has no key."""
    found: dict[str, list[str]] = {}
    for level in LEVELS:
        grades = query.judgments.at(level)
        relevant = [item for item, grade in grades.items() if grade >= min_relevance]
        if relevant:
            ordered = sorted(relevant, key=lambda item: (-grades[item], item))
            found[level] = [redact(_plain(item)) for item in ordered]
    return found


def request_id(query_id: str) -> str:
    """Return a query id as the store holds it: in one line, and at most 50 characters."""
    plain = redact(_plain(query_id))
    if len(plain) <= _REQUEST_ID:
        return plain
    return f"{plain[: _REQUEST_ID - 9]}~{_hex(query_id)[:8]}"


def _outputs(result: QueryResult) -> dict[str, Any]:
    if result.error is not None:
        return {"error": result.error}
    documents = list(dict.fromkeys(hit.doc_id for hit in result.hits))
    if result.answer is None:
        return {"documents": documents}
    return {"answer": result.answer.text or result.answer.error, "documents": documents}


def _grades(query: GoldenQuery) -> dict[Level, dict[str, float]]:
    """Return level -> judged id in its compared form -> grade."""
    return {
        level: {normalise_id(item): grade for item, grade in query.judgments.at(level).items()}
        for level in LEVELS
        if query.judgments.at(level)
    }


def _document(hit: Hit, grades: Mapping[Level, Mapping[str, float]]) -> dict[str, Any]:
    """Return a hit as MLflow draws it: a card with its text, and what is known of it."""
    judged = {
        f"grade_{level}": found.get(
            normalise_id(hit.chunk_id if level == "chunk" else hit.doc_id), "unjudged"
        )
        for level, found in grades.items()
    }
    return {
        "page_content": hit.snippet[:_PAGE],
        "metadata": {
            "doc_uri": hit.doc_id,
            "chunk_id": hit.chunk_id,
            "rank": hit.rank,
            "score": hit.score,
            "score_kind": hit.score_kind,
            **judged,
            **hit.channels,
        },
    }


class _Spans:
    """The spans of one trace; every span that is no root hangs below it or below another one."""

    def __init__(self, trace_id: str) -> None:
        self._trace_id = trace_id
        self._made: list[dict[str, Any]] = []

    def add(
        self,
        what: tuple[str, str],
        between_ns: tuple[int, int],
        inputs: Any,
        outputs: Any,
        *,
        error: str | None = None,
        tokens: Mapping[str, int] | None = None,
        parent: tuple[str, str] = _ROOT,
    ) -> None:
        name, kind = what
        attributes = {
            "mlflow.traceRequestId": json.dumps(self._trace_id),
            "mlflow.spanType": json.dumps(kind),
            "mlflow.spanInputs": _text(inputs),
            "mlflow.spanOutputs": _text(outputs),
        }
        if tokens:
            prompt, completion = tokens.get("prompt", 0), tokens.get("completion", 0)
            counted = {"input_tokens": prompt, "output_tokens": completion}
            attributes["mlflow.chat.tokenUsage"] = json.dumps(
                {**counted, "total_tokens": prompt + completion}
            )
        said = "" if error is None else redact(_plain(error))[:_PREVIEW]
        self._made.append(
            {
                "trace_id": _bytes(self._trace_id.removeprefix("tr-")),
                "span_id": self._id(*what),
                "parent_span_id": None if what == _ROOT else self._id(*parent),
                "name": redact(_plain(name))[:_NAME],
                "start_time_unix_nano": between_ns[0],
                "end_time_unix_nano": between_ns[1],
                "status": {"code": "OK" if error is None else "ERROR", "message": said},
                "attributes": attributes,
            }
        )

    def made(self) -> Iterator[Span]:
        from mlflow.entities import Span

        for data in self._made:
            yield Span.from_dict(data)

    def _id(self, name: str, kind: str) -> str:
        return _bytes(_hex(self._trace_id, kind, name)[:16])


def _hex(*parts: str) -> str:
    text = "\0".join(parts)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _bytes(digits: str) -> str:
    """Return hexadecimal digits as the base64 of their bytes, which is how MLflow writes ids."""
    return base64.b64encode(bytes.fromhex(digits)).decode()


def _text(value: Any) -> str:
    """Return JSON without secrets; a lone surrogate, which no store takes, as its escape."""
    text = redact(json.dumps(value, ensure_ascii=False))
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(text: str) -> str:
    """Return a text in one line, without what a store refuses or a page must not obey."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line.encode("utf-8", "backslashreplace").decode()
