"""`lost_work`: a life that was started again resumes from the newest whole checkpoint, not an older one or step 0.

Where neither numbers nor counts tell where a life began, the content that it saves first does: a life that resumed from
save 3 of the reference makes save 4 next; one that makes save 2 once more had begun before. One that makes save 3 once
more may have begun before, or have saved at its start what it had loaded, so that alone says nothing.
"""

from __future__ import annotations

from chaos.checks.lineage import (
    Restart,
    conclude,
    crash_point_before,
    describe,
    folders_begun_anew,
    of_role,
    restarts,
    whole_checkpoints,
)
from chaos.checks.recency import KnownSave, SaveOrder, not_damaged, order_of
from chaos.model import (
    CheckName,
    CheckResult,
    FileRole,
    LifeEnd,
    Outcome,
    Record,
    Reference,
    Target,
    TargetProfile,
    Violation,
)


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Compare where every later life began with the newest whole checkpoint that it found."""
    _ = target
    order = order_of(reference)
    judged = 0
    violations = []
    for restart in restarts(outcomes):
        if folders_begun_anew(restart):  # a doubt, not a finding: where it looks for checkpoints is not known
            continue
        newest = order.newest_save(restart.before.crash_state)
        if newest is None:
            has_lost = _is_from_zero(reference, restart)
        else:
            has_lost = is_from_older(reference.profile, restart, order, newest)
        judged += has_lost is not None
        if has_lost:
            violations.append(_violation(restart, newest, _first_made(reference.profile, restart, order)))
    reason = "no later life both showed its steps and had a checkpoint, known from the reference, to resume from"
    return conclude(CheckName.LOST_WORK, judged, violations, reason)


def is_from_older(profile: TargetProfile, restart: Restart, order: SaveOrder, newest: KnownSave) -> bool | None:
    """Tell whether the life began where one that resumed from an older save would (None: nothing shows it).

    A life may take a step or two in no training (some loaders step an optimizer once to make its state), so its steps
    must reach back to the older save; and a first line with the right number clears it.
    """
    older = order.older_than(newest)
    life = restart.life
    if not profile.has_steps:
        makes_again = _makes_again(profile, restart, order, newest)
        return _saves_reach_back(profile, restart, order, newest) if makes_again is None else makes_again
    if _counts_all_steps(profile, restart) and newest.ticks_before is not None and older.ticks_before is not None:
        reaches_back = profile.total_steps - life.steps <= older.ticks_before
        return reaches_back and not _shows_right_number(life.first_step, newest.next_step)
    if life.first_step is None or newest.next_step is None or older.next_step is None:
        return _makes_again(profile, restart, order, newest)
    if life.first_step == older.next_step == newest.next_step - 1:
        return _makes_again(profile, restart, order, newest, begins_at_older=True)
    # "resumed at step 30" is a step line to many patterns, and names the step before the first of this life.
    return life.first_step <= min(older.next_step, newest.next_step - 2)


class _Made(Record, kw_only=True):
    """The first save of a life that left something: its ordinal in the life, and the save of the reference it is."""

    save: int
    rank: int


def _first_made(profile: TargetProfile, restart: Restart, order: SaveOrder) -> _Made | None:
    """Return what the life acknowledged first that it had not found (None: nothing, or not all of it is known).

    A file that was renamed or linked keeps its time; content that was there, with a new time, was written again.
    """
    found = {(file.digest, file.modified_ns) for file in restart.before.crash_state}
    for item in restart.life.acknowledgements:
        if profile.has_steps and item.save == 0:
            continue  # before the first step, so what it saves is what it has loaded
        made = [file for file in not_damaged(item.files) if (file.digest, file.modified_ns) not in found]
        ranks = [rank for rank in (order.rank(file.digest) for file in made) if rank is not None]
        if made:
            return _Made(save=item.save, rank=max(ranks)) if len(ranks) == len(made) else None
    return None


def _makes_again(
    profile: TargetProfile, restart: Restart, order: SaveOrder, newest: KnownSave, *, begins_at_older: bool = False
) -> bool | None:
    """Tell by content whether the first save of a life is one that came before where it should have begun.

    With `begins_at_older`, its first line is that of a life resumed from the older save, and to make the newest save
    again confirms it. None where the reference has no exact order, or where the content leaves both open.
    """
    made = _first_made(profile, restart, order) if order.is_gapless and newest.is_exact else None
    if made is None or not order.saves[made.rank - 1].is_exact:
        return None
    if made.rank < newest.ordinal or (begins_at_older and made.rank == newest.ordinal):
        return True
    # Only the life's own first save shows that none came before it.
    return False if made.rank == newest.ordinal + 1 and made.save <= 1 else None


def _saves_reach_back(profile: TargetProfile, restart: Restart, order: SaveOrder, newest: KnownSave) -> bool | None:
    """Tell by the number of its saves alone whether a life began before `newest` (None: it does not tell)."""
    life = restart.life
    if life.end is not LifeEnd.EXITED or life.exit_status != 0 or not profile.saves:
        return None
    if len(order.saves) != len(profile.saves):
        return None  # saves without new content: their number says nothing
    resumed, older = len(profile.saves) - life.saves, order.older_than(newest).ordinal
    made = _first_made(profile, restart, order)
    if resumed == older and made is not None and made.rank == newest.ordinal:
        return None  # the one save too many may be of what was loaded
    return resumed <= older


def _shows_right_number(first_step: int | None, next_step: int | None) -> bool:
    """Tell whether the life's first step line has a number that only a life resumed from the newest save shows."""
    return first_step is not None and next_step is not None and first_step >= next_step


def _is_from_zero(reference: Reference, restart: Restart) -> bool | None:
    """Tell whether the life began at 0 with no whole checkpoint left, though one had been acknowledged."""
    checkpoints = of_role(restart.before.crash_state, FileRole.CHECKPOINT)
    is_unknown = whole_checkpoints(checkpoints) or any(file.is_whole is None for file in checkpoints)
    if is_unknown or not restart.acknowledged:
        return None
    first = reference.outcomes[0].lives[0].first_step if reference.outcomes and reference.outcomes[0].lives else None
    if restart.life.first_step is not None and first is not None:
        return restart.life.first_step <= first
    if _counts_all_steps(reference.profile, restart):
        return restart.life.steps >= reference.profile.total_steps
    return None


def _counts_all_steps(profile: TargetProfile, restart: Restart) -> bool:
    """Tell whether the count of steps says where the life began: exact clock, and it ran to the end of the training."""
    life = restart.life
    is_completed = life.end is LifeEnd.EXITED and life.exit_status == 0
    is_same_clock = life.has_probe if profile.uses_ticks else life.first_step is None
    return is_completed and is_same_clock and profile.total_steps > 0 and profile.has_steps


def _violation(restart: Restart, newest: KnownSave | None, made: _Made | None) -> Violation:
    life = restart.life
    began = f"did {life.steps} steps" if life.steps else f"did {life.saves} saves"
    began = f"began at step {life.first_step}" if life.first_step is not None else began
    if newest is not None and made is not None and made.rank <= newest.ordinal:
        began += f" and made save {made.rank} of the reference first"
    if newest is None:
        had = "started again from 0, although a save had been acknowledged and no whole one was left"
    else:
        number = newest.step if newest.step is not None else newest.ticks_before
        had = f"did not use the newest whole checkpoint, save {newest.ordinal} of the reference (step {number})"
    found = describe(of_role(restart.before.crash_state, FileRole.CHECKPOINT))
    return Violation(
        check=CheckName.LOST_WORK,
        trial=restart.trial,
        life=life.number,
        crash_point=crash_point_before(restart),
        step=life.first_step,
        detail=f"Life {life.number} {began}: it {had}; checkpoints that it found: {found}.",
    )
