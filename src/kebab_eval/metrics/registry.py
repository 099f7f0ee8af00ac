"""Every metric as a declared object, in one registry that reports, MLflow keys and options read.

A :class:`Family` declares what its metrics share; a :class:`Metric` is one of them with its
parameters, and its name says all of them: ``<family>[_at_<k>][_rel<grade>][_<level>]``, as in
``ndcg_at_10_doc`` or ``recall_at_5_rel2_chunk``. Without a level it is computed on whatever ranking
is at hand (``kebab-eval score``, ``kebab_eval.evaluate``).

A metric from another package registers through the entry point group ``kebab_eval.metrics``, whose
objects are families (or iterables of them).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from kebab_eval.errors import Fault, MetricError, nearest
from kebab_eval.metrics.ranktable import FloatArray, RankTable
from kebab_eval.records import LEVELS, Level

ENTRY_POINT_GROUP = "kebab_eval.metrics"

Kernel = Callable[[RankTable, int | None, float], FloatArray]
Kind = Literal["retrieval", "answer", "latency", "count"]
Direction = Literal["higher", "lower"]
Cut = Literal["required", "optional", "none"]


@dataclass(frozen=True, slots=True)
class Family:
    """What the metrics of one kind share.

    Args:
        name: the name before any parameter, such as ``ndcg``.
        meaning: one line for people; ``{k}`` stands for the cutoff.
        source: where the definition stands.
        scored: which queries have a value.
        kernel: ``(rank table, cutoff, min_grade) -> float64, (n_queries,)``, NaN where undefined.
            None for what does not follow from a ranking (answers, latency).
        direction: whether a higher or a lower value is better.
        cut: whether the name needs, may have or cannot have a cutoff.
        thresholds: whether ``_rel<grade>`` may say from which grade an item is relevant.
        has_levels: whether there is one metric for each level.
        kind: the first part of the MLflow key.
        ideal_is_one: whether an ideal ranking scores 1 (not so for ERR and RBP, nor for precision
            of a query with few relevant items).
    """

    name: str
    meaning: str
    source: str
    scored: str
    kernel: Kernel | None = None
    direction: Direction = "higher"
    cut: Cut = "none"
    thresholds: bool = False
    has_levels: bool = True
    kind: Kind = "retrieval"
    ideal_is_one: bool = True


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with its parameters; ``min_grade`` None is the golden set's ``min_relevance``."""

    family: Family
    cutoff: int | None = None
    min_grade: int | None = None
    level: Level | None = None

    @property
    def base_name(self) -> str:
        """The name without the level."""
        cut = "" if self.cutoff is None else f"_at_{self.cutoff}"
        threshold = "" if self.min_grade is None else f"_rel{self.min_grade}"
        return f"{self.family.name}{cut}{threshold}"

    @property
    def name(self) -> str:
        return self.base_name if self.level is None else f"{self.base_name}_{self.level}"

    @property
    def meaning(self) -> str:
        places = "the whole ranking" if self.cutoff is None else f"the first {self.cutoff}"
        text = self.family.meaning.replace("{k}", places)
        return text if self.min_grade is None else f"{text}; relevant from grade {self.min_grade}"

    @property
    def source(self) -> str:
        return self.family.source

    @property
    def direction(self) -> Direction:
        return self.family.direction

    @property
    def kind(self) -> Kind:
        return self.family.kind

    def compute(self, table: RankTable) -> FloatArray:
        """Return the value of each query; float64, (n_queries,), NaN where it is not scored.

        Raises:
            MetricError: the metric does not follow from a ranking.
        """
        if self.family.kernel is None:
            raise MetricError(f"{self.name} does not follow from a ranking")
        threshold = table.min_relevance if self.min_grade is None else float(self.min_grade)
        return self.family.kernel(table, self.cutoff, threshold)


_NAME = re.compile(
    r"(?P<family>.+?)(?:_at_(?P<cutoff>\d+))?(?:_rel(?P<grade>\d+))?(?:_(?P<level>chunk|doc))?",
    re.ASCII,
)


class Registry:
    """The families by name. Iterating gives them in the order in which they were registered.

    Args:
        families: the first ones.
        discover: returns further families (those of other packages); called once, when all are
            asked for or a name is not among the first ones.
    """

    def __init__(
        self,
        families: Iterable[Family] = (),
        discover: Callable[[], Iterable[tuple[str, Family]]] | None = None,
    ) -> None:
        self._families: dict[str, Family] = {}
        self._parsed: dict[str, Metric] = {}
        self._undiscovered = discover
        for family in families:
            self.register(family)

    def __iter__(self) -> Iterator[Family]:
        self._discover()
        return iter(self._families.values())

    def __contains__(self, name: object) -> bool:
        if name not in self._families:
            self._discover()
        return name in self._families

    def _discover(self) -> None:
        if self._undiscovered is None:
            return
        found = list(self._undiscovered())  # what does not load is told again the next time
        self._undiscovered = None
        for place, family in found:
            try:
                self.register(family)
            except MetricError as error:
                raise MetricError(
                    f"the metric of {place} could not be registered: {error}"
                ) from error

    def register(self, family: Family) -> None:
        """Add a family.

        Raises:
            MetricError: the name is taken, or would be read as a name with parameters.
        """
        match = _NAME.fullmatch(family.name)
        if match is None or match["family"] != family.name or not family.name.isidentifier():
            raise MetricError(
                f"a metric cannot be called {family.name!r}: take letters, digits and underscores, "
                "not ending like a cutoff (_at_10), a grade (_rel2) or a level (_doc)"
            )
        if family.name in self._families:
            raise MetricError(f"a metric called {family.name!r} is registered already")
        self._families[family.name] = family

    def family(self, name: str) -> Family:
        """Return a family by its name.

        Raises:
            MetricError: there is none; the message names the nearest one.
        """
        if name not in self:
            known = ", ".join(self._families)
            hint = nearest(name, self._families)
            raise MetricError(f"no metric family is called {name!r}{hint}; there are: {known}")
        return self._families[name]

    def make(
        self,
        name: str,
        *,
        cutoff: int | None = None,
        min_grade: int | None = None,
        level: Level | None = None,
    ) -> Metric:
        """Return a metric of a family.

        Raises:
            MetricError: no such family, or parameters that it does not take.
        """
        family = self.family(name)
        metric = Metric(family, cutoff, min_grade, level)
        fault = _parameter_fault(metric)
        if fault:
            raise MetricError(fault)
        return metric

    def parse(self, name: str) -> Metric:
        """Return the metric that a name such as ``ndcg_at_10_doc`` stands for.

        Raises:
            MetricError: no metric has that name; the message names the nearest one.
        """
        if name in self._parsed:
            return self._parsed[name]
        match = _NAME.fullmatch(name)
        if match is None or match["family"] not in self:
            raise MetricError(self._unknown(name))
        level: Level | None = "chunk" if match["level"] == "chunk" else None
        if match["level"] == "doc":
            level = "doc"
        metric = Metric(
            self._families[match["family"]],
            None if match["cutoff"] is None else int(match["cutoff"]),
            None if match["grade"] is None else int(match["grade"]),
            level,
        )
        fault = _parameter_fault(metric)
        if fault:
            raise MetricError(fault)
        self._parsed[name] = metric
        return metric

    def parse_all(self, names: Iterable[str]) -> tuple[Metric, ...]:
        """Return the metrics of several names, in that order and each once.

        Raises:
            MetricError: with a fault for every name that is none.
        """
        metrics: dict[str, Metric] = {}
        faults: list[Fault] = []
        for name in names:
            try:
                metric = self.parse(name)
                metrics.setdefault(metric.name, metric)
            except MetricError as error:
                faults.extend(error.faults)
        if faults:
            raise MetricError(faults)
        return tuple(metrics.values())

    def examples(self) -> tuple[str, ...]:
        """Return a name of each kind, for help texts and suggestions."""
        names: list[str] = []
        for family in self:
            cuts = ("",) if family.cut == "none" else tuple(f"_at_{k}" for k in (1, 3, 5, 10))
            grades = ("", "_rel2", "_rel3") if family.thresholds else ("",)
            levels = ("", *(f"_{level}" for level in LEVELS)) if family.has_levels else ("",)
            if family.cut == "optional":
                cuts = ("", *cuts)
            names += [f"{family.name}{c}{g}{v}" for c in cuts for g in grades for v in levels]
        return tuple(names)

    def _unknown(self, name: str) -> str:
        hint = nearest(name, self.examples())
        families = ", ".join(self._families)
        return f"no metric is called {name!r}{hint}; there are: {families}"


def _parameter_fault(metric: Metric) -> str:
    """Return why the parameters do not fit the family, or an empty string."""
    family, name = metric.family, metric.name
    if family.cut == "required" and metric.cutoff is None:
        return f"{name!r} needs a cutoff, as in {family.name}_at_10"
    if family.cut == "none" and metric.cutoff is not None:
        return f"{name!r}: {family.name} takes no cutoff"
    if metric.cutoff is not None and metric.cutoff < 1:
        return f"{name!r}: a cutoff is 1 or more"
    if metric.min_grade is not None and not family.thresholds:
        return f"{name!r}: {family.name} takes no grade (_rel{metric.min_grade})"
    if metric.min_grade is not None and metric.min_grade < 1:
        return f"{name!r}: a grade is 1 or more"
    if metric.level is not None and not family.has_levels:
        return f"{name!r}: {family.name} has no level"
    return ""


@lru_cache(maxsize=1)
def default_registry() -> Registry:
    """Return the registry: this package's families, and those of installed packages behind them.

    Using it raises a MetricError when an entry point cannot be loaded or its name is taken.
    """
    from kebab_eval.metrics.families import FAMILIES

    return Registry(FAMILIES, _installed)


def _installed() -> Iterator[tuple[str, Family]]:
    """Return the families of installed packages, with where each comes from."""
    # To look through all installed packages takes 50 ms, so only when one may be needed.
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINT_GROUP):
        place = f"{point.name!r} ({point.value})"
        try:
            found = point.load()
        except Exception as error:
            raise MetricError(f"the metric of {place} could not be registered: {error}") from error
        for family in (found,) if isinstance(found, Family) else found:
            yield place, family
