"""The two other programs that are asked: the user's verify command, and torch with `weights_only=True`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from chaos.checkpoints.process import Examiner
from chaos.checkpoints.weights_only import refused_by_weights_only
from chaos.errors import HarnessError, UsageError

PYTHON = (sys.executable, "-c")


def test_the_verify_commands_status_is_the_answer(tmp_path: Path) -> None:
    """Status 0 is whole; anything else is not, with the last line it printed; the path is put in where it is named."""
    path = tmp_path / "a b.own"
    path.write_text("good")
    code = "import sys; text = open(sys.argv[1]).read(); print('text is', text); sys.exit(text != 'good')"
    command = (*PYTHON, code, "{path}")
    with Examiner() as examiner:
        assert examiner.verify(command, path, 30.0) == (True, "")
        path.write_text("bad")
        is_whole, reason = examiner.verify(command, path, 30.0)
    assert not is_whole
    assert reason == "the verify command says no with exit status 1: text is bad"


def test_a_verify_command_that_hangs_or_dies_says_no(tmp_path: Path) -> None:
    """The deadline and a signal are reasons; what the command started is gone too."""
    code = (
        "import subprocess, sys, pathlib; "
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE); "
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid)); child.wait()"
    )
    mark = tmp_path / "pid"
    with Examiner() as examiner:
        is_whole, reason = examiner.verify((*PYTHON, code, "{path}"), mark, 3.0)
        assert (is_whole, reason) == (False, "the verify command took longer than 3 s")
        dies = (*PYTHON, "import os; os.abort()")
        assert "signal 6" in examiner.verify(dies, mark, 30.0)[1]
    deadline = time.monotonic() + 10
    pid = int(mark.read_text())
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("command", [(), ("/nonexistent/verify", "{path}")])
def test_a_verify_command_that_cannot_start_is_the_users_to_mend(command: tuple[str, ...], tmp_path: Path) -> None:
    """An empty command and one that is not there are usage errors."""
    with Examiner() as examiner, pytest.raises(UsageError, match="verify command"):
        examiner.verify(command, tmp_path, 5.0)


def test_what_weights_only_refuses_is_named(tmp_path: Path) -> None:
    """Of torch files, alone or in folders, those that hold other objects are refused, with torch's reason."""
    (tmp_path / "folder").mkdir()
    torch.save({"w": torch.ones(2), "step": 3}, tmp_path / "good.pt")
    torch.save({"args": argparse.Namespace(a=1)}, tmp_path / "folder" / "training_args.bin")
    (tmp_path / "folder" / "state.json").write_text("{}")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "good.pt").read_bytes()[:300])
    paths = [tmp_path / name for name in ("good.pt", "folder", "cut.pt", "missing.pt")]
    refused = refused_by_weights_only(paths, 120.0)
    bad = str(tmp_path / "folder" / "training_args.bin")
    assert set(refused) == {bad, str(tmp_path / "cut.pt")}
    assert "argparse.Namespace" in refused[bad]


def test_nothing_to_ask_starts_nothing_and_a_deadline_is_kept(tmp_path: Path) -> None:
    """Without torch files no process is started; a torch that takes too long is our failure."""
    (tmp_path / "a.json").write_text("{}")
    assert refused_by_weights_only([tmp_path], 0.0) == {}
    torch.save(torch.ones(1), tmp_path / "a.pt")
    with pytest.raises(HarnessError, match="did not finish"):
        refused_by_weights_only([tmp_path], 0.01)
