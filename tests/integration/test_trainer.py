"""The trainer as a command: real processes, really killed, resumed by the same command."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import torch

DEADLINE_S = 120
ORDERS = ["random", "epoch"]


def command(out: Path, *more: str) -> list[str]:
    """Return the command of a run in `out`."""
    return [sys.executable, "-P", "-m", "trainer", "--out", str(out), *more]


def run(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the trainer to its end."""
    return subprocess.run(command(out, *more), capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def run_killed(out: Path, line: str, *more: str) -> None:
    """Run the trainer and send it SIGKILL as soon as it prints `line`."""
    with subprocess.Popen(command(out, *more), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any(printed.rstrip() == line for printed in process.stdout)
        process.kill()
    assert process.returncode == -9


def final_bytes(out: Path) -> dict[str, bytes]:
    """Return the bytes of the final weights by name."""
    model = torch.load(out / "weights.pt", weights_only=True)["model"]
    return {name: value.numpy().tobytes() for name, value in model.items()}


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """Return the final weights of one uninterrupted default run for each order."""
    found = {}
    for order in ORDERS:
        out = tmp_path_factory.mktemp("reference")
        done = run(out, "--order", order)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "done: 60 steps"
        found[order] = final_bytes(out)
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_killed_and_resumed_ends_with_the_same_bits(
    tmp_path: Path, references: dict[str, dict[str, bytes]], order: str
) -> None:
    """Killed after the save of step 30 and started again, it resumes by itself and ends as if nothing had happened."""
    run_killed(tmp_path, "saved step 30", "--order", order)
    resumed = run(tmp_path, "--order", order)
    lines = resumed.stdout.splitlines()
    assert resumed.returncode == 0
    assert int(lines[1].removeprefix("resumed from resume.pt at step ")) >= 30
    assert lines[-1] == "done: 60 steps"
    assert final_bytes(tmp_path) == references[order]
    assert {path.name for path in tmp_path.iterdir()} == {
        *("resume.pt", "resume.prev.pt", "weights.pt", "weights.prev.pt"),
    }


@pytest.mark.parametrize(
    ("flags", "order"),
    [
        ("--save half", "random"),
        ("--preset minimind", "epoch"),
        ("--forget optimizer", "random"),
    ],
)
def test_wrong_ways_end_with_other_bits(
    tmp_path: Path, references: dict[str, dict[str, bytes]], flags: str, order: str
) -> None:
    """Killed and resumed, a wrong way ends normally, with the same names and other bits (all ways: unit tests)."""
    run_killed(tmp_path, "saved step 30", *flags.split())
    resumed = run(tmp_path, *flags.split())
    assert resumed.returncode == 0
    found = final_bytes(tmp_path)
    assert found.keys() == references[order].keys()
    assert found != references[order]


def test_a_write_that_fails_is_a_sentence(tmp_path: Path) -> None:
    """Where the system refuses to write on, the file is named, the exit status is 1 and no part of a file is left."""
    limited = ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", *command(tmp_path, "--steps", "1")]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 1
    assert done.stderr == f"trainer: error: saving {tmp_path}/resume.pt failed: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_sees_a_bar_and_the_lines_stay_whole(tmp_path: Path) -> None:
    """With a terminal on standard error a bar is drawn there, and standard output has the same lines as ever."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with os.fdopen(ours, "rb", buffering=0) as screen, os.fdopen(theirs, "wb", buffering=0) as terminal:
        done = subprocess.run(
            command(tmp_path, "--steps", "2"), stdout=subprocess.PIPE, stderr=terminal, timeout=DEADLINE_S, check=False
        )
        terminal.write(b"end")
        drawn = b""
        while not drawn.endswith(b"end"):
            drawn += screen.read(65536)
    assert done.returncode == 0
    assert b"| 2/2 [" in drawn
    begins = ["trainer: run", "starting from step 0", "step 1 loss", "step 2 loss", "saved step 2", "final", "done: 2"]
    for line, begin in zip(done.stdout.decode().splitlines(), begins, strict=True):
        assert line.startswith(begin)


def test_help_does_not_wait_for_torch() -> None:
    """The command line is read before torch is imported."""
    program = "import sys, trainer.__main__ as m; m.parse(['--out', 'o']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", program], timeout=DEADLINE_S, check=False).returncode == 0
