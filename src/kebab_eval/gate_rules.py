"""The rules of a gate as people write them, one line each.

    rule   = [scope ":"] subject op bound ["[" word {"," word} "]"]
    scope  = FIELD "=" VALUE | "worst" "(" FIELD ")"
    op     = ">=" | ">" | "<=" | "<" | "=="
    bound  = NUMBER | NUMBER "x" | "baseline" [("+" | "-") NUMBER]
    word   = "fail" | "warn" | "point" | "significant"

A subject is a metric (``ndcg_at_10_doc``), a latency (``p95_ms``) or a count (``failed_queries``).
``1.2x`` is 1.2 times the baseline's value. A VALUE that holds a colon stands in quotes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, get_args

from kebab_eval.errors import Fault, MetricError, RuleError, nearest
from kebab_eval.metrics import default_registry
from kebab_eval.metrics.families import FAMILIES
from kebab_eval.metrics.slices import FIELDS, slice_values
from kebab_eval.records import GoldenSet

Kind = Literal["metric", "latency", "count"]
OnFail = Literal["fail", "warn"]
Require = Literal["point", "significant"]

OPERATORS = (">=", "<=", "==", ">", "<")
ON_FAIL: tuple[OnFail, ...] = get_args(OnFail)
REQUIRE: tuple[Require, ...] = get_args(Require)
LATENCIES = ("p50_ms", "p95_ms", "p99_ms", "max_ms")
#: What is counted of the candidate alone, and what between the two runs: rule word -> kind.
OWN_COUNTS = ("failed_queries", "total_queries", "duplicate_hits")
PAIRED_COUNTS = {"wins": "win", "losses": "loss", "draws": "draw", "regressions": "regression"}

_NAME = re.compile(r"\w[\w.-]*")
_OPERATOR = re.compile(r"[<>=!~]+")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[^\W\d]+")
_MAX_LENGTH = 1000
_OWN_FAMILIES = frozenset(family.name for family in FAMILIES)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. It holds where ``subject op factor * baseline + offset`` does.

    Args:
        text: the rule as it was written, in one line and without its words in brackets.
        field: the field that it is cut by, None for the whole run.
        value: the slice; None with a field is the worst slice of it.
        on_fail, require: None where the rule does not say.
        place: where it stands.
        field_place, value_place: where its scope does.
        file, line, column: the place apart, for annotations; no file for an option.
    """

    text: str
    subject: str
    kind: Kind
    op: str
    factor: float
    offset: float
    field: str | None = None
    value: str | None = None
    on_fail: OnFail | None = None
    require: Require | None = None
    place: str = ""
    field_place: str = ""
    value_place: str = ""
    file: str | None = None
    line: int = 0
    column: int = 0

    @property
    def relative(self) -> bool:
        """Whether it cannot be judged without a baseline."""
        return self.factor != 0 or self.subject in PAIRED_COUNTS

    @property
    def scope(self) -> str:
        if self.field is None:
            return ""
        return f"worst({self.field})" if self.value is None else f"{self.field}={self.value}"

    def holds(self, value: float, bound: float) -> bool:
        """Whether a value meets the bound; 0.60 - 0.03 and 0.57 count as equal."""
        near = math.isclose(value, bound, rel_tol=1e-9, abs_tol=1e-9)
        if self.op in (">=", "<=", "=="):
            if near:
                return True
            return value > bound if self.op == ">=" else self.op == "<=" and value < bound
        return not near and (value > bound if self.op == ">" else value < bound)

    def beyond(self, slack: float) -> float:
        """Return by how much a value that is ``slack`` above the bound misses it, or -inf..0."""
        if self.op == "==":
            return abs(slack)
        return -slack if self.op in (">=", ">") else slack


def customary(golden: GoldenSet) -> Rule:
    """Return the rule of a gate without rules: hit@5 not three points below the baseline."""
    level = "chunk" if any(query.judgments.chunk for query in golden.queries) else "doc"
    return parse_rule(f"hit_at_5_{level} >= baseline - 0.03", lambda _: "the customary rule")


def parse_rule(text: str, where: Callable[[int], str]) -> Rule:
    """Return the rule that a line says.

    Args:
        text: the line.
        where: the place of the character with that index.

    Raises:
        RuleError: it is none; the fault stands where reading stopped.
    """
    return _Parser(text, where).rule()


def parse_options(texts: Sequence[str], option: str = "--rule") -> list[Rule]:
    """Return the rules of a repeatable option.

    Raises:
        RuleError: with a fault for every one that is none.
    """
    rules: list[Rule] = []
    faults: list[Fault] = []
    for text in texts:
        shown = " ".join(text.split())
        shown = shown if len(shown) <= 80 else shown[:77] + "..."

        def where(index: int, shown: str = shown) -> str:
            return f"{option} {shown!r}: column {index + 1}"

        try:
            rules.append(replace(parse_rule(text, where), place=option))
        except RuleError as wrong:
            faults += wrong.faults
    if faults:
        raise RuleError(faults)
    return rules


def with_defaults(
    rules: Iterable[Rule], on_fail: OnFail | None = None, require: Require | None = None
) -> list[Rule]:
    """Return the rules with what they do not say filled in; only metrics can be significant."""
    return [
        replace(
            rule,
            on_fail=rule.on_fail or on_fail or "fail",
            require=rule.require or (require if rule.kind == "metric" else None) or "point",
        )
        for rule in rules
    ]


def check_scopes(rules: Iterable[Rule], golden: GoldenSet) -> None:
    """Hold the slices that rules name against the golden set.

    Raises:
        RuleError: a field or a value that no query has, with the nearest that there is.
    """
    known: dict[str, set[str]] = {}
    for query in golden.queries:
        for field, value in slice_values(query).items():
            known.setdefault(field, set()).add(value)
    faults = []
    for rule in rules:
        if rule.field is None:
            continue
        if rule.field not in known:
            there = ", ".join(sorted(known)) or "none"
            hint = nearest(rule.field, known) or f"; there are: {there}"
            message = f"no query of {golden.name!r} has a field {rule.field!r}{hint}"
            faults.append(Fault(rule.field_place or rule.place, message))
        elif rule.value is not None and rule.value not in known[rule.field]:
            values = sorted(known[rule.field])
            there = ", ".join(values[:10]) + (" …" if len(values) > 10 else "")
            hint = nearest(rule.value, values) or f"; there are: {there}"
            message = f"no query has {rule.field} {rule.value!r}{hint}"
            faults.append(Fault(rule.value_place or rule.place, message))
    if faults:
        raise RuleError(faults)


class _Parser:
    """Reads one rule from left to right; every step skips the blanks before it."""

    def __init__(self, text: str, where: Callable[[int], str]) -> None:
        self.text = text
        self.where = where
        self.at = 0

    def fail(self, at: int, message: str) -> NoReturn:
        raise RuleError(Fault(self.where(at), message))

    def skip(self) -> int:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at

    def take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.skip())
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def take_char(self, character: str) -> bool:
        if self.text.startswith(character, self.skip()):
            self.at += 1
            return True
        return False

    def found(self) -> str:
        """Return what stands here, short enough for a message."""
        word = re.match(r"\w+|\S", self.text[self.skip() :])
        return repr(word[0][:40]) if word else "nothing more"

    def rule(self) -> Rule:
        if len(self.text) > _MAX_LENGTH:
            self.fail(0, f"a rule is at most {_MAX_LENGTH} characters long")
        start = self.skip()
        if start == len(self.text):
            self.fail(start, "a rule is empty; write one such as hit_at_5_chunk >= baseline - 0.03")
        field, value, places = self.scope()
        subject_at = self.skip()
        subject = self.take(_NAME)
        if subject is None:
            self.fail(self.at, f"expected a metric or a count, found {self.found()}")
        kind = self.kind(subject, subject_at)
        op_at = self.skip()
        op = self.take(_OPERATOR)
        if op not in OPERATORS:
            found = repr(op) if op else self.found()
            self.fail(op_at, f"expected one of {' '.join(OPERATORS)}, found {found}")
        factor, offset = self.bound(subject, kind)
        end = self.at
        on_fail, require = self.words(kind)
        if self.skip() < len(self.text):
            self.fail(self.at, f"the rule should end here, found {self.found()}")
        return Rule(
            text=" ".join(self.text[start:end].split()),
            subject=subject,
            kind=kind,
            op=op,
            factor=factor,
            offset=offset,
            field=field,
            value=value,
            on_fail=on_fail,
            require=require,
            place=self.where(start),
            field_place=places[0],
            value_place=places[1],
        )

    def scope(self) -> tuple[str | None, str | None, tuple[str, str]]:
        start = self.skip()
        name = self.take(_NAME)
        if name == "worst" and self.take_char("("):
            at = self.skip()
            field = self.take(_NAME)
            if field is None:
                fields = ", ".join(FIELDS)
                self.fail(at, f"worst(…) takes a field such as {fields}; found {self.found()}")
            if not self.take_char(")"):
                self.fail(self.at, f"expected ')' after the field, found {self.found()}")
            self.colon()
            return field, None, (self.where(at), "")
        here = self.skip()
        if (
            name is not None
            and self.text[here : here + 1] == "="
            and self.text[here + 1 : here + 2] not in ("=", ">", "<")
            # "recall_at_5_doc = 0.7" has no colon behind: a wrong operator, not a slice.
            and ":" in self.text[here:]
        ):
            self.at += 1
            at = self.skip()
            value = self.slice_value()
            self.colon()
            return name, value, (self.where(start), self.where(at))
        self.at = start
        return None, None, ("", "")

    def colon(self) -> None:
        if not self.take_char(":"):
            self.fail(self.at, f"expected ':' after the slice, found {self.found()}")

    def slice_value(self) -> str:
        at = self.skip()
        quote = self.text[at : at + 1]
        if quote not in ("'", '"'):
            self.at = self.text.find(":", at)
            value = self.text[at : self.at].strip()
            if not value:
                self.fail(at, "expected the value of the slice, as in language=ko")
            return value
        return self.quoted(quote)

    def quoted(self, quote: str) -> str:
        at = self.at
        read: list[str] = []
        self.at += 1
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            if character == quote:
                break
            if character == "\\" and self.at < len(self.text):
                character = self.text[self.at]
                self.at += 1
            read.append(character)
        else:
            self.fail(at, f"the value of the slice opens with {quote} and does not close")
        return "".join(read)

    def kind(self, subject: str, at: int) -> Kind:
        if subject in OWN_COUNTS or subject in PAIRED_COUNTS:
            return "count"
        if subject in LATENCIES:
            return "latency"
        if subject == "baseline":
            self.fail(at, "a rule begins with what is measured; write the baseline on the right")
        registry = default_registry()
        try:
            metric = registry.parse(subject)
        except MetricError as unknown:
            words = [*OWN_COUNTS, *PAIRED_COUNTS, *LATENCIES]
            # A known family with impossible parameters says more than a near name could.
            if any(subject.startswith(family.name) for family in registry):
                self.fail(at, unknown.faults[0].message)
            hint = nearest(subject, [*registry.examples(), *words])
            hint = hint or f"; counts are {', '.join(words)}; docs/metrics.md lists the metrics"
            self.fail(at, f"no metric and no count is called {subject!r}{hint}")
        if metric.kind == "latency":
            self.fail(at, f"{subject!r} has many values; take one of {', '.join(LATENCIES)}")
        if metric.level is None and metric.family.has_levels:
            self.fail(at, f"{subject!r} needs a level: say {subject}_chunk or {subject}_doc")
        return "metric"

    def bound(self, subject: str, kind: Kind) -> tuple[float, float]:
        at = self.skip()
        if self.text.startswith("baseline", at) and not re.match(r"\w", self.text[at + 8 : at + 9]):
            self.at += len("baseline")
            self.no_baseline(subject, at)
            sign_at = self.skip()
            if self.text[sign_at : sign_at + 1] not in ("+", "-"):
                return 1.0, 0.0
            sign = -1.0 if self.text[sign_at] == "-" else 1.0
            self.at += 1
            number_at = self.skip()
            if self.text[number_at : number_at + 1] in ("+", "-"):
                self.fail(number_at, "two signs stand in a row; keep one")
            number = self.number(subject, kind)
            self.no_unit(f"baseline {'-' if sign < 0 else '+'} 0.03")
            return 1.0, sign * number
        digits = _NUMBER.match(self.text, at)
        if digits is None:
            word = _NAME.match(self.text, at)
            hint = nearest(word[0], ["baseline"]) if word else ""
            found = self.found()
            self.fail(at, f"expected a number, 'baseline' or a factor as 1.2x, found {found}{hint}")
        if self.text.startswith(("x", "×"), digits.end()):
            number = self.number(subject, kind, is_factor=True)
            self.at += 1
            self.no_baseline(subject, at)
            if number <= 0:
                self.fail(at, "a factor is above 0")
            if self.skip() < len(self.text) and self.text[self.at] != "[":
                self.fail(
                    self.at, f"a factor takes nothing behind it, as in 1.2x; found {self.found()}"
                )
            return number, 0.0
        number = self.number(subject, kind)
        self.no_unit("0.70")
        return 0.0, number

    def number(self, subject: str, kind: Kind, *, is_factor: bool = False) -> float:
        at = self.skip()
        text = self.take(_NUMBER)
        if text is None:
            self.fail(at, f"expected a number, found {self.found()}")
        number = float(text)
        if not math.isfinite(number):
            self.fail(at, f"{text[:40]} is no number that a computer can hold")
        if kind == "metric" and not is_factor and abs(number) > 1:
            family = default_registry().parse(subject).family.name
            if family in _OWN_FAMILIES and not self.text.startswith("%", self.skip()):
                self.fail(at, f"{subject} lies between 0 and 1: write 0.03 for three points")
        return number

    def no_unit(self, example: str) -> None:
        if _WORD.match(self.text, self.at):
            self.fail(self.at, f"a number takes no unit here, found {self.found()}")
        if self.text.startswith("%", self.skip()):
            message = f"percent can mean two things: write points, as in {example}, or 0.97x"
            self.fail(self.at, message)

    def no_baseline(self, subject: str, at: int) -> None:
        if subject in PAIRED_COUNTS:
            self.fail(at, f"{subject} are counted between the two runs; compare with a number")

    def words(self, kind: Kind) -> tuple[OnFail | None, Require | None]:
        on_fail: OnFail | None = None
        require: Require | None = None
        if not self.take_char("["):
            return None, None
        while True:
            at = self.skip()
            word = self.take(_NAME)
            if word in ON_FAIL:
                on_fail = "warn" if word == "warn" else "fail"
            elif word in REQUIRE:
                require = "significant" if word == "significant" else "point"
                if require == "significant" and kind != "metric":
                    self.fail(at, NOT_TESTED)
            else:
                allowed = (*ON_FAIL, *REQUIRE)
                hint = nearest(word or "", allowed)
                found = repr(word) if word else self.found()
                self.fail(at, f"expected one of {', '.join(allowed)}, found {found}{hint}")
            if self.take_char("]"):
                return on_fail, require
            if not self.take_char(","):
                self.fail(self.at, f"expected ',' or ']', found {self.found()}")


NOT_TESTED = "'significant' needs a metric: a count or a latency is one number, without a test"
