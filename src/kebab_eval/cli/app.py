"""The ``kebab-eval`` program: commands are imported when they are called, errors become lines.

Start-up is part of the product: this module imports click and nothing else, so that the help of a
command answers at once. A test holds that.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import click

from kebab_eval import __version__
from kebab_eval.cli.front import ENTRIES, help_text


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ENTRIES:
            return None
        from importlib import import_module

        module, _, attribute = ENTRIES[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        _name_variables(command, f"KEBAB_EVAL_{cmd_name}")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in ENTRIES:
            from kebab_eval.errors import nearest

            hint = nearest(args[0], ENTRIES)
            ctx.fail(f"no such command {args[0]!r}{hint}; 'kebab-eval --help' lists them")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return help_text()


def _name_variables(command: click.Command, prefix: str) -> None:
    """Let ``KEBAB_EVAL_<COMMAND>_<OPTION>`` stand for each option, by the name that users type.

    Click's own automatic names follow the parameters of the functions behind the commands.
    """
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.expose_value:
            longest = max(parameter.opts, key=len).lstrip("-")
            parameter.envvar = f"{prefix}_{longest}".replace("-", "_").upper()
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            _name_variables(child, f"{prefix}_{name}")


@click.group(
    cls=LazyGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
)
@click.version_option(__version__, prog_name="kebab-eval")
def cli() -> None:
    """Evaluate search and RAG systems: run golden queries, judge the hits, log to MLflow."""


def run(args: list[str]) -> None:
    """Run the program and exit: errors are lines on stderr, a traceback needs ``--debug``."""
    _make_streams_usable()
    state: dict[str, Any] = {"debug": False}
    code = 0
    try:
        outcome = cli.main(args=args, prog_name="kebab-eval", standalone_mode=False, obj=state)
        code = outcome if isinstance(outcome, int) else 0
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        code = leaving.exit_code
    except click.Abort:
        code = 130
    except click.ClickException as usage:
        usage.show()
        code = usage.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        # The reader left (`| head`); the flush at exit must not complain a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        code = _explain(error, state["debug"])
    sys.exit(code)


def _make_streams_usable() -> None:
    """A closed output, or one that cannot encode a character, is no failure of the command."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            devnull = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(devnull, "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _explain(error: Exception, debug: bool) -> int:
    from kebab_eval.errors import InputError, KebabEvalError

    if debug:
        import traceback

        traceback.print_exc()
    if isinstance(error, InputError):
        for fault in error.faults:
            print(f"error: {_printable(str(fault))}", file=sys.stderr)
    elif isinstance(error, KebabEvalError):
        for line in str(error).splitlines():
            print(f"error: {_printable(line)}", file=sys.stderr)
    elif isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        reason = error.strerror or type(error).__name__
        print(f"error: {_printable(where + reason)}", file=sys.stderr)
        return 3
    else:
        text = _printable(" ".join(str(error).split()))[:300]
        print(
            f"error: internal failure ({type(error).__name__}: {text}); "
            "run again with --debug for the traceback, and please report it",
            file=sys.stderr,
        )
        return 3
    return error.exit_code


def _printable(text: str) -> str:
    """Keep secrets, and the control characters of hostile input, out of the terminal."""
    from kebab_eval.redaction import redact

    shown = (c if c.isprintable() or c == " " else f"\\x{ord(c):02x}" for c in redact(text))
    return "".join(shown)
