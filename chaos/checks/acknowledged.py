"""`acknowledged_lost`: what survives a kill is at least as new as the last save that the target acknowledged."""

from __future__ import annotations

from collections import Counter

from chaos.checks.lineage import Kill, conclude, describe, landed_kills, whole_checkpoints
from chaos.checks.recency import KnownSave, SaveOrder, order_of
from chaos.model import Acknowledgement, CheckName, CheckResult, FileState, Outcome, Reference, Target, Violation


class _Survivors:
    """The whole checkpoints after one kill, compared in age with what was acknowledged before it."""

    def __init__(self, order: SaveOrder, kill: Kill) -> None:
        """Keep the survivors, and the content that belonged to acknowledgements before the last."""
        self.order = order
        self.state = kill.life.crash_state
        self.files = whole_checkpoints(self.state)
        self.counts = Counter(file.digest for file in self.files)
        self.older = {file.digest for item in kill.acknowledged[:-1] for file in item.files}

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
    """Compare the survivors of every kill with the last acknowledgement before it."""
    _ = target
    order = order_of(reference)
    kills = [kill for kill in landed_kills(outcomes) if kill.acknowledged]
    verdicts = [(kill, _is_kept(order, kill)) for kill in kills]
    judged = [(kill, is_kept) for kill, is_kept in verdicts if is_kept is not None]
    reason = (
        "no kill that came after an acknowledged save left anything to compare with it"
        if kills
        else "no kill came after an acknowledged save"
    )
    violations = (_violation(order, kill) for kill, is_kept in judged if not is_kept)
    return conclude(CheckName.ACKNOWLEDGED_LOST, len(judged), violations, reason)


def _is_kept(order: SaveOrder, kill: Kill) -> bool | None:
    """Tell whether the last acknowledged save survived (None: cannot be judged, or nothing is whole at all)."""
    survivors = _Survivors(order, kill)
    if not survivors.files:
        return None
    last = kill.acknowledged[-1]
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


def _violation(order: SaveOrder, kill: Kill) -> Violation:
    last = kill.acknowledged[-1]
    said = f"step {last.step}" if last.step is not None else f"save {last.save}"
    survivors = whole_checkpoints(kill.life.crash_state)
    newest = order.newest_save(kill.life.crash_state)
    age = f", which is save {newest.ordinal} of the reference" if newest is not None else ""
    return Violation(
        check=CheckName.ACKNOWLEDGED_LOST,
        trial=kill.trial,
        life=kill.life.number,
        crash_point=kill.crash_point,
        step=last.step,
        detail=f"The target had acknowledged {said}, but only something older survived the kill: "
        f"{describe(survivors)}{age}; checkpoints when it was acknowledged: {describe(last.files)}.",
    )
