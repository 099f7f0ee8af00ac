"""Whether two runs may be compared, and what was moved between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kebab_eval.errors import NotComparableError, UsageError, nearest
from kebab_eval.levers import STANDARD_NAMES, levers_of
from kebab_eval.records import EvalRun

ALLOWED_WORDS = ("golden", "corpus", "k", "metrics")

# What a system says of itself that follows from a part of its config: no lever of its own there.
_FOLLOWS = {
    "chunker_version": "chunking",
    "embedding_model": "embedding",
    "embedding_version": "embedding",
    "embedding_dimensions": "embedding",
    "rrf_k": "fusion",
    "score_gate": "score_gate",
    "mode": "search",
    "k": "search",
}
# What follows from corpus, config and code together.
_CONSEQUENCES = ("_fingerprint", "_count")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which two runs differ so much that their numbers are not of one kind.

    ``word`` is what ``--allow`` takes to compare them nevertheless.
    """

    word: str
    what: str
    baseline: Any
    candidate: Any

    def __str__(self) -> str:
        return (
            f"{self.what}: baseline {_shown(self.baseline)}, candidate {_shown(self.candidate)} "
            f"(--allow {self.word} compares them nevertheless)"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "allow": self.word,
            "what": self.what,
            "baseline": self.baseline,
            "candidate": self.candidate,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """One value that differs between the two runs.

    Attributes:
        key: dotted config key, or a key of the system's own snapshot.
        source: where it stands: ``config`` or ``system``.
        lever: whether it was moved; False for what only follows from something else.
        declared: whether the candidate's config names it as its lever.
    """

    key: str
    baseline: Any
    candidate: Any
    source: Literal["config", "system"]
    lever: bool
    declared: bool = False


def differences(baseline: EvalRun, candidate: EvalRun) -> tuple[Difference, ...]:
    """Return all that speaks against comparing two runs, in the order of ``ALLOWED_WORDS``.

    A corpus that a system does not tell the fingerprint of is unknown, which is no difference.
    """
    golden, corpora, asked, threshold, schema = (
        (read(baseline), read(candidate))
        for read in (_golden_text, _corpus, _asked, _threshold, _schema)
    )
    found = []
    if baseline.golden.digest != candidate.golden.digest:
        found.append(Difference("golden", "golden set", *golden))
    if None not in corpora and corpora[0] != corpora[1]:
        found.append(Difference("corpus", "corpus fingerprint", *corpora))
    if asked[0] != asked[1]:
        found.append(Difference("k", "hits asked for (search.k)", *asked))
    if threshold[0] != threshold[1]:
        found.append(Difference("metrics", "grade from which an item is relevant", *threshold))
    if schema[0] != schema[1]:
        found.append(Difference("metrics", "version of the metrics", *schema))
    return tuple(found)


def check_comparable(
    baseline: EvalRun, candidate: EvalRun, allow: Collection[str] = ()
) -> tuple[Difference, ...]:
    """Return the differences that were allowed.

    Raises:
        NotComparableError: there are others; the message names each with both values.
        UsageError: a word of ``allow`` is none of ``ALLOWED_WORDS``.
    """
    for word in allow:
        if word not in ALLOWED_WORDS:
            hint = nearest(word, ALLOWED_WORDS)
            raise UsageError(f"--allow {word!r}: takes {', '.join(ALLOWED_WORDS)}{hint}")
    found = differences(baseline, candidate)
    forbidden = [difference for difference in found if difference.word not in allow]
    if forbidden:
        lines = "\n".join(f"  {difference}" for difference in forbidden)
        raise NotComparableError(
            f"{baseline.name} and {candidate.name} are not comparable; they differ in\n{lines}"
        )
    return found


def config_diff(baseline: EvalRun, candidate: EvalRun) -> tuple[Change, ...]:
    """Return every value that differs: levers first, then what follows from them.

    A system that says of itself what the config does not explain (another chunker behind the same
    URL) was moved too. The metrics section decides how a run is read and is no lever; a corpus that
    only lies in another folder is none either.
    """
    old, new = levers_of(baseline.config), levers_of(candidate.config)
    lever = candidate.info.get("lever")
    declared = lever["key"] if isinstance(lever, Mapping) else None
    same_corpus = _corpus(baseline) == _corpus(candidate) is not None
    changes = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if _same(before, after):
            continue
        kind = f"{key.rpartition('.')[0]}.type"
        moved = (
            key.partition(".")[0] != "metrics"
            and not (key == "backend.corpus" and same_corpus)
            # Another kind has keys of its own, which come and go with it.
            and not ((key in old) != (key in new) and old.get(kind) != new.get(kind))
        )
        # A section may be declared as the lever: then each key below it is.
        named = declared is not None and (key == declared or key.startswith(f"{declared}."))
        changes.append(Change(key, before, after, "config", moved, named))
    changes += _system_changes(baseline, candidate, changes)
    return tuple(sorted(changes, key=lambda change: not change.lever))


def _system_changes(
    baseline: EvalRun, candidate: EvalRun, config: list[Change]
) -> Iterator[Change]:
    old, new = _system(baseline), _system(candidate)
    repeated = {
        STANDARD_NAMES[change.key]: (change.baseline, change.candidate)
        for change in config
        if change.key in STANDARD_NAMES
    }
    sections = {change.key.partition(".")[0] for change in config if change.lever}
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if _same(before, after):
            continue
        if key in repeated and _same([before, after], list(repeated[key])):
            continue
        follows = (
            key.endswith(_CONSEQUENCES)
            or _FOLLOWS.get(key) in sections
            or "backend" in sections  # another system altogether
        )
        yield Change(key, before, after, "system", not follows)


def _system(run: EvalRun) -> Mapping[str, Any]:
    system = run.info.get("system")
    return system if isinstance(system, Mapping) else {}


def _golden_text(run: EvalRun) -> str:
    golden = run.golden
    return f"{golden.name} v{golden.version} {golden.digest} ({len(golden.queries)} queries)"


def _corpus(run: EvalRun) -> Any:
    return _system(run).get("corpus_fingerprint")


def _asked(run: EvalRun) -> Any:
    search = run.config.get("search")
    return search.get("k") if isinstance(search, Mapping) else None


def _threshold(run: EvalRun) -> float:
    return run.golden.min_relevance


def _schema(run: EvalRun) -> Any:
    return run.aggregate.get("schema_version")


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON would: a list is a tuple, 60 is 60.0, but True is not 1."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    return bool(one == other)


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
