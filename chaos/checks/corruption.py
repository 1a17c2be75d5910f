"""`corruption_accepted`: a damaged checkpoint is not resumed from as if it were whole.

After damage at rest a life may refuse to start, if no other whole save is left, or fall back to an older one. It has
accepted the damage if its steps begin where the damaged save left off, or if nothing shows where it began and it ends
with exit status 0 and other bits. Of a save of several files the damaged one may never have been read: then only other
bits tell.
"""

from __future__ import annotations

from chaos.checks.lineage import (
    Restart,
    conclude,
    counterpart,
    crash_point_before,
    is_completed,
    is_stopped,
    restarts,
    whole_checkpoints,
    without_damaged,
)
from chaos.checks.recency import KnownSave, SaveOrder, order_of
from chaos.checks.recovery_point import is_from_older
from chaos.model import (
    CheckName,
    CheckResult,
    Evidence,
    FaultKind,
    LifeEnd,
    Outcome,
    Reference,
    Target,
    Violation,
)


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look at every life that found a checkpoint which was damaged after it was saved."""
    _ = target
    order = order_of(reference)
    judged = 0
    violations = []
    for outcome in outcomes:
        for restart in _after_damage(outcome):
            accepted = _is_accepted(reference, order, outcome, restart)
            judged += accepted is not None
            if accepted:
                violations.append(_violation(restart))
    reason = "no life that found a damaged checkpoint showed what it made of it"
    return conclude(CheckName.CORRUPTION_ACCEPTED, judged, violations, reason)


def is_accepted(reference: Reference, order: SaveOrder, outcome: Outcome) -> bool:
    """Tell whether this rule speaks about a lineage, so that no other has to."""
    return any(_is_accepted(reference, order, outcome, restart) for restart in _after_damage(outcome))


def may_refuse(order: SaveOrder, restart: Restart) -> bool:
    """Tell whether a life may refuse to start: the only whole save had been damaged."""
    if _damage_before(restart) is None:
        return False
    left = without_damaged(restart.before)
    is_unknown = any(order.rank(file.digest) is None for file in whole_checkpoints(left))
    return order.newest_save(left) is None and not is_unknown


def _after_damage(outcome: Outcome) -> list[Restart]:
    """Return the lives of a lineage that found a damaged checkpoint."""
    return [restart for restart in restarts((outcome,)) if _damage_before(restart) is not None]


def _damage_before(restart: Restart) -> Evidence | None:
    """Return the evidence of the damage that a life found (None: there was none)."""
    evidence = restart.before.evidence
    is_damage = evidence is not None and evidence.is_landed and evidence.crash_point.fault is FaultKind.BIT_FLIP
    return evidence if is_damage else None


def _is_accepted(reference: Reference, order: SaveOrder, outcome: Outcome, restart: Restart) -> bool | None:
    """Tell whether a life went on from damaged bytes (None: nothing shows it)."""
    evidence, life = _damage_before(restart), restart.life
    assert evidence is not None  # noqa: S101 - the caller has looked
    save = _damaged_save(order, evidence)
    began_there = None if save is None else _began_at(reference, order, restart, save)
    has_other_bits = _has_other_bits(reference, outcome) if life is outcome.lives[-1] else None
    if began_there and save is not None and len(save.digests) == 1:
        return True
    if began_there is False or (life.end is LifeEnd.EXITED and life.exit_status != 0):
        return False
    return has_other_bits


def _damaged_save(order: SaveOrder, evidence: Evidence) -> KnownSave | None:
    """Return the save that the damaged checkpoint was of (None: the reference never wrote it)."""
    rank = order.rank(evidence.damaged.digest) if evidence.damaged is not None else None
    return None if rank is None else order.saves[rank - 1]


def _began_at(reference: Reference, order: SaveOrder, restart: Restart, save: KnownSave) -> bool | None:
    """Tell whether a life began where one that resumed from the damaged save would (None: nothing shows it)."""
    left = order.newest_save(without_damaged(restart.before))
    if left is not None and left.ordinal >= save.ordinal:
        return None  # a copy of it is left
    is_older = is_from_older(reference.profile, restart, order, save)
    return None if is_older is None else not is_older


def _has_other_bits(reference: Reference, outcome: Outcome) -> bool | None:
    """Tell whether a lineage ended well with other bits than the reference (None: it cannot be told)."""
    if not reference.deterministic or not (is_completed(outcome) or is_stopped(outcome)):
        return None
    state = outcome.lives[-1].crash_state
    pairs = [(wanted, counterpart(wanted, state)) for wanted in reference.final]
    return any(found is not None and found.digest != wanted.digest for wanted, found in pairs)


def _violation(restart: Restart) -> Violation:
    evidence, life = _damage_before(restart), restart.life
    assert evidence is not None  # noqa: S101 - the caller has looked
    began = f" began at step {life.first_step} and" if life.first_step is not None else ""
    ended = "ended with exit status 0" if life.exit_status == 0 else "did not complain of it"
    return Violation(
        check=CheckName.CORRUPTION_ACCEPTED,
        trial=restart.trial,
        life=life.number,
        crash_point=crash_point_before(restart),
        step=life.first_step,
        detail=f"{evidence.damage}; life {life.number}{began} {ended}: it went on from damaged bytes.",
    )
