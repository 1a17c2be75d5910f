"""Schedules of several kinds of fault: each strikes where it can, as often as was asked for, drawn by itself."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.faults import PLANS, disk_full, io_error
from chaos.faults.injection import Injector
from chaos.faults.planning import draw_each_kind, missing_faults, redraw_each_kind
from chaos.model import (
    Address,
    CrashPoint,
    Evidence,
    FaultKind,
    FileSystem,
    LifeEnd,
    LifeRecord,
    Operation,
    OperationKind,
    Outcome,
    Phase,
    PlannablePoint,
    SaveProfile,
    TargetProfile,
    Trial,
)
from chaos.planners.drawing import draw_schedule
from chaos.planners.positions import saves_resumed_from

PHASES = {Phase.SAVE: 0.5, Phase.STEP: 0.3, Phase.RECOVERY: 0.1, Phase.STARTUP: 0.05, Phase.FINISH: 0.05}
ERRORS = [kind for kind in FaultKind if kind.is_error]
START, END = 100, 9_000


def _point(phase: Phase, position: int, call: str, file: str = "", save: int = 0) -> PlannablePoint:
    """Return a point; a write to a file goes from START to END."""
    is_write = call == "write" and file != "stdout"
    return PlannablePoint(
        address=Address(save=save, tick=0 if save else position, file=file, incarnation=int(bool(save)), call=call),
        phase=phase,
        position=position,
        tears=(4096, 8192) if is_write else (),
        start=START if is_write else 0,
        end=END if is_write else 0,
        is_published=bool(save) and file == ".",
    )


def _save(ordinal: int) -> list[PlannablePoint]:
    """Return the points of a save by a temporary file, a sync and a rename."""
    step = ordinal * 2
    calls = [("openat", "c.tmp"), ("write", "c.tmp"), ("fsync", "c.tmp"), ("rename", "c.pt"), ("unlink", "c.old")]
    return [_point(Phase.SAVE, step, call, file, ordinal) for call, file in calls]


SAVES = [_save(ordinal) for ordinal in range(1, 5)]
PROFILE = TargetProfile(
    has_steps=True,
    uses_ticks=True,
    total_steps=8,
    last_step=8,
    saves=tuple(
        SaveProfile(ordinal=n, ticks_before=2 * n, step=2 * n, addresses=tuple(p.address for p in save), publish=3)
        for n, save in enumerate(SAVES, start=1)
    ),
)
POINTS = (
    _point(Phase.STARTUP, 0, "interpreter"),
    _point(Phase.STARTUP, 0, "write", "stdout"),
    *(point for n, save in enumerate(SAVES) for point in (_point(Phase.STEP, 2 * n + 1, "tick"), *save)),
    _point(Phase.FINISH, 8, "write", "final.pt"),
    _point(Phase.FINISH, 8, "exit"),
    _point(Phase.RECOVERY, 0, "unlink", "c.tmp"),
    _point(Phase.RECOVERY, 0, "write", "c.pt"),
)


def draw(kinds: list[FaultKind], wanted: int, seed: int = 3) -> tuple[Trial, ...]:
    """Draw so many faults of each kind."""
    return draw_each_kind(kinds, PROFILE, POINTS, wanted=wanted, phases=PHASES, seed=seed, first_number=6)


def points_of(trials: tuple[Trial, ...], kind: FaultKind) -> list[CrashPoint]:
    """Return the crash points of one kind."""
    return [point for trial in trials for point in trial.crash_points if point.fault is kind]


@given(st.lists(st.sampled_from(FaultKind), unique=True), st.integers(0, 30), st.integers())
@settings(max_examples=25, deadline=None)
def test_each_kind_gets_what_was_asked_for(kinds: list[FaultKind], wanted: int, seed: int) -> None:
    """So many of each kind, one kind a lineage, numbered on; what is drawn of one does not depend on the others."""
    trials = draw(kinds, wanted, seed)
    assert [trial.number for trial in trials] == list(range(6, 6 + len(trials)))
    for trial in trials:
        assert {point.fault for point in trial.crash_points} == {trial.fault}
    for kind in kinds:
        points = points_of(trials, kind)
        assert len(points) == wanted
        assert points == points_of(draw([kind], wanted, seed), kind)


def test_the_kills_of_a_seed_stay_what_they_are() -> None:
    """Whatever else is asked for, kills are drawn as if they were alone: stored seeds keep their meaning."""
    alone = draw_schedule(PROFILE, POINTS, kills=20, phases=PHASES, seed=5, first_number=6)
    beside = draw(list(FaultKind), 20, 5)
    assert beside[: len(alone)] == alone


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_has_a_lineage_to_itself(kind: FaultKind) -> None:
    """Only one in a recovery needs another before it; short writes are in no recovery."""
    trials = draw([kind], 40)
    for trial in trials:
        recoveries = [point.expected_phase is Phase.RECOVERY for point in trial.crash_points]
        assert recoveries in ([False], [False, True])
    in_recovery = sum(point.expected_phase is Phase.RECOVERY for point in points_of(trials, kind))
    assert (in_recovery > 0) is (kind is not FaultKind.SHORT_WRITE)


def test_errors_strike_at_calls_that_can_fail_so() -> None:
    """Neither output nor ticks, and each kind has its own calls; every one of them is drawn."""
    for kind, calls in ((FaultKind.DISK_FULL, disk_full.CALLS), (FaultKind.IO_ERROR, io_error.CALLS)):
        struck = {(point.address.call, point.address.file) for point in points_of(draw([kind], 60), kind)}
        possible = {(p.address.call, p.address.file) for p in POINTS if p.address.call in calls}
        assert struck == possible - {("write", "stdout")}
    assert ("unlink", "c.old") not in {
        (p.address.call, p.address.file) for p in points_of(draw([FaultKind.DISK_FULL], 60), FaultKind.DISK_FULL)
    }


@pytest.mark.parametrize("kind", [FaultKind.DISK_FULL, FaultKind.IO_ERROR])
@pytest.mark.parametrize("wanted", [1, 6, 7, 40])
def test_every_second_error_is_sticky(kind: FaultKind, wanted: int) -> None:
    """Half of them last; of the full disks that do, some take a part of the write first."""
    points = points_of(draw([kind], wanted), kind)
    assert sum(point.is_sticky for point in points) == (wanted + 1) // 2
    assert all(point.is_sticky for point in points if point.tear_offset is not None)
    if wanted == 40:
        assert any(point.tear_offset is not None for point in points) is (kind is FaultKind.DISK_FULL)


@pytest.mark.parametrize("kind", [FaultKind.TORN_WRITE, FaultKind.SHORT_WRITE])
def test_writes_are_cut_at_any_byte(kind: FaultKind) -> None:
    """Always inside the write, and hardly ever at a page."""
    tears = [point.tear_offset for point in points_of(draw([kind], 60), kind)]
    assert all(tear is not None and START < tear < END for tear in tears)
    assert sum(tear is not None and tear % 4096 != 0 for tear in tears) > 50


def test_losses_of_power_go_through_the_file_systems() -> None:
    """The lineages take turns, and keep theirs; the states differ."""
    trials = draw([FaultKind.POWER_LOSS], 20)
    profiles = [{point.profile for point in trial.crash_points} for trial in trials]
    assert all(len(found) == 1 for found in profiles)
    order = list(FileSystem)
    assert [found.pop() for found in profiles] == [order[number % 4] for number in range(len(trials))]
    assert len({point.variant for trial in trials for point in trial.crash_points}) > 15


def test_what_rots_is_a_checkpoint_that_should_be_there() -> None:
    """Only after a save was put in place; each lineage has one, and one in four is cut short."""
    points = points_of(draw([FaultKind.BIT_FLIP], 20), FaultKind.BIT_FLIP)
    resumes = saves_resumed_from(PROFILE, POINTS)
    ready = {point.address for point, save in zip(POINTS, resumes, strict=True) if save is not None}
    assert {point.address for point in points} <= ready
    assert all(len(trial.crash_points) == 1 for trial in draw([FaultKind.BIT_FLIP], 20))
    assert sum(point.variant % 4 == 3 for point in points) == 5


def test_a_kind_that_can_strike_nowhere_is_not_drawn() -> None:
    """Without any file operation there is nothing to answer with an error."""
    bare = tuple(point for point in POINTS if not point.address.file)
    assert draw_schedule(PROFILE, bare, kills=4, phases=PHASES, seed=1, first_number=1, plan=PLANS[ERRORS[0]]) == ()


def _outcome(trial: Trial, landed: int) -> Outcome:
    """Return the outcome of a trial of which so many faults landed, and the others were not reached."""
    lives = tuple(
        LifeRecord(
            number=number,
            end=LifeEnd.EXITED,
            exit_status=1,
            evidence=Evidence(
                crash_point=point,
                phase=point.expected_phase,
                operation_index=1,
                was_alive=True,
                root_signal=9,
                processes_killed=1,
                errors_injected=1,
            ),
        )
        for number, point in enumerate(trial.crash_points[:landed], start=1)
    )
    return Outcome(trial=trial, lives=lives, unreached=trial.crash_points[landed:])


def test_what_did_not_land_is_drawn_anew_by_kind() -> None:
    """Each kind's missing ones are drawn again, as many as are wanted; errors in a recovery in another phase."""
    kinds = [FaultKind.KILL, FaultKind.IO_ERROR]
    trials = draw(kinds, 20)
    outcomes = [_outcome(trial, 0 if trial.fault is FaultKind.KILL else 1) for trial in trials]
    missing = missing_faults(outcomes, kinds, 20)
    assert {kind: len(points) for kind, points in missing.items()} == {
        FaultKind.KILL: 20,
        FaultKind.IO_ERROR: sum(len(t.crash_points) - 1 for t in trials if t.fault is FaultKind.IO_ERROR),
    }
    assert {point.expected_phase for point in missing[FaultKind.IO_ERROR]} == {Phase.RECOVERY}
    again = redraw_each_kind(missing, PROFILE, POINTS, seed=3, attempt=1, first_number=70)
    assert [trial.number for trial in again] == list(range(70, 70 + len(again)))
    assert Counter(p.fault for t in again for p in t.crash_points) == Counter(
        {kind: len(points) for kind, points in missing.items()}
    )
    assert {p.expected_phase for p in points_of(again, FaultKind.IO_ERROR)} == {Phase.SAVE}
    assert missing_faults([_outcome(trial, 9) for trial in trials], kinds, 20) == {}


# --- which answers are given ---------------------------------------------------------------------------


def _operation(call: str, index: int = 0, **changes: object) -> Operation:
    """Return an operation on a file."""
    fields: dict[str, object] = {"path": "c.tmp", "offset": 0, "size_bytes": 500, **changes}
    return Operation(index=index, kind=OperationKind.FILE, call=call, **fields)  # type: ignore[arg-type]


def _answers(point: CrashPoint, *operations: tuple[Operation, bool]) -> list[str]:
    """Return what is answered to operations in turn, the first of them at the point; the flag: its name is there."""
    injector, answers = Injector(point), []
    for position, (operation, is_there) in enumerate(operations):
        answer = injector.answer_to(operation, is_point=position == 0, is_there=lambda there=is_there: there)  # type: ignore[misc]
        if answer is not None:
            injector.count(operation)
        answers.append("" if answer is None else f"until {answer.until}" if answer.until else str(answer.errno))
    return answers


def _at(fault: FaultKind, **changes: object) -> CrashPoint:
    """Return a crash point of a kind."""
    address = Address(save=1, file="c.tmp", call="write")
    return CrashPoint(address=address, expected_phase=Phase.SAVE, fault=fault, **changes)  # type: ignore[arg-type]


def test_a_name_that_is_there_needs_no_room() -> None:
    """At the point itself a rename over a name, or emptying a file, fails; later on only what makes a new name."""
    point = _at(FaultKind.DISK_FULL, is_sticky=True)
    calls = [
        (_operation("rename"), True),
        (_operation("rename"), True),
        (_operation("openat"), True),
        (_operation("openat"), False),
        (_operation("unlink"), True),
        (_operation("mkdir"), True),
        (_operation("mkdir"), False),
        (_operation("ftruncate"), True),
        (_operation("fsync"), True),
    ]
    assert _answers(point, *calls) == ["28", "", "", "28", "", "", "28", "", "28"]


def test_once_is_once_and_waits_for_a_call_that_can_fail() -> None:
    """A folder that is there already cannot be refused for want of room: the next write is, and nothing after it."""
    calls = [(_operation("mkdir"), True), (_operation("write"), True), (_operation("write"), True)]
    assert _answers(_at(FaultKind.DISK_FULL), *calls) == ["", "28", ""]
    assert _answers(_at(FaultKind.IO_ERROR), *calls) == ["", "5", ""]


def test_a_write_is_cut_inside_itself() -> None:
    """The offset that was drawn is moved into the write that is there; one of a single byte cannot be cut."""
    point = _at(FaultKind.SHORT_WRITE, tear_offset=400)
    assert _answers(point, (_operation("write"), True)) == ["until 400"]
    assert _answers(point, (_operation("write", offset=900, size_bytes=50), True)) == ["until 901"]
    assert _answers(point, (_operation("write", size_bytes=100), True)) == ["until 99"]
    cannot = (_operation("write", size_bytes=1), True)
    assert _answers(point, cannot, (_operation("write"), True)) == ["", "until 400"]
    full = _at(FaultKind.DISK_FULL, tear_offset=400, is_sticky=True)
    assert _answers(full, cannot, (_operation("write"), True)) == ["28", "28"]


def test_output_is_never_refused() -> None:
    """What the target prints goes to a file of ours, whatever its disk is like."""
    output = Operation(index=0, kind=OperationKind.OUTPUT, call="write", stream="stdout", text="x")
    assert _answers(_at(FaultKind.IO_ERROR, is_sticky=True), (output, True)) == [""]
