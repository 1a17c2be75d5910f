"""A trial in which the power is really cut: on a file system of its own, in an image file, in a namespace of its own.

A first life is held at its crash point; what it was promised there is put down, and the power goes: by the shutdown
ioctl where the file system has it, else by a copy of the image. Then the life is killed, the file system is mounted
again, which mends it by its journal, and what is in the folder now is looked at, as after any kill, and held against
the durability model. A second life runs from there to its end.

What else runs on the machine may bring things to the disk, too: sync(2) is for all file systems. So it is on any
machine, and so a cut may come out otherwise when it is replayed.

The process that runs this moves to a mount namespace of its own; it is to end soon after.
"""

from __future__ import annotations

import math
import shutil
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import xxhash

from chaos.checkpoints.process import Examiner
from chaos.errors import HarnessError, InconclusiveError
from chaos.executors.lineage import RECORDING, Lineage
from chaos.faults.power_loss import Scene, with_the_end
from chaos.images import (
    ImageKind,
    Nudge,
    Template,
    copy_image,
    isolate,
    mount_image,
    mounted,
    nudge,
    parse_kind,
    shut_down,
    unmount,
)
from chaos.images.programs import run_program
from chaos.lives.intercepted import run_intercepted
from chaos.lives.request import LifeRequest, LifeResult
from chaos.lives.starters import FreshStarter
from chaos.model import Cut, Evidence, FileSystem, Outcome, TrialSpec
from chaos.states.durability import admits, size_of_set
from chaos.states.log import StateAt
from chaos.states.looking import Contents, contents_of_folder, contents_of_tree
from chaos.states.losing import loss_seen
from chaos.states.places import places_of
from chaos.states.recorder import FolderRecorder
from chaos.states.recording import Recording

IMAGES: Final = "images"


def run_cut(spec: TrialSpec, folder: Path) -> Outcome:
    """Run a trial with one crash point, at which the power is really cut, below `folder`; return what it did.

    Raises HarnessError where images cannot be made or mounted (`chaos.images.find_usable` tells that beforehand).
    """
    started = time.monotonic()
    isolate()
    (point,) = spec.trial.crash_points
    out = folder / "out"
    with Examiner() as examiner, _Disk(parse_kind(point.profile), folder, out, spec.trial.image_bytes) as disk:
        lineage = _CutLineage(spec, folder, out, examiner, FreshStarter())
        lineage.disk = disk
        lineage.run()
        outcome = lineage.outcome(time.monotonic() - started)
    return msgspec.structs.replace(outcome, cut=lineage.cut)


class _Disk:
    """An image of a kind, with the output folder on it. Leaving it unmounts the image and leaves the files in `out`."""

    def __init__(self, kind: ImageKind, folder: Path, out: Path, size_bytes: int) -> None:
        """Keep everything below a trial's folder."""
        self.kind = kind
        self._size_bytes = size_bytes
        self._out = out
        self._images = folder / IMAGES
        self._image, self._copy, self._mounted = (self._images / name for name in ("image", "copy", "mounted"))

    def __enter__(self) -> Self:
        """Make the image with an empty output folder, which is durable, and mount it."""
        try:
            self._mounted.mkdir(parents=True)
            self._out.mkdir()
        except OSError as error:
            message = f"the trial's folder cannot be made: {error.strerror}: {error.filename}"
            raise HarnessError(message, hint="choose another place with --runs DIR") from error
        Template(self.kind, self._images, self._size_bytes).make_image(self._image)
        with mounted(self.kind, self._image, self._mounted):
            (self._mounted / "out").mkdir()
        self._mount()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave a copy of the files where the output folder was mounted, and no image."""
        kept = self._images.with_name("kept")
        if error is None:
            with suppress(shutil.Error):  # sockets and pipes are not copied
                shutil.copytree(self._out, kept, symlinks=True)
            self._unmount()
            self._out.rmdir()
            kept.rename(self._out)
        else:
            with suppress(HarnessError):  # it goes with this process
                self._unmount()
        shutil.rmtree(self._images, ignore_errors=True)

    def _mount(self) -> None:
        """Mount the image, and the folder on it where the lives expect it: by a path like any other trial's."""
        mount_image(self.kind, self._image, self._mounted)
        run_program(("mount", "-n", "--bind", str(self._mounted / "out"), str(self._out)), package="mount")

    def _unmount(self) -> None:
        """Undo that."""
        unmount(self._out)
        unmount(self._mounted)

    def cut(self, *, is_committed: bool) -> None:
        """Take the power away, after a commit of the journal or not: no more of what was written gets to the disk."""
        nudge(Nudge.COMMIT if is_committed else Nudge.NONE, self._mounted, self._out)
        if self.kind.traits.has_shutdown:
            shut_down(self.kind, self._mounted)
        else:
            copy_image(self._image, self._copy)

    def restart(self) -> None:
        """Mount what the disk held when the power went; nothing may run on it any more."""
        self._unmount()
        if not self.kind.traits.has_shutdown:
            self._copy.replace(self._image)
        self._mount()


class _CutLineage(Lineage):
    """A lineage whose first life ends when the power goes; `cut` is what that showed (None: it never came to that)."""

    disk: _Disk
    cut: Cut | None = None

    def _run_until_power_loss(self, request: LifeRequest) -> LifeResult:
        """Run a life whose every change is kept until the power goes, and look at what is left then."""
        folder = Path(request.folder) / RECORDING
        unexplained: list[str] = []
        with FolderRecorder(folder, self._out) as recorder:

            def go_out() -> None:
                unexplained.extend(recorder.finish())  # afterwards there is nothing to compare with any more
                self.disk.cut(is_committed=bool(request.crash_point and request.crash_point.variant))

            result = run_intercepted(request, self._photographer, self._starter, recorder, go_out)
        evidence = result.record.evidence
        if evidence is None:
            return result
        self.disk.restart()
        self._examiner.forget()
        unseen = tuple(sorted({*result.record.unseen_writers, *unexplained}))
        record = msgspec.structs.replace(
            result.record, unseen_writers=unseen, evidence=self._with_loss(evidence, folder, result)
        )
        shutil.rmtree(folder)  # the bytes of every save
        return LifeResult(record=self._aftermath.seen_again(record), log=result.log)

    def _with_loss(self, evidence: Evidence, recording_folder: Path, result: LifeResult) -> Evidence:
        """Hold what is left against the model, and find out what the last acknowledged save lacked."""
        file_system = self.disk.kind.file_system
        acknowledged = result.record.acknowledgements
        places = tuple(places_of(result.log, self._spec.target, self._spec.profile, is_first_life=True))
        scene = Scene(recording=recording_folder, places=places, acknowledged=acknowledged, before=())
        seen = contents_of_folder(self._out)
        with Recording(recording_folder) as recording:
            index = recording.num_operations
            self.cut = self._compared(recording, file_system, seen)
            loss = loss_seen(recording, with_the_end(scene), file_system, acknowledged, index, seen)
        return msgspec.structs.replace(evidence, loss=loss)

    def _compared(self, recording: Recording, file_system: FileSystem, seen: Contents) -> Cut:
        """Ask the model about the state that is seen."""
        index = recording.num_operations
        is_all_there = seen == contents_of_tree(recording.tree_at(StateAt(index=index)))
        lines = (f"{path}\0{content.hex() if content else content}\n" for path, content in sorted(seen.items()))
        cut = Cut(is_all_there=is_all_there, digest=xxhash.xxh3_128_hexdigest("".join(lines).encode()))
        try:
            lacking = admits(recording, index, file_system, self._out)
        except InconclusiveError as error:
            cut = msgspec.structs.replace(cut, undecided=error.message)
        else:
            cut = msgspec.structs.replace(cut, lacking=lacking)
        with suppress(InconclusiveError):  # too many to be counted
            size = size_of_set(recording, index, file_system)
            cut = msgspec.structs.replace(cut, set_log10=math.log10(size))
        return cut
