"""From files, ``extends``, overrides and the environment to one config."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.config import Config
from kebab_eval.config_file import (
    LoadedConfig,
    config_keys,
    load_config,
    portable_path,
)
from kebab_eval.config_tree import MAX_FILES
from kebab_eval.errors import ConfigError

LEVELS = ["chunk", "doc"]
GOLDEN = {
    "format": "auto",
    "map": None,
    "qrels": None,
    "split": None,
    "version": None,
    "min_relevance": None,
    "levels": LEVELS,
}
BASE = "golden: g.yaml\nbackend: {corpus: c}\n"
SECRET = "s3cr3t-value"  # noqa: S105


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(
    text: str, overrides: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> LoadedConfig:
    Path("x.yaml").write_text(text, encoding="utf-8")
    return load_config(Path("x.yaml"), overrides, environ or {})


def faults(
    text: str, overrides: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> list[str]:
    with pytest.raises(ConfigError) as told:
        load(text, overrides, environ)
    assert SECRET not in str(told.value)
    return [str(fault) for fault in told.value.faults]


def test_defaults_fill_what_the_file_leaves_out() -> None:
    loaded = load(BASE)
    assert loaded.config.name == "x"
    assert loaded.config.search.k == 10
    assert loaded.config.fusion.rrf_k == 60
    assert loaded.config.metrics.cutoffs == (1, 3, 5, 10)
    assert loaded.snapshot["golden"] == {**GOLDEN, "path": "g.yaml"}


def test_a_snapshot_is_plain_json_and_writes_whole_numbers_as_people_do() -> None:
    snapshot = load(BASE + "fusion: {rrf_k: 20.0}\nscore_gate: 0.5\n").snapshot
    assert json.loads(json.dumps(snapshot)) == snapshot
    assert repr(snapshot["fusion"]["rrf_k"]) == "20"
    assert snapshot["score_gate"] == 0.5


# --- unknown keys, wrong types, all at once -------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("serach: {k: 1}\n", "x.yaml:3:1: unknown key 'serach' (did you mean 'search'?)"),
        ("search: {kk: 1}\n", "x.yaml:3:10: unknown key 'search.kk' (did you mean 'k'?)"),
        (
            "fusion:\n  weights:\n    lexcial: 1\n",
            "x.yaml:5:5: unknown key 'fusion.weights.lexcial' (did you mean 'lexical'?)",
        ),
        ("rrf_k: 1\n", "x.yaml:3:1: unknown key 'rrf_k' (did you mean 'fusion.rrf_k'?)"),
        ("<<: {}\n", "x.yaml:3:1: unknown key '<<'; allowed here: answer, backend"),
    ],
)
def test_an_unknown_key_is_told_at_the_key_with_the_nearest_right_one(text: str, said: str) -> None:
    (fault,) = faults(BASE + text)
    assert fault.startswith(said)


def test_an_unknown_key_of_an_extended_file_is_told_in_that_file() -> None:
    Path("base.yaml").write_text(BASE + "fusion: {rrf: 1}\n")
    (fault,) = faults("extends: base.yaml\nfusion: {rrf_k: 5}\n")
    assert fault == "base.yaml:3:10: unknown key 'fusion.rrf' (did you mean 'rrf_k'?)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("search: {k: ten}", 'x.yaml:3:13: search.k must be a whole number, found "ten"'),
        ("search: {k: 2.5}", "x.yaml:3:13: search.k must be a whole number, found 2.5"),
        ("search: {k: true}", "x.yaml:3:13: search.k must be a whole number, found true"),
        ("search: {k: '5'}", 'x.yaml:3:13: search.k must be a whole number, found "5"'),
        ("search: {k: 0}", "x.yaml:3:13: search.k must be greater than or equal to 1, found 0"),
        ("search: 5", "x.yaml:3:9: search must be a mapping of keys to values, found 5"),
        ("search:", "x.yaml:3:8: search must be a mapping of keys to values, found null"),
        ("search: [k]", 'x.yaml:3:9: search must be a mapping of keys to values, found ["k"]'),
        ("name: 5", "x.yaml:3:7: name must be text (put it in quotes), found 5"),
        ("name: ''", 'x.yaml:3:7: name must not be empty, found ""'),
        ("name: [a]", 'x.yaml:3:7: name must be text (put it in quotes), found ["a"]'),
        ("fusion: {rrf_k: 1e999}", "x.yaml:3:17: fusion.rrf_k must be a finite number, found Infi"),
        ("fusion: {rrf_k: .inf}", 'x.yaml:3:17: fusion.rrf_k must be a number, found ".inf"'),
        ("fusion: {rrf_k: " + "9" * 399 + "}", "x.yaml:3:17: fusion.rrf_k must be a finite number"),
        ("fusion: {weights: {lexical: 0, vector: 0}}", "x.yaml:3:29: fusion.weights: at least one"),
        ("chunking: {overlap_tokens: 200}", "x.yaml:3:28: chunking: overlap_tokens (200) must be"),
        ("metrics: {cutoffs: [5, 1]}", "x.yaml:3:20: metrics: cutoffs must ascend"),
        ("metrics: {cutoffs: []}", "x.yaml:3:20: metrics.cutoffs must hold at least one item, f"),
        ("metrics: {cutoffs: [x]}", "x.yaml:3:21: metrics.cutoffs.0 must be a whole number, fou"),
        ("metrics: {cutoffs: [99999999999]}", "x.yaml:3:21: metrics.cutoffs.0 must be less than"),
        ("metrics: {cutoffs: 5}", "x.yaml:3:20: metrics.cutoffs must be a list, found 5"),
        ("metrics: {primary: ndcg}", "x.yaml:3:20: metrics.primary: 'ndcg' needs a level"),
        ("lever: fusion.rrf", "x.yaml:3:8: lever 'fusion.rrf' is no key of a config (did you me"),
        ("search: {mode: both}", "x.yaml:3:16: search.mode must be one of 'lexical', 'vector' or"),
        ("tags: {a: 1}", "x.yaml:3:11: tags.a must be text (put it in quotes), found 1"),
        ("suites: {a: ''}", "x.yaml:3:13: suites.a must not be empty"),
    ],
)
def test_a_wrong_value_is_told_where_it_stands(text: str, said: str) -> None:
    (fault,) = faults(BASE + text + "\n")
    assert fault.startswith(said)


@pytest.mark.parametrize(
    "name", ['"a\\x1b[31mb"', '"a\\nb"', '"a\\u2028b"', '"a\\0"', "' a'", "'a '", '"a\\x85b"']
)
def test_a_name_is_one_line_that_a_terminal_shows_as_it_is(name: str) -> None:
    (fault,) = faults(BASE + f"name: {name}\n")
    assert "x.yaml:3:7: name must be one line without control characters" in fault


@pytest.mark.parametrize("name", ["a", "rrf k60", "한글 이름", "<script>", "x" * 200])
def test_any_other_name_is_a_name(name: str) -> None:
    assert load(BASE + f"name: {json.dumps(name)}\n").config.name == name


@pytest.mark.parametrize(
    "text", ["golden: ''\nbackend: {corpus: c}", "golden: g\nbackend: {corpus: ''}"]
)
def test_an_empty_path_is_refused_and_never_the_working_directory(text: str) -> None:
    (fault,) = faults(text)
    assert "must not be empty" in fault


def test_a_nul_in_a_path_is_refused() -> None:
    told = faults('golden: "a\\0"\nbackend: {corpus: "c\\0"}')
    assert [fault.split(": ")[0] for fault in told] == ["x.yaml:1:9", "x.yaml:2:19"]


def test_every_fault_is_told_at_once_in_the_order_of_the_file() -> None:
    text = (
        "nam: a\n"
        "search: {k: x, mode: y}\n"
        "tags: {t: '${env:UNSET_ONE}'}\n"
        "tracking: {uri: '${env:UNSET_TWO}'}\n"
        "fusion: {rrf_k: -1}\n"
    )
    told = faults(BASE + text)
    places = [fault.split(": ")[0] for fault in told]
    assert places == [
        "x.yaml:3:1",
        "x.yaml:4:13",
        "x.yaml:4:22",
        "x.yaml:5:11",
        "x.yaml:6:17",
        "x.yaml:7:17",
    ]


def test_missing_keys_are_told() -> None:
    assert faults("name: a\n") == [
        "x.yaml: key 'golden' is missing",
        "x.yaml: key 'backend' is missing",
    ]


@pytest.mark.parametrize("text", ["", "# words\n", "---\n", "null\n", "\ufeff"])
def test_an_empty_config_is_told(text: str) -> None:
    assert faults(text) == [
        "x.yaml: config file is empty; 'kebab-eval init' writes one to start from"
    ]


@pytest.mark.parametrize(("text", "what"), [("- a\n", "a list"), ("abc\n", "'abc'"), ("5", "5")])
def test_a_config_is_a_mapping(text: str, what: str) -> None:
    assert faults(text) == [f"x.yaml:1:1: a config is a mapping of keys to values, found {what}"]


# --- extends and merging --------------------------------------------------------------------


def test_later_keys_win_and_mappings_merge() -> None:
    Path("a.yaml").write_text(BASE + "fusion: {rrf_k: 1, weights: {lexical: 2, vector: 3}}\n")
    Path("b.yaml").write_text("fusion: {rrf_k: 2}\nsearch: {k: 3}\n")
    fusion = load("extends: [a.yaml, b.yaml]\nfusion: {weights: {vector: 5}}\n").config.fusion
    assert fusion.rrf_k == 2
    assert (fusion.weights.lexical, fusion.weights.vector) == (2, 5)


def test_extends_may_stand_anywhere_in_the_file() -> None:
    Path("a.yaml").write_text(BASE + "search: {k: 3}\n")
    assert load("search: {k: 5}\nextends: a.yaml\n").config.search.k == 5


def test_an_empty_mapping_takes_nothing_away() -> None:
    Path("a.yaml").write_text(BASE + "fusion: {rrf_k: 20}\n")
    assert load("extends: a.yaml\nfusion: {}\n").config.fusion.rrf_k == 20


def test_relative_paths_are_taken_from_the_file_that_names_them(tmp_path: Path) -> None:
    Path("shared/deep").mkdir(parents=True)
    Path("shared/deep/base.yaml").write_text(
        "golden: ../g.yaml\nbackend: {corpus: c, cache: v}\nsuites: {s: t.yaml}\n"
    )
    Path("shared/mid.yaml").write_text("extends: deep/base.yaml\nbackend: {cache: w}\n")
    loaded = load("extends: shared/mid.yaml\n")
    assert loaded.snapshot["golden"]["path"] == "shared/g.yaml"
    assert loaded.snapshot["backend"] == {
        "type": "embedded",
        "corpus": "shared/deep/c",
        "cache": "shared/w",
        "document_ids": None,
    }
    assert loaded.snapshot["suites"] == {"s": "shared/deep/t.yaml"}
    assert loaded.config.golden.path.resolve() == (tmp_path / "shared/g.yaml").resolve()


def test_an_override_takes_relative_paths_from_the_working_directory() -> None:
    Path("sub").mkdir()
    Path("sub/x.yaml").write_text(BASE)
    loaded = load_config(Path("sub/x.yaml"), ["golden=h.yaml", "backend.corpus=d"], {})
    assert loaded.snapshot["golden"]["path"] == "h.yaml"
    assert loaded.snapshot["backend"]["corpus"] == "d"
    assert load_config(Path("sub/x.yaml"), (), {}).snapshot["golden"]["path"] == "sub/g.yaml"


def test_absolute_paths_stay_where_they_are(tmp_path: Path) -> None:
    loaded = load(f"golden: {tmp_path}/g.yaml\nbackend: {{corpus: {tmp_path.parent}/c}}\n")
    assert loaded.config.golden.path == tmp_path / "g.yaml"
    assert loaded.snapshot["golden"]["path"] == "g.yaml"
    assert loaded.snapshot["backend"]["corpus"] == "../c"


def test_the_short_form_of_golden_is_its_path() -> None:
    assert load("golden: {path: g.yaml}\nbackend: {corpus: c}\n").config == load(BASE).config


def test_what_is_merged_into_the_short_form_keeps_the_path() -> None:
    golden = load(BASE, ["golden.min_relevance=2"]).snapshot["golden"]
    assert golden == {**GOLDEN, "path": "g.yaml", "min_relevance": 2}


def test_the_short_form_replaces_the_long_one() -> None:
    Path("a.yaml").write_text("golden: {path: g.yaml, min_relevance: 2}\nbackend: {corpus: c}\n")
    golden = load("extends: a.yaml\ngolden: h.yaml\n").snapshot["golden"]
    assert golden == {**GOLDEN, "path": "h.yaml"}


def test_a_tag_called_type_does_not_replace_the_other_tags() -> None:
    Path("a.yaml").write_text(BASE + "tags: {team: search, type: nightly}\n")
    tags = load("extends: a.yaml\ntags: {type: manual}\n").config.tags
    assert tags == {"team": "search", "type": "manual"}


def test_a_backend_of_another_type_replaces_the_old_one_whole() -> None:
    Path("a.yaml").write_text("golden: g\nbackend: {type: embedded, corpus: c}\n")
    told = faults("extends: a.yaml\nbackend: {type: other}\n")
    assert told == [
        "x.yaml:2:17: backend.type must be one of 'embedded', 'http', 'docserver', 'kebab', "
        "'python', 'postgres', 'replay', found \"other\"",
    ]


def test_a_circle_is_told_with_its_links() -> None:
    Path("a.yaml").write_text("extends: b.yaml\n")
    Path("b.yaml").write_text("name: b\nextends: [a.yaml]\n")
    (fault,) = faults("extends: a.yaml\n")
    assert fault.startswith("b.yaml:2:11: 'extends' goes in a circle: a.yaml -> b.yaml -> a.yaml")
    (fault,) = faults("extends: ./x.yaml\n")
    assert "x.yaml -> x.yaml" in fault


def test_one_file_extended_twice_is_no_circle() -> None:
    Path("a.yaml").write_text(BASE)
    Path("b.yaml").write_text("extends: a.yaml\nsearch: {k: 3}\n")
    assert load("extends: [a.yaml, b.yaml]\n").config.search.k == 3


def test_endless_extends_are_refused() -> None:
    for number in range(1500):
        Path(f"c{number}.yaml").write_text(f"extends: c{number + 1}.yaml\n")
    (fault,) = faults("extends: c0.yaml\n")
    assert f"'extends' reads more than {MAX_FILES} files" in fault


def test_extends_that_double_at_each_step_are_refused() -> None:
    for number in range(40):
        Path(f"d{number}.yaml").write_text(f"extends: [d{number + 1}.yaml, d{number + 1}.yaml]\n")
    Path("d40.yaml").write_text(BASE)
    (fault,) = faults("extends: d0.yaml\n")
    assert f"'extends' reads more than {MAX_FILES} files" in fault


@pytest.mark.parametrize(
    ("extends", "said"),
    [
        (
            "nope.yaml",
            "nope.yaml: config file does not exist; check the path (extended at x.yaml:1:10)",
        ),
        ("", "x.yaml:1:9: 'extends' takes a file or a list of files, found nothing"),
        ("''", "x.yaml:1:10: 'extends' takes a file or a list of files, found ''"),
        ("{a: b}", "x.yaml:1:10: 'extends' takes a file or a list of files, found a mapping"),
        ("[[a]]", "x.yaml:1:11: 'extends' takes a file or a list of files, found a list"),
        ('"a\\0b"', "'a\\x00b': config file cannot be read: embedded null byte (extended at x"),
        (".", ".: config file is a folder; name a file in it (extended at x.yaml:1:10)"),
        ("loop.yaml", "loop.yaml: config file cannot be read: Too many levels of symbolic links"),
        ("${env:BASE}", "x.yaml:1:10: 'extends' takes no environment reference; write the path"),
    ],
)
def test_what_cannot_be_extended_is_told(extends: str, said: str) -> None:
    Path("loop.yaml").symlink_to("loop.yaml")
    (fault,) = faults(f"extends: {extends}\n", environ={"BASE": SECRET})
    assert fault.startswith(said)


@pytest.mark.parametrize("path", ["loop.yaml", "a\0b", "y" * 300, "x.yaml/y", "."])
def test_a_config_path_that_cannot_be_read_is_told(path: str) -> None:
    Path("loop.yaml").symlink_to("loop.yaml")
    Path("x.yaml").write_text(BASE)
    with pytest.raises(ConfigError):
        load_config(Path(path), (), {})


def test_yaml_faults_of_an_extended_file_say_who_extends_it() -> None:
    Path("a.yaml").write_text("a: 1\na: 2\n")
    (fault,) = faults("extends: a.yaml\n")
    assert fault == (
        "a.yaml:2:1: key 'a' stands twice (first on line 1); keep one (extended at x.yaml:1:10)"
    )


# --- overrides ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("fusion.rrf_k=20", ("fusion", "rrf_k"), 20),
        ("fusion={rrf_k: 20}", ("fusion", "rrf_k"), 20),
        ("score_gate=null", ("score_gate",), None),
        ("score_gate=", ("score_gate",), None),
        ("score_gate=0.3", ("score_gate",), 0.3),
        ("name=a=b", ("name",), "a=b"),
        ("name='5'", ("name",), "5"),
        ("metrics.cutoffs=[1, 2]", ("metrics", "cutoffs"), [1, 2]),
        ("tags.owner=한글", ("tags", "owner"), "한글"),
        ("tags.owner='no'", ("tags", "owner"), "no"),
        (" search.k =7", ("search", "k"), 7),
    ],
)
def test_an_override_is_read_as_yaml(override: str, path: tuple[str, ...], value: Any) -> None:
    found: Any = load(BASE, [override]).snapshot
    for step in path:
        found = found[step]
    assert found == value


def test_the_last_override_of_a_key_wins_and_others_stay() -> None:
    config = load(
        BASE + "fusion: {rrf_k: 3}\n", ["fusion.rrf_k=1", "fusion.rrf_k=2", "search.k=4"]
    ).config
    assert (config.fusion.rrf_k, config.search.k) == (2, 4)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("fusion", "-S fusion: an override is written key.path=value"),
        ("=1", "-S =1: an override is written"),
        ("a..b=1", "-S a..b=1: an override is written"),
        (".a=1", "-S .a=1: an override is written"),
        ("fusion.rrfk=1", "-S fusion.rrfk: unknown key 'fusion.rrfk' (did you mean 'rrf_k'?)"),
        ("fusion={rrfk: 1}", "-S fusion: unknown key 'fusion.rrfk' (did you mean 'rrf_k'?)"),
        ("search.k=x", '-S search.k: search.k must be a whole number, found "x"'),
        ("search.k.x=1", "-S search.k.x: search.k must be a whole number, found {"),
        ("search.k=[", "-S search.k: not valid YAML:"),
        ("a={b: 1, b: 2}", "-S a: key 'b' stands twice"),
        ("name=\udcff", "-S name: not valid YAML: character U+DCFF may not stand in it"),
        ("na\udcff=x", "-S na\udcff: no key of a config is called that"),
        ("a=" + "[" * 10_000, "-S a: not valid YAML"),
        (".".join("a" * 10_000) + "=1", "-S a.a.a"),
        ("extends=a.yaml", "-S extends: unknown key 'extends'"),
    ],
)
def test_a_wrong_override_is_told_by_its_option(override: str, said: str) -> None:
    (fault,) = faults(BASE, [override])
    assert fault.startswith(said)


def test_an_override_replaces_a_value_of_another_kind() -> None:
    assert faults(BASE + "fusion: {rrf_k: 3}\n", ["fusion=5"]) == [
        "-S fusion: fusion must be a mapping of keys to values, found 5"
    ]


def test_defaults_lie_under_the_file() -> None:
    Path("x.yaml").write_text(BASE + "name: mine\n")
    loaded = load_config(Path("x.yaml"), (), {}, {"name": "given", "experiment": "given"})
    assert (loaded.config.name, loaded.config.experiment) == ("mine", "given")


# --- environment references -----------------------------------------------------------------


def test_a_reference_is_resolved_in_memory_and_recorded_as_it_was_written() -> None:
    loaded = load(
        BASE + "tracking: {uri: 'http://me:${env:TOKEN}@host/${env:TOKEN}'}\n",
        environ={"TOKEN": SECRET},
    )
    assert loaded.config.tracking.uri == f"http://me:{SECRET}@host/{SECRET}"
    assert loaded.snapshot["tracking"]["uri"] == "http://me:${env:TOKEN}@host/${env:TOKEN}"
    assert loaded.secrets == {SECRET}
    assert SECRET not in json.dumps(loaded.snapshot)


@pytest.mark.parametrize(
    "text",
    [
        "golden: '${env:S}'\nbackend: {corpus: c}\n",
        "golden: {path: '${env:S}'}\nbackend: {corpus: c}\n",
        "golden: '${env:S}/g.yaml'\nbackend: {corpus: c}\n",
        "golden: g\nbackend: {corpus: 'x/${env:S}', cache: '${env:S}'}\n",
        BASE + "suites: {a: '${env:S}'}\n",
        BASE + "tags: {a: '${env:S}', b: 'x ${env:S} y'}\n",
    ],
)
def test_no_snapshot_holds_a_secret_wherever_it_stands(text: str) -> None:
    loaded = load(text, environ={"S": SECRET})
    assert SECRET in loaded.config.model_dump_json()
    written = json.dumps(loaded.snapshot)
    assert SECRET not in written
    assert "${env:S}" in written


@pytest.mark.parametrize(
    "text",
    [
        "search: {k: '${env:S}'}",
        "search: {mode: '${env:S}'}",
        "search: '${env:S}'",
        "search: ['${env:S}']",
        "fusion: {weights: ['${env:S}']}",
        "fusion: {weights: [{a: '${env:S}'}]}",
        "metrics: {cutoffs: '${env:S}'}",
        "metrics: {cutoffs: ['${env:S}']}",
        "metrics: {cutoffs: {a: '${env:S}'}}",
        "metrics: {primary: '${env:S}'}",
        "tags: {a: ['${env:S}']}",
        "tags: ['${env:S}']",
        "name: ['${env:S}']",
        "name: '${env:S}'",
        "name: {a: '${env:S}'}",
        "experiment: '${env:S}'",
        "lever: '${env:S}'",
        "suites: '${env:S}'",
        "unknown: '${env:S}'",
        "chunking: {version: '${env:S}'}",
        "score_gate: '${env:S}'",
    ],
)
def test_no_error_shows_a_secret_whatever_is_wrong_with_it(text: str) -> None:
    assert faults(BASE + text + "\n", environ={"S": SECRET})  # which asserts that it is absent


@pytest.mark.parametrize("text", ["golden: ['${env:S}']", "golden: {path: ['${env:S}']}"])
def test_no_error_shows_a_secret_in_the_golden_set(text: str) -> None:
    assert faults(text + "\nbackend: {corpus: c}\n", environ={"S": SECRET})


@pytest.mark.parametrize(
    ("written", "recorded"),
    [
        (f"http://me:{SECRET}@host/x", "http://host/x"),
        (f"http://{SECRET}@host/${{env:S}}", "http://host/${env:S}"),
        ("http://me:${env:S}@host", "http://me:${env:S}@host"),
        ("http://host/a@b", "http://host/a@b"),
        ("sqlite:///a@b/x.db", "sqlite:///a@b/x.db"),
    ],
)
def test_an_address_is_recorded_without_user_and_password(written: str, recorded: str) -> None:
    loaded = load(BASE + f"tracking: {{uri: '{written}'}}\n", environ={"S": "x"})
    assert loaded.config.tracking.uri == written.replace("${env:S}", "x")
    assert loaded.snapshot["tracking"]["uri"] == recorded


def test_no_error_shows_the_password_of_an_address() -> None:
    assert faults(BASE + f"tracking: 'http://me:{SECRET}@host'\n") == [
        'x.yaml:3:11: tracking must be a mapping of keys to values, found "http://host"'
    ]


def test_an_override_may_hold_a_reference() -> None:
    loaded = load(BASE, ["tracking.uri=${env:S}"], {"S": SECRET})
    assert loaded.config.tracking.uri == SECRET
    assert loaded.snapshot["tracking"]["uri"] == "${env:S}"


@pytest.mark.parametrize("key", ["name", "experiment", "lever", "metrics.primary"])
def test_what_every_record_shows_cannot_be_a_secret(key: str) -> None:
    (fault,) = faults(BASE, [f"{key}=${{env:S}}"], {"S": "x"})
    assert fault == f"-S {key}: {key} takes no environment reference: every record shows it"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("${env:UNSET}", "environment variable UNSET is not set; export it, or change the value"),
        ("${env:a b}", "${env:a b} names no environment variable; write ${env:NAME}"),
        ("${env:}", "${env:} names no environment variable"),
        ("${env:1A}", "${env:1A} names no environment variable"),
        ("${env:NAME", "${env:NAME names no environment variable"),
        ("${env:BAD}", "environment variable BAD is not UTF-8"),
    ],
)
def test_a_reference_to_nothing_is_told_where_it_stands(value: str, said: str) -> None:
    (fault,) = faults(BASE + f"tags: {{a: '{value}'}}\n", environ={"BAD": "\udcff", "NAME": "n"})
    assert fault.startswith(f"x.yaml:3:11: {said}")


def test_an_empty_variable_is_a_value_but_no_secret_to_look_for() -> None:
    loaded = load(BASE + "tags: {a: 'x${env:S}'}\n", environ={"S": ""})
    assert loaded.config.tags == {"a": "x"}
    assert loaded.secrets == frozenset()


def test_a_value_from_the_environment_is_not_read_as_a_reference_again() -> None:
    loaded = load(BASE + "tags: {a: '${env:A}'}\n", environ={"A": "${env:B}", "B": SECRET})
    assert loaded.config.tags == {"a": "${env:B}"}


def test_other_dollar_words_stay_as_they_are() -> None:
    assert load(BASE + "tags: {a: '${HOME} $x'}\n").config.tags == {"a": "${HOME} $x"}


def test_a_file_name_that_is_not_utf8_asks_for_a_name() -> None:
    path = Path("\udcff.yaml")
    path.write_text(BASE)
    with pytest.raises(ConfigError, match="give the run a 'name'"):
        load_config(path, (), {})


def test_a_folder_that_is_not_utf8_is_told() -> None:
    Path("\udcff").mkdir()
    path = Path("\udcff/x.yaml")
    path.write_text(BASE)
    with pytest.raises(ConfigError, match="leads through a name that is not UTF-8"):
        load_config(path, (), {})


# --- keys and paths -------------------------------------------------------------------------


def test_the_keys_are_those_of_the_models() -> None:
    keys = config_keys()
    assert {"name", "fusion.rrf_k", "fusion.weights.vector", "backend.corpus"} <= set(keys)
    assert "fusion" not in keys
    assert len(keys) == len(set(keys))
    assert {key.split(".")[0] for key in keys} == set(Config.model_fields)


def test_a_portable_path_is_relative_and_posix(tmp_path: Path) -> None:
    assert portable_path("a/../b") == "b"
    assert portable_path(tmp_path / "a" / "b") == "a/b"
    assert portable_path("${env:X}/b") == "${env:X}/b"


def test_a_rule_over_two_keys_is_told_where_the_last_of_them_was_set() -> None:
    Path("base.yaml").write_text(BASE + "chunking: {target_tokens: 200}\n")
    Path("x.yaml").write_text("extends: base.yaml\nchunking: {overlap_tokens: 300}\n")
    with pytest.raises(ConfigError, match=r"^x\.yaml:2:28: chunking: overlap_tokens \(300\)"):
        load_config(Path("x.yaml"))
    with pytest.raises(ConfigError, match=r"^-S chunking\.overlap_tokens: "):
        load_config(Path("base.yaml"), ["chunking.overlap_tokens=300"])


def test_a_wrong_lever_and_metric_are_told_with_everything_else() -> None:
    Path("x.yaml").write_text(
        BASE + "lever: fusion.rrfk\nmetrics: {primary: ndcg_at_ten}\nsearch: {k: 0}\n"
    )
    with pytest.raises(ConfigError) as wrong:
        load_config(Path("x.yaml"))
    assert len(wrong.value.faults) == 3
