"""Errors that are answered, writes that are cut, power that goes, checkpoints that rot: each is real to the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.address import Locator
from chaos.checkpoints.process import Examiner
from chaos.executors.lineage import run_trial
from chaos.faults import disk_full, io_error
from chaos.lives.starters import FreshStarter
from chaos.model import (
    Address,
    CrashPoint,
    FaultKind,
    LifeEnd,
    Operation,
    OperationKind,
    Outcome,
    Phase,
    Trial,
    TrialKind,
    TrialSpec,
)
from chaos.states.recorder import FolderRecorder

SIZE = 10_000
CALLS = {FaultKind.DISK_FULL: disk_full.CALLS, FaultKind.IO_ERROR: io_error.CALLS}
NAMES = {FaultKind.DISK_FULL: "ENOSPC", FaultKind.IO_ERROR: "EIO"}
# After the sync failed: a name that is there already needs no room, and what takes names away gives some.
FINE_ON = {FaultKind.DISK_FULL: ["replace ok", "unlink ENOENT", "rmdir ENOENT"], FaultKind.IO_ERROR: []}


def places(runner: Any, log: tuple[Operation, ...]) -> Iterator[tuple[Operation, Address]]:
    """Yield the operations on files of a log that have an address, with it."""
    locator = Locator(runner.target, runner.profile, is_first_life=True)
    for operation in log:
        address = locator.locate(operation).address
        if address is not None and operation.kind is OperationKind.FILE:
            yield operation, address


def point_at(address: Address, fault: FaultKind, **changes: Any) -> CrashPoint:
    """Return a crash point at an address."""
    return CrashPoint(address=address, expected_phase=Phase.SAVE, fault=fault, **changes)


def first(runner: Any, log: tuple[Operation, ...], call: str, number: int = 1) -> Address:
    """Return the address of the `number`-th operation of a call in a log."""
    return [address for operation, address in places(runner, log) if operation.call == call][number - 1]


def lines(runner: Any) -> list[str]:
    """Return what the last life printed."""
    return runner.output().splitlines()  # type: ignore[no-any-return]


@pytest.mark.parametrize("fault", [FaultKind.DISK_FULL, FaultKind.IO_ERROR])
def test_an_error_is_met_once_at_every_operation(fault: FaultKind, lives: Callable[..., Any]) -> None:
    """Each call in turn that can fail so fails, alone and without any effect; a later start finds all well."""
    runner = lives("told.py")
    plain = runner.run().log
    calls = [line.split()[0] for line in lines(runner)]
    able = [(i, o, a) for i, (o, a) in enumerate(places(runner, plain)) if o.call in CALLS[fault]]
    assert len(able) > len(CALLS[fault]) - 12
    for position, operation, address in able:
        result = runner.run(point=point_at(address, fault))
        record, said = result.record, lines(runner)
        failed = [o for o in result.log if o.error]
        assert (record.end, record.exit_status) == (LifeEnd.EXITED, 0)
        assert [(o.index, o.call, o.path) for o in failed] == [(operation.index, operation.call, operation.path)]
        assert said[position] == f"{calls[position]} {NAMES[fault]}", (str(address), said)
        assert sum(NAMES[fault] in line for line in said) == 1
        assert record.evidence.is_landed
        assert (record.evidence.errors_injected, record.evidence.operation_index) == (1, operation.index)
        assert record.unseen_writers == ()
    again = runner.run(runner.out)
    assert again.record.evidence is None
    assert not any("E" in line for line in lines(runner)[:12])


@pytest.mark.parametrize("fault", [FaultKind.DISK_FULL, FaultKind.IO_ERROR])
def test_a_sticky_error_lasts_until_the_life_ends(fault: FaultKind, lives: Callable[..., Any]) -> None:
    """From the second fsync on everything that can fail fails; in the next life nothing does."""
    runner = lives("told.py")
    address = first(runner, runner.run().log, "fsync", 2)
    result = runner.run(point=point_at(address, fault, is_sticky=True))
    said = lines(runner)
    index = said.index(f"fsync {NAMES[fault]}")
    assert said[:index] == ["open ok", f"write {SIZE}", "fsync ok", "replace ok", "open ok", f"write {SIZE}"]
    fine = [line for line in said[index:] if NAMES[fault] not in line]
    assert fine == FINE_ON[fault]
    assert result.record.evidence.errors_injected == sum(NAMES[fault] in line for line in said)
    assert result.record.evidence.errors_injected > 4
    runner.run(runner.out)
    assert lines(runner)[:4] == ["open ok", f"write {SIZE}", "fsync ok", "replace ok"]


def test_a_full_disk_takes_what_fits(lives: Callable[..., Any]) -> None:
    """The write is answered with a part of its length, those bytes are there, and the sync after it fails."""
    runner = lives("told.py")
    address = first(runner, runner.run().log, "write")
    result = runner.run(point=point_at(address, FaultKind.DISK_FULL, is_sticky=True, tear_offset=4097))
    assert lines(runner)[:3] == ["open ok", "write 4097", "fsync ENOSPC"]
    written = next(operation for operation in result.log if operation.call == "write" and operation.path)
    assert (written.size_bytes, written.error) == (4097, 0)
    assert result.record.evidence.errors_injected > 1


@pytest.mark.parametrize("tear", [1, 4096, 5001, SIZE - 1])
def test_a_short_write_answers_its_count(tear: int, lives: Callable[..., Any]) -> None:
    """Exactly so many bytes are there, once; all other calls do what they always do."""
    runner = lives("told.py")
    plain = runner.run().log
    expected = lines(runner)
    result = runner.run(point=point_at(first(runner, plain, "write", 3), FaultKind.SHORT_WRITE, tear_offset=tear))
    changed = [(a, b) for a, b in zip(expected, lines(runner), strict=True) if a != b]
    assert changed == [(f"write {SIZE}", f"write {tear}")]
    assert (runner.out / "c.bin").read_bytes() == bytes([3]) * tear
    assert result.record.evidence.is_landed
    assert result.record.unseen_writers == ()


@pytest.mark.parametrize("tear", [1, 4095, 4097, SIZE - 1, SIZE + 5000])
def test_a_torn_write_ends_at_any_byte(tear: int, lives: Callable[..., Any]) -> None:
    """What is there when the life was killed ends at that byte, or at the last one inside the write."""
    runner = lives("told.py")
    address = first(runner, runner.run().log, "write")
    result = runner.run(point=point_at(address, FaultKind.TORN_WRITE, tear_offset=tear))
    written = min(tear, SIZE - 1)
    assert result.record.end is LifeEnd.STRUCK
    assert (runner.out / "c.tmp").read_bytes() == bytes([1]) * written
    assert result.record.evidence.executed_bytes == written


@pytest.mark.parametrize("fault", [FaultKind.DISK_FULL, FaultKind.IO_ERROR, FaultKind.SHORT_WRITE])
def test_a_recording_explains_what_an_error_left(fault: FaultKind, lives: Callable[..., Any], tmp_path: Path) -> None:
    """The recorder hears of calls that were refused or shortened: its log still gives the real folder."""
    runner = lives("told.py")
    address = first(runner, runner.run().log, "write", 2)
    tear = 77 if fault is FaultKind.SHORT_WRITE else None
    out = runner.new_out()
    with FolderRecorder(tmp_path / "recording", out) as recorder:
        result = runner.run(out, point=point_at(address, fault, tear_offset=tear), recorder=recorder)
        assert recorder.finish() == ()
    assert result.record.evidence.is_landed


def test_a_point_that_is_not_reached_is_no_evidence(lives: Callable[..., Any]) -> None:
    """A life that never comes to its point ends by itself, and nothing proves a fault."""
    runner = lives("told.py")
    address = Address(save=9, file="c.tmp", call="write")
    record = runner.run(point=point_at(address, FaultKind.IO_ERROR)).record
    assert (record.exit_status, record.evidence) == (0, None)


# --- lineages -----------------------------------------------------------------------------------------


def lineage(runner: Any, examiner: Examiner, folder: Path, *points: CrashPoint) -> Outcome:
    """Run a trial with these crash points."""
    trial = Trial(number=1, kind=TrialKind.FAULTED, crash_points=points)
    spec = TrialSpec(target=runner.target, profile=runner.profile, trial=trial, deadline_s=30.0)
    return run_trial(spec, folder, examiner=examiner, starter=FreshStarter())


def test_who_ends_well_is_not_started_again(lives: Callable[..., Any], examiner: Examiner, tmp_path: Path) -> None:
    """A life that met an error and ends with exit status 0 ends its lineage; the other points are not reached."""
    runner = lives("told.py")
    address = first(runner, runner.run().log, "write")
    points = (point_at(address, FaultKind.IO_ERROR), point_at(address, FaultKind.IO_ERROR, is_sticky=True))
    outcome = lineage(runner, examiner, tmp_path / "trial", *points)
    assert (len(outcome.lives), outcome.kills_landed, outcome.unreached) == (1, 1, points[1:])


def test_after_a_loss_of_power_only_what_was_synced_is_sure(
    lives: Callable[..., Any], examiner: Examiner, tmp_path: Path
) -> None:
    """Of a folder in which only files were synced some state leaves no name at all; the evidence says what went."""
    runner = lives("told.py")
    address = first(runner, runner.run().log, "mkdir")
    left = set()
    for variant in range(6):
        point = point_at(address, FaultKind.POWER_LOSS, profile="posix", variant=variant)
        outcome = lineage(runner, examiner, tmp_path / f"trial-{variant}", point)
        struck = outcome.lives[0]
        assert struck.evidence is not None
        assert struck.evidence.is_landed
        assert struck.evidence.loss is not None
        assert struck.unseen_writers == ()
        assert len(outcome.lives) == 2
        left.add(tuple((file.path, file.size_bytes) for file in struck.crash_state))
    assert () in left
    assert any(("c.bin", SIZE) in files for files in left)


def test_a_life_after_a_loss_of_power_finds_everything_durable(
    lives: Callable[..., Any], examiner: Examiner, tmp_path: Path
) -> None:
    """Whatever the first loss left is there after a second one, before the next life has changed anything."""
    runner = lives("told.py")
    plain = list(places(runner, runner.run().log))
    for variant in range(4):
        points = tuple(
            point_at(address, FaultKind.POWER_LOSS, profile="posix", variant=variant)
            for address in (first(runner, tuple(o for o, _ in plain), "mkdir"), plain[0][1])
        )
        outcome = lineage(runner, examiner, tmp_path / f"trial-{variant}", *points)
        one, two = outcome.lives[:2]
        assert outcome.kills_landed == 2
        assert one.state_digest == two.state_digest
