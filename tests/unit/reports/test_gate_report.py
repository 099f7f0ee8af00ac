"""A gate's verdict in every format, also where a name or a text is hostile."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from kebab_eval.gate import GateVerdict, judge
from kebab_eval.gate_rules import parse_options
from kebab_eval.records import EvalRun
from kebab_eval.reports.gate import GATE_FORMATS, render_gate

MakeRun = Callable[..., EvalRun]

HOSTILE = "<b>&|`*[x](y)\n::error::pwn\r%0A\x1b[31m\ud800\ufffe]]>\"'"
# one query found at rank 2, one failed: hit@5 is 0.5 and nDCG@10 0.5 / log2(3) = 0.3155
RULES = (
    "hit_at_5_doc >= 0.7",
    "hit_at_5_doc >= 0.7 [warn]",
    "hit_at_5_doc >= 0.7 [significant]",
    "hit_at_5_doc >= 0.5",
)


def verdict(run: EvalRun, *rules: str) -> GateVerdict:
    return judge(parse_options(rules or RULES), run)


def test_the_first_lines_say_the_verdict_and_what_decided_it(run_with: MakeRun) -> None:
    text = render_gate(verdict(run_with()), "text")
    lines = text.splitlines()
    assert lines[0] == "gate failed: 1 failed, 1 undecided, 1 warned, 1 passed of 4 rules"
    assert lines[1] == "run words (20260101-000000-n-abcd)"
    assert [line.split()[0] for line in lines if line[:1].isupper()] == [
        "FAIL", "UNDECIDED", "WARN", "PASS",
    ]  # fmt: skip
    assert "0.500 is 0.200 below the 0.700 asked for, n=2" in text


def test_markdown_is_one_table_for_a_comment(run_with: MakeRun) -> None:
    text = render_gate(verdict(run_with()), "md")
    assert text.startswith("### ❌ gate failed: 1 failed")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 4
    assert rows[2].startswith("| ❌ fail | `hit_at_5_doc >= 0.7` | 0.500 is 0.200 below")
    assert rows[3].startswith("| ❔ undecided | `hit_at_5_doc >= 0.7 [significant]` |")


def test_junit_is_what_ci_reads(run_with: MakeRun) -> None:
    suite = ElementTree.fromstring(render_gate(verdict(run_with()), "junit"))  # noqa: S314  # ours
    assert suite.tag == "testsuite"
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped", "errors")} == {
        "tests": "4", "failures": "1", "skipped": "1", "errors": "0",
    }  # fmt: skip
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == list(RULES)
    failure, skipped = cases[0].find("failure"), cases[2].find("skipped")
    assert failure is not None
    assert (failure.get("message") or "").startswith("0.500 is 0.200 below")
    assert skipped is not None
    assert (skipped.get("message") or "").startswith("undecided: ")
    assert (cases[1].findtext("system-out") or "").startswith("warning: ")
    assert cases[3].findtext("system-out") == "0.500, asked for >= 0.5, n=2".replace(
        "0.5,", "0.500,"
    )


def test_github_gets_an_error_at_the_line_of_the_rule(run_with: MakeRun) -> None:
    rules = [
        replace(rule, file="a,b:c.yaml", line=4, column=5) for rule in parse_options(RULES[:1])
    ]
    text = render_gate(judge(rules, run_with()), "github")
    assert text.startswith("::error file=a%2Cb%3Ac.yaml,line=4,col=5,title=gate fail::hit_at_5_doc")
    lines = render_gate(verdict(run_with()), "github").splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error", "::warning", "::warning"]


@pytest.mark.parametrize("form", GATE_FORMATS)
def test_a_hostile_name_stays_text(run_with: MakeRun, form: str) -> None:
    run = run_with(HOSTILE, name=HOSTILE)
    rule = replace(parse_options(RULES[:1])[0], text=HOSTILE)
    found = judge([rule], run, not_comparable=HOSTILE)
    text = render_gate(found, form)
    text.encode()
    assert "\x1b" not in text
    if form == "json":
        assert json.loads(text)["candidate"]["name"] == HOSTILE
    elif form == "junit":
        suite = ElementTree.fromstring(text)  # noqa: S314  # ours
        assert [child.tag for child in suite] == ["properties", "testcase"]
        assert "<b>&|`*[x](y) ::error::pwn" in (suite[1].get("name") or "")
    elif form == "github":
        lines = text.splitlines()
        assert len(lines) == 2
        assert all(line.startswith(("::error ", "::warning ")) for line in lines)
        assert "%250A" in text
    else:
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    if form == "md":
        table = [line for line in text.splitlines() if line.startswith("| ❌")]
        assert len(table) == 1
        assert table[0].replace("\\|", "").count("|") == 4
        assert "\\<b\\>" in text


def test_a_run_that_is_not_comparable_says_so_first(run_with: MakeRun) -> None:
    found = judge(
        parse_options(["hit_at_5_doc >= baseline"]),
        run_with(),
        run_with(),
        not_comparable="a and b cannot be compared; they differ in\n  golden set: 1, 2",
    )
    for form in ("text", "md", "github"):
        assert "cannot be compared; they differ in" in render_gate(found, form)
        assert "golden set: 1, 2" in render_gate(found, form)
