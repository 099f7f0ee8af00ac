"""What an error says and what the command line ends with."""

from __future__ import annotations

import pytest

from kebab_eval import errors
from kebab_eval.errors import ConfigError, Fault, InputError, nearest


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("KebabEvalError", 3),
        ("InputError", 2),
        ("ConfigError", 2),
        ("GoldenError", 2),
        ("CorpusError", 2),
        ("FormatError", 2),
        ("RuleError", 2),
        ("UsageError", 2),
        ("MetricError", 2),
        ("BackendError", 3),
        ("RecordError", 3),
        ("TrackerError", 3),
        ("NotComparableError", 4),
        ("Interrupted", 130),
    ],
)
def test_every_error_carries_its_exit_code(name: str, code: int) -> None:
    error = getattr(errors, name)
    assert issubclass(error, errors.KebabEvalError)
    assert error.exit_code == code


def test_the_docstring_draws_every_error_of_the_module() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.KebabEvalError)
    }
    assert defined <= set((errors.__doc__ or "").replace("├── ", " ").replace("└── ", " ").split())


def test_a_fault_says_its_place_first() -> None:
    assert str(Fault("a.yaml:3:7", "wrong")) == "a.yaml:3:7: wrong"
    assert str(Fault("", "wrong")) == "wrong"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x85", "\u2028", "\u2029"])
def test_a_fault_is_one_line_whatever_stands_in_it(end: str) -> None:
    fault = Fault(f"a{end}b.yaml:1:1", f"found 'x{end}y'")
    assert str(fault) == "a b.yaml:1:1: found 'x y'"


def test_an_input_error_holds_every_fault_in_order() -> None:
    error = ConfigError([Fault("a:1:1", "one"), Fault("a:2:1", "two")])
    assert str(error) == "a:1:1: one\na:2:1: two"
    assert [fault.message for fault in error.faults] == ["one", "two"]


def test_an_input_error_takes_a_text_or_one_fault() -> None:
    assert InputError("no").faults == (Fault("", "no"),)
    assert InputError(Fault("x", "no")).faults == (Fault("x", "no"),)


def test_the_nearest_word_is_offered_and_a_far_one_is_not() -> None:
    assert nearest("serach", ["search", "fusion"]) == " (did you mean 'search'?)"
    assert nearest("zzz", ["search", "fusion"]) == ""
    assert nearest("x", []) == ""
