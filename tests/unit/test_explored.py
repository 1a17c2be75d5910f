"""Points become outcomes, counts and intervals: by hand, over made-up recordings."""

from __future__ import annotations

from chaos.explored import doubts_about, outcomes_of, points_of, summarize
from chaos.journal import Event, ExplorationPlan, StatesFound, TrialFinished, TrialsPlanned
from chaos.model import (
    Acknowledgement,
    Address,
    CheckName,
    CrashPoint,
    FaultKind,
    FileRole,
    FileState,
    FoundState,
    LifeEnd,
    LifeRecord,
    Outcome,
    Phase,
    Trial,
    TrialKind,
    Violation,
)
from chaos.struck import struck_life

CHECKPOINT = FileState(path="c", key="c", role=FileRole.CHECKPOINT, size_bytes=1, is_whole=True, digest="d")
SAID = Acknowledgement(save=1, step=1, is_printed=True, files=(CHECKPOINT,))
CALLS = ("openat", "write", "write", "rename", "write", "openat", "write")
DIGESTS = ("none", "empty", "half", "whole", "new", "new", "opened")
CONTROL = LifeRecord(number=1, end=LifeEnd.EXITED, exit_status=0, steps=4, saves=2, acknowledgements=(SAID,))


def found(index: int, *, digest: str = "", tear: int | None = None, call: str = "") -> FoundState:
    """Return the crash point before operation `index` of a life that saves twice."""
    is_output = index == 4
    return FoundState(
        index=index,
        tear_offset=tear,
        digest=digest or DIGESTS[index],
        address=Address(
            save=1 if index < 5 else 2,
            file="stdout" if is_output else "c",
            call=call or CALLS[index],
            occurrence=2 if index == 2 else 1,
        ),
        phase=Phase.SAVE,
        num_acknowledged=int(index > 4),
        steps=1,
        first_step=1,
        last_step=1,
        saves=1 if index < 5 else 2,
        is_change=not is_output,
    )


STATES = (*(found(index) for index in range(3)), found(2, digest="torn", tear=4096), *map(found, range(3, 7)))


def explored(number: int, state: FoundState) -> TrialFinished:
    """Return the outcome of the recovery from a state."""
    killed = struck_life(CONTROL, state)
    recovery = LifeRecord(number=2, end=LifeEnd.EXITED, exit_status=0)
    trial = Trial(number=number, kind=TrialKind.EXPLORED, state=state.digest)
    return TrialFinished(outcome=Outcome(trial=trial, lives=(killed, recovery)))


def journal(*, without: str = "") -> list[Event]:
    """Return the events of an exploration that tried each state once, all but one."""
    control = TrialFinished(outcome=Outcome(trial=Trial(number=6, kind=TrialKind.CONTROL), lives=(CONTROL,)))
    last = {state.digest: state for state in STATES}
    tried = [explored(7 + i, state) for i, state in enumerate(last.values()) if state.digest != without]
    return [control, StatesFound(trial=6, slot=0, life=1, states=STATES), *tried]


def violation(trial: int, state: FoundState, check: CheckName) -> Violation:
    """Return a rule broken at a crash point."""
    evidence = struck_life(CONTROL, state).evidence
    assert evidence is not None
    return Violation(check=check, trial=trial, life=1, crash_point=evidence.crash_point, detail="")


def test_each_point_is_judged_by_what_was_acknowledged_there() -> None:
    """Two points with the same state share the recovery; only the later one has the acknowledgement."""
    points = points_of(journal(), "all")
    outcomes = outcomes_of(points)
    assert len(outcomes) == len(STATES) == 8
    same = [outcome for outcome in outcomes if outcome.trial.state == "new"]
    assert [len(outcome.lives[0].acknowledgements) for outcome in same] == [0, 1]
    assert len({outcome.trial.number for outcome in same}) == 1
    assert all(outcome.lives[0].evidence is not None and outcome.lives[0].evidence.is_built for outcome in outcomes)
    assert all(outcome.kills_landed == 0 for outcome in outcomes)


def test_points_and_states_are_counted_apart() -> None:
    """Eight points, seven states; by operation and file the points add up."""
    result = summarize(points_of(journal(), "all"), (), journal(), ExplorationPlan(depth=2, saves="all"))
    assert (result.points, result.points_judged, result.states_distinct, result.states_judged) == (8, 8, 7, 7)
    assert result.points_recorded == 8
    assert sum(count.points for count in result.by_operation) == 8
    assert result.intervals == ()
    assert doubts_about(points_of(journal(), "all"), journal(), (FaultKind.KILL,)) == {FaultKind.KILL: ()}


def test_a_state_that_was_not_tried_is_a_doubt() -> None:
    """Its points are not judged, and the sentence says how many."""
    points = points_of(journal(without="new"), "all")
    result = summarize(points, (), journal(without="new"), ExplorationPlan(depth=1, saves="all"))
    assert (result.points_judged, result.states_judged) == (6, 6)
    (doubt,) = doubts_about(points, journal(without="new"), (FaultKind.KILL,))[FaultKind.KILL]
    assert doubt == "2 of 8 crash points were not judged (kill), in saves 1, 2: give a larger --budget."


def test_a_kind_without_any_point_is_a_doubt_of_that_kind() -> None:
    """A run that comes to no point where a fault could strike proves nothing of it, and takes nothing from others."""
    doubts = doubts_about(points_of(journal(), "all"), journal(), tuple(FaultKind))
    assert doubts.pop(FaultKind.KILL) == ()
    assert all(len(sentences) == 1 and str(kind) in sentences[0] for kind, sentences in doubts.items())
    assert len(doubts) == len(FaultKind) - 1


def test_an_error_that_was_never_met_is_a_doubt() -> None:
    """Two trials are planned: one life never meets the error, and the other trial was not run."""
    point = CrashPoint(address=found(1).address, expected_phase=Phase.SAVE, fault=FaultKind.DISK_FULL)
    trials = tuple(Trial(number=number, kind=TrialKind.FAULTED, crash_points=(point,)) for number in (20, 21))
    life = LifeRecord(number=1, end=LifeEnd.EXITED, exit_status=0)
    events: list[Event] = [
        TrialsPlanned(trials=trials),
        TrialFinished(outcome=Outcome(trial=trials[0], lives=(life,), unreached=(point,))),
    ]
    assert doubts_about((), events, (FaultKind.DISK_FULL,))[FaultKind.DISK_FULL] == (
        "1 of 2 trials of disk_full were not run: give a larger --budget.",
        "In 1 of 1 trials of disk_full the error was never met: they show nothing.",
    )


def test_intervals_open_after_the_operation_before_and_close_with_the_one_after() -> None:
    """Bad from the opening to the rename, but not before and not after; a second one inside the first write alone."""
    events = journal()
    points = points_of(events, "all")
    numbers = {outcome.trial.state: outcome.trial.number for outcome in outcomes_of(points)}
    bad = [state for state in STATES if state.digest in ("empty", "half", "torn", "whole")]
    lost = [violation(numbers[state.digest], state, CheckName.NO_VALID_CHECKPOINT) for state in bad]
    torn = next(state for state in STATES if state.digest == "torn")
    crashed = violation(numbers["torn"], torn, CheckName.RESUME_CRASHED)
    result = summarize(points, (*lost, crashed), events, ExplorationPlan(depth=1, saves="all"))
    first, second = result.intervals
    assert (first.check, first.save, first.life, first.points) == (CheckName.NO_VALID_CHECKPOINT, 1, 1, 4)
    assert first.opens is not None
    assert first.closes is not None
    assert (first.opens.call, first.closes.call, first.is_torn) == ("openat", "rename", False)
    assert second.opens == second.closes == torn.address
    assert (second.check, second.is_torn, second.points) == (CheckName.RESUME_CRASHED, True, 1)
    assert {count.operation: count.failing for count in result.by_operation if count.file == "c"} == {
        "openat": 0,
        "rename": 1,
        "write": 3,
    }
