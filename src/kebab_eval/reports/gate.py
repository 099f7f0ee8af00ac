"""A gate's verdict for people and for CI: terminal, Markdown, JSON, JUnit, GitHub annotations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from xml.etree import ElementTree

from kebab_eval.gate import VERDICTS, GateVerdict, RuleResult
from kebab_eval.reports.github import annotation
from kebab_eval.reports.markdown import code, escape, table
from kebab_eval.reports.texts import encodable, one_line

GATE_FORMATS = ("text", "md", "json", "junit", "github")

_OUTCOMES = {"pass": "passed", "fail": "failed", "undecided": "undecided"}
_ICONS = {"pass": "✅", "fail": "❌", "warn": "⚠️", "undecided": "❔"}
_LEVELS = {"fail": "error", "undecided": "warning", "warn": "warning"}
# What XML 1.0 can hold in no form, beyond what is shown as an escape already.
_NOT_XML = re.compile("[\ufffe\uffff]")


def render_gate(verdict: GateVerdict, form: str) -> str:
    """Return the verdict in one of ``GATE_FORMATS``, with a line end."""
    renderers: dict[str, Callable[[GateVerdict], str]] = {
        "text": _text,
        "md": _markdown,
        "json": _json,
        "junit": _junit,
        "github": github_annotations,
    }
    return renderers[form](verdict)


def _headline(verdict: GateVerdict) -> str:
    return f"gate {_OUTCOMES[verdict.outcome]}: {_counted(verdict)}"


def _counted(verdict: GateVerdict) -> str:
    words = {"pass": "passed", "fail": "failed", "warn": "warned", "undecided": "undecided"}
    said = [f"{verdict.counts[v]} {words[v]}" for v in VERDICTS if verdict.counts.get(v)]
    total = len(verdict.results)
    return f"{', '.join(said)} of {total} {'rule' if total == 1 else 'rules'}"


def _sides(verdict: GateVerdict) -> str:
    candidate = f"{verdict.candidate[1]} ({verdict.candidate[0]})"
    if verdict.baseline is None:
        return candidate
    return f"{candidate} against {verdict.baseline[1]} ({verdict.baseline[0]})"


def _warnings(verdict: GateVerdict) -> list[str]:
    return [" ".join(line.split()) for line in verdict.not_comparable.splitlines()] + list(
        verdict.notes
    )


def _rule(result: RuleResult) -> str:
    """Return the rule as it was written, with what makes it more than the plain kind."""
    words = [word for word in (result.rule.on_fail, result.rule.require) if word in _UNUSUAL]
    return f"{result.rule.text} [{', '.join(words)}]" if words else result.rule.text


_UNUSUAL = ("warn", "significant")


def _text(verdict: GateVerdict) -> str:
    lines = [one_line(_headline(verdict)), one_line(_sides(verdict))]
    # Never at the start of a line: CI would take a foreign "::error::" for a command.
    lines += [one_line(f"- {said}") for said in _warnings(verdict)]
    lines.append("")
    for result in _by_weight(verdict):
        lines.append(f"{result.verdict.upper():<9}  {one_line(_rule(result))}")
        lines += [f"{'':<9}  {part}" for part in one_line(result.reason).split("; ")]
    return "\n".join(lines) + "\n"


def _by_weight(verdict: GateVerdict) -> list[RuleResult]:
    """Return the rules, what decides first."""
    return sorted(verdict.results, key=lambda result: VERDICTS.index(result.verdict))


def _markdown(verdict: GateVerdict) -> str:
    icon = _ICONS[verdict.outcome]
    lines = [f"### {icon} {escape(_headline(verdict))}", "", f"{escape(_sides(verdict))}", ""]
    for said in _warnings(verdict):
        lines += [f"> {escape(said)}", ">"]
    if lines[-1] == ">":
        lines[-1] = ""
    rows = [
        [
            f"{_ICONS[result.verdict]} {result.verdict}",
            code(_rule(result)).replace("|", "\\|"),
            escape(result.reason),
        ]
        for result in _by_weight(verdict)
    ]
    return "\n".join([*lines, *table(["", "rule", "what came out"], rows)]) + "\n"


def _json(verdict: GateVerdict) -> str:
    document = json.dumps(verdict.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
    return encodable(document) + "\n"


def _junit(verdict: GateVerdict) -> str:
    """Return JUnit XML. Undecided is ``skipped``: a test without a verdict; the exit code tells."""
    counts = verdict.counts
    suite = ElementTree.Element(
        "testsuite",
        name="kebab-eval gate",
        tests=str(len(verdict.results)),
        failures=str(counts.get("fail", 0)),
        errors="0",
        skipped=str(counts.get("undecided", 0)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    facts = {
        "verdict": verdict.outcome,
        "candidate": " ".join(verdict.candidate),
        "baseline": " ".join(verdict.baseline or ()),
        "not_comparable": verdict.not_comparable,
    }
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    for result in verdict.results:
        case = ElementTree.SubElement(
            suite, "testcase", classname="kebab_eval.gate", name=_xml(_rule(result)), time="0"
        )
        reason = _xml(result.reason)
        if result.verdict == "fail":
            failure = ElementTree.SubElement(case, "failure", message=reason, type="fail")
            failure.text = reason
        elif result.verdict == "undecided":
            ElementTree.SubElement(case, "skipped", message=f"undecided: {reason}")
        else:
            output = ElementTree.SubElement(case, "system-out")
            output.text = reason if result.verdict == "pass" else f"warning: {reason}"
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", one_line(text))


def github_annotations(verdict: GateVerdict) -> str:
    """Return GitHub's workflow commands: an error for a failed rule, a warning for a doubtful one.

    A rule from a file is annotated at its line there.
    """
    lines = []
    if verdict.not_comparable:
        lines.append(
            annotation("warning", {"title": "gate undecided"}, "; ".join(_warnings(verdict)))
        )
    for result in _by_weight(verdict):
        level = _LEVELS.get(result.verdict)
        if level is None:
            continue
        rule = result.rule
        at: dict[str, object] = {"title": f"gate {result.verdict}"}
        if rule.file is not None:
            at = {"file": rule.file, "line": rule.line, "col": rule.column, **at}
        lines.append(annotation(level, at, f"{_rule(result)}: {result.reason}"))
    return "".join(f"{line}\n" for line in lines)
