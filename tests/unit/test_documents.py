"""The documents say what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kebab_eval.cli.front import COMMANDS
from kebab_eval.config import Config
from kebab_eval.config_file import config_keys

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def test_every_config_key_is_documented_and_no_other() -> None:
    page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([\w.]+)` \|", page, flags=re.MULTILINE))
    keys = set(config_keys())
    assert documented == keys


def test_documented_defaults_are_the_defaults() -> None:
    page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| ([^|]+) \|", page, flags=re.MULTILINE))
    minimal = {
        "name": "x",
        "golden": {"path": Path("g.yaml")},
        "backend": {"corpus": Path("corpus")},
    }
    defaults = Config.model_validate(minimal).model_dump()
    for key in config_keys():
        value = defaults
        for step in key.split("."):
            value = value[step]
        said = rows[key].strip().strip("`")
        if said in {"required", "the file's name", "1"} or said.startswith(".kebab_eval_cache"):
            continue
        if value in (None, {}):
            assert said == "none", key
        elif isinstance(value, tuple):
            assert said == str(list(value)), key
        else:
            assert said == (f"{value:g}" if isinstance(value, float) else str(value)), key


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_documents_exist(page: Path) -> None:
    known = {name for section in COMMANDS.values() for name in section}
    text = page.read_text(encoding="utf-8")
    used = set(re.findall(r"(?:`|^|&& |/)kebab-eval ([a-z]+)", text, flags=re.MULTILINE))
    assert used <= known


def test_the_drawing_of_the_house_names_every_part() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = {
        path.name + ("/" if path.is_dir() else "")
        for path in (ROOT / "src" / "kebab_eval").iterdir()
        if not path.name.startswith(("_", ".")) and path.name != "py.typed"
    }
    drawn = set(re.findall(r"^      (\S+)", page, flags=re.MULTILINE))
    assert parts <= drawn
