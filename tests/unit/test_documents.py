"""The documents say what the program does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kebab_eval.cli.front import COMMANDS
from kebab_eval.config import Config
from kebab_eval.config_file import config_keys, section_types

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


#: The pages that hold tables of config keys: all of them, the systems', the answers'.
KEY_PAGES = ("config.md", "backends.md", "answers.md")


def _rows() -> dict[str, str]:
    """Return config key -> its default, as the pages say it."""
    pages = [ROOT / "docs" / name for name in KEY_PAGES]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages if page.exists())
    rows = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \|", text, flags=re.MULTILINE)
    return dict(rows)


def test_every_config_key_is_documented_and_no_other() -> None:
    assert _rows().keys() == set(config_keys())


def test_documented_defaults_are_the_defaults() -> None:
    rows = _rows()
    minimal = {
        "name": "x",
        "golden": {"path": Path("g.yaml")},
        "backend": {"corpus": Path("corpus")},
    }
    defaults = Config.model_validate(minimal).model_dump()
    for key in config_keys():
        said = rows[key].strip().strip("`")
        if said in {"required", "the file's name", "1"} or said.startswith(".kebab_eval_cache"):
            continue
        section, _, rest = key.partition(".")
        for value in _defaults(section, rest) or [_value(defaults, key)]:
            if value in (None, {}):
                assert said == "none", key
            elif isinstance(value, tuple):
                assert said == str(list(value)), key
            elif isinstance(value, bool):
                assert said == str(value).lower(), key
            else:
                assert said == (f"{value:g}" if isinstance(value, float) else str(value)), key


def _value(data: Any, key: str) -> Any:
    for step in key.split("."):
        data = data[step]
    return data


def _defaults(section: str, rest: str) -> list[Any]:
    """Return the default of a key in each type of its section that has it and names one."""
    if section not in ("backend", "answer") or rest == "type":
        return []
    found = []
    for model in section_types(section).values():
        name, _, below = rest.partition(".")
        info = model.model_fields.get(name)
        if info is not None and not info.is_required():
            default = info.get_default(call_default_factory=True)
            found.append(_value(default.model_dump(), below) if below else default)
    return found


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
