"""Coverage: each landed kill is traced back to the known point that it hit, and what cannot be is counted apart."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.coverage import Coverage, PointCount, coverage_of, failure_bound
from chaos.model import (
    Address,
    CheckName,
    CrashPoint,
    LifeRecord,
    LivesMode,
    Outcome,
    Phase,
    PlannablePoint,
    Reference,
    SaveProfile,
    TargetProfile,
    Trial,
    TrialKind,
    Violation,
)
from chaos.planners.drawing import draw_schedule
from chaos.scenario import DEFAULT_PHASES

MARK = Address(call="interpreter")
FIRST_TICK = Address(call="tick")
EXIT = Address(tick=4, call="exit")


def tick(steps: int) -> Address:
    """Return the tick after so many steps."""
    return Address(tick=steps, call="tick")


def in_save(save: int, call: str) -> Address:
    """Return an operation of a save: openat and write of a temporary file, then its rename."""
    return Address(save=save, file="ck.pt" if call == "rename" else "ck.pt.tmp", call=call)


def point(address: Address, phase: Phase, position: int) -> PlannablePoint:
    """Return a known point; writes can be torn at one page boundary."""
    return PlannablePoint(
        address=address, phase=phase, position=position, tears=(4096,) if address.call == "write" else ()
    )


def save_points(save: int) -> list[PlannablePoint]:
    """Return the three points of a save, which follows upon two steps."""
    return [point(in_save(save, call), Phase.SAVE, 2 * save) for call in ("openat", "write", "rename")]


POINTS = (
    point(MARK, Phase.STARTUP, 0),
    point(Address(file="ck", call="mkdir"), Phase.STARTUP, 0),
    point(FIRST_TICK, Phase.STARTUP, 0),
    point(tick(1), Phase.STEP, 1),
    *save_points(1),
    point(tick(2), Phase.STEP, 2),
    point(tick(3), Phase.STEP, 3),
    *save_points(2),
    point(EXIT, Phase.FINISH, 4),
)
PROFILE = TargetProfile(
    has_steps=True,
    uses_ticks=True,
    total_steps=4,
    last_step=4,
    saves=tuple(
        SaveProfile(
            ordinal=save,
            ticks_before=2 * save,
            addresses=tuple(point.address for point in save_points(save)),
            publish=2,
        )
        for save in (1, 2)
    ),
)


@pytest.fixture(scope="module")
def reference(records: Any) -> Reference:
    """Return a reference of four steps and two saves, whose contents are known."""
    life = records.finished(1, 0, acknowledgements=records.acknowledgements(1, 2), crash_state=records.checkpoints(2))
    runs = tuple(records.outcome(number, TrialKind.REFERENCE, life) for number in (1, 2))
    return records.reference(profile=PROFILE, outcomes=runs)


def killed(records: Any, phase: Phase, address: Address, saved: int, *, torn: int = 0, **proof: Any) -> LifeRecord:
    """Return a life killed at an address of its own, after which the reference's save `saved` is the newest."""
    crash_point = CrashPoint(address=address, expected_phase=phase, tear_offset=4096 if torn else None)
    evidence = records.evidence(crash_point, executed_bytes=torn, **proof)
    return records.killed(1, 0, 0, evidence=evidence, crash_state=records.checkpoints(saved))


def lineage(records: Any, *lives: LifeRecord, number: int = 6, kind: TrialKind = TrialKind.FAULTED) -> Outcome:
    """Return a lineage of killed lives that then runs to its end."""
    chain = [replace(life, number=position) for position, life in enumerate(lives, start=1)]
    return records.outcome(number, kind, *chain, records.finished(len(lives) + 1, 0))


def covered(reference: Reference, *outcomes: Outcome, **parts: Any) -> Coverage:
    """Return the coverage of some lineages without findings."""
    return coverage_of(POINTS, reference, outcomes, parts.pop("violations", ()), **parts)


def hits(coverage: Coverage) -> dict[str, int]:
    """Return how many points were hit in each phase where any was."""
    return {phase: count.hit for phase, count in coverage.by_phase.items() if count.hit}


# --- what is known ------------------------------------------------------------------------------------


def test_known_points_are_those_of_the_reference_and_its_start_once_more(reference: Reference) -> None:
    """A later life's recovery comes to the marks and the first tick of the start, but not to its files."""
    coverage = covered(reference)
    known = {phase: count.known for phase, count in coverage.by_phase.items()}
    assert known == {"startup": 3, "step": 3, "save": 6, "recovery": 2, "finish": 1}
    assert (coverage.points_known, coverage.points_hit) == (15, 0)
    assert coverage.by_call == {
        "openat": PointCount(known=2),
        "rename": PointCount(known=2),
        "write": PointCount(known=2),
    }
    assert coverage.tears == PointCount(known=2)


def test_points_of_a_recovery_are_known_where_they_are_given(records: Any, reference: Reference) -> None:
    """What a later life alone changes at its start is a point of the recovery, hit under its own address."""
    cleaning = point(Address(file="ck.pt.tmp", call="unlink"), Phase.RECOVERY, 0)
    outcome = lineage(
        records,
        killed(records, Phase.SAVE, in_save(2, "write"), 1),
        killed(records, Phase.RECOVERY, cleaning.address, 1),
    )
    coverage = coverage_of((*POINTS, cleaning), reference, (outcome,), ())
    assert coverage.by_phase[Phase.RECOVERY] == PointCount(known=3, hit=1)
    assert coverage.kills_unmatched == 0


# --- what is hit --------------------------------------------------------------------------------------


def test_kills_of_later_lives_are_traced_back(records: Any, reference: Reference) -> None:
    """Saves and steps are counted on from the save that the life resumed from; a torn write is its write."""
    coverage = covered(
        reference,
        lineage(
            records,
            killed(records, Phase.SAVE, in_save(1, "rename"), 0),  # not in place yet: starts anew
            killed(records, Phase.STEP, tick(3), 1),  # after save 1
            killed(records, Phase.SAVE, in_save(1, "write"), 1, torn=100),  # that is save 2
            killed(records, Phase.RECOVERY, MARK, 1),
            killed(records, Phase.FINISH, Address(tick=2, call="exit"), 2),
        ),
    )
    assert hits(coverage) == {"save": 2, "step": 1, "recovery": 1, "finish": 1}
    assert coverage.points_hit == 5
    assert coverage.by_call["rename"] == coverage.by_call["write"] == PointCount(known=2, hit=1)
    assert coverage.by_call["openat"] == PointCount(known=2, hit=0)
    assert coverage.tears == PointCount(known=2, hit=1)
    assert (coverage.kills_unmatched, coverage.kills_bounding, coverage.failure_bound) == (0, 5, 0.6)


def test_a_point_counts_once(records: Any, reference: Reference) -> None:
    """Two kills at one operation, before it and inside it, in a first life and a later one, are one point."""
    coverage = covered(
        reference,
        lineage(records, killed(records, Phase.SAVE, in_save(2, "write"), 1), number=6),
        lineage(
            records,
            killed(records, Phase.STEP, tick(2), 1),
            killed(records, Phase.SAVE, in_save(1, "write"), 1, torn=1),
            number=7,
        ),
    )
    assert hits(coverage) == {"save": 1, "step": 1}
    assert (coverage.tears.hit, coverage.kills_bounding) == (1, 3)


def test_the_start_of_a_first_life_is_not_a_recovery(records: Any, reference: Reference) -> None:
    """The same operation is one point in a first life and another in a later one."""
    coverage = covered(
        reference,
        lineage(records, killed(records, Phase.STARTUP, FIRST_TICK, 0), killed(records, Phase.RECOVERY, FIRST_TICK, 0)),
    )
    assert hits(coverage) == {"startup": 1, "recovery": 1}


@pytest.mark.parametrize("seed", range(8))
def test_a_schedule_that_goes_as_drawn_is_traced_back_whole(seed: int, records: Any) -> None:
    """The reverse of what the planner did: no kill is left over, and so many kills hit every known point."""
    trials = draw_schedule(PROFILE, POINTS, kills=150, phases=DEFAULT_PHASES, seed=seed, first_number=6)
    outcomes = [_as_drawn(records, trial) for trial in trials]
    coverage = coverage_of(POINTS, records.reference(profile=PROFILE, outcomes=()), outcomes, ())
    assert (coverage.kills_unmatched, coverage.kills_bounding) == (0, 150)
    assert (coverage.points_hit, coverage.points_known) == (15, 15)


def _as_drawn(records: Any, trial: Trial) -> Outcome:
    """Return the lineage in which each kill of a trial lands where it was drawn."""
    lives = [killed(records, point.expected_phase, point.address, 0) for point in trial.crash_points]
    return lineage(records, *lives, number=trial.number)


# --- what is counted apart ----------------------------------------------------------------------------


def test_a_kill_at_an_unknown_operation_is_no_coverage(records: Any, reference: Reference) -> None:
    """It is counted apart; after one in a recovery, the next life resumes from where it would have."""
    coverage = covered(
        reference,
        lineage(
            records,
            killed(records, Phase.SAVE, in_save(2, "openat"), 1),
            killed(records, Phase.RECOVERY, Address(file="ck.pt.tmp", call="unlink"), 1),
            killed(records, Phase.SAVE, in_save(1, "rename"), 1),
        ),
    )
    assert hits(coverage) == {"save": 2}
    assert (coverage.kills_unmatched, coverage.kills_bounding) == (1, 3)


def test_a_kill_in_another_phase_is_no_coverage(records: Any, reference: Reference) -> None:
    """A tick that struck a step where a start is known is not that point, and what follows cannot be placed."""
    coverage = covered(
        reference,
        lineage(records, killed(records, Phase.STEP, FIRST_TICK, 0), killed(records, Phase.STEP, tick(1), 0)),
    )
    assert (coverage.points_hit, coverage.kills_unmatched) == (0, 2)


@pytest.mark.parametrize("left", [0, 2])
def test_a_life_that_found_another_save_is_not_placed(records: Any, reference: Reference, left: int) -> None:
    """Where the checkpoints left are not of the save that should be resumed from, only recoveries can be placed."""
    coverage = covered(
        reference,
        lineage(
            records,
            killed(records, Phase.SAVE, in_save(2, "write"), left),
            killed(records, Phase.SAVE, in_save(1, "write"), 1),
            killed(records, Phase.RECOVERY, MARK, 1),
            killed(records, Phase.STEP, tick(1), 1),
        ),
    )
    assert hits(coverage) == {"save": 1, "recovery": 1}
    assert coverage.kills_unmatched == 2


def test_content_of_another_training_tells_nothing(records: Any, reference: Reference) -> None:
    """Checkpoints that are not the reference's do not contradict the plan."""
    first = killed(records, Phase.SAVE, in_save(2, "write"), 1)
    other = replace(first, crash_state=(records.file("ck.pt", "another training's"),))
    coverage = covered(reference, lineage(records, other, killed(records, Phase.SAVE, in_save(1, "rename"), 1)))
    assert (coverage.points_hit, coverage.kills_unmatched) == (2, 0)


def test_a_life_that_lost_work_is_not_placed(records: Any, reference: Reference) -> None:
    """It began elsewhere than planned, so its kill is no known point; and with a finding nothing is bounded."""
    outcome = lineage(
        records,
        killed(records, Phase.SAVE, in_save(2, "write"), 1),
        killed(records, Phase.SAVE, in_save(1, "write"), 1),
    )
    found = Violation(check=CheckName.LOST_WORK, trial=6, life=2, detail="It began at step 1.")
    coverage = covered(reference, outcome, violations=(found,))
    assert (coverage.points_hit, coverage.kills_unmatched) == (1, 1)
    assert (coverage.kills_bounding, coverage.failure_bound) == (2, None)


def test_a_kill_that_did_not_land_covers_nothing(records: Any, reference: Reference) -> None:
    """Nor is known where the life after it began."""
    coverage = covered(
        reference,
        lineage(
            records,
            killed(records, Phase.SAVE, in_save(2, "write"), 1, was_alive=False),
            killed(records, Phase.SAVE, in_save(1, "write"), 1),
        ),
    )
    assert (coverage.points_hit, coverage.kills_unmatched, coverage.kills_bounding) == (0, 1, 1)


def test_only_faulted_lineages_count(records: Any, reference: Reference) -> None:
    """The canary's kill is not one of the campaign's."""
    life = killed(records, Phase.SAVE, in_save(2, "openat"), 1)
    coverage = covered(reference, lineage(records, life, kind=TrialKind.CANARY))
    assert (coverage.points_hit, coverage.kills_bounding, coverage.failure_bound) == (0, 0, None)


def test_polled_kills_land_only_near_their_points(records: Any, reference: Reference) -> None:
    """None of them is coverage, but each is a kill without a failure."""
    outcome = lineage(records, killed(records, Phase.STEP, tick(1), 0), killed(records, Phase.STEP, tick(2), 1))
    coverage = covered(reference, outcome, mode=LivesMode.POLLED)
    assert (coverage.points_hit, coverage.kills_unmatched, coverage.kills_bounding) == (0, 2, 2)


# --- the bound ----------------------------------------------------------------------------------------


def test_the_bound_is_three_by_the_number_of_kills() -> None:
    """At most 1, and never below the exact bound."""
    assert [failure_bound(kills) for kills in (0, 1, 3, 4, 20, 300)] == [None, 1.0, 1.0, 0.75, 0.15, 0.01]
    assert all((failure_bound(kills) or 0.0) >= 1 - 0.05 ** (1 / kills) for kills in range(1, 500))


def test_a_lineage_that_did_not_run_to_its_end_bounds_nothing(records: Any, reference: Reference) -> None:
    """What its kills did is not known; that they hit their points is."""
    outcome = lineage(records, killed(records, Phase.STEP, tick(1), 0))
    coverage = covered(reference, records.altered(outcome, -1, exit_status=1))
    assert (coverage.points_hit, coverage.kills_bounding, coverage.failure_bound) == (1, 0, None)
