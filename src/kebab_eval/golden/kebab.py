"""kebab's golden format: a top-level list, ``id`` and ``query`` required.

- id: q-001
  query: "..."
  lang: ko
  expected_doc_ids: [notes/a.md]
  expected_chunk_ids: ["notes/a.md#heading:1a2b3c4d"]
  must_contain: ["60"]
  forbidden: ["600"]
  difficulty: hard
  group: rrf-k
"""

from __future__ import annotations

from kebab_eval.errors import Fault
from kebab_eval.golden.entries import Entry, FieldReader
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
        "must_contain",
        "forbidden",
        "difficulty",
        "group",
    }
)


def parse_entries(root: Node, faults: list[Fault]) -> list[Entry]:
    """Return the entries of a kebab golden file; what is wrong is added to ``faults``."""
    if root.kind != "list":
        message = f"a golden set is a list of queries, found {root.describe()}"
        faults.append(Fault(root.place, message))
        return []
    entries = []
    for node in root.value:
        if node.kind != "mapping":
            message = f"a golden query is a mapping with id and query, found {node.describe()}"
            faults.append(Fault(node.place, message))
            continue
        entry = _entry(node, faults)
        if entry is not None:
            entries.append(entry)
    return entries


def _entry(node: Node, faults: list[Fault]) -> Entry | None:
    before = len(faults)
    reader = FieldReader(node, FIELDS, faults)
    query_id = reader.text("id", required=True)
    query = reader.text("query", required=True)
    expected: dict[Level, list[tuple[str, str]]] = {
        "chunk": reader.texts("expected_chunk_ids"),
        "doc": reader.texts("expected_doc_ids"),
    }
    language = reader.choice("lang", LANGUAGES)
    difficulty = reader.choice("difficulty", DIFFICULTIES)
    group = reader.text("group")
    must_contain = tuple(text for text, _ in reader.texts("must_contain"))
    forbidden = tuple(text for text, _ in reader.texts("forbidden"))
    if query_id is None or query is None:
        return None
    judgments = Judgments(
        chunk={item: 1.0 for item, _ in expected["chunk"]},
        doc={item: 1.0 for item, _ in expected["doc"]},
    )
    golden_query = GoldenQuery(
        query_id=query_id,
        query=query,
        judgments=judgments,
        language=language,
        difficulty=difficulty,
        group=group,
        must_contain=must_contain,
        forbidden=forbidden,
        place=node.place,
    )
    places = {(level, item): place for level, pairs in expected.items() for item, place in pairs}
    return Entry(golden_query, places, sound=len(faults) == before)
