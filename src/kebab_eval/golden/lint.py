"""The linter of golden sets: every fault and every doubt, each with its place and its code.

Faults come from the readers themselves, so that what a run refuses and what the linter tells is
one thing. Doubts (warnings) are rules of this package: :mod:`lint_texts` looks at the set alone,
:mod:`lint_corpus` holds it against what the system has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from kebab_eval.errors import Fault, GoldenError
from kebab_eval.golden.anchors import Corpus, resolve_spans
from kebab_eval.golden.entries import Entry
from kebab_eval.golden.lint_corpus import corpus_warnings
from kebab_eval.golden.lint_texts import set_warnings
from kebab_eval.golden.load import LoadedGolden, at_levels, check_ids, structure_faults
from kebab_eval.golden.references import resolve_documents
from kebab_eval.golden.registry import (
    Parsed,
    ReadOptions,
    parse_golden,
    without_collector,
)
from kebab_eval.records import LEVELS, GoldenSet, Level, Listing

LINT_SCHEMA = "kebab_eval.lint.v1"
Severity = Literal["error", "warning"]
_PLACE = re.compile(r"(.*?)(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?", re.DOTALL)

#: Code -> what it means; the page docs/golden-lint.md says what to do.
ERRORS: Mapping[str, str] = {
    "unreadable": "the file, a line or a cell cannot be read",
    "empty": "there is no query",
    "type": "a field holds something else than it may",
    "unknown-field": "a field that the format does not have",
    "missing-field": "a field that must be there is missing or empty",
    "unknown-value": "a value that is not among the allowed ones",
    "duplicate-id": "two queries have one id",
    "duplicate-item": "a list names an item twice",
    "grade": "a grade outside of the scale",
    "group": "the members of a group expect different documents",
    "failure-judged": "a query that nothing answers has judgments",
    "span": "a span that does not say what it must",
    "unknown-id": "an id that the corpus does not have",
    "anchor": "a span that is not in its document",
    "unjudged": "a query without judgments at the levels that the config counts",
}
WARNINGS: Mapping[str, str] = {
    "duplicate-query": "two queries ask the same in the same words",
    "similar-query": "two queries that share no group ask nearly the same",
    "all-highest": "every judged item has the highest grade",
    "only-zero": "everything judged has grade 0",
    "no-notes": "a graded case without the reasons of its grades",
    "language": "the script of the text is not that of the declared language",
    "ocr": "ocr_derived does not agree with the judged documents",
    "must-contain": "a text that an answer must hold stands in nothing that is expected",
    "forbidden": "a text that an answer must not hold stands in what is expected",
    "small-category": "a category of fewer than five cases",
    "single-group": "a group of one",
    "nfd-id": "an id that is not in Unicode's composed form",
    "yaml-number": "an id that other YAML readers take for a number, a date or a word",
    "other-document": "a chunk or a span of a document that the query does not judge",
    "stale-chunk": "chunk ids that are not those which the spans name now",
    "ambiguous-quote": "a quote that stands in several places of its document",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the linter tells."""

    severity: Severity
    code: str
    place: str
    message: str

    @property
    def position(self) -> tuple[str, int | None, int | None]:
        """(file, line, column), as far as the place says."""
        path, line, column = _PLACE.fullmatch(self.place).groups()  # type: ignore[union-attr]  # matches any text
        return path, int(line) if line else None, int(column) if column else None


@dataclass(frozen=True, slots=True)
class LintReport:
    """What the linter found, in file order; ``corpus_checked`` says whether it had a corpus."""

    path: str
    queries: int
    findings: tuple[Finding, ...]
    corpus_checked: bool

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors

    def to_json(self) -> dict[str, Any]:
        findings = []
        for finding in self.findings:
            path, line, column = finding.position
            findings.append(
                {
                    "code": finding.code,
                    "severity": finding.severity,
                    "path": path,
                    "line": line,
                    "column": column,
                    "message": finding.message,
                }
            )
        return {
            "schema_version": LINT_SCHEMA,
            "path": self.path,
            "queries": self.queries,
            "errors": self.errors,
            "warnings": self.warnings,
            "corpus_checked": self.corpus_checked,
            "findings": findings,
        }


@without_collector()
def lint(
    path: Path,
    options: ReadOptions | None = None,
    listing: Listing | None = None,
    *,
    docs: frozenset[str] | None = None,
    chunks: frozenset[str] | None = None,
    levels: Collection[Level] = LEVELS,
    min_relevance: float | None = None,
) -> LintReport:
    """Return everything that is wrong or doubtful about a golden file; raises nothing of it.

    Args:
        listing: what the system holds, with texts; None leaves out what needs them.
        docs, chunks: the ids of the system; None where it cannot list them.
        levels: those whose judgments count; the ids of the others are left alone, as in a run.
        min_relevance: the grade from which an item is relevant; None takes the format's own.
    """
    try:
        parsed, faults = parse_golden(path, options)
    except GoldenError as wrong:
        findings = _ordered(_as_findings(wrong.faults))
        return LintReport(str(path), 0, findings, corpus_checked=False)
    faults += structure_faults(parsed)
    if min_relevance is not None:
        parsed.min_relevance = min_relevance
    doubts = list(set_warnings(parsed))
    if not set(levels) >= set(LEVELS):
        parsed.entries = [at_levels(entry, levels, faults) for entry in parsed.entries]
    loaded = _loaded(path, parsed)
    if docs is not None:
        loaded, unknown = resolve_documents(loaded, docs)
        faults += unknown
        if not unknown:
            faults += _unknown_ids(loaded, chunks, docs)
    if listing is not None:
        golden, lost = resolve_spans(loaded.golden, listing)
        told = {fault.place for fault in faults}
        faults += [fault for fault in lost if fault.place not in told]
        resolved = _with_queries(loaded, golden.queries)
        doubts += corpus_warnings(resolved, parsed, Corpus(listing))
    warnings = [Finding("warning", fault.code, fault.place, fault.message) for fault in doubts]
    return LintReport(
        str(path),
        len(parsed.entries),
        _ordered([*_as_findings(faults), *warnings]),
        corpus_checked=listing is not None,
    )


def _loaded(path: Path, parsed: Parsed) -> LoadedGolden:
    """Return the set as far as it was read; nobody asks for the digest of what may be unsound."""
    queries = tuple(entry.query for entry in parsed.entries)
    golden = GoldenSet(
        path.stem, parsed.version, "", queries, parsed.min_relevance, str(path), parsed.format
    )
    return LoadedGolden(golden, tuple(parsed.entries))


def _with_queries(loaded: LoadedGolden, queries: Iterable[Any]) -> list[Entry]:
    pairs = zip(loaded.entries, queries, strict=True)
    return [replace(entry, query=query) for entry, query in pairs]


def _unknown_ids(
    loaded: LoadedGolden, chunks: frozenset[str] | None, docs: frozenset[str]
) -> tuple[Fault, ...]:
    try:
        check_ids(loaded, chunks, docs)
    except GoldenError as wrong:
        return wrong.faults
    return ()


def _as_findings(faults: Iterable[Fault]) -> list[Finding]:
    return [
        Finding("error", fault.code or "unreadable", fault.place, fault.message) for fault in faults
    ]


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    def order(finding: Finding) -> tuple[str, int, int, str]:
        path, line, column = finding.position
        return path, line or 0, column or 0, finding.severity

    return tuple(sorted(dict.fromkeys(findings), key=order))
