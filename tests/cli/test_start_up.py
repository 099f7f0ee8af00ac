"""Start-up is part of the product: help answers at once, and says what there is."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from kebab_eval.cli.app import cli
from kebab_eval.cli.front import COMMANDS

HEAVY = ("numpy", "httpx", "mlflow", "pydantic", "rich", "yaml", "matplotlib", "pyarrow", "asyncio")
ENTRIES = {name: text for section in COMMANDS.values() for name, (_, text) in section.items()}


def _command(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["track", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from kebab_eval.cli.front import main\n"
        "try:\n"
        f"    main({arguments!r})\n"
        "except SystemExit as leaving:\n"
        "    assert not leaving.code, leaving.code\n"
        f"loaded = sorted(set({HEAVY!r}) & set(sys.modules))\n"
        "sys.exit(f'imported at start-up: {loaded}' if loaded else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_the_front_page_does_without_click(argument: str) -> None:
    code = f"import sys; from kebab_eval.cli.front import main; main([{argument!r}])"
    code += "; sys.exit(bool({'click', 'typing', 'inspect'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "kebab-eval" in done.stdout


@pytest.mark.parametrize("name", ENTRIES)
def test_every_command_has_help_with_an_example(name: str) -> None:
    command = _command(name)
    assert command.help
    assert command.epilog
    assert f"kebab-eval {name}" in command.epilog
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.name} has no help"


@pytest.mark.parametrize(("name", "text"), ENTRIES.items())
def test_the_list_of_commands_says_what_their_help_says(name: str, text: str) -> None:
    help_text = _command(name).help
    assert help_text is not None
    assert help_text.splitlines()[0] == text


def test_a_mistyped_command_is_told_the_nearest() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kebab_eval", "trak"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "did you mean 'track'?" in done.stderr
    assert "Traceback" not in done.stderr
