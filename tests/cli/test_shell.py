"""The shell of the command line: help, errors as sentences, exit statuses, and one JSON object where asked for."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from pathlib import Path

import click
import pytest

from chaos.cli import main as shell
from chaos.errors import HarnessError, InconclusiveError, UsageError
from chaos.scenario import shipped_scenarios

DEADLINE_S = 60


def run(command: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the installed command to its end in an empty folder."""
    return subprocess.run(
        [str(command), *arguments], cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def test_help_names_every_command(chaos_command: Path, tmp_path: Path) -> None:
    """`chaos --help` lists the commands, each with a line that says what it is for."""
    result = run(chaos_command, "--help", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    for name in shell.COMMANDS:
        assert re.search(rf"^  {name} +\S", result.stdout, re.MULTILINE)


def test_help_imports_no_command_and_nothing_heavy(chaos_command: Path, tmp_path: Path) -> None:
    """`chaos --help` stays fast because it loads neither a command nor a heavy library."""
    interpreter = chaos_command.parent / "python"
    script = (
        "import sys\nfrom chaos.cli.main import main\nmain(['--help'])\n"
        "print('loaded', *sorted(sys.modules), file=sys.stderr)"
    )
    result = run(interpreter, "-c", script, cwd=tmp_path)
    loaded = set(result.stderr.split())
    assert "loaded" in loaded
    assert not loaded & {"torch", "numpy", "rich", "psutil", "chaos.scenario", "chaos.campaign"}
    assert not {f"chaos.cli.{name}" for name in shell.COMMANDS} & loaded


def _processor_time_s() -> float:
    """Return the processor time in seconds of all children that have ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_is_fast(chaos_command: Path, tmp_path: Path) -> None:
    """The best of five starts of `chaos --help` takes less than the promised 0.3 s, on a busy machine too."""
    durations = []
    for _ in range(5):
        begin = _processor_time_s()  # not the clock: other work on the machine says nothing about this command
        run(chaos_command, "--help", cwd=tmp_path)
        durations.append(_processor_time_s() - begin)
    assert 0 < min(durations) < 0.3


@pytest.mark.parametrize("name", shell.COMMANDS)
def test_every_command_can_be_loaded(name: str) -> None:
    """Each name in the table has a module with a command of that name, its own help and `--json`."""
    command = shell.cli.get_command(click.Context(shell.cli), name)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help
    assert any("--json" in parameter.opts for parameter in command.params)


def test_both_names_and_the_module_are_the_same_command(chaos_command: Path, tmp_path: Path) -> None:
    """`chaos`, `ninelives` and `python -m chaos` say the same version."""
    interpreter = chaos_command.parent / "python"
    said = {
        run(chaos_command, "--version", cwd=tmp_path).stdout,
        run(chaos_command.parent / "ninelives", "--version", cwd=tmp_path).stdout,
        run(interpreter, "-m", "chaos", "--version", cwd=tmp_path).stdout,
    }
    assert len(said) == 1
    assert re.fullmatch(r"ninelives, version \d+\.\d+\.\d+\n", said.pop())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lst"], "Error: there is no command `lst`\n  Did you mean `list`?\n  See `chaos --help`.\n"),
        (["frobnicate"], "Commands: run, explore, demo, ablate, nightly"),
        (["list", "--jsn"], "See `chaos list --help`."),
        (["validate"], "Missing argument 'SCENARIO'"),
        (["validate", "durble"], "Did you mean `durable`?"),
        ([], "Usage: chaos"),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_status_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was typed wrongly is said on standard error, with what was probably meant."""
    assert shell.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def _command_that_raises(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make `chaos list` raise an error."""

    @click.command("list")
    def broken() -> None:
        """Raise."""
        raise error

    monkeypatch.setattr(shell.LazyGroup, "get_command", lambda *_: broken)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UsageError("a sentence", hint="a hint"), 2),
        (HarnessError("a sentence", hint="a hint"), 3),
        (InconclusiveError("a sentence", hint="a hint"), 4),
    ],
)
def test_error_becomes_its_sentence_and_its_exit_status(
    error: Exception, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each class of error has its exit status, and the user reads its sentence and its hint only."""
    _command_that_raises(monkeypatch, error)
    assert shell.main(["list"]) == status
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "Error: a sentence\n  a hint\n")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_interruption_is_exit_status_130(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends with the shell's usual status for it."""
    _command_that_raises(monkeypatch, error)
    assert shell.main(["list"]) == 130
    assert capsys.readouterr().err == "Error: interrupted\n"


def test_unforeseen_error_keeps_its_traceback_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of our own is a sentence with exit status 3; its traceback lies where the sentence says."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _command_that_raises(monkeypatch, ZeroDivisionError("division by zero"))
    assert shell.main(["list"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("Error: chaos itself failed: ZeroDivisionError: division by zero\n")
    assert "Traceback" not in said
    path = re.search(r"The traceback is in (\S+): please", said)
    assert path is not None
    assert "in broken" in Path(path[1]).read_text(encoding="utf-8")


def test_unforeseen_error_is_told_even_where_nothing_can_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without any folder for the traceback there is still a sentence and the exit status."""
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    _command_that_raises(monkeypatch, ZeroDivisionError("division by zero"))
    assert shell.main(["list"]) == 3
    assert "could not be written anywhere: No such file or directory." in capsys.readouterr().err


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (0, 0), (1, 1), (4, 4)])
def test_what_a_command_returns_is_the_exit_status(
    returned: int | None, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Findings are no errors: a command returns their status itself."""
    command = click.Command("list", callback=lambda: returned)
    monkeypatch.setattr(shell.LazyGroup, "get_command", lambda *_: command)
    assert shell.main(["list"]) == status


def test_closed_output_is_no_traceback(chaos_command: Path, tmp_path: Path) -> None:
    """A reader of standard output that goes away leaves a sentence, not a traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [str(chaos_command), "schema"],
        cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    os.close(writer)
    assert result.returncode == 3
    assert result.stderr == "Error: standard output was closed before all of it was written\n"


def test_list_shows_every_scenario_with_its_claim(chaos_command: Path, tmp_path: Path) -> None:
    """`chaos list` works from an empty folder and shows name, expectation and claim."""
    result = run(chaos_command, "list", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stdout.startswith("scenario ")
    for name in shipped_scenarios():
        assert re.search(rf"^{name} +(pass|fail) +A trainer ", result.stdout, re.MULTILINE)


def test_list_as_json_is_one_object(chaos_command: Path, tmp_path: Path) -> None:
    """`chaos list --json` prints one object and nothing else."""
    result = run(chaos_command, "list", "--json", cwd=tmp_path)
    assert result.stderr == ""
    listing = json.loads(result.stdout)
    assert listing["schema"] == 1
    assert [one["name"] for one in listing["scenarios"]] == list(shipped_scenarios())
    assert all(one["claim"] for one in listing["scenarios"])


def test_validate_accepts_a_shipped_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    """A valid scenario is said to be valid, with its claim."""
    assert shell.main(["validate", "in_place"]) == 0
    assert capsys.readouterr().out.startswith("in_place: valid\n  claim: A trainer ")


def test_validate_as_json_tells_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` gives the scenario as understood, or the error with its hint and exit status 2."""
    assert shell.main(["validate", "durable", "--json"]) == 0
    valid = json.loads(capsys.readouterr().out)
    assert (valid["is_valid"], valid["scenario"]["target"]["final"]) == (True, ["weights.pt"])
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("schema = 1\nclam = 'x'\n", encoding="utf-8")
    assert shell.main(["validate", str(wrong), "--json"]) == 2
    printed = capsys.readouterr()
    invalid = json.loads(printed.out)
    assert printed.err == ""
    assert (invalid["is_valid"], invalid["hint"]) == (False, "Did you mean `claim`?")


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    """`chaos schema` prints a JSON Schema, with `--json` too."""
    assert shell.main(["schema"]) == 0
    plain = capsys.readouterr().out
    assert shell.main(["schema", "--json"]) == 0
    assert capsys.readouterr().out == plain
    assert json.loads(plain)["$schema"].startswith("https://json-schema.org/")
