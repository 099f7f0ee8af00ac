"""The Document Server's search evaluation set, v0.2 (graded) and v0.1 (binary).

- id: std_006
  query: "..."
  category: standards
  legacy_category: norm
  intent: fact_lookup
  domain_hint: document
  language: ko
  ocr_derived: false
  failure_expected: false
  graded_relevance: {3856: 3, 3860: 2, 4101: 0}
  relevant_ids: [3856, 3860]
  top3_ids: [3856]
  notes: "..."

A list, or a mapping with ``queries`` and ``version``. Document ids are integers there, texts here.
"""

from __future__ import annotations

import unicodedata

from kebab_eval.errors import Fault
from kebab_eval.golden.entries import Entry, FieldReader, query_nodes
from kebab_eval.golden.kebab import DIFFICULTIES, LANGUAGES
from kebab_eval.records import BinaryJudgments, GoldenQuery, Judgments, Level
from kebab_eval.yaml_source import Node

CATEGORIES = (
    "standards",
    "korean_only",
    "english_only",
    "mixed",
    "exam",
    "ocr_derived",
    "failure_expected",
)
INTENTS = ("semantic_search", "fact_lookup", "filter_browse")
DOMAINS = ("document", "news", "mixed")
TOP_GRADE = 3
RELEVANT_FROM = 2
V02_FIELDS = frozenset(
    {
        "legacy_category",
        "intent",
        "domain_hint",
        "language",
        "ocr_derived",
        "failure_expected",
        "graded_relevance",
    }
)
"""The fields that only a case of v0.2 has."""
V01_FIELDS = frozenset({"id", "query", "category", "relevant_ids", "top3_ids"})
FURTHER_FIELDS = frozenset(
    {"notes", "difficulty", "group", "expected_spans", "must_contain", "forbidden"}
)
"""What this project reads in either version beside their own fields."""
FIELDS = V01_FIELDS | V02_FIELDS | FURTHER_FIELDS
MARKS = V02_FIELDS | {"relevant_ids", "top3_ids"}
"""Fields that tell this format from others."""


def is_graded(root: Node) -> bool:
    """Say whether a file is of v0.2: any of its cases is graded, or says what only v0.2 says."""
    return any(key.value in V02_FIELDS for node in query_nodes(root, []) for key, _ in node.value)


def declared_version(root: Node) -> str | None:
    """Return what the file calls its version, None where it does not say."""
    if root.kind != "mapping":
        return None
    found = next((value for key, value in root.value if key.value == "version"), None)
    return found.value if found is not None and found.kind == "scalar" else None


def read_docserver(root: Node, faults: list[Fault], *, graded: bool) -> list[Entry]:
    """Return the cases of a file; what is wrong is added to ``faults``.

    Args:
        graded: the file is of v0.2, so that its categories are those of v0.2. A case without
            ``graded_relevance`` is read as v0.1 in either: an id of ``top3_ids`` has grade 3, any
            other relevant one grade 2.
    """
    if root.kind == "mapping":
        for key, _ in root.value:
            if key.value not in ("queries", "version"):
                message = f"unknown field {key.value!r}; allowed: queries, version"
                faults.append(Fault(key.place, message, "unknown-field"))
    return [
        entry
        for node in query_nodes(root, faults)
        if (entry := _entry(node, faults, graded=graded)) is not None
    ]


def _entry(node: Node, faults: list[Fault], *, graded: bool) -> Entry | None:
    before = len(faults)
    reader = FieldReader(node, FIELDS, faults)
    query_id = reader.text("id", required=True)
    query = reader.text("query", required=True)
    category = reader.choice("category", CATEGORIES) if graded else reader.text("category")
    relevant, top3 = reader.texts("relevant_ids"), reader.texts("top3_ids")
    binary = BinaryJudgments(
        frozenset(item for item, _ in (*relevant, *top3)), frozenset(item for item, _ in top3)
    )
    places: dict[tuple[Level, str], str] = {}
    if reader.has("graded_relevance"):
        grades = _grades(reader, places)
    else:
        grades = {item: 2.0 for item, _ in relevant} | {item: 3.0 for item, _ in top3}
    for item, place in (*relevant, *top3):
        places.setdefault(("doc", item), place)
    failure = bool(reader.boolean("failure_expected"))
    _check_failure(reader, category, failure)
    tags = {
        "legacy_category": reader.text("legacy_category"),
        "intent": reader.choice("intent", INTENTS),
        "domain_hint": reader.choice("domain_hint", DOMAINS),
    }
    language = reader.choice("language", LANGUAGES)
    ocr_derived = reader.boolean("ocr_derived")
    # A span is as relevant as its document, unless it says more.
    spans = reader.spans("expected_spans", lambda doc: grades.get(doc) or float(RELEVANT_FROM))
    must_contain, forbidden = (
        tuple(text for text, _ in reader.texts(name)) for name in ("must_contain", "forbidden")
    )
    notes = reader.text("notes")
    if query_id is None or query is None:
        return None
    if not reader.has("relevant_ids") and not reader.has("top3_ids"):
        binary = binary_of(grades)
    golden_query = GoldenQuery(
        query_id=query_id,
        query=query,
        judgments=Judgments(doc=grades),
        language=language,
        category=category,
        difficulty=reader.choice("difficulty", DIFFICULTIES),
        group=reader.text("group"),
        ocr_derived=ocr_derived,
        failure_expected=failure,
        must_contain=must_contain,
        forbidden=forbidden,
        tags={name: value for name, value in tags.items() if value is not None},
        spans=spans,
        v01=binary,
        notes=notes or "",
        place=node.place,
    )
    return Entry(golden_query, places, reader.places, sound=len(faults) == before)


def binary_of(grades: dict[str, float]) -> BinaryJudgments:
    """Return v0.1's view of grades: relevant from 2 on, of the top three from 3 on."""
    return BinaryJudgments(
        frozenset(item for item, grade in grades.items() if grade >= RELEVANT_FROM),
        frozenset(item for item, grade in grades.items() if grade >= TOP_GRADE),
    )


def _grades(reader: FieldReader, places: dict[tuple[Level, str], str]) -> dict[str, float]:
    """Return document id -> grade of ``graded_relevance``; the place of each goes to ``places``."""
    node = reader.fields["graded_relevance"]
    grades: dict[str, float] = {}
    if node.kind != "mapping":
        message = f"graded_relevance must be a mapping of id: grade, found {node.describe()}"
        reader.fault(node.place, message, "type")
        return grades
    for key, value in node.value:
        item = unicodedata.normalize("NFC", key.value)
        grade = value.python() if value.kind == "scalar" else None
        if not item.strip():
            reader.fault(key.place, "graded_relevance holds an empty id", "missing-field")
        elif not isinstance(grade, int) or isinstance(grade, bool) or not 0 <= grade <= TOP_GRADE:
            message = f"the grade of {item!r} must be 0, 1, 2 or 3, found {value.describe()}"
            reader.fault(value.place, message, "grade")
        elif item in grades:
            message = f"graded_relevance holds {item!r} twice; keep one"
            reader.fault(key.place, message, "duplicate-item")
        else:
            grades[item] = float(grade)
            places["doc", item] = key.place
    return grades


def _check_failure(reader: FieldReader, category: str | None, failure: bool) -> None:
    judged = ("graded_relevance", "relevant_ids", "top3_ids", "expected_spans")
    for name in judged if failure else ():
        if reader.has(name) and reader.fields[name].value:
            message = "a failure_expected case has no judgments: an empty result is the right one"
            reader.fault(reader.fields[name].place, message, "failure-judged")
            break
    if category == "failure_expected" and reader.has("failure_expected") and not failure:
        place = reader.fields["failure_expected"].place
        message = "category failure_expected needs failure_expected: true"
        reader.fault(place, message, "failure-judged")
