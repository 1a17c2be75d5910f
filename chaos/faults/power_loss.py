"""`power_loss`: the power goes, or the kernel crashes: what was not made durable may be missing, or zeros, or torn.

Stands for: the loss of power, a kernel that panics, a virtual machine that is switched off, a node that is pulled; on
the file system of the crash point's profile, as its documentation and measurements on real ones say
(`chaos.states.durability`).

Does not stand for: disks that lie about their caches, file systems that were damaged by it, the loss of the disk.

It strikes after a kill (`chaos.faults.kill`) of a life that was recorded: one of the states that the model allows at
that operation, chosen by `variant`, takes the place of what is in the output folder. Evidence: that of the kill, and
what was lost. A life that is started again finds everything on the disk that it finds at all, so it is durable then.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import msgspec

from chaos.model import Acknowledgement, CrashPoint, Enumeration, FaultKind, FileSystem, Loss, Record
from chaos.planners.kinds import Choice, FaultPlan
from chaos.states.building import build
from chaos.states.durability import enumerate_losses, tree_after
from chaos.states.losing import lose_at
from chaos.states.places import Place
from chaos.states.recording import Recording

_VARIANTS: Final = 1000
_LOOKED_THROUGH: Final = 48


class Scene(Record, kw_only=True):
    """A recorded life that was killed when the power went.

    `places` are those of its operations; `acknowledged` are its own acknowledgements, `before` those of the lives
    before it. `file_systems` are those by whose rules the losses before it can be.
    """

    recording: Path
    places: tuple[Place, ...]
    acknowledged: tuple[Acknowledgement, ...]
    before: tuple[Acknowledgement, ...]
    file_systems: tuple[FileSystem, ...] = tuple(FileSystem)


def lose(scene: Scene, point: CrashPoint, out: Path) -> Loss:
    """Make of the folder `out` what a loss of power right after the last operation of the recorded life leaves of it.

    Raises HarnessError where the recording is not whole, or there is no room.
    """
    enumeration = Enumeration(file_systems=(FileSystem(point.profile) if point.profile else FileSystem.POSIX,))
    with Recording(scene.recording) as recording:
        index = recording.num_operations
        loss = lose_at(
            recording,
            with_the_end(scene),
            enumeration,
            scene.acknowledged,
            scene.before,
            index,
            point.variant,
        )
        loss = _on_all_it_can_be(recording, index, loss, scene.file_systems)
        tree = tree_after(recording, index, loss)
        _empty(out)
        build(tree, out, recording.store)
    return loss


def _on_all_it_can_be(recording: Recording, index: int, loss: Loss, among: tuple[FileSystem, ...]) -> Loss:
    """Return a loss with all the file systems by whose rules it can be, as far as their first states tell."""
    others = (file_system for file_system in among if file_system not in loss.profiles)
    for found in enumerate_losses(recording, index, (*loss.profiles, *others), _LOOKED_THROUGH):
        if (found.names, found.files) == (loss.names, loss.files):
            profiles = tuple(file_system for file_system in FileSystem if file_system in found.profiles)
            return msgspec.structs.replace(loss, profiles=profiles)
    return loss


def with_the_end(scene: Scene) -> tuple[Place, ...]:
    """Return the places, and that of the operation which was never answered: by then, all was acknowledged."""
    if not scene.places:
        return ()
    end = msgspec.structs.replace(scene.places[-1], address=None, num_acknowledged=len(scene.acknowledged))
    return (*scene.places, end)


def _empty(out: Path) -> None:
    """Remove everything in a folder, and leave the folder itself."""
    for path in out.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


PLAN: Final = FaultPlan(
    kind=FaultKind.POWER_LOSS,
    choose=lambda _point, rng, _ordinal: Choice(variant=rng.randrange(_VARIANTS)),
    profiles=tuple(FileSystem),
    per_lineage=2,
)
