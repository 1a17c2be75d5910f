"""Bad input: each is a clear sentence and the right exit status, one JSON object where asked for; never a pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.cli import main as shell

DEADLINE_S = 120
GLOBS = ("--checkpoints", "{out}/ckpt.json", "--final", "{out}/final.json")
RESULT_KEYS = {"verdict", "seed", "inconclusive", "findings", "checks", "kills_landed", "run_dir", "error"}
SMALL = Path(__file__).parent / "targets" / "small.py"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder."""
    monkeypatch.chdir(tmp_path)


def _run(command: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `chaos run --json` to its end."""
    arguments = [str(command), "run", "--json", "--runs", str(folder / "runs"), "--kills", "2", "--seed", "1", *words]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=DEADLINE_S, check=False, cwd=folder)


def _object_of(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the one JSON object on standard output; there is no traceback anywhere, and no pass."""
    found: dict[str, Any] = json.loads(ended.stdout)
    assert "Traceback" not in ended.stderr
    assert ended.returncode != 0
    assert found.get("verdict") != "pass"
    return found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "there is no scenario `nosuch`"),
        (["--no-intercept", "--stop-early"], "so it is never stopped early"),
        (["in_plce"], "Did you mean `in_place`?"),
        (["unknown_key.toml"], "unknown_key.toml: `clam`: is not a known key\n  Did you mean `claim`?"),
        ([*GLOBS, "--", "no-such-program", "{out}"], "the command `no-such-program` is not on PATH"),
        ([*GLOBS, "--", "./missing", "{out}"], "the command `./missing` does not exist"),
        ([*GLOBS, "--", "./unknown_key.toml", "{out}"], "the command `./unknown_key.toml` cannot be executed"),
        ([*GLOBS, "--", "true"], "does not say where `{out}` goes"),
        ([*GLOBS, "--"], "the command after `--`: is missing"),
        ([*GLOBS], "put it after `--`"),
        ([*GLOBS, "python", "train.py"], "Got unexpected extra argument (train.py)"),
        (["--", "true", "{out}"], "`--checkpoints`: is missing"),
        (["in_place", "--", "true", "{out}"], "either the scenario `in_place` or a command after `--`, not both"),
        (["--checkpoints", "{out}/[", "--final", "{out}/f", "--", "true", "{out}"], "a `[` is not closed"),
        (["--checkpoints", "/etc/*", "--final", "{out}/f", "--", "true", "{out}"], "does not begin with `{out}/`"),
        ([*GLOBS, "--step", "(", "--", "true", "{out}"], "`--step`: `(` is not a regular expression"),
        ([*GLOBS, "--saved", "a(b", "--", "true", "{out}"], "`--saved`: `a(b` is not a regular expression"),
        ([*GLOBS, "--step", "step", "--", "true", "{out}"], "captures no number"),
        (["--kills", "0"], "`--kills`: expected a whole number >= 1"),
        (["--kills", "many"], "Invalid value for '--kills'"),
        (["--jobs", "0"], "`--jobs`: expected a whole number >= 1"),
        (["--seed", "-1"], "`--seed`: expected a whole number >= 0"),
        (["--deadline", "0"], "`--deadline-s`: expected a number > 0"),
        (["--budget", "soon"], "`--budget`: `soon` is no length of time"),
        (["--continue"], "there is no run `latest`"),
        (["--continue", "--kills", "3"], "--kills cannot be changed in a campaign that has begun"),
        (["--continue", *GLOBS, "--", "true", "{out}"], "has no meaning with --continue"),
    ],
)
def test_wrong_usage_is_a_sentence_and_one_object(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2 before anything is run; with `--json` the error is the one object on standard output."""
    (tmp_path / "unknown_key.toml").write_text("schema = 1\nclam = 'x'\n", encoding="utf-8")
    assert shell.main(["run", *words]) == 2
    plain = capsys.readouterr()
    assert plain.out == ""
    assert plain.err.startswith("Error: ")
    assert said in plain.err
    assert shell.main(["run", "--json", *words]) == 2
    printed = capsys.readouterr()
    error = json.loads(printed.out)
    assert printed.err == plain.err
    assert set(error) == {"schema", "error", "hint", "exit_status"}
    assert error["exit_status"] == 2
    assert error["error"] in plain.err
    assert not (tmp_path / ".chaos").exists()


def test_json_of_the_command_under_test_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """A `--json` after `--` belongs to the command under test."""
    assert shell.main(["run", "--", "true", "{out}", "--json"]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "left no file that matches --checkpoints {out}/ckpt.json"),
        ("exit 3", "ended with exit status 3. It printed nothing."),
        ("echo no such data >&2; exit 1", "exit status 1. Its last output:\nno such data"),
        ("kill -TERM $$", "was ended by SIGTERM"),
        ('echo step 1; echo 1 > "$0/final.json"', "(files there: final.json)"),
        ('echo 1 > "$0/ckpt.json"', "left no file that matches --final {out}/final.json"),
    ],
)
def test_target_that_is_no_good_without_any_kill(script: str, said: str, tmp_path: Path, chaos_command: Path) -> None:
    """It is inconclusive, exit status 4, and says what the uninterrupted run did."""
    ended = _run(chaos_command, *GLOBS, "--", "sh", "-c", script, "{out}", folder=tmp_path)
    found = _object_of(ended)
    assert (ended.returncode, found["verdict"]) == (4, "inconclusive")
    assert found.keys() >= RESULT_KEYS
    assert any(said in sentence for sentence in found["inconclusive"]), found["inconclusive"]
    assert set(found["checks"].values()) == {"not_run"}


def test_target_that_hangs(tmp_path: Path, chaos_command: Path) -> None:
    """The deadline ends it, the campaign is inconclusive, and the sentence says which option sets the deadline."""
    ended = _run(chaos_command, *GLOBS, "--deadline", "0.5", "--", "sh", "-c", "sleep 60", "{out}", folder=tmp_path)
    found = _object_of(ended)
    assert ended.returncode == 4
    assert any("did not end within its deadline" in said and "--deadline" in said for said in found["inconclusive"])


def test_runs_folder_that_cannot_be_made(tmp_path: Path, chaos_command: Path) -> None:
    """A file in its place is exit status 3, with the option that chooses another place."""
    (tmp_path / "runs").write_text("in the way", encoding="utf-8")
    ended = _run(chaos_command, *GLOBS, "--", sys.executable, str(SMALL), "{out}", folder=tmp_path)
    error = _object_of(ended)
    assert (ended.returncode, error["exit_status"]) == (3, 3)
    assert "cannot be made: Not a directory" in error["error"]
    assert "--runs DIR" in error["hint"]


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Mount a file system in memory of as many kilobytes as asked for, which only root may."""
    if os.geteuid() != 0:
        pytest.skip("a full disk needs a mount, and only root may make one")
    place = tmp_path / "disk"
    place.mkdir()
    mount = [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", f"size={request.param}k", "tmpfs", str(place)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield place
    subprocess.run([shutil.which("umount") or "umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("small_disk", [16, 48, 80, 112, 144, 176], indirect=True)
def test_full_disk(small_disk: Path, tmp_path: Path, chaos_command: Path) -> None:
    """Wherever the disk fills up, a sentence names it: exit status 3 or 4, no finding, no traceback."""
    words = ["--keep", *GLOBS, "--", sys.executable, str(SMALL), "{out}"]
    ended = _run(chaos_command, "--runs", str(small_disk / "runs"), *words, folder=tmp_path)
    found = _object_of(ended)
    assert ended.returncode in {3, 4}
    assert "chaos itself failed" not in ended.stderr
    assert found.get("findings", []) == []
    told = " ".join([found.get("error", ""), *found.get("inconclusive", [])])
    assert "No space left on device" in told or "the disk was nearly full" in told


@pytest.mark.parametrize("small_disk", [160, 240, 320, 400, 480], indirect=True)
def test_disk_that_fills_with_crash_states(small_disk: Path, tmp_path: Path, chaos_command: Path) -> None:
    """Recordings and states that do not fit are a sentence and exit status 3 or 4, and leave no process."""
    words = ["--keep", "--jobs", "2", *GLOBS, "--", sys.executable, str(SMALL), "{out}"]
    runs = small_disk / "runs"
    command = [str(chaos_command), "explore", "--json", "--seed", "1", "--runs", str(runs), *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    found = json.loads(ended.stdout)
    assert ended.returncode in {3, 4}, ended.stderr
    assert "chaos itself failed" not in ended.stderr
    assert found.get("findings", []) == []
    told = " ".join([found.get("error", ""), *found.get("inconclusive", [])])
    assert "No space left on device" in told or "the disk was nearly full" in told


def test_error_in_mid_campaign_is_told_with_what_is_known(tmp_path: Path, chaos_command: Path) -> None:
    """A run folder that vanishes breaks the campaign off: status 3, and the object holds error and seed."""
    vanishing = f"{SMALL.read_text(encoding='utf-8')}\nimport shutil\nshutil.rmtree(out.parent.parent.parent)\n"
    (tmp_path / "train.py").write_text(vanishing, encoding="utf-8")
    words = [*GLOBS, "--", sys.executable, str(tmp_path / "train.py"), "{out}"]
    ended = _run(chaos_command, *words, folder=tmp_path)
    found = _object_of(ended)
    assert ended.returncode in {2, 3}
    assert found["error"]
