"""Doubts about a golden set that follow from the set alone."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

import yaml

from kebab_eval.errors import Fault
from kebab_eval.golden.entries import Entry
from kebab_eval.golden.registry import Parsed
from kebab_eval.records import GoldenQuery
from kebab_eval.yaml_source import Node, resolve_scalar

PART, SIMILAR = 5, 0.75
"""Letters of a part of a text, and the share of common parts from which two texts are called nearly
the same: one letter in twenty may differ. Shorter parts would be shared by unlike texts too."""
HOLDERS = 50
"""Texts that are kept for one part. What more than so many share is the frame of a set whose texts
are all made alike; to compare each with each would take minutes and tell nothing new."""
SMALLEST_CATEGORY = 5
FEWEST_GRADED = 5
"""Graded cases from which on it is no chance that all of them have one grade."""
# What is left of a text: C++ is not C, and 1.5 is not 15.
_LETTERS = re.compile(r"\w|(?<=\w)[+#]+|(?<=\d)[.,:/-](?=\d)")
# Section 4 and section 5, v1 and v2: texts that differ in one of these ask different things.
_NUMBERS = re.compile(r"[a-z0-9]*[0-9][a-z0-9]*")
_HANGUL = re.compile(r"[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]")
_FEW, _MANY = 0.1, 0.5

# The fields that hold ids, and those that hold lists of them.
_ID_FIELDS = frozenset({"id", "group", "doc"})
_ID_LISTS = frozenset({"expected_doc_ids", "expected_chunk_ids", "relevant_ids", "top3_ids"})
_DOCSERVER_IDS = frozenset({"relevant_ids", "top3_ids", "graded_relevance"})


def set_warnings(parsed: Parsed) -> Iterator[Fault]:
    """Yield every doubt, its code with it."""
    yield from _repeated_texts(parsed.entries)
    yield from _grades(parsed)
    yield from _languages(parsed.entries)
    yield from _counts(parsed.entries)
    if parsed.root is not None:
        yield from _ids_as_written(parsed.root)


def _place(entry: Entry, *fields: str) -> str:
    return next((entry.places[f] for f in fields if f in entry.places), entry.query.place)


# --- texts ----------------------------------------------------------------------------------


def folded(text: str) -> str:
    """Return a text without case, punctuation, white space, and form of its letters."""
    return "".join(_LETTERS.findall(unicodedata.normalize("NFKC", text).casefold()))


def _numbers(text: str) -> list[str]:
    return sorted(_NUMBERS.findall(unicodedata.normalize("NFKC", text).casefold()))


def _repeated_texts(entries: Sequence[Entry]) -> Iterator[Fault]:
    texts = [folded(entry.query.query) for entry in entries]
    first: dict[str, int] = {}
    for number, text in enumerate(texts):
        if not text:  # nothing but signs, which are all alike here
            continue
        if text in first:
            before = entries[first[text]].query
            message = f"asks the same as {before.query_id!r} ({before.place}); keep one"
            yield Fault(_place(entries[number], "query"), message, "duplicate-query")
        first.setdefault(text, number)
    distinct = sorted(first.values())

    @cache
    def numbers(place: int) -> list[str]:
        return _numbers(entries[distinct[place]].query.query)

    for one, other in _similar([texts[number] for number in distinct], numbers):
        earlier, later = entries[distinct[one]], entries[distinct[other]]
        if earlier.query.group is None or earlier.query.group != later.query.group:
            documents = [entry.query.judgments.doc.keys() for entry in (earlier, later)]
            advice = (
                "but expects other documents: mend the judgments, or make the texts differ"
                if all(documents) and documents[0].isdisjoint(documents[1])
                else "give both one group, or make them differ"
            )
            message = (
                f"asks nearly the same as {earlier.query.query_id!r} "
                f"({earlier.query.place}): {advice}"
            )
            yield Fault(_place(later, "query"), message, "similar-query")


def _similar(
    texts: Sequence[str], numbers: Callable[[int], list[str]]
) -> Iterator[tuple[int, int]]:
    """Yield (earlier, later) of each later text and the first earlier one that is nearly the same.

    Two sets with a share of t in common have one of their rarest parts in common already, so only
    texts that share one are compared (prefix filtering, Bayardo et al. 2007).

    Args:
        numbers: place of a text -> the numbers in it; texts with other ones are never the same.
    """
    # Dictionaries for sets: they keep the order of the text, so nothing depends on a hash.
    parts = [
        dict.fromkeys(text[i : i + PART] for i in range(max(1, len(text) - PART + 1)))
        for text in texts
    ]
    often = Counter(chain.from_iterable(parts))
    shared = [part for part, count in often.items() if count > 1]
    rank = {part: place for place, part in enumerate(sorted(shared, key=often.__getitem__))}
    held_by: defaultdict[int, list[int]] = defaultdict(list)
    shingles: dict[int, set[int]] = {}
    for later, own_parts in enumerate(parts):
        own = {rank[part] for part in own_parts if part in rank}
        size = len(own_parts)
        # The parts of this text alone are the rarest; they lead to no other text.
        reach = size - int(SIMILAR * size) + 1 - (size - len(own))
        if reach <= 0:
            continue
        shingles[later] = own
        rarest = sorted(own)[:reach]
        for earlier in sorted({earlier for part in rarest for earlier in held_by[part]}):
            if numbers(earlier) != numbers(later):
                continue
            other_size = len(parts[earlier])
            if min(size, other_size) < SIMILAR * max(size, other_size):
                continue
            common = len(own & shingles[earlier])
            if common >= SIMILAR * (size + other_size - common):
                yield earlier, later
                break
        for part in rarest:
            if len(held_by[part]) < HOLDERS:
                held_by[part].append(later)


def _languages(entries: Sequence[Entry]) -> Iterator[Fault]:
    for entry in entries:
        language, text = entry.query.language, entry.query.query
        letters = sum(map(str.isalpha, text)) if language else 0
        if language is None or not letters:
            continue
        share = len(_HANGUL.findall(text)) / letters
        wrong = {
            "ko": share < _FEW,
            "en": share > _MANY,
            "mixed": share in (0.0, 1.0),
        }.get(language, False)
        if wrong:
            seen = (
                "hardly any Hangul" if share < _FEW else "Hangul" if share == 1 else "mostly Hangul"
            )
            message = f"declared {language}, but the text is {seen}"
            yield Fault(_place(entry, "language", "lang"), message, "language")


# --- judgments ------------------------------------------------------------------------------


def _grades(parsed: Parsed) -> Iterator[Fault]:
    graded = [entry for entry in parsed.entries if _all_grades(entry.query)]
    top = parsed.top_grade or max(
        (grade for entry in graded for grade in _all_grades(entry.query)), default=1
    )
    for entry in graded:
        grades = _all_grades(entry.query)
        place = _place(entry, "graded_relevance", "relevance", "expected_spans")
        if max(grades) <= 0:
            message = "everything judged has grade 0, so no metric scores it; judge what answers"
            yield Fault(place, message, "only-zero")
        elif top > 1 and len(grades) >= 3 and min(grades) == top and _by_hand(parsed, entry):
            message = f"all {len(grades)} judged items have grade {top:g}: is none of them less?"
            yield Fault(place, message, "all-highest")
    yield from _one_grade(parsed, graded)
    if parsed.format == "docserver" and any(entry.query.notes for entry in parsed.entries):
        for entry in parsed.entries:
            if not entry.query.notes:
                message = "no notes: say why each grade is what it is"
                yield Fault(entry.query.place, message, "no-notes")
    elif parsed.top_grade is not None and parsed.version != "0.1" and graded:
        message = "no case has notes: say why each grade is what it is"
        yield Fault(graded[0].query.place, message, "no-notes")


def _by_hand(parsed: Parsed, entry: Entry) -> bool:
    """Say whether somebody chose the grades: those of a v0.1 case follow from its two lists."""
    return parsed.format != "docserver" or "graded_relevance" in entry.places


def _one_grade(parsed: Parsed, graded: Sequence[Entry]) -> Iterator[Fault]:
    """Say where a set with a scale uses its top alone: its graded metrics are binary ones."""
    judged = [entry for entry in graded if _by_hand(parsed, entry)]
    used = {grade for entry in judged for grade in _all_grades(entry.query) if grade > 0}
    if len(judged) >= FEWEST_GRADED and used == {parsed.top_grade}:
        message = (
            f"everything relevant in the whole set has grade {parsed.top_grade:g}: a graded metric "
            "says no more than a binary one; grade what answers only in part"
        )
        yield Fault(judged[0].query.place, message, "all-highest")


def _all_grades(query: GoldenQuery) -> list[float]:
    judgments = query.judgments
    spans = [span.grade for span in query.spans]
    return [*(judgments.doc or judgments.chunk).values()] or spans


def _counts(entries: Sequence[Entry]) -> Iterator[Fault]:
    for field, least, code in (("category", SMALLEST_CATEGORY, "small-category"),
                               ("group", 2, "single-group")):  # fmt: skip
        members: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            value = getattr(entry.query, field)
            if value is not None:
                members[value].append(entry)
        for value, held in members.items():
            if len(held) < least:
                place = _place(held[0], field)
                said = (
                    f"category {value!r} has {len(held)} of at least {least} cases: its mean says "
                    "little"
                    if field == "category"
                    else f"group {value!r} has no other member: add a paraphrase, or drop it"
                )
                yield Fault(place, said, code)


# --- ids as they stand in the file ----------------------------------------------------------


def _ids_as_written(root: Node) -> Iterator[Fault]:
    """Look at the raw text of each id: a reader of ours keeps it, another one may not."""
    left = [root]
    while left:
        node = left.pop()
        if node.kind == "list":
            left += reversed(node.value)
            continue
        if node.kind != "mapping":
            continue
        for key, value in node.value:
            name = key.value
            numbers = name in _DOCSERVER_IDS
            if name in _ID_FIELDS and value.kind == "scalar":
                yield from _id_as_written(value, numbers)
            elif name in _ID_LISTS and value.kind == "list":
                for item in value.value:
                    yield from _id_as_written(item, numbers)
            elif name == "graded_relevance" and value.kind == "mapping":
                for item, _ in value.value:
                    yield from _id_as_written(item, numbers)
            else:
                left.append(value)


def _id_as_written(node: Node, whole_numbers: bool) -> Iterator[Fault]:
    if node.kind != "scalar":
        return
    text = node.value
    if not unicodedata.is_normalized("NFC", text):
        message = f"id {text!r} is not in composed form (NFC); write it anew, as most editors do"
        yield Fault(node.place, message, "nfd-id")
    if node.plain and _SUSPICIOUS.match(text):
        kind = _read_as(text)
        if whole_numbers and kind == "a number" and text == str(_whole(text)):
            return  # the ids of that format are whole numbers
        if kind:
            message = f"id {text} is {kind} to other YAML readers; put it in quotes"
            yield Fault(node.place, message, "yaml-number")


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 30 else None


# What may be something else than text to a reader of YAML; all others are not looked at closely.
_SUSPICIOUS = re.compile(r"[-+.~=<\d]|(?:y|n|yes|no|true|false|on|off|null)\Z", re.IGNORECASE)
_KINDS = {"int": "a number", "float": "a number", "bool": "true or false", "null": "nothing",
          "timestamp": "a date", "merge": "a merge key", "value": "a default value"}  # fmt: skip


@cache
def _resolver() -> Any:
    return yaml.resolver.Resolver().resolve


def _read_as(text: str) -> str:
    """Return what YAML 1.1 or 1.2 takes a plain scalar for; empty where both read text."""
    tag = str(_resolver()(yaml.ScalarNode, text, (True, False)))
    newer = resolve_scalar(text)
    number = "a number" if isinstance(newer, int | float) else ""
    return _KINDS.get(tag.rpartition(":")[2]) or number
