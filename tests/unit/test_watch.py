"""A life is followed operation by operation: its crash point, and the files at each acknowledgement."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chaos.lives.request import LifeRequest
from chaos.lives.watch import Watch, tear_within
from chaos.model import (
    Address,
    CrashPoint,
    FaultKind,
    FileRole,
    FileState,
    Operation,
    OperationKind,
    Phase,
    Target,
    TargetProfile,
)

TARGET = Target(command=("x",), resume_command=("x",), checkpoints=("ck",), final=())
FILE = FileState(path="ck", key="ck", role=FileRole.CHECKPOINT, size_bytes=1, is_whole=True)
OPENED = Operation(index=0, kind=OperationKind.FILE, call="openat", path="ck", creates=True)
WRITTEN = Operation(index=1, kind=OperationKind.FILE, call="write", path="ck", size_bytes=10)
SAVED = Operation(index=2, kind=OperationKind.OUTPUT, call="write", stream="stdout", text="saved step 5\n")
TICK = Operation(index=3, kind=OperationKind.TICK, call="tick")
PROFILE = TargetProfile(prints_acknowledgements=True)


def request(point: CrashPoint | None = None, *, is_learning: bool = False) -> LifeRequest:
    """Ask for a life that is struck at a point."""
    return LifeRequest(
        number=1,
        command=("x",),
        target=TARGET,
        profile=PROFILE,
        folder="/nowhere/life",
        out="/nowhere/out",
        hash_seed=0,
        deadline_s=1.0,
        crash_point=point,
        is_learning=is_learning,
    )


def crash_point(address: Address, tear: int | None = None) -> CrashPoint:
    """Return a crash point in a save."""
    return CrashPoint(address=address, expected_phase=Phase.SAVE, tear_offset=tear)


def test_the_crash_point_is_recognised_at_its_operation_alone() -> None:
    """Only the second write of the save is the point that is asked for, and its phase is told."""
    watch = Watch(
        request(crash_point(Address(save=1, file="ck", incarnation=1, call="write", occurrence=2))), lambda: ()
    )
    assert [watch.see(operation) for operation in (OPENED, WRITTEN, WRITTEN, WRITTEN)] == [False, False, True, False]
    assert watch.struck_phase is Phase.SAVE


def test_an_acknowledgement_carries_the_files_of_its_moment() -> None:
    """The checkpoints are looked at once, when the target says that they are saved."""
    watch = Watch(request(), lambda: (FILE,))
    assert not any(watch.see(operation) for operation in (OPENED, WRITTEN, SAVED))
    (acknowledgement,) = watch.acknowledgements
    assert (acknowledgement.save, acknowledgement.step, acknowledgement.is_printed) == (1, 5, True)
    assert acknowledgement.files == (FILE,)


def looks(*operations: Operation) -> list[int]:
    """Return the indices at which a learning life looks at the checkpoints."""
    watch = Watch(request(is_learning=True), lambda: (FILE,))
    for operation in operations:
        watch.see(operation)
    return [acknowledgement.save for acknowledgement in watch.acknowledgements]


def test_a_learning_life_looks_where_an_acknowledgement_may_be() -> None:
    """After a change of a checkpoint: at ticks and at lines that may tell it; then new files say nothing more."""
    again = replace(OPENED, index=4)
    assert looks(OPENED, WRITTEN, SAVED, TICK, replace(WRITTEN, index=4), again) == [2]
    assert looks(OPENED, WRITTEN, TICK, replace(OPENED, index=4), replace(TICK, index=5)) == [3, 5]


def test_a_learning_life_without_a_clock_looks_before_a_file_is_made_anew() -> None:
    """That is where its next save begins; but not without end, and not for files that are no checkpoints."""
    assert looks(OPENED, WRITTEN, replace(OPENED, index=4)) == [4]
    assert looks(*(replace(OPENED, index=i, path=f"sample{i}") for i in range(5))) == []
    assert len(looks(*(replace(OPENED, index=i) for i in range(1000)))) == 100


@pytest.mark.parametrize(("kind", "call"), [(OperationKind.TICK, "tick"), (OperationKind.MARK, "interpreter")])
def test_a_probe_shows_by_what_it_says(kind: OperationKind, call: str) -> None:
    """A tick, or the mark of an interpreter, shows that the probe is there."""
    watch = Watch(request(), lambda: ())
    assert not watch.has_probe
    watch.see(Operation(index=0, kind=kind, call=call))
    assert watch.has_probe


@pytest.mark.parametrize(
    ("tear", "offset", "size", "expected"),
    [(4096, 0, 9000, 4096), (8192, 0, 9000, 8192), (12288, 0, 9000, 8192), (0, 0, 9000, 4096), (4096, 5000, 9000, 8192),
     (4096, 0, 4096, None), (4096, 0, 4097, 4096), (4096, 100, 50, None), (None, 0, 9000, None)],
)  # fmt: skip
def test_a_tear_lies_strictly_inside_the_write(tear: int | None, offset: int, size: int, expected: int | None) -> None:
    """At a multiple of the page size in the file, the nearest one to what was asked for; none where there is none."""
    point = crash_point(Address(call="write"), tear)
    assert tear_within(point, replace(WRITTEN, offset=offset, size_bytes=size)) == expected


@pytest.mark.parametrize(
    ("offset", "size", "tear", "expected"),
    [(0, 500, 499, 499), (0, 500, 5000, 499), (1000, 500, 7, 1001), (0, 9000, 4097, 4097), (0, 1, 7, None)],
)
def test_a_torn_write_is_torn_at_any_byte_inside_it(offset: int, size: int, tear: int, expected: int | None) -> None:
    """Other than a kill, which tears at pages: at the byte that was drawn, or the nearest one inside."""
    point = CrashPoint(
        address=Address(call="write"), expected_phase=Phase.SAVE, fault=FaultKind.TORN_WRITE, tear_offset=tear
    )
    assert tear_within(point, replace(WRITTEN, offset=offset, size_bytes=size)) == expected
