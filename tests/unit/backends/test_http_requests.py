"""What is asked of a search API: templates filled, pages told apart, nothing leaving its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kebab_eval.backends.http_requests import Page, Request, Templates
from kebab_eval.errors import BackendError, UsageError
from kebab_eval.formats.jsonl import Number

VALUES = {"k": 7, "size": 5, "mode": "hybrid", "fusion.rrf_k": 60.0, "score_gate": None, "on": True}


def request(**parts: Any) -> Request:
    usual: dict[str, Any] = {"url": "http://h/s", "params": {}, "headers": {}, "body": None}
    return Request("POST", **{**usual, **parts})


def filled(query: str = "q", page: Page | None = None, **parts: Any) -> Any:
    return Templates(request(**parts), VALUES).fill(query, page or Page())


def body(template: Any, query: str = "q", page: Page | None = None) -> Any:
    return json.loads(filled(query, page, body=template).content)


def test_a_value_of_the_body_keeps_its_type_where_it_stands_alone() -> None:
    template = {"a": "{k}", "b": "k={k}", "c": ["{fusion.rrf_k}", "{score_gate}", "{on}"], "d": 1}
    assert body(template) == {"a": 7, "b": "k=7", "c": [60.0, None, True], "d": 1}


@pytest.mark.parametrize(
    "query",
    ['"}, "size": 9999, "x": {"', "{k}", "back\\slash\n", "펌프 점검", "\x00\u2028", "{{k}}"],
)
def test_a_query_stays_one_text_of_the_body(query: str) -> None:
    assert body({"q": "{query}", "also": "<{query}>"}, query) == {"q": query, "also": f"<{query}>"}


def test_half_a_character_of_a_query_is_sent_as_a_question_mark() -> None:
    assert body({"q": "{query}"}, "a\ud800b") == {"q": "a?b"}


def test_graphql_braces_are_text() -> None:
    graphql = "query($q: String!) { Get { Note(hybrid: {query: $q}) { id } } }"
    assert body({"query": graphql}) == {"query": graphql}


def test_parameters_are_texts_and_null_leaves_one_out() -> None:
    params = {"q": "{query}", "n": "{k}", "gate": "{score_gate}", "no": None, "x": True, "y": 1.5}
    sent = filled("", params=params).params
    assert sent == {
        "q": "",
        "n": "7",
        "x": "true",
        "y": "1.5",
    }  # an empty query is asked all the same


def test_headers_are_one_line_of_utf8() -> None:
    sent = filled("펌프\r\nX-Admin: 1\ud800", headers={"X-Q": "{query}", "X-K": "{k}"}).headers
    assert sent == {"X-Q": "펌프 X-Admin: 1?", "X-K": "7"}


def test_an_address_quotes_what_is_filled_in() -> None:
    address = filled("a/b?c&d=é #{k}", url="http://h/{mode}/{query}?k={k}").address
    assert address == "http://h/hybrid/a%2Fb%3Fc%26d%3D%C3%A9%20%23%7Bk%7D?k=7"


@pytest.mark.parametrize("query", [".", "..", "%2e%2e"])
def test_dots_alone_cannot_climb_out_of_an_address(query: str) -> None:
    url = "http://h/find/{query}/x"
    if query == "%2e%2e":  # quoted once more, it is a name like any other
        assert filled(query, url=url).address == "http://h/find/%252e%252e/x"
        return
    with pytest.raises(BackendError, match="nothing but dots"):
        filled(query, url=url)


def test_what_holds_the_cursor_is_left_out_of_the_first_page() -> None:
    parts: dict[str, Any] = {
        "params": {"q": "{query}", "from": "{cursor}"},
        "headers": {"X-After": "after {cursor}"},
        "body": {"q": "{query}", "after": "{cursor}", "deep": [{"after": "{cursor}"}]},
    }
    first = filled(**parts)
    assert first.params == {"q": "q"}
    assert first.headers == {"Content-Type": "application/json"}
    assert json.loads(first.content) == {"q": "q", "deep": [{}]}
    second = filled(page=Page(2, 5, "abc"), **parts)
    assert second.params == {"q": "q", "from": "abc"}
    assert second.headers["X-After"] == "after abc"
    assert json.loads(second.content) == {"q": "q", "after": "abc", "deep": [{"after": "abc"}]}


def test_a_cursor_goes_back_as_the_json_that_it_was() -> None:
    cursor = [Number("12345678901234567890"), Number("1.5"), "x", {"n": Number("3")}]
    page = Page(2, 5, cursor)
    assert body({"after": "{cursor}"}, page=page) == {
        "after": [12345678901234567890, 1.5, "x", {"n": 3}]
    }
    assert filled(page=page, params={"c": "{cursor}"}).params == {
        "c": '[12345678901234567890, 1.5, "x", {"n": 3}]'
    }


@pytest.mark.parametrize(
    ("parts", "paged"),
    [
        ({"params": {"p": "{page}"}}, True),
        ({"body": {"from": "{offset}"}}, True),
        ({"headers": {"X": "{cursor}"}}, True),
        ({"params": {"n": "{size}", "q": "{query}"}}, False),
    ],
)
def test_pages_are_asked_where_a_request_tells_them_apart(
    parts: dict[str, Any], paged: bool
) -> None:
    assert Templates(request(**parts), VALUES).paged is paged


def test_page_and_offset_are_numbers() -> None:
    assert body({"p": "{page}", "o": "{offset}", "s": "{size}"}, page=Page(3, 10)) == {
        "p": 3,
        "o": 10,
        "s": 5,
    }


def test_every_unknown_name_is_told_at_once() -> None:
    wrong = request(
        url="ftp://h/{qurey}", params={"a": "{kk}"}, headers={"b": "{mod}"}, body={"c": ["{id}"]}
    )
    with pytest.raises(UsageError) as told:
        Templates(wrong, VALUES)
    lines = [str(fault) for fault in told.value.faults]
    assert [line.split(":")[0] for line in lines] == [
        "backend.url",
        "backend.params",
        "backend.headers",
        "backend.body",
        "backend.url",
    ]
    assert "{qurey} (did you mean 'query'?)" in lines[0]
    assert "{k}" in lines[1]
    assert "braces with blanks in them, { id }, stay text" in lines[3]
    assert "begins with http://" in lines[4]


@pytest.mark.parametrize("url", ["", "host/x", "http://", "http://h:99999/", "http://[::1/"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match="an address begins with"):
        Templates(request(url=url), VALUES)
