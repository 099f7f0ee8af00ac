"""A gate as tests: ``pytest --kebab-eval-config configs/rrf_k60.yaml`` has an item for each rule.

The system is evaluated once, when the first item runs; with pytest-xdist by the first worker that
comes to one, and the others wait for its verdict. Without the option nothing is imported.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kebab_eval.gate_rules import Rule

_DEFAULT = "the customary rule"
_WAIT_S = 0.2


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kebab-eval", "search quality as tests")
    group.addoption(
        "--kebab-eval-config", metavar="FILE", help="Evaluate this config, with a test a rule."
    )
    group.addoption(
        "--kebab-eval-rules", metavar="FILE", help="The rules, as in configs/gate.yaml."
    )
    group.addoption(
        "--kebab-eval-baseline",
        metavar="RUN",
        help="The run, or the frozen file, that rules compare with.",
    )
    group.addoption(
        "--kebab-eval-undecided",
        choices=["fail", "skip"],
        default="fail",
        help="What a rule is that so many queries cannot tell. [default: fail]",
    )
    group.addoption(
        "--kebab-eval-track", action="store_true", help="Log the evaluation to MLflow too."
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add an item for each rule."""
    path = config.getoption("--kebab-eval-config")
    if path is None:
        for name in ("rules", "baseline"):
            if config.getoption(f"--kebab-eval-{name}") is not None:
                raise pytest.UsageError(f"--kebab-eval-{name} needs --kebab-eval-config")
        return
    from kebab_eval.errors import KebabEvalError

    try:
        rules = _rules(config.getoption("--kebab-eval-rules"))
    except KebabEvalError as wrong:
        raise pytest.UsageError(str(wrong)) from None
    shared = _Verdict(config)
    names = [rule.text for rule in rules] or [_DEFAULT]
    items += [
        GateItem.from_parent(session, name=f"kebab-eval: {name}", number=number, shared=shared)
        for number, name in enumerate(names)
    ]


def _rules(path: str | None) -> list[Rule]:
    if path is None:
        return []
    from kebab_eval.gate_file import load_rules

    return load_rules(Path(path))


class GateError(Exception):
    """A rule that does not hold."""


class GateItem(pytest.Item):
    """One rule of the gate."""

    def __init__(self, *, number: int, shared: _Verdict, **more: Any) -> None:
        super().__init__(**more)
        self._number = number
        self._shared = shared

    def runtest(self) -> None:
        verdict = self._shared.get()
        if "error" in verdict:
            raise GateError(verdict["error"])
        result = verdict["rules"][self._number]
        said = "\n".join([result["rule"], *result["reason"].split("; "), verdict["sides"]])
        self.add_report_section("call", "kebab-eval", said)
        if result["verdict"] == "undecided" and (
            self.config.getoption("--kebab-eval-undecided") == "skip"
        ):
            pytest.skip(f"undecided: {result['reason']}")
        if result["verdict"] in ("fail", "undecided"):
            raise GateError(f"{result['verdict']}: {said}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, GateError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        return "kebab-eval", None, self.name


class _Verdict:
    """The verdict of the session, found once."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._found: Mapping[str, Any] | None = None

    def get(self) -> Mapping[str, Any]:
        if self._found is None:
            workers = getattr(self._config, "workerinput", None)
            self._found = self._judged() if workers is None else self._shared(workers)
        return self._found

    def _shared(self, workers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the verdict of whichever worker was first; it leaves it in a file of the run."""
        path = Path(tempfile.gettempdir(), f"kebab-eval-{workers['testrunuid']}.json")
        lock = path.with_suffix(".lock")
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            while not path.exists():
                time.sleep(_WAIT_S)
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found
        judged = self._judged()
        whole = path.with_suffix(".tmp")
        whole.write_text(json.dumps(judged), encoding="utf-8")
        whole.replace(path)
        return judged

    def _judged(self) -> dict[str, Any]:
        from kebab_eval.errors import KebabEvalError
        from kebab_eval.programs import check_gate, track

        option = self._config.getoption
        try:
            outcome = track(
                option("--kebab-eval-config"), tracked=bool(option("--kebab-eval-track"))
            )
            verdict = check_gate(
                outcome.folder,
                baseline=option("--kebab-eval-baseline"),
                rules=option("--kebab-eval-rules") or (),
            )
        except KebabEvalError as wrong:
            return {"error": str(wrong)}
        against = "" if verdict.baseline is None else f" against {verdict.baseline[1]}"
        return {
            "sides": f"{verdict.candidate[1]}{against}, record {outcome.folder}",
            "rules": [
                {"rule": one.rule.text, "verdict": one.verdict, "reason": one.reason}
                for one in verdict.results
            ],
        }
