"""The entry point of `chaos`: finds the command that was typed; makes every error a sentence and an exit status."""

from __future__ import annotations

import errno
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence

import click

from chaos import __version__
from chaos.complaints import did_you_mean
from chaos.errors import ChaosError

COMMANDS: Mapping[str, str] = {
    "run": "Kill a training job again and again, and prove that it comes back bit for bit.",
    "explore": "Try every crash state of a run, not a sample.",
    "demo": "See a save torn by a kill, and the same kill survived by a durable one.",
    "ablate": "See what each omission in a resume file costs, in figures.",
    "nightly": "Run every shipped scenario over and over with fresh seeds until the budget is spent.",
    "powercut": "Cut the power for real, on file systems of their own, and see what is left.",
    "replay": "Run one trial of an earlier run again.",
    "trial": "Run one trial from its specification.",
    "diff": "Compare two checkpoints bit by bit, and say what the difference looks like.",
    "judge": "Work the verdict of a run out again from its journal.",
    "doctor": "Say what this machine can and cannot do for the tool.",
    "list": "Show the shipped scenarios and what each claims.",
    "validate": "Check a scenario without running it.",
    "schema": "Print the JSON Schema of a scenario file.",
}
INTERRUPTED = 130
FAILED = 3
SCHEMA = 1  # that of chaos.model, which is not imported here: the command must start fast
USAGE = 2


class LazyGroup(click.Group):
    """The commands by name; a command's module is imported only when it is typed, so that `--help` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import one command, or return None where there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"chaos.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with the name that was probably meant."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            hint = did_you_mean(args[0], COMMANDS) or f"Commands: {', '.join(COMMANDS)}."
            raise click.UsageError(f"there is no command `{args[0]}`\n  {hint}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the list of commands without importing one of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="ninelives")
def cli() -> None:
    """Kill a training job from outside, at every point where it can hurt, and prove that it comes back bit for bit.

    Start with `chaos run --kills 20` (the bundled trainer) or `chaos demo`.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; `arguments` are those of the process unless given.

    Findings are no errors: a command returns their status itself. Every error that was foreseen is one sentence on
    standard error; any other is reported with the file that its traceback was written to. With `--json` the error is
    also the one object on standard output: `schema`, `error`, `hint`, `exit_status`.
    """
    signal.signal(signal.SIGTERM, _interrupt)  # so that what runs is ended, and the way to go on is told
    try:
        with cli.make_context("chaos", list(sys.argv[1:] if arguments is None else arguments)) as context:
            status = cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        return _give_up_output()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort: a user sees no bare traceback
        sentence, status = _explain(error)
        if _wants_json(sys.argv[1:] if arguments is None else arguments):
            click.echo(_error_as_json(sentence, status))
        click.echo(sentence, err=True)
    return status if isinstance(status, int) else 0


def _interrupt(*_: object) -> None:
    """Take SIGTERM for what Ctrl-C does."""
    raise KeyboardInterrupt


def _explain(error: BaseException) -> tuple[str, int]:
    """Return the sentence and the exit status for an error that ended a command."""
    match error:
        case click.exceptions.NoArgsIsHelpError():
            sentence, status = error.format_message(), USAGE
        case click.UsageError():
            sentence, status = f"Error: {error.format_message()}{_help_hint(error)}", USAGE
        case click.ClickException():
            sentence, status = f"Error: {error.format_message()}", error.exit_code
        case ChaosError():
            sentence, status = f"Error: {error}", error.exit_status
        case OSError() if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            where = f": {error.filename}" if error.filename else ""
            sentence = f"Error: {error.strerror}{where}\n  Free some space, or choose another place with --runs DIR."
            status = FAILED
        case click.Abort() | KeyboardInterrupt():
            sentence, status = "Error: interrupted", INTERRUPTED
        case _:
            what = f"{type(error).__name__}: {error}"
            sentence, status = f"Error: chaos itself failed: {what}\n  {_keep_traceback(error)}", FAILED
    return sentence, status


def _wants_json(arguments: Sequence[str]) -> bool:
    """Tell whether `--json` was typed as an option of ours, not of a command under test."""
    words = list(arguments)
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _error_as_json(sentence: str, status: int) -> str:
    """Return an error as the one JSON object that `--json` promises."""
    message, _, hint = sentence.removeprefix("Error: ").partition("\n")
    return json.dumps({"schema": SCHEMA, "error": message, "hint": hint.strip(), "exit_status": status})


def _help_hint(error: click.UsageError) -> str:
    """Return the line that says which help explains the command that was typed wrongly."""
    return f"\n  See `{error.ctx.command_path} --help`." if error.ctx else ""


def _give_up_output() -> int:
    """Turn standard output off, so that the interpreter's last flush does not fail again, and say so."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    click.echo("Error: standard output was closed before all of it was written", err=True)
    return FAILED


def _keep_traceback(error: BaseException) -> str:
    """Write an error's traceback to a file and return the sentence that says where."""
    try:
        descriptor, path = tempfile.mkstemp(prefix="chaos-error-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
    except OSError as failure:
        return f"Its traceback could not be written anywhere: {failure.strerror}."
    return f"The traceback is in {path}: please report it."
