"""kebab's golden format: a top-level list, ``id`` and ``query`` required.

- id: q-001
  query: "..."
  lang: ko
  expected_doc_ids: [notes/a.md]
  expected_chunk_ids: ["notes/a.md#heading:1a2b3c4d"]
  expected_spans: [{doc: notes/a.md, quote: "k is 60"}]
  must_contain: ["60"]
  forbidden: ["600"]
  difficulty: hard
  group: rrf-k
"""

from __future__ import annotations

from kebab_eval.errors import Fault
from kebab_eval.golden.entries import Entry, FieldReader, query_nodes
from kebab_eval.records import GoldenQuery, Judgments, Level
from kebab_eval.yaml_source import Node

LANGUAGES = ("ko", "en", "mixed")
DIFFICULTIES = ("easy", "medium", "hard")
FIELDS = frozenset(
    {
        "id",
        "query",
        "lang",
        "expected_doc_ids",
        "expected_chunk_ids",
        "expected_spans",
        "must_contain",
        "forbidden",
        "difficulty",
        "group",
        "notes",
    }
)


def read_kebab(root: Node, faults: list[Fault]) -> list[Entry]:
    """Return the entries of a kebab golden file; what is wrong is added to ``faults``."""
    return [entry for node in query_nodes(root, faults) if (entry := _entry(node, faults))]


def _entry(node: Node, faults: list[Fault]) -> Entry | None:
    before = len(faults)
    reader = FieldReader(node, FIELDS, faults)
    query_id = reader.text("id", required=True)
    query = reader.text("query", required=True)
    expected: dict[Level, list[tuple[str, str]]] = {
        "chunk": reader.texts("expected_chunk_ids"),
        "doc": reader.texts("expected_doc_ids"),
    }
    spans = reader.spans("expected_spans")
    language = reader.choice("lang", LANGUAGES)
    difficulty = reader.choice("difficulty", DIFFICULTIES)
    group = reader.text("group")
    must_contain = tuple(text for text, _ in reader.texts("must_contain"))
    forbidden = tuple(text for text, _ in reader.texts("forbidden"))
    notes = reader.text("notes")
    if query_id is None or query is None:
        return None
    golden_query = GoldenQuery(
        query_id=query_id,
        query=query,
        judgments=Judgments(
            chunk={item: 1.0 for item, _ in expected["chunk"]},
            doc={item: 1.0 for item, _ in expected["doc"]},
        ),
        language=language,
        difficulty=difficulty,
        group=group,
        must_contain=must_contain,
        forbidden=forbidden,
        spans=spans,
        notes=notes or "",
        place=node.place,
    )
    places = {(level, item): place for level, pairs in expected.items() for item, place in pairs}
    return Entry(golden_query, places, reader.places, sound=len(faults) == before)
