"""Targets that do odd things: they see what they would see without us, and what is said of them is true."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.checks.lineage import is_interrupted
from chaos.intercept.syscalls import this_machine
from chaos.model import FinishedRecovery, LifeEnd, OperationKind, Outcome, Trial, TrialKind

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its user or its root folder")


def open_descriptors() -> set[str]:
    """Return the descriptors of this process, without the one that lists them."""
    return {link.name for link in Path("/proc/self/fd").iterdir() if link.exists() or link.is_symlink()}


def outcome(record: Any) -> Outcome:
    """Return a trial of this one life."""
    return Outcome(trial=Trial(number=1, kind=TrialKind.FAULTED), lives=(record,))


def test_a_target_that_is_interrupted_by_signals_is_not_blamed(lives: Callable[..., Any]) -> None:
    """Under a timer of 1 ms every EINTR that the target saw is counted, and so is no failure of its own."""
    runner = lives("odd.py", "timer", "10000")
    record = runner.run().record
    seen = int(runner.output().split()[1])
    assert record.interrupted_calls == seen
    assert is_interrupted(outcome(record)) == (seen > 0)


def test_threads_that_die_with_their_process_are_no_interruption(lives: Callable[..., Any]) -> None:
    """A failure while other threads are held in calls is the target's own."""
    for _ in range(5):
        record = lives("odd.py", "dying_threads").run().record
        assert (record.end, record.exit_status) == (LifeEnd.EXITED, 7)
        assert not is_interrupted(outcome(record))


@pytest.mark.parametrize("how", ["everything_closed", "big", "folder_removed", "folder_locked"])
def test_odd_targets_run_to_their_end(lives: Callable[..., Any], how: str) -> None:
    """All descriptors closed, writes larger than any buffer, an output folder that is removed or locked: no trouble."""
    runner = lives("odd.py", how)
    record = runner.run().record
    assert (record.end, record.exit_status) == (LifeEnd.EXITED, 0), runner.output("stderr")
    assert record.unseen_writers == ()


def test_a_filter_of_the_targets_own_stays_in_force(lives: Callable[..., Any]) -> None:
    """What the target forbids itself is refused, and the rest is on the clock as before."""
    runner = lives("odd.py", "filtered", str(this_machine().numbers["mkdirat"]))
    result = runner.run()
    assert result.record.exit_status == 0, runner.output("stderr")
    assert [operation.call for operation in result.log if operation.path == "state"] == ["openat", "openat"]


def test_other_programs_print_as_they_like(lives: Callable[..., Any]) -> None:
    """Those that try sendfile or copy_file_range first are refused as the kernel does, and then write, on the clock."""
    runner = lives("odd.py", "printed_by_others")
    result = runner.run()
    assert result.record.exit_status == 0, runner.output("stderr")
    assert runner.output() == "step 1 from a file\none two\n"
    printed = [operation.text for operation in result.log if operation.kind is OperationKind.OUTPUT]
    assert [text for text in printed if text] == ["step 1 from a file\n", "one two\n"]


@AS_ROOT
@pytest.mark.parametrize("how", ["another_user", "another_root"])
def test_calls_that_cannot_be_made_for_the_target_are_reported(lives: Callable[..., Any], how: str) -> None:
    """Another user's rights and another root's names are the kernel's business: let run, and counted as foreign."""
    runner = lives("odd.py", how)
    record = runner.run().record
    assert record.exit_status == 0, runner.output("stderr")
    assert record.foreign_calls > 0


def test_ticks_survive_what_a_target_does_to_its_descriptors(lives: Callable[..., Any]) -> None:
    """A cleared environment, closed and reused descriptors, a low limit, a fork: each tick arrives, nowhere else."""
    runner = lives("odd.py", "limited", python=())
    record = runner.run().record
    assert record.exit_status == 0, runner.output("stderr")
    assert (runner.out.parent / "life-0" / "ticks.log").read_text(encoding="ascii") == "interpreter\n" + "tick\n" * 4


def test_no_descriptor_stays_open(lives: Callable[..., Any]) -> None:
    """After lives of several kinds this process has the descriptors that it had before."""
    runner = lives("odd.py", "big")
    runner.run()
    before = open_descriptors()
    for how in ("big", "dying_threads", "folder_removed"):
        lives("odd.py", how).run()
    assert open_descriptors() == before


@pytest.mark.parametrize(
    ("digests", "files", "end"),
    [
        ("a,b,c,d", "the same", LifeEnd.STOPPED),
        ("a,b,c,d", "others", LifeEnd.EXITED),
        ("a,x,c,d", "the same", LifeEnd.EXITED),
        (",,,", "the same", LifeEnd.EXITED),
    ],
)
def test_a_life_is_stopped_beside_its_twin_alone(
    lives: Callable[..., Any], digests: str, files: str, end: LifeEnd
) -> None:
    """After two steps that agree with a twin from the same files the life ends; else it runs to its end."""
    runner = lives("odd.py", "digested", digests)
    record = runner.run(twin=FinishedRecovery(files=files, steps=("a", "b", "c", "d"))).record
    assert record.end is end
    assert len(runner.output().splitlines()) == (1 if end is LifeEnd.STOPPED else 4)
    assert record.step_digests == (
        (*digests.split(","),)[: 2 if end is LifeEnd.STOPPED else 4] if "a" in digests else ()
    )
