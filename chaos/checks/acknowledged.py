"""`acknowledged_lost`: what survives a fault is at least as new as the last save that the target acknowledged.

What is left when a killed life is over, or one that met an error has ended; of one that ignored the error,
`failed_save_ignored` tells, and a checkpoint that the fault itself damaged (`bit_flip`) says nothing about the target.
"""

from __future__ import annotations

from collections import Counter

from chaos.checks.ignored import is_told
from chaos.checks.lineage import Strike, conclude, describe, landed_strikes, whole_checkpoints
from chaos.checks.recency import KnownSave, SaveOrder, order_of
from chaos.checks.wording import the, why_lost
from chaos.model import (
    Acknowledgement,
    CheckName,
    CheckResult,
    FaultKind,
    FileState,
    Outcome,
    Reference,
    Target,
    Violation,
)


class _Survivors:
    """The whole checkpoints after one fault, compared in age with what was acknowledged before it."""

    def __init__(self, order: SaveOrder, strike: Strike) -> None:
        """Keep the survivors, and the content that belonged to acknowledgements before the last."""
        self.order = order
        self.state = strike.life.crash_state
        self.files = whole_checkpoints(self.state)
        self.counts = Counter(file.digest for file in self.files)
        self.older = {file.digest for item in strike.acknowledged[:-1] for file in item.files}

    def is_as_new(self, file: FileState, rank: int | None) -> bool:
        """Tell whether a survivor is as new as the save of `rank`: by the reference, or by never having been seen."""
        own = self.order.rank(file.digest)
        if own is not None and rank is not None:
            return own >= rank
        return file.digest not in self.older

    def cover_save(self, save: KnownSave, wanted: tuple[FileState, ...]) -> bool:
        """Tell whether a save of the reference, or a newer one, survives whole or file by file."""
        newest = self.order.newest_save(self.state)
        if newest is not None and newest.ordinal >= save.ordinal:
            return True
        newer = [file for file in self.files if self.is_as_new(file, save.ordinal)]
        if len(save.digests) == 1 or not wanted:
            return bool(newer)
        keys = {file.key for file in newer}
        complete = {digest for digest, count in Counter(save.digests).items() if self.counts[digest] >= count}
        return all(file.digest in complete or file.key in keys for file in wanted)

    def cover_files(self, wanted: tuple[FileState, ...]) -> bool:
        """Tell whether content that the reference never wrote survives, or something newer than it."""
        digests = {file.digest for file in wanted}
        return bool(digests & self.counts.keys()) or any(self.is_as_new(file, None) for file in self.files)


def check(reference: Reference, outcomes: tuple[Outcome, ...], target: Target) -> CheckResult:
    """Compare the survivors of every fault with the last acknowledgement before it."""
    _ = target
    order = order_of(reference)
    strikes = [s for s in landed_strikes(outcomes) if s.acknowledged and s.fault is not FaultKind.BIT_FLIP]
    verdicts = [(strike, _is_kept(order, strike)) for strike in strikes if not is_told(reference, order, strike)]
    judged = [(strike, is_kept) for strike, is_kept in verdicts if is_kept is not None]
    reason = (
        "no kill that came after an acknowledged save left anything to compare with it"
        if strikes
        else "no kill came after an acknowledged save"
    )
    violations = (_violation(order, strike) for strike, is_kept in judged if not is_kept)
    return conclude(CheckName.ACKNOWLEDGED_LOST, len(judged), violations, reason)


def _is_kept(order: SaveOrder, strike: Strike) -> bool | None:
    """Tell whether the last acknowledged save survived (None: cannot be judged, or nothing is whole at all)."""
    survivors = _Survivors(order, strike)
    if not survivors.files:
        return None
    last = strike.acknowledged[-1]
    files = whole_checkpoints(last.files)
    save = _save_of(order, last)
    if save is not None:
        return survivors.cover_save(save, tuple(file for file in files if file.digest in save.digests))
    new = tuple(file for file in files if file.digest not in survivors.older)
    wanted = new or files
    return survivors.cover_files(wanted) if wanted else None


def _save_of(order: SaveOrder, acknowledgement: Acknowledgement) -> KnownSave | None:
    """Return the reference's save that was acknowledged: the printed step says which, else the files do."""
    files = whole_checkpoints(acknowledgement.files)
    if any(order.rank(file.digest) is None for file in files):
        # This lineage went its own way (or the target is not deterministic): only its own order counts.
        return None
    return order.acknowledged_save(acknowledgement) or order.newest_save(acknowledgement.files)


def _violation(order: SaveOrder, strike: Strike) -> Violation:
    last = strike.acknowledged[-1]
    said = f"step {last.step}" if last.step is not None else f"save {last.save}"
    survivors = whole_checkpoints(strike.life.crash_state)
    newest = order.newest_save(strike.life.crash_state)
    age = f", which is save {newest.ordinal} of the reference" if newest is not None else ""
    return Violation(
        check=CheckName.ACKNOWLEDGED_LOST,
        trial=strike.trial,
        life=strike.life.number,
        crash_point=strike.crash_point,
        step=last.step,
        detail=f"The target had acknowledged {said}, but only something older survived {the(strike.fault)}: "
        f"{describe(survivors)}{age}; checkpoints when it was acknowledged: {describe(last.files)}."
        f"{why_lost(strike.life.evidence)}",
    )
