"""What was seen of one life: the files that it left, what it acknowledged, how it ended."""

from __future__ import annotations

from enum import StrEnum

from chaos.model.losses import Loss
from chaos.model.operations import CrashPoint, FaultKind, Phase
from chaos.model.record import SIGKILL, Record
from chaos.model.steps import StepRecord, StepRun


class FileRole(StrEnum):
    """What a file in the output folder is to the target."""

    CHECKPOINT = "checkpoint"
    FINAL = "final"
    TEMPORARY = "temporary"
    OTHER = "other"


class FileState(Record, kw_only=True):
    """One file (or checkpoint folder) of a crash state, as the examiner found it.

    `key` is its canonical name. `is_whole` is None where nobody can tell (unknown format and no verify command); then
    `reason` says why. `digest` is over tensors and leaves for a whole file, over raw bytes otherwise; hexadecimal.
    `format` is `torch`, `safetensors`, `npz`, `folder`, `json`, `pickle` or `unknown`. `leaves` (only where asked for)
    maps each tensor's or leaf's name to its digest; tensors' names begin with nothing special, but `tensor_names` tells
    which they are.
    """

    path: str
    key: str
    role: FileRole
    size_bytes: int
    is_whole: bool | None
    reason: str = ""
    format: str = "unknown"
    digest: str = ""
    modified_ns: int = 0


class Acknowledgement(Record, kw_only=True):
    """The target said (or showed by going on in the same thread) that a save is done.

    `save` is the ordinal within the life, `step` the number printed (None: none was), `files` the checkpoints as they
    were at that moment.
    """

    save: int
    step: int | None
    is_printed: bool
    files: tuple[FileState, ...]


class Evidence(Record, kw_only=True):
    """The proof that a fault fired.

    Of one that kills: the root was alive and held at the point, and then ended by our SIGKILL. `root_signal` is the
    signal that the guardian's wait reported (9), `was_alive` that the process was there, blocked in the notified call,
    right before the kill. `executed_bytes` is what a torn write had carried out. `processes_killed` counts all
    processes of the life that were killed. `is_built`: nobody was killed; the crash state was built from the log of a
    life that ran on, which stands for a kill as far as its log explains the folder. Of an error: `errors_injected`
    counts the answers that were given in place of carrying calls out, and `unsynced` are the published files (and
    folders) whose fsync had failed, and that were not written anew, when a save was acknowledged. `damage` says in
    words what was done to a checkpoint at rest, and `damaged` is that checkpoint as it was before; `loss` is what the
    loss of power left.
    """

    crash_point: CrashPoint
    phase: Phase
    operation_index: int
    was_alive: bool
    root_signal: int
    processes_killed: int
    executed_bytes: int = 0
    is_built: bool = False
    errors_injected: int = 0
    unsynced: tuple[str, ...] = ()
    damage: str = ""
    damaged: FileState | None = None
    loss: Loss | None = None

    @property
    def is_landed(self) -> bool:
        """Tell whether this is proof of a fault that fired, or of a crash state that stands for one."""
        fault = self.crash_point.fault
        if fault.is_error:
            return self.errors_injected > 0
        is_killed = self.is_built or (self.was_alive and self.root_signal == SIGKILL)
        is_done = {FaultKind.BIT_FLIP: bool(self.damage), FaultKind.POWER_LOSS: self.loss is not None}
        return is_killed and is_done.get(fault, True)


class LifeEnd(StrEnum):
    """How a life ended."""

    EXITED = "exited"
    STRUCK = "struck"
    SIGNALLED = "signalled"
    STOPPED = "stopped"
    DEADLINE = "deadline"
    NOT_STARTED = "not_started"


class LifeRecord(Record, kw_only=True):
    """What one life did, as observed from outside.

    `first_step` and `last_step` are numbers in step lines (None: no such line); `steps` counts ticks, or step lines
    where there is no probe. `crash_state` is the output folder after the life, whatever ended it; `state_digest` is the
    canonical digest over its watched files. `unseen_writers` are files in the folder that the log does not explain;
    `outside_writes` paths outside of the folder that were opened for writing or changed; `orphans` the command lines of
    processes that outlived the root by more than the grace. `interrupted_calls` counts notifications lost to signals.
    `order_releases` counts operations that were let go out of the recorded order. `num_files` counts every file under
    the output folder. `files` is the digest of everything visible in the output folder when the life began (empty where
    nobody asked), `step_digests` are those of everything that training depends on at each of its first steps (empty
    texts for steps without one; nothing where nobody asked). `step_records` are the probe's records that are not the
    reference's, `step_runs` say where the others belong: `chaos.steps` puts them together.
    """

    number: int
    end: LifeEnd
    exit_status: int | None = None
    signal: int | None = None
    evidence: Evidence | None = None
    steps: int = 0
    first_step: int | None = None
    last_step: int | None = None
    saves: int = 0
    has_probe: bool = False
    acknowledgements: tuple[Acknowledgement, ...] = ()
    crash_state: tuple[FileState, ...] = ()
    state_digest: str = ""
    other_files: tuple[str, ...] = ()
    unseen_writers: tuple[str, ...] = ()
    outside_writes: tuple[str, ...] = ()
    foreign_calls: int = 0
    orphans: tuple[str, ...] = ()
    interrupted_calls: int = 0
    order_releases: int = 0
    num_operations: int = 0
    files: str = ""
    step_digests: tuple[str, ...] = ()
    step_records: tuple[StepRecord, ...] = ()
    step_runs: tuple[StepRun, ...] = ()
    output_tail: str = ""
    elapsed_s: float = 0.0
