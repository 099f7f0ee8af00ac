"""The rules file: its forms, its defaults, and the place of each fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab_eval.errors import RuleError
from kebab_eval.gate_file import load_rules

ROOT = Path(__file__).resolve().parents[2]


def written(folder: Path, text: str) -> Path:
    path = folder / "g.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def faults(path: Path) -> list[str]:
    with pytest.raises(RuleError) as caught:
        load_rules(path)
    return [str(fault).replace(str(path), "g.yaml") for fault in caught.value.faults]


def test_every_form_of_a_rule_is_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "on_fail: warn\n"
        "require: significant\n"
        "rules:\n"
        "  - hit_at_5_chunk >= baseline - 0.03\n"
        "  - language=ko: ndcg_at_10_doc >= 0.70\n"
        "  - worst(language): ndcg_at_10_doc >= 0.5\n"
        "  - rule: 'language=en: ndcg_at_10_doc >= 0.70'\n"
        "    on_fail: fail\n"
        "    require: point\n"
        "  - regressions <= 0 [fail]\n",
    )
    rules = load_rules(path)
    assert [(r.scope, r.subject, r.on_fail, r.require) for r in rules] == [
        ("", "hit_at_5_chunk", "warn", "significant"),
        ("language=ko", "ndcg_at_10_doc", "warn", "significant"),
        ("worst(language)", "ndcg_at_10_doc", "warn", "significant"),
        ("language=en", "ndcg_at_10_doc", "fail", "point"),
        ("", "regressions", "fail", None),  # a count has no test
    ]
    assert rules[1].text == "language=ko: ndcg_at_10_doc >= 0.70"
    assert (rules[0].file, rules[0].line, rules[0].column) == (str(path), 4, 5)
    assert rules[1].value_place == f"{path}:5:14"


def test_a_list_alone_will_do(tmp_path: Path) -> None:
    (rule,) = load_rules(written(tmp_path, "- losses <= 3\n"))
    assert (rule.on_fail, rule.require) == (None, None)  # for the command line to say


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "g.yaml: rules file is empty"),
        ("rules: []\n", "g.yaml:1:8: the list of rules is empty"),
        ("on_fail: warn\n", "g.yaml:1:1: key 'rules' is missing"),
        ("rules: losses <= 3\n", "g.yaml:1:8: rules are a list, found 'losses <= 3'"),
        ("ruels: []\n", "g.yaml:1:1: unknown key 'ruels' (did you mean 'rules'?)"),
        ("- ndgc_at_10_doc >= 0.7\n", "g.yaml:1:3: no metric and no count is called"),
        ("- ndcg_at_10_doc >= basline\n", "g.yaml:1:21: expected a number, 'baseline'"),
        ("- 'ndcg_at_10_doc >= basline'\n", "g.yaml:1:22: expected a number, 'baseline'"),
        ("- language=ko: ndgc_at_10_doc >= 1\n", "g.yaml:1:16: no metric and no count"),
        ("- language=: ndcg_at_10_doc >= 1\n", "g.yaml:1:12: expected the value of the slice"),
        ("- >\n  ndcg_at_10_doc\n  >= basline\n", "g.yaml:1:3: character 19: expected a number"),
        ('- "losses\\t=> 3"\n', "g.yaml:1:3: character 8: expected one of"),
        ("- rule: language=ko: mrr_doc >= 0\n", "a rule with a colon stands in quotes"),
        ("- {rule: losses <= 3, require: significant}\n", "g.yaml:1:32: 'significant' needs"),
        ("- {rule: losses <= 3, on_fail: wran}\n", "g.yaml:1:32: on_fail must be fail or warn"),
        ("- {ruel: losses <= 3}\n", "g.yaml:1:4: unknown key 'ruel' (did you mean 'rule'?)"),
        ("- {on_fail: warn}\n", "g.yaml:1:3: key 'rule' is missing"),
        ("- {rule: [a]}\n", "g.yaml:1:10: a rule is text, found a list"),
        ("- [a]\n", "g.yaml:1:3: a rule is text or a mapping with 'rule', found a list"),
        ("- \n", "g.yaml:1:"),
        ("- losses <= 3\n---\n- wins >= 1\n", "a second document starts here"),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    (told,) = faults(written(tmp_path, text))
    assert said in told


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "on_fail: x\nrules:\n  - a >= 1\n  - losses = 3\n  - wins >= 1\n")
    assert [line.split(" ")[0] for line in faults(path)] == [
        "g.yaml:1:10:",
        "g.yaml:3:5:",
        "g.yaml:4:12:",
    ]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert faults(tmp_path / "none.yaml")[0].endswith("rules file does not exist; check the path")
    (tmp_path / "b.yaml").write_bytes(b"\0")
    assert "binary file" in faults(tmp_path / "b.yaml")[0]


def test_the_gate_of_this_project_holds_the_customary_rule() -> None:
    rules = load_rules(ROOT / "configs" / "gate.yaml")
    assert "hit_at_5_chunk >= baseline - 0.03" in [rule.text for rule in rules]
