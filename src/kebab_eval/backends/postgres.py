"""The backend ``postgres``: full text and pgvector over a table of the user's (extra ``pgvector``).

One statement a search: each channel ranks up to ``search.depth`` rows, and reciprocal rank fusion
joins them. Nothing is ever written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from kebab_eval import config as config_models
from kebab_eval.backends.base import ItemIds, Progress, SearchResponse, SingleSearch, SystemInfo
from kebab_eval.config import Config
from kebab_eval.engine.embedding import EMBEDDERS, open_embedder, query_vector
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.records import Candidate, Hit, Listing, Passage

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg.sql import Composed

_LISTED_AT_MOST = 1_000_000
_SCORE_KINDS = {"lexical": "ts_rank_cd", "vector": "cosine", "hybrid": "rrf"}
_SNIPPET = 2000

# Any of the words may match: a question hardly ever stands in a passage with all of them.
_LEXICAL = """
lexical AS (
  SELECT id, score, row_number() OVER (ORDER BY score DESC, id) AS rank FROM (
    SELECT {id}::text AS id, ts_rank_cd({tsv}, words) AS score
    FROM {table},
      (SELECT replace(plainto_tsquery({language}, %(query)s)::text, '&', '|')::tsquery) AS q(words)
    WHERE {tsv} @@ words ORDER BY score DESC, id LIMIT %(depth)s
  ) AS found
)"""
_VECTOR = """
vector AS (
  SELECT id, score, row_number() OVER (ORDER BY score DESC, id) AS rank FROM (
    SELECT {id}::text AS id, 1 - ({embedding} <=> %(vector)s::vector) AS score
    FROM {table} WHERE {embedding} IS NOT NULL
    ORDER BY {embedding} <=> %(vector)s::vector, id LIMIT %(depth)s
  ) AS found
)"""
_NONE = "NAME AS (SELECT NULL::text AS id, NULL::float8 AS score, NULL::bigint AS rank LIMIT 0)"
_FUSED = """
WITH {lexical}, {vector}
SELECT t.{id}::text, {doc}::text, left(t.{text}, {snippet}),
  (COALESCE(%(w_lexical)s / (%(rrf_k)s + lexical.rank), 0)
    + COALESCE(%(w_vector)s / (%(rrf_k)s + vector.rank), 0)) / %(highest)s AS fused,
  lexical.rank, lexical.score, vector.rank, vector.score
FROM lexical FULL OUTER JOIN vector USING (id)
JOIN {table} AS t ON t.{id}::text = COALESCE(lexical.id, vector.id)
ORDER BY fused DESC, 1"""


class PostgresBackend(SingleSearch):
    """Searches one table; connections are opened when they are needed, one for each search at once.

    Raises:
        UsageError: the mode needs a column that the config does not name.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._section = cast("config_models.PostgresBackend", config.backend)
        mode = config.search.mode
        if mode != "lexical" and self._section.vector_column is None:
            raise UsageError(
                f"search.mode {mode} needs backend.vector_column; search.mode: lexical does not"
            )
        self._embedder = None if mode == "lexical" else open_embedder(config.embedding.provider)
        self._idle: list[AsyncConnection[Any]] = []
        self._statement = _statement(self._section, mode)
        self._ids: ItemIds | None = None
        self._info = self._learn()

    def describe(self) -> SystemInfo:
        return self._info

    def prepare(self, progress: Progress | None = None) -> None:
        if self._embedder is not None:
            self._embedder.load()

    async def search(self, query: str, query_id: str) -> SearchResponse:
        import psycopg

        query = query.replace("\0", " ")  # PostgreSQL has no text with it
        connection = self._idle.pop() if self._idle else await self._connect()
        sound = False
        try:
            vector = await self._vector(query)
            cursor = await connection.execute(self._statement, self._values(query, vector))
            rows = await cursor.fetchall()
            sound = True
        except psycopg.OperationalError as reason:
            raise BackendError(_said(reason), retry=True) from reason
        except psycopg.Error as reason:
            raise BackendError(_said(reason)) from reason
        finally:
            if sound:
                self._idle.append(connection)
            else:  # also when the search was cancelled in the middle
                await connection.close()
        return self._response(rows)

    async def _connect(self) -> AsyncConnection[Any]:
        import psycopg

        try:
            connection = await psycopg.AsyncConnection.connect(self._section.dsn, autocommit=True)
            await connection.set_read_only(True)
        except psycopg.Error as reason:
            raise BackendError(_said(reason), retry=True) from reason
        return connection

    async def _vector(self, query: str) -> str | None:
        if self._embedder is None:
            return None
        vector = await asyncio.to_thread(query_vector, self._embedder, query)
        return "[" + ",".join(f"{value:.8g}" for value in vector.tolist()) + "]"

    def _values(self, query: str, vector: str | None) -> Mapping[str, Any]:
        fusion, mode = self._config.fusion, self._config.search.mode
        weights = {
            "lexical": 0.0 if mode == "vector" else fusion.weights.lexical,
            "vector": 0.0 if mode == "lexical" else fusion.weights.vector,
        }
        return {
            "query": query,
            "vector": vector,
            "depth": self._config.search.depth,
            "rrf_k": float(fusion.rrf_k),
            "w_lexical": weights["lexical"],
            "w_vector": weights["vector"],
            "highest": (sum(weights.values()) or 1.0) / (fusion.rrf_k + 1),
        }

    def _response(self, rows: list[Any]) -> SearchResponse:
        mode, gate = self._config.search.mode, self._config.score_gate
        hits: list[Hit] = []
        ranked: dict[str, list[tuple[int, Candidate]]] = {"lexical": [], "vector": []}
        for chunk_id, owner, text, fused, *channels in rows:
            doc_id = chunk_id if owner is None else owner  # a row without one is its own document
            said = dict(zip(("lexical", "vector"), (channels[:2], channels[2:]), strict=True))
            found: dict[str, float] = {}
            for name, (rank, score) in said.items():
                if rank is not None:
                    ranked[name].append((rank, Candidate(chunk_id, doc_id, float(score))))
                    found |= {f"{name}_rank": float(rank), f"{name}_score": float(score)}
            score = float(fused if mode == "hybrid" else said[mode][1])
            if len(hits) < self._config.search.k and (gate is None or score >= gate):
                kind = _SCORE_KINDS[mode]
                hits.append(Hit(len(hits) + 1, chunk_id, doc_id, score, kind, text or "", found))
        candidates = {
            name: tuple(candidate for _, candidate in sorted(found, key=lambda one: one[0]))
            for name, found in ranked.items()
            if mode in ("hybrid", name)
        }
        return SearchResponse(tuple(hits), candidates=candidates)

    def item_ids(self) -> ItemIds | None:
        return self._ids

    def list_chunks(self) -> Listing | None:
        if self._ids is None:
            return None
        rows = self._rows("SELECT {id}::text, {doc}::text, {text} FROM {table} AS t ORDER BY 1")
        return Listing(tuple(Passage(c, c if d is None else d, text or "") for c, d, text in rows))

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    def _learn(self) -> SystemInfo:
        """Ask the table what it is, and hold every column that the config names against it."""
        ((count, documents),) = self._rows(
            "SELECT count(*), count(DISTINCT {doc}) FROM {table} AS t"
        )
        self._rows("SELECT {tsv} FROM {table} AS t LIMIT 0")
        snapshot: dict[str, Any] = {"table": self._section.table, "chunk_count": count}
        if self._section.doc_column is not None:
            snapshot["doc_count"] = documents
        if self._embedder is not None:
            self._rows("SELECT {embedding} FROM {table} AS t LIMIT 0")
            spec = EMBEDDERS[self._config.embedding.provider]
            snapshot |= {"embedding_model": spec.model, "embedding_version": spec.version}
        if count <= _LISTED_AT_MOST:
            pairs = self._rows("SELECT {id}::text, {doc}::text FROM {table} AS t")
            chunks = frozenset(chunk for chunk, _ in pairs)
            docs = frozenset(chunk if doc is None else doc for chunk, doc in pairs)
            self._ids = ItemIds(chunks, docs)
        fusion = self._config.fusion
        snapshot |= {"rrf_k": fusion.rrf_k, "score_gate": self._config.score_gate}
        kind = _SCORE_KINDS[self._config.search.mode]
        return SystemInfo("postgres", kind, {**snapshot, **self._section.versions})

    def _rows(self, statement: str) -> list[Any]:
        import psycopg

        try:
            with psycopg.connect(self._section.dsn, autocommit=True) as connection:
                connection.read_only = True
                return connection.execute(_composed(statement, self._section)).fetchall()
        except psycopg.OperationalError as reason:
            raise BackendError(f"backend.dsn: {_said(reason)}") from reason
        except psycopg.Error as reason:
            raise UsageError(f"backend.table {self._section.table}: {_said(reason)}") from reason


def open_postgres(config: Config) -> PostgresBackend:
    """Connect to the database of a config.

    Raises:
        UsageError: the extra is not installed, or a table or column is not there.
        BackendError: the database cannot be reached.
    """
    try:
        import psycopg  # noqa: F401  # only whether it is there
    except ImportError as missing:
        message = 'backend.type postgres needs psycopg; pip install "kebab-eval[pgvector]"'
        raise UsageError(message) from missing
    return PostgresBackend(config)


def _statement(section: config_models.PostgresBackend, mode: str) -> Composed:
    def channel(name: str, text: str) -> Composed:
        return _composed(text if mode in ("hybrid", name) else _NONE.replace("NAME", name), section)

    parts = {"lexical": channel("lexical", _LEXICAL), "vector": channel("vector", _VECTOR)}
    return _composed(_FUSED, section, **parts)


def _composed(statement: str, section: config_models.PostgresBackend, **parts: Any) -> Composed:
    """Return a statement with the names of table and columns quoted into it."""
    from psycopg.sql import SQL, Identifier, Literal

    language = Literal(section.text_config)
    text = Identifier(section.text_column)
    tsv: Any = SQL("to_tsvector({}::regconfig, {})").format(language, text)
    if section.tsv_column is not None:
        tsv = Identifier(section.tsv_column)
    doc: Any = SQL("NULL")
    if section.doc_column is not None:
        doc = SQL("t.{}").format(Identifier(section.doc_column))
    names = {
        "table": Identifier(*section.table.split(".")),
        "id": Identifier(section.id_column),
        "doc": doc,
        "text": text,
        "tsv": tsv,
        "embedding": Identifier(section.vector_column or ""),
        "language": SQL("{}::regconfig").format(language),
        "snippet": Literal(_SNIPPET),
        **parts,
    }
    return SQL(cast("Any", statement)).format(**names)


def _said(reason: Exception) -> str:
    """Return what the database said, in one line; its address and secrets are not in it."""
    text = " ".join(str(reason).split())
    return f"PostgreSQL: {text[:300] or type(reason).__name__}"
