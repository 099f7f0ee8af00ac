"""What a search API answered: its hits, or the one line that says why there are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kebab_eval.backends.http_responses import (
    Reading,
    Response,
    read_answer,
    read_hits,
    shown_address,
)
from kebab_eval.errors import BackendError
from kebab_eval.redaction import register

READING = Reading(hits="r[]", id="id", doc_id="doc", score="s", text="t", error="oops")
SECRET = "planted-secret-5150"  # noqa: S105


@pytest.fixture(autouse=True)
def _known_secret() -> None:
    register(SECRET, "${env:SECRET}")


def answer(body: Any, status: int = 200, reading: Reading = READING, **headers: str) -> Any:
    text = body if isinstance(body, bytes | str) else json.dumps(body)
    raw = text.encode() if isinstance(text, str) else text
    return read_answer(Response(status, headers, raw), reading)


def hits(body: Any, reading: Reading = READING, before: int = 0) -> Any:
    return read_hits(answer(body, reading=reading), reading, before)


def cause(body: Any, status: int = 200, reading: Reading = READING, **headers: str) -> BackendError:
    with pytest.raises(BackendError) as told:
        read_hits(answer(body, status, reading, **headers), reading, 0)
    assert len(str(told.value).splitlines()) == 1
    assert SECRET not in str(told.value)
    return told.value


def test_a_hit_is_what_stands_there() -> None:
    (hit,) = hits('{"r": [{"id": 02142, "s": "0.5"}]}'.replace("02142", '"02142"'), before=4)
    assert (hit.rank, hit.chunk_id, hit.doc_id, hit.score, hit.snippet) == (
        5,
        "02142",
        "02142",
        0.5,
        "",
    )


def test_numbers_stay_the_text_that_they_are() -> None:
    body = '{"r": [{"id": 1e5, "doc": 12345678901234567890, "s": 1e-3, "t": 7}]}'
    (hit,) = hits(body)
    assert (hit.chunk_id, hit.doc_id, hit.score) == ("1e5", "12345678901234567890", 0.001)
    assert hit.snippet == "7"


def test_a_mark_before_the_json_is_no_fault() -> None:
    assert hits(b"\xef\xbb\xbf" + b'{"r": []}') == []


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (None, "hit 1 has no id at 'id'; it has null"),
        ({"id": None}, "hit 1 has no id"),
        ({"id": True}, "hit 1 has no id"),
        ({"id": ""}, "hit 1 has no id"),
        ({"id": ["a"]}, "hit 1 has no id"),
        ({"name": "a"}, "hit 1 has no id at 'id'; it has name"),
        ("a", "hit 1 has no id"),
        ({"id": "a", "s": True}, "the score of hit 1 is no number: 'true'"),
        ({"id": "a", "s": "high"}, "the score of hit 1 is no number: 'high'"),
        ({"id": "a", "s": {"v": 1}}, "the score of hit 1 is no number"),
        ({"id": "a", "s": float("nan")}, "the score of hit 1 is no number"),
        ({"id": "a", "s": "1e999"}, "the score of hit 1 is no number"),
    ],
)
def test_a_hit_that_is_none_is_told(item: Any, said: str) -> None:
    assert said in str(cause({"r": [item]}))


def test_a_null_among_hits_is_not_passed_over() -> None:
    with pytest.raises(BackendError, match="hit 2 has no id"):
        hits({"r": [{"id": "a"}, None, {"id": "b"}]})


@pytest.mark.parametrize(
    ("body", "has"),
    [
        ({"x": 1, "y": 2}, "it has x, y"),
        ({"r": {"id": "a"}}, "it has r"),
        ({"r": None}, "it has r"),
        ([1], "it has a list"),
        ("null", "it has null"),
        ({}, "it has nothing"),
    ],
)
def test_no_list_of_hits(body: Any, has: str) -> None:
    assert str(cause(body)) == f"the response holds no list of hits at 'r[]'; {has}"


def test_the_first_list_that_holds_anything_is_taken() -> None:
    reading = Reading(hits="a[]|b[]|c[].d[]", id="id")
    one, two = {"id": "1"}, {"id": "2"}
    assert [h.chunk_id for h in hits({"a": [], "b": [one]}, reading)] == ["1"]
    assert [h.chunk_id for h in hits({"c": [{"d": [one]}, {"d": [two]}]}, reading)] == ["1", "2"]
    assert hits({"a": [], "x": 1}, reading) == []
    assert [h.chunk_id for h in hits([one], Reading(hits="[]", id="id"))] == ["1"]


def test_a_total_of_nothing_stands_for_the_empty_list() -> None:
    reading = Reading(hits="root.children[]", id="id", total="root.n")
    assert hits({"root": {"n": 0}}, reading) == []
    assert "no list of hits" in str(cause({"root": {"n": 3}}, reading=reading))


@pytest.mark.parametrize(
    ("status", "retry"),
    [(429, True), (408, True), (500, True), (501, True), (503, True), (520, True), (599, True),
     (400, False), (401, False), (404, False), (204, False), (206, False)],
)  # fmt: skip
def test_which_status_is_worth_another_attempt(status: int, retry: bool) -> None:
    told = cause("no", status)
    assert str(told) == f"HTTP {status}: no"
    assert told.retry is retry


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("0", 0.0), ("soon", None), ("-5", None), ("", None),
                            ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)  # fmt: skip
def test_retry_after(header: str, seconds: float | None) -> None:
    assert cause("", 503, **{"retry-after": header}).retry_after_s == seconds


def test_an_error_inside_a_200_counts_beside_hits_too() -> None:
    assert str(cause({"r": [{"id": "a"}], "oops": "half of it"})) == "the system says: half of it"
    assert str(cause({"r": [], "oops": {"code": 3}})) == 'the system says: {"code": "3"}'


def test_a_system_that_timed_out() -> None:
    told = cause({"r": [], "timed_out": True})
    assert (str(told), told.retry) == ("the system says that it timed out", True)
    assert hits({"r": [], "timed_out": False}) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "slow"}}, "slow"),
        ({"error": {"reason": "no index"}}, "no index"),
        ({"error": "x"}, "x"),
        ({"detail": "y"}, "y"),
        ({"oops": "mine first", "error": "x"}, "mine first"),
        ({"odd": {"a": 1}}, '{"odd": {"a": 1}}'),
        ("plain\n\x1b[31m words", "plain  [31m words"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_what_an_error_body_says(body: Any, said: str) -> None:
    assert str(cause(body, 400)) == f"HTTP 400: {said}"


def test_an_error_body_is_cut_and_no_secret_is_cut_into_view() -> None:
    told = str(cause("x" * 195 + SECRET, 400))
    assert "plant" not in told
    assert len(told) < 250
    # At the end of what is looked at, behind blanks that fold into one.
    told = str(cause("bad" + " " * (20_000 - 3 - 7) + SECRET, 400))
    assert told == "HTTP 400: bad"
    escaped = json.dumps({"odd": f"a/{SECRET}"}).replace("-", "\\u002d")
    assert str(cause(escaped, 400)) == 'HTTP 400: {"odd": "a/${env:SECRET}"}'


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<html>login</html>", "the response is no JSON (text/html): <html>login</html>"),
        ("", "the response is no JSON (text/html) and is empty"),
        ('{"r": [', 'the response is no JSON (text/html): {"r": ['),
        (b"\xff", "the response is no JSON (text/html): \ufffd"),
    ],
)
def test_no_json(body: Any, said: str) -> None:
    assert str(cause(body, **{"content-type": "text/html; charset=utf-8"})) == said


@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 100_000])
def test_json_without_bottom(body: str) -> None:
    assert "the response is no JSON" in str(cause(body))


def test_a_redirect_is_told_without_what_may_be_secret() -> None:
    target = f"https://user:{SECRET}@other.example:8443/{SECRET}/x?key={SECRET}#{SECRET}"
    told = cause("", 302, location=target)
    assert str(told).startswith(
        "HTTP 302: redirected to https://other.example:8443/${env:SECRET}/x, which is not followed"
    )
    assert not told.retry


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://u:p@h:1/x?q=1#f", "http://h:1/x"),
        ("/there?q=1", "/there"),
        ("http://[::1/", "an address that cannot be read"),
        ("http://h:port/", "an address that cannot be read"),
        ("http://h/\x1b[0m\n", "http://h/ [0m"),
    ],
)
def test_an_address_is_shown_without_user_and_query(address: str, shown: str) -> None:
    assert shown_address(address) == shown
