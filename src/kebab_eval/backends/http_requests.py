"""What is asked of a search API: a request whose templates are filled for each query and page.

Values are put into the finished tree and never into JSON text, and an address quotes them, so that
no query leaves its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from kebab_eval.backends.json_paths import check_templates, fill, names_in
from kebab_eval.errors import BackendError, Fault, UsageError
from kebab_eval.formats.jsonl import Number

_OF_A_PAGE = frozenset({"cursor", "page", "offset"})


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent: templates, and whose request it is as (name, password)."""

    method: str
    url: str
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    body: Any
    auth: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Where a page begins: ``number`` from 1, ``offset`` hits before it, the ``cursor``."""

    number: int = 1
    offset: int = 0
    cursor: Any = None


@dataclass(frozen=True, slots=True)
class Filled:
    """A request without templates, as it goes out."""

    address: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes | None


class Templates:
    """The templates of a request, and the values that are the same for every query.

    Raises:
        UsageError: with every fault: a name that nothing has, an address that is none.
    """

    def __init__(self, request: Request, values: Mapping[str, Any]) -> None:
        self._request = request
        self._values = values
        self._words = {name: _word(value) for name, value in values.items()}
        used = _checked(request, ["query", "page", "offset", "cursor", *values])
        self._in_address = names_in(request.url)
        self._first = replace(
            request,
            params=_without_cursor(request.params),
            headers=_without_cursor(request.headers),
            body=_without_cursor(request.body),
        )
        self.paged = bool(used & _OF_A_PAGE)

    def fill(self, query: str, page: Page) -> Filled:
        """Return the request of a page; the first one leaves out what would hold the cursor.

        Raises:
            BackendError: the query would climb out of its place in the address.
        """
        request = self._first if page.cursor is None else self._request
        cursor = _plain(page.cursor)
        own = {"query": query, "page": page.number, "offset": page.offset, "cursor": cursor}
        words = {**self._words, **{name: _word(value) for name, value in own.items()}}
        address = request.url
        if self._in_address:
            quoted = {name: quote(words[name] or "", safe="") for name in self._in_address}
            address = fill(address, quoted)
            # %2E is a dot to every parser of addresses, so that quoting would not hold it.
            if any(unquote(step) in (".", "..") for step in urlsplit(address).path.split("/")):
                raise BackendError("the query is nothing but dots and cannot stand in the address")
        params = {
            name: word
            for name, value in fill(dict(request.params), words).items()
            if (word := _word(value)) is not None
        }
        headers = {
            name: _utf8(" ".join(value.split())).decode()
            for name, value in fill(dict(request.headers), words).items()
            if value is not None
        }
        content = None
        if request.body is not None:
            body = fill(request.body, {**self._values, **own})
            content = _utf8(json.dumps(body, ensure_ascii=False))
            headers.setdefault("Content-Type", "application/json")
        return Filled(address, params, headers, content)


def _checked(request: Request, known: list[str]) -> set[str]:
    """Return the names of all templates of a request; see :class:`Templates` for what is raised."""
    faults: list[Fault] = []
    parts = {"url": request.url, "params": request.params, "headers": request.headers}
    for name, template in {**parts, "body": request.body}.items():
        try:
            check_templates(template, known, f"backend.{name}")
        except UsageError as wrong:
            more = "; braces with blanks in them, { id }, stay text" if name == "body" else ""
            faults += [Fault(fault.place, fault.message + more) for fault in wrong.faults]
    try:
        address = urlsplit(request.url)
        right = address.scheme in ("http", "https") and bool(address.hostname)
        right = right and address.port != 0
    except ValueError:
        right = False
    if not right:
        message = "backend.url: an address begins with http:// or https:// and a host"
        faults.append(Fault("", message))
    if faults:
        raise UsageError(faults)
    return names_in([*parts.values(), request.body])


def _without_cursor(template: Any) -> Any:
    if isinstance(template, Mapping):
        return {
            key: _without_cursor(value)
            for key, value in template.items()
            if not (isinstance(value, str) and "cursor" in names_in(value))
        }
    if isinstance(template, list):
        return [_without_cursor(value) for value in template]
    return template


def _plain(value: Any) -> Any:
    """Return a value of a response as a request may hold it: its numbers are numbers again."""
    if isinstance(value, Number):
        return json.loads(value)
    if isinstance(value, Mapping):
        return {key: _plain(child) for key, child in value.items()}
    return [_plain(child) for child in value] if isinstance(value, list) else value


def _word(value: Any) -> str | None:
    """Return a value as an address or a header holds it; None stands for none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | list | Mapping):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
