"""The rules file of a gate: YAML, every fault told with the character that it stands at.

    on_fail: fail            # what a rule does that does not say: fail or warn
    require: point           # or significant
    rules:
      - hit_at_5_chunk >= baseline - 0.03
      - rule: "language=ko: ndcg_at_10_doc >= 0.70"
        on_fail: warn

A list of rules alone will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from kebab_eval.errors import Fault, RuleError, nearest
from kebab_eval.gate_rules import (
    NOT_TESTED,
    ON_FAIL,
    REQUIRE,
    OnFail,
    Require,
    Rule,
    parse_rule,
)
from kebab_eval.yaml_source import Node, parse_yaml, read_text

W = TypeVar("W", bound=str)

_WHAT = "rules file"
_KEYS = ("rules", "on_fail", "require")
_RULE_KEYS = ("rule", "on_fail", "require")


def load_rules(path: Path) -> list[Rule]:
    """Return the rules of a file with the file's own defaults; what neither says stays None.

    Raises:
        RuleError: with every fault that was found.
    """
    text = read_text(path, RuleError, _WHAT)
    try:
        root = parse_yaml(text, str(path), RuleError)
    except RuleError as broken:
        hint = "; a rule with a colon stands in quotes"
        raise RuleError(
            [
                Fault(f.place, f.message + (hint if "mapping values" in f.message else ""))
                for f in broken.faults
            ]
        ) from None
    return _Reading(str(path), text.split("\n")).rules(root)


class _Reading:
    def __init__(self, source: str, lines: list[str]) -> None:
        self.source = source
        self.lines = lines
        self.faults: list[Fault] = []

    def rules(self, root: Node | None) -> list[Rule]:
        if root is None or root.is_null:
            message = (
                f"{_WHAT} is empty; write '- hit_at_5_chunk >= baseline - 0.03', one rule a line"
            )
            raise RuleError(Fault(self.source, message))
        entries: Node | None = root
        on_fail: OnFail | None = None
        require: Require | None = None
        if root.kind == "mapping":
            keys = self.keys(root, _KEYS)
            on_fail = self.word(keys.get("on_fail"), "on_fail", ON_FAIL)
            require = self.word(keys.get("require"), "require", REQUIRE)
            entries = keys.get("rules")
            if entries is None and not self.faults:
                self.faults.append(Fault(root.place, "key 'rules' is missing; it lists the rules"))
        rules: list[Rule] = []
        if entries is not None and entries.kind != "list":
            self.faults.append(
                Fault(entries.place, f"rules are a list, found {entries.describe()}")
            )
        elif entries is not None:
            if not entries.value:
                self.faults.append(Fault(entries.place, "the list of rules is empty"))
            for entry in entries.value:
                try:
                    rules.append(self.entry(entry))
                except RuleError as wrong:
                    self.faults += wrong.faults
        if self.faults:
            raise RuleError(self.faults)
        # What neither says is left open, for the options of the command line.
        tested = {"metric": require}
        return [
            replace(
                rule,
                on_fail=rule.on_fail or on_fail,
                require=rule.require or tested.get(rule.kind),
            )
            for rule in rules
        ]

    def entry(self, node: Node) -> Rule:
        if node.kind == "scalar":
            return self.parsed(node, node.value, self.in_scalar(node))
        if node.kind == "mapping" and len(node.value) == 1:
            key, value = node.value[0]
            scoped = "=" in key.value or key.value.startswith("worst")
            if key.kind == value.kind == "scalar" and scoped:
                # `- language=ko: ndcg_at_10_doc >= 0.7` is a mapping to YAML and a rule to people.
                return self.parsed(key, f"{key.value}: {value.value}", self.in_pair(key, value))
        if node.kind == "mapping":
            return self.long_form(node)
        raise RuleError(
            Fault(node.place, f"a rule is text or a mapping with 'rule', found {node.describe()}")
        )

    def long_form(self, node: Node) -> Rule:
        before = len(self.faults)
        keys = self.keys(node, _RULE_KEYS)
        on_fail = self.word(keys.get("on_fail"), "on_fail", ON_FAIL)
        require = self.word(keys.get("require"), "require", REQUIRE)
        text = keys.get("rule")
        if text is None:
            if len(self.faults) > before:
                raise RuleError(())  # an unknown key is told already: likely 'rule' itself
            raise RuleError(Fault(node.place, "key 'rule' is missing"))
        if text.kind != "scalar":
            raise RuleError(Fault(text.place, f"a rule is text, found {text.describe()}"))
        rule = self.parsed(text, text.value, self.in_scalar(text))
        if require == "significant" and rule.kind != "metric":
            raise RuleError(Fault(keys["require"].place, NOT_TESTED))
        return replace(rule, on_fail=on_fail or rule.on_fail, require=require or rule.require)

    def parsed(self, node: Node, text: str, where: Callable[[int], str]) -> Rule:
        rule = parse_rule(text, where)
        return replace(rule, place=node.place, file=self.source, line=node.line, column=node.column)

    def in_scalar(self, node: Node) -> Callable[[int], str]:
        """Return the place of each character of a scalar.

        A scalar that was folded or holds escapes does not stand in the file as it reads; its
        characters are then counted behind the place where it begins.
        """
        start = node.column - 1 + (0 if node.plain else 1)
        line = self.lines[node.line - 1] if node.line <= len(self.lines) else ""
        if line.startswith(node.value, start):
            return lambda index: f"{self.source}:{node.line}:{start + index + 1}"
        return lambda index: f"{node.place}: character {index + 1}"

    def in_pair(self, key: Node, value: Node) -> Callable[[int], str]:
        in_key, in_value = self.in_scalar(key), self.in_scalar(value)
        gap = len(key.value) + 2

        def where(index: int) -> str:
            return in_key(index) if index < gap else in_value(index - gap)

        return where

    def keys(self, node: Node, allowed: tuple[str, ...]) -> dict[str, Node]:
        found = {}
        for key, value in node.value:
            if key.value in allowed:
                found[key.value] = value
            else:
                hint = nearest(key.value, allowed) or f"; allowed here: {', '.join(allowed)}"
                self.faults.append(Fault(key.place, f"unknown key {key.value!r}{hint}"))
        return found

    def word(self, node: Node | None, key: str, allowed: tuple[W, ...]) -> W | None:
        if node is None:
            return None
        if node.kind == "scalar":
            for word in allowed:
                if node.value == word:
                    return word
        near = nearest(node.value, allowed) if node.kind == "scalar" else ""
        message = f"{key} must be {' or '.join(allowed)}, found {node.describe()}{near}"
        self.faults.append(Fault(node.place, message))
        return None
