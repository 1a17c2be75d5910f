"""An independent judge: strace's own way of killing at the n-th call must leave what a strike leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.address import Locator
from chaos.model import CrashPoint, LifeEnd, Operation, OperationKind, Phase

STRACE = shutil.which("strace")
# What strace calls them; a name in slashes is a pattern, since machines differ in the variant that they have.
CALLS = {
    "write": "write",
    "writev": "writev",
    "pwrite": "pwrite64",
    "ftruncate": "ftruncate",
    "fsync": "fsync",
    "rename": "/^rename",
    "link": "/^link",
    "unlink": "/^unlink",
}


def read(folder: Path) -> dict[str, bytes]:
    """Return the content of each file of a flat folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def kill_with_strace(runner: Any, call: str, occurrence: int) -> dict[str, bytes]:
    """Let strace kill the target as it enters its n-th call of a kind; return what is left."""
    out = runner.new_out()
    target = [word.replace("{out}", str(out)) for word in runner.target.command]
    inject = f"inject={CALLS[call]}:signal=SIGKILL:when={occurrence}"
    subprocess.run(
        [str(STRACE), "-f", "-o", "/dev/null", "-e", inject, *target],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    return read(out)


def occurrence_of(log: tuple[Operation, ...], operation: Operation) -> int:
    """Count the calls of this kind up to the operation: those on files and those that print."""
    return sum(1 for before in log[: operation.index + 1] if before.call == operation.call)


@pytest.mark.skipif(STRACE is None, reason="strace is not installed: the independent judge of strikes is NOT heard")
def test_strace_leaves_what_a_strike_leaves(lives: Callable[..., Any]) -> None:
    """For one operation of each kind in the second save, and one more write: the same files with the same bytes."""
    runner = lives("saver.py", "main")
    log = runner.run().log
    locator = Locator(runner.target, runner.profile, is_first_life=True)
    judged: dict[str, int] = {}
    for operation in log:
        address = locator.locate(operation).address
        is_wanted = operation.kind is OperationKind.FILE and operation.call in CALLS
        if address is None or address.save != 2 or not is_wanted or judged.get(operation.call, 0) > 1:
            continue
        judged[operation.call] = judged.get(operation.call, 0) + 1
        record = runner.run(point=CrashPoint(address=address, expected_phase=Phase.SAVE)).record
        assert (record.end, record.evidence.is_landed) == (LifeEnd.STRUCK, True)
        struck = read(runner.out)
        assert kill_with_strace(runner, operation.call, occurrence_of(log, operation)) == struck, str(address)
    assert set(judged) >= {"write", "writev", "pwrite", "ftruncate", "fsync", "rename", "link"}
