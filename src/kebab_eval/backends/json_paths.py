"""Reading and filling JSON trees: dotted paths into a response, templates into a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kebab_eval.errors import UsageError, nearest

_STEP = re.compile(r"([^.\[\]]+)|\[(\d*)\]")
_FIELD = re.compile(r"\{([A-Za-z_][\w.]*)\}")


def find_all(data: Any, path: str) -> list[Any]:
    """Return every value at a path: ``hits.hits[]._source.title``, ``a[0]``; null counts as none.

    ``a|b`` takes the first path that finds anything. Where a step meets a list without ``[]``, it
    goes into each of its items.
    """
    for way in path.split("|"):
        found = [data]
        for match in _STEP.finditer(way.strip()):
            found = list(_stepped(found, match[1], match[2]))
        found = [value for value in found if value is not None]
        if found:
            return found
    return []


def find_one(data: Any, path: str | None) -> Any:
    """Return the first value at a path, None where there is none or no path."""
    if path is None:
        return None
    return next(iter(find_all(data, path)), None)


def _stepped(values: Iterable[Any], key: str | None, index: str | None) -> Iterable[Any]:
    for value in values:
        if key is not None:
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, Mapping) and key in one:
                    yield one[key]
        elif isinstance(value, list):
            if not index:
                yield from value
            elif int(index) < len(value):
                yield value[int(index)]


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
    left, wrong = [template], []
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            left += one
        elif isinstance(one, str):
            wrong += [name for name in _FIELD.findall(one) if name not in names]
    if wrong:
        word = sorted(wrong)[0]
        shown = ", ".join(f"{{{name}}}" for name in names if "." not in name)
        raise UsageError(
            f"{where}: nothing is called {{{word}}}{nearest(word, names)}; there are {shown} and "
            "every key of the config, as in {fusion.rrf_k}"
        )
