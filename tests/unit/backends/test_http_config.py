"""What a config may say of an API, and what a record shows of its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kebab_eval.config_file import load_config
from kebab_eval.errors import ConfigError

HEAD = "golden: g.yaml\nbackend:\n  type: http\n  url: http://u:pass-1234@h/\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def faults(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as told:
        load_config(write(tmp_path / "c.yaml", text), environ={})
    return [str(fault).removeprefix(f"{tmp_path}/") for fault in told.value.faults]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "  fields: {hits: 'a['}",
            "c.yaml:5:18: backend.fields.hits: must be a path, as in hits.hits[]",
        ),
        ("  params: {a: {b: 1}}", "c.yaml:5:19: backend.params.a: must be text, a number"),
        ("  page_size: 0", "c.yaml:5:14: backend.page_size must be greater than or equal to 1"),
        ("  preset: solr", "c.yaml:5:11: backend.preset must be one of 'docserver'"),
        ("  index: ''", "c.yaml:5:10: backend.index must not be empty"),
        ("  method: GET\n  body: {a: 1}", "a GET has no body; leave out method, or write POST"),
        ("  auth: {username: u}", "username and password stand together"),
        ("  auth: {bearer: b, username: u, password: p}", "takes a bearer token, or a username"),
    ],
)
def test_a_fault_is_told_at_its_place(tmp_path: Path, more: str, said: str) -> None:
    (fault,) = faults(tmp_path, HEAD + more + "\n")
    assert said in fault


def test_no_secret_is_recorded_written_out_or_not(tmp_path: Path) -> None:
    text = HEAD + "  auth: {bearer: literal-9999}\n  headers: {X-Key: '${env:KEY}'}\n"
    loaded = load_config(write(tmp_path / "c.yaml", text), environ={"KEY": "from-env-77"})
    backend = loaded.snapshot["backend"]
    assert backend["auth"]["bearer"] == "***"
    assert backend["headers"] == {"X-Key": "${env:KEY}"}
    assert backend["url"] == "http://h/"
    assert loaded.config.backend.auth.bearer == "literal-9999"  # type: ignore[union-attr]


def test_a_reference_stays_one(tmp_path: Path) -> None:
    text = "golden: g.yaml\nbackend: {type: docserver, base_url: 'http://h', token: '${env:T}'}\n"
    loaded = load_config(write(tmp_path / "c.yaml", text), environ={"T": "from-env-88"})
    assert loaded.snapshot["backend"]["token"] == "${env:T}"  # noqa: S105


def test_null_leaves_out_a_parameter_of_the_preset(tmp_path: Path) -> None:
    text = HEAD + "  params: {limit: null, n: 3, x: 1.5, on: true, q: '{query}'}\n"
    loaded = load_config(write(tmp_path / "c.yaml", text), environ={})
    assert loaded.snapshot["backend"]["params"] == {
        "limit": None,
        "n": 3,
        "x": 1.5,
        "on": True,
        "q": "{query}",
    }
