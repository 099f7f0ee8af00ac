"""What is wrong with the input is told in lines with their place, exit 2, nothing written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

CONFIG = "configs/hybrid.yaml"
GOLDEN = "golden/queries.yaml"


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _write(path: Path, content: str | bytes) -> None:
    path.write_bytes(content.encode() if isinstance(content, str) else content)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{here}: &{here} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, here in zip("abcdefg", "bcdefgh", strict=True)
)

# name: (file to write, its content, what the error must say)
CASES: dict[str, tuple[str, str | bytes, str]] = {
    "empty config": (CONFIG, "", "configs/hybrid.yaml: config file is empty"),
    "only a comment": (CONFIG, "# nothing\n", "configs/hybrid.yaml: config file is empty"),
    "a list for a config": (CONFIG, "- a\n", "hybrid.yaml:1:1: a config is a mapping"),
    "unknown key": (
        CONFIG,
        "extends: base.yaml\nserach: {k: 5}\n",
        "hybrid.yaml:2:1: unknown key 'serach' (did you mean 'search'?)",
    ),
    "key in the wrong section": (
        CONFIG,
        "extends: base.yaml\nrrf_k: 3\n",
        "hybrid.yaml:2:1: unknown key 'rrf_k' (did you mean 'fusion.rrf_k'?)",
    ),
    "wrong type": (
        CONFIG,
        "extends: base.yaml\nsearch:\n  k: ten\n",
        'hybrid.yaml:3:6: search.k must be a whole number, found "ten"',
    ),
    "out of range": (
        CONFIG,
        "extends: base.yaml\nsearch: {k: 0}\n",
        "hybrid.yaml:2:13: search.k must be greater than or equal to 1, found 0",
    ),
    "extends itself": (CONFIG, "extends: hybrid.yaml\n", "'extends' goes in a circle"),
    "extends nothing": (CONFIG, "extends: bse.yaml\n", "bse.yaml: config file does not exist"),
    "unset environment": (
        CONFIG,
        'extends: base.yaml\ntracking: {uri: "http://${env:KE_NOT_SET}@host"}\n',
        "hybrid.yaml:2:17: environment variable KE_NOT_SET is not set",
    ),
    "missing corpus": (
        CONFIG,
        "extends: base.yaml\nbackend: {corpus: ../nothing}\n",
        "nothing",
    ),
    "unknown lever": (
        CONFIG,
        "extends: base.yaml\nlever: fusion.rrfk\n",
        "lever 'fusion.rrfk' is no key of a config (did you mean 'fusion.rrf_k'?)",
    ),
    "unknown metric": (
        CONFIG,
        "extends: base.yaml\nmetrics: {primary: ndgc_at_10_doc}\n",
        "ndgc_at_10_doc",
    ),
    "binary config": (CONFIG, b"\x89PNG\0\0", "is a binary file"),
    "invalid UTF-8": (CONFIG, b"name: caf\xe9\n", "hybrid.yaml:1:10: config file is not UTF-8"),
    "YAML bomb": (CONFIG, BOMB, "expands to more than"),
    "deep nesting": (CONFIG, "a: " + "[" * 10_000, "nest"),
    "broken YAML": (CONFIG, "a: [1\nb: 2\n", "hybrid.yaml:2:"),
    "empty golden": (GOLDEN, "", "queries.yaml: golden set is empty"),
    "empty golden list": (GOLDEN, "[]\n", "queries.yaml: golden set is empty"),
    "duplicate ids": (
        GOLDEN,
        "- {id: a, query: x}\n- {id: a, query: y}\n",
        "queries.yaml:2:3: id 'a' stands twice (first at",
    ),
    "unknown id": (
        GOLDEN,
        "- {id: a, query: x, expected_doc_ids: [on-cal.md]}\n",
        "queries.yaml:1:40: document 'on-cal.md' is not in the corpus (did you mean 'on-call.md'?)",
    ),
    "disagreeing group": (
        GOLDEN,
        "- {id: a, query: x, group: g, expected_doc_ids: [on-call.md]}\n"
        "- {id: b, query: y, group: g}\n",
        "queries.yaml:2:3: group 'g': 'b' expects no document, but 'a'",
    ),
    "unknown golden field": (
        GOLDEN,
        "- {id: a, query: x, langs: ko}\n",
        "queries.yaml:1:21: unknown field 'langs' (did you mean 'lang'?)",
    ),
    "golden without query": (GOLDEN, "- {id: a}\n", "queries.yaml:1:3: field 'query' is missing"),
    "binary golden": (GOLDEN, b"\0\1\2", "queries.yaml: golden set is a binary file"),
    "note that is not UTF-8": ("notes/on-call.md", b"# caf\xe9\n", "notes/on-call.md:1:6"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_told_and_nothing_is_written(
    name: str, project: Path, program: Program
) -> None:
    file, content, said = CASES[name]
    _write(project / file, content)
    before = _files(project)
    done = program("track", "--config", CONFIG)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert all(line.startswith("error: ") for line in done.stderr.splitlines())
    assert done.stdout == ""
    assert _files(project) - before <= {"notes/.kebab_eval_cache", ".kebab_eval_cache"}


def test_every_fault_is_told_at_once(project: Path, program: Program) -> None:
    _write(
        project / CONFIG,
        "extends: base.yaml\nsearch: {k: 0, mode: hybird}\nfusion: {rrf_k: -1}\nnmae: x\n",
    )
    done = program("track", "--config", CONFIG)
    assert done.returncode == 2
    places = [line.split(" ")[1] for line in done.stderr.splitlines()]
    assert places == [f"{CONFIG}:{at}:" for at in ("2:13", "2:22", "3:17", "4:1")]


def test_a_missing_config_is_told(project: Path, program: Program) -> None:
    done = program("track", "--config", "configs/none.yaml")
    assert done.returncode == 2
    assert done.stderr == ("error: configs/none.yaml: config file does not exist; check the path\n")


def test_a_query_id_that_is_not_in_the_set_is_told(project: Path, program: Program) -> None:
    done = program("run", "--config", CONFIG, "--query-id", "q-01")
    assert done.returncode == 2
    assert "--query-id: 'q-01' is not in" in done.stderr
    assert "did you mean 'q-001'?" in done.stderr


def test_an_output_that_could_not_be_written_is_told_before_anything_runs(
    project: Path, program: Program
) -> None:
    done = program("run", "--config", CONFIG, "-o", "nowhere/report.xls")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert not (project / "mlruns").exists()


def test_the_old_file_store_is_refused(project: Path, program: Program) -> None:
    done = program("track", "--config", CONFIG, "--tracking-uri", "./mlruns")
    assert done.returncode == 2
    assert "old file store" in done.stderr
