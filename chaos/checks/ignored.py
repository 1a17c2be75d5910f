"""`failed_save_ignored`: a life that met an error does not act as if its save were there.

It may retry, fall over, or say that the save failed. It may not end with exit status 0 while its last save or a final
file is missing, nor acknowledge a save in print that is not there, or whose fsync has failed. After a write that was
only cut short (`short_write`) no error was told that it could pass on: what it goes on from has to be there, printed or
not.

One cause is one finding: where no whole checkpoint is left at all, `no_valid_checkpoint` says so, and where this rule
speaks, `acknowledged_lost`, `did_not_finish` and `silent_divergence` do not.
"""

from __future__ import annotations

from chaos.checks.lineage import (
    Strike,
    conclude,
    counterpart,
    describe,
    landed_strikes,
    last_strike,
    of_role,
    whole_checkpoints,
)
from chaos.checks.recency import KnownSave, SaveOrder, order_of
from chaos.checks.survival import is_nothing_left
from chaos.checks.wording import the
from chaos.model import (
    Acknowledgement,
    CheckName,
    CheckResult,
    FaultKind,
    FileRole,
    FileState,
    LifeEnd,
    Outcome,
    Reference,
    Target,
    Violation,
)


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Look at every life that met an error: what it acknowledged, and how it ended."""
    _ = target
    order = order_of(reference)
    strikes = [strike for strike in landed_strikes(outcomes) if strike.fault.is_error]
    told = [(strike, what_was_ignored(reference, order, strike)) for strike in strikes]
    violations = (_violation(strike, words) for strike, words in told if words)
    return conclude(CheckName.FAILED_SAVE_IGNORED, len(strikes), violations, "no life was given an error")


def is_told(reference: Reference, order: SaveOrder, strike: Strike) -> bool:
    """Tell whether this rule speaks about a life, so that no other has to."""
    return strike.fault.is_error and bool(what_was_ignored(reference, order, strike))


def is_told_of_end(reference: Reference, order: SaveOrder, outcome: Outcome) -> bool:
    """Tell whether this rule speaks about the last life of a lineage."""
    strike = last_strike(outcome)
    return strike is not None and strike.life is outcome.lives[-1] and is_told(reference, order, strike)


def what_was_ignored(reference: Reference, order: SaveOrder, strike: Strike) -> str:
    """Say what a life that met an error ignored; empty where it did not, or others tell."""
    claimed = _claimed_falsely(reference, order, strike) or _claimed_unsynced(strike)
    if claimed:
        return claimed
    life = strike.life
    if life.end is not LifeEnd.EXITED or life.exit_status != 0 or is_nothing_left(strike):
        return ""
    missing = [_last_save_missing(reference, order, strike), files_missing(reference, life.crash_state)]
    found = "; ".join(words for words in missing if words)
    return f"ended with exit status 0 all the same, but {found}" if found else ""


def files_missing(reference: Reference, state: tuple[FileState, ...]) -> str:
    """Return which final files are missing or damaged; empty when none."""
    faults = []
    for wanted in reference.final:
        found = counterpart(wanted, state)
        if found is None:
            faults.append(f"the final file {wanted.path} is missing")
        elif found.is_whole is False:
            faults.append(f"the final file is damaged: {describe((found,))}")
    return "; ".join(faults)


def _writes_what_the_reference_wrote(reference: Reference, strike: Strike) -> bool:
    """Tell whether all that a life saves must be content that the reference saved: a first life, where that is one."""
    return reference.deterministic and strike.life.number == 1


def _last_save_missing(reference: Reference, order: SaveOrder, strike: Strike) -> str:
    """Say that the newest save that is there is not the last one; empty where it is, or nobody can tell."""
    lives = reference.outcomes[0].lives if reference.outcomes else ()
    last = order.newest_save(lives[0].crash_state) if lives else None
    state = strike.life.crash_state
    must_be_known = _writes_what_the_reference_wrote(reference, strike)
    if last is None or not _lacks(order, state, last, must_be_known=must_be_known):
        return ""
    return f"its last save is not there: {_newest(order, state)}, and save {last.ordinal} was to be there"


def _lacks(order: SaveOrder, files: tuple[FileState, ...], save: KnownSave, *, must_be_known: bool) -> bool:
    """Tell whether a save is not among files, nor a newer one.

    Content that the reference never wrote is no save of it where it `must_be_known`; else nobody can tell.
    """
    if not must_be_known and any(order.rank(file.digest) is None for file in whole_checkpoints(files)):
        return False
    newest = order.newest_save(files)
    return newest is None or newest.ordinal < save.ordinal


def _claimed_falsely(reference: Reference, order: SaveOrder, strike: Strike) -> str:
    """Say which save the life acknowledged, from the one that met the error on, though it was not there."""
    begun = strike.crash_point.address.save
    must_be_known = _writes_what_the_reference_wrote(reference, strike)
    for item in strike.life.acknowledgements:
        is_claim = item.is_printed or strike.fault is FaultKind.SHORT_WRITE
        if not begun or item.save < begun or not is_claim:
            continue
        save = _promised(reference, order, strike, item)
        if save is not None and _lacks(order, item.files, save, must_be_known=must_be_known):
            said = f"step {item.step}" if item.step is not None else f"save {item.save}"
            return f"acknowledged {said} all the same, but then {_newest(order, item.files)}"
    return ""


def _claimed_unsynced(strike: Strike) -> str:
    """Say of which files a sync had failed that were acknowledged all the same."""
    files = strike.life.evidence.unsynced if strike.life.evidence is not None else ()
    if not files:
        return ""
    names = ", ".join("its output folder" if path == "." else path for path in files)
    return (
        f"acknowledged a save all the same, although fsync of {names} had failed and nothing was written anew: what "
        "could not be written then may never be, even if a later fsync succeeds"
    )


def _promised(reference: Reference, order: SaveOrder, strike: Strike, item: Acknowledgement) -> KnownSave | None:
    """Return the save that was there when the reference acknowledged the same (None: it is not known).

    It may be an older one than was acknowledged: a target may speak before it has written.
    """
    lives = reference.outcomes[0].lives if reference.outcomes else ()
    for other in lives[0].acknowledgements if lives else ():
        is_same = other.step == item.step if item.step is not None else other.save == item.save
        if is_same and (item.step is not None or strike.life.number == 1):
            return order.newest_save(other.files)
    return None


def _newest(order: SaveOrder, files: tuple[FileState, ...]) -> str:
    """Say which save is the newest among files."""
    newest = order.newest_save(files)
    found = describe(of_role(files, FileRole.CHECKPOINT))
    if newest is None:
        return f"no save was whole ({found})"
    return f"the newest whole save was save {newest.ordinal} of the reference ({found})"


def _violation(strike: Strike, words: str) -> Violation:
    life = strike.life
    return Violation(
        check=CheckName.FAILED_SAVE_IGNORED,
        trial=strike.trial,
        life=life.number,
        crash_point=strike.crash_point,
        step=life.last_step,
        detail=f"Life {life.number} met {the(strike.fault)} and {words}.",
    )
