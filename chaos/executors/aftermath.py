"""What a fault goes on to do when a life was killed: to the files at rest, and then to what is known of the life."""

from __future__ import annotations

from pathlib import Path

import msgspec

from chaos.checkpoints.process import Examiner
from chaos.checks.lineage import whole_checkpoints
from chaos.errors import HarnessError, UsageError
from chaos.faults.bit_flip import damage
from chaos.faults.power_loss import Scene, lose
from chaos.model import SIGKILL, Evidence, LifeRecord, ResetPart
from chaos.states.snapshot import Photographer


class Aftermath:
    """The files of one lineage after a kill."""

    def __init__(self, out: Path, photographer: Photographer, examiner: Examiner) -> None:
        """Act on the output folder `out`."""
        self._out = out
        self._photographer = photographer
        self._examiner = examiner

    def lose_power(self, life: LifeRecord, scene: Scene) -> LifeRecord:
        """Let the power go where the recorded life was killed; one that was not killed stays as it is."""
        evidence = life.evidence
        if evidence is None or not _is_killed(evidence):
            return life
        loss = lose(scene, evidence.crash_point, self._out)
        return self.seen_again(_with(life, evidence, loss=loss))

    def rot(self, life: LifeRecord, variant: int) -> LifeRecord:
        """Damage the newest whole checkpoint that a killed life left; without one nothing happens, nor proves it."""
        evidence = life.evidence
        if evidence is None or not _is_killed(evidence):
            return life
        done = damage(self._out, life.crash_state, variant, self._examiner)
        return life if done is None else self.seen_again(_with(life, evidence, damage=done.words, damaged=done.file))

    def reset(self, life: LifeRecord, part: str) -> ResetPart:
        """Reset one part (empty: none) of every whole checkpoint that a killed life left."""
        parts: dict[str, None] = {}
        changed = 0
        try:
            for file in whole_checkpoints(life.crash_state):
                own = self._examiner.parts(self._out / file.path)
                parts |= dict.fromkeys(own)
                changed += self._examiner.reset(self._out / file.path, part) if part in own else 0
        except (UsageError, HarnessError) as error:  # too large a one may take too long
            return ResetPart(part=part, parts=tuple(parts), problem=error.message)
        finally:
            self._examiner.forget()
        return ResetPart(part=part, parts=tuple(parts), changed=changed)

    def seen_again(self, life: LifeRecord) -> LifeRecord:
        """Return the record of a life with what is in the folder now."""
        snapshot = self._photographer.take()
        return msgspec.structs.replace(
            life, crash_state=snapshot.files, state_digest=snapshot.digest, other_files=snapshot.other_files
        )


def _is_killed(evidence: Evidence) -> bool:
    """Tell whether a life was killed, or stands for one that was."""
    return evidence.is_built or (evidence.was_alive and evidence.root_signal == SIGKILL)


def _with(life: LifeRecord, evidence: Evidence, **more: object) -> LifeRecord:
    """Return a life of which more is proven."""
    return msgspec.structs.replace(life, evidence=msgspec.structs.replace(evidence, **more))
