"""Reading and filling JSON trees: dotted paths into a response, templates into a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from kebab_eval.errors import UsageError, nearest

_STEP = re.compile(r"([^.\[\]]+)|\[(\d*)\]")
_FIELD = re.compile(r"\{([A-Za-z_][\w.]*)\}")


def find_all(data: Any, path: str) -> list[Any]:
    """Return every value at a path: ``hits.hits[]._source.title``, ``a[0]``; null counts as none.

    ``a|b`` takes the first path that finds anything. Where a step meets a list without ``[]``, it
    goes into each of its items.
    """
    for way in _ways(path):
        found = [data]
        for key, index in way:
            found = _stepped(found, key, index)
        found = [value for value in found if value is not None]
        if found:
            return found
    return []


@lru_cache(maxsize=1024)
def _ways(path: str) -> tuple[tuple[tuple[str | None, str | None], ...], ...]:
    """Return the alternatives of a path, each as its (key, index) steps."""
    return tuple(
        tuple((match[1], match[2]) for match in _STEP.finditer(way.strip()))
        for way in path.split("|")
    )


def find_one(data: Any, path: str | None) -> Any:
    """Return the first value at a path, None where there is none or no path."""
    if path is None:
        return None
    if isinstance(data, dict) and (key := _only_key(path)) is not None:
        return data.get(key)  # a field of a hit, the most frequent question
    return next(iter(find_all(data, path)), None)


@lru_cache(maxsize=1024)
def _only_key(path: str) -> str | None:
    """Return the key that a path of one step is, None for a longer one or one with a choice."""
    ways = _ways(path)
    return ways[0][0][0] if len(ways) == 1 and len(ways[0]) == 1 else None


def _stepped(values: list[Any], key: str | None, index: str | None) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if key is not None:
            if isinstance(value, dict):
                if key in value:
                    found.append(value[key])
            elif isinstance(value, list):
                found += [one[key] for one in value if isinstance(one, dict) and key in one]
        elif isinstance(value, list):
            if not index:
                found += value
            elif int(index) < len(value):
                found.append(value[int(index)])
    return found


def names_in(template: Any) -> set[str]:
    """Return the ``{name}`` that stand in a tree."""
    if isinstance(template, Mapping):
        return names_in(list(template.keys())) | names_in(list(template.values()))
    if isinstance(template, list | tuple):
        return {name for one in template for name in names_in(one)}
    return set(_FIELD.findall(template)) if isinstance(template, str) else set()


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a tree with ``{name}`` filled in.

    A text that is one template alone becomes the value itself, a number or null with its type; in a
    longer text it becomes its text. Keys are filled too. Other braces stay as they are.
    """
    if isinstance(template, Mapping):
        return {str(fill(key, values)): fill(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill(value, values) for value in template]
    if not isinstance(template, str):
        return template
    whole = _FIELD.fullmatch(template)
    if whole and whole[1] in values:
        return values[whole[1]]
    return _FIELD.sub(
        lambda match: str(values[match[1]]) if match[1] in values else match[0], template
    )


def check_templates(template: Any, known: Iterable[str], where: str) -> None:
    """Hold every ``{name}`` of a tree against what there is.

    Raises:
        UsageError: a name that is not known; the nearest one is told.
    """
    names = list(known)
    wrong = names_in(template) - set(names)
    if wrong:
        word = sorted(wrong)[0]
        shown = ", ".join(f"{{{name}}}" for name in names if "." not in name)
        raise UsageError(
            f"{where}: nothing is called {{{word}}}{nearest(word, names)}; there are {shown} and "
            "every key of the config, as in {fusion.rrf_k}"
        )
