"""A gate: find the runs, read the rules, judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kebab_eval.comparison import compare, on_common_ground
from kebab_eval.errors import Fault, NotComparableError, RuleError, UsageError
from kebab_eval.gate import GateVerdict, judge
from kebab_eval.gate_file import load_rules
from kebab_eval.gate_rules import (
    OnFail,
    Require,
    Rule,
    check_scopes,
    customary,
    parse_options,
    with_defaults,
)
from kebab_eval.records import EvalRun
from kebab_eval.reports.gate import render_gate
from kebab_eval.tracking.attach import attach_files
from kebab_eval.tracking.keys import TAG_GATE
from kebab_eval.tracking.lookup import Logged, find_logged
from kebab_eval.tracking.tags import tag_run
from kebab_eval.workflows.lookup import find_run


@dataclass(frozen=True, slots=True)
class GateRequest:
    """What the user asked for; ``on_fail`` and ``require`` are for rules that do not say."""

    candidate: str
    baseline: str | None = None
    rules_path: Path | None = None
    rules: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    on_fail: OnFail | None = None
    require: Require | None = None
    tracking_uri: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, and the MLflow run of its candidate, if that has one."""

    verdict: GateVerdict
    logged: Logged | None


def run_gate(request: GateRequest) -> Judged:
    """Judge a candidate by rules.

    Runs that are not comparable leave the rules that need the baseline undecided; the others are
    judged all the same.

    Raises:
        InputError: a rule, a run name or an option is wrong.
        RecordError: a record is damaged.
    """
    rules = _rules(request)
    candidate = find_run(request.candidate, request.tracking_uri)
    rules = with_defaults(rules or [customary(candidate.golden)], request.on_fail, request.require)
    check_scopes(rules, candidate.golden)
    logged = find_logged(candidate, request.tracking_uri)
    return Judged(_verdict(request, rules, candidate), logged)


def log_verdict(judged: Judged) -> str | None:
    """Log a verdict to the candidate's MLflow run: a tag that runs are filtered by, and its report.

    Returns:
        The artifact folder, None where the candidate has no MLflow run.

    Raises:
        TrackerError: the store does not answer or does not hold the run.
    """
    verdict, logged = judged.verdict, judged.logged
    if logged is None:
        return None
    baseline = "no-baseline" if verdict.baseline is None else verdict.baseline[0]
    folder = f"gate/{baseline}"
    files = {f"gate.{form}": render_gate(verdict, form) for form in ("md", "json")}
    attach_files(logged.store, logged.run_id, folder, files)
    tag_run(logged.store, logged.run_id, {TAG_GATE: verdict.outcome})
    return folder


def _verdict(request: GateRequest, rules: list[Rule], candidate: EvalRun) -> GateVerdict:
    if request.baseline is None:
        needing = [rule for rule in rules if rule.relative]
        if needing:
            message = f"missing; the rule {needing[0].text!r} compares with it"
            raise UsageError(Fault("--baseline", message))
        return judge(rules, candidate)
    baseline = find_run(request.baseline, request.tracking_uri)
    try:
        comparison = compare(baseline, candidate, allow=request.allow)
    except NotComparableError as reason:
        return judge(rules, candidate, baseline, not_comparable=str(reason))
    return judge(rules, candidate, on_common_ground(baseline, candidate), comparison)


def _rules(request: GateRequest) -> list[Rule]:
    """Return the rules of the file and of the options, every fault of both told at once."""
    rules: list[Rule] = []
    faults: list[Fault] = []
    try:
        rules += load_rules(request.rules_path) if request.rules_path is not None else []
    except RuleError as wrong:
        faults += wrong.faults
    try:
        rules += parse_options(request.rules)
    except RuleError as wrong:
        faults += wrong.faults
    if faults:
        raise RuleError(faults)
    return rules
