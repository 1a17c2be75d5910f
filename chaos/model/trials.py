"""A trial: what is asked of an executor, and what comes of it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from chaos.model.fingerprints import ResetPart
from chaos.model.losses import Cut, FileSystem, Loss
from chaos.model.observed import Acknowledgement, FileState, LifeRecord
from chaos.model.operations import Address, CrashPoint, FaultKind, Phase
from chaos.model.profile import TargetProfile
from chaos.model.record import SCHEMA, Record
from chaos.model.steps import StepRecord
from chaos.model.target import Target


class LivesMode(StrEnum):
    """How a life is observed: `intercepted` sees every call exactly, `polled` only output and the folder."""

    INTERCEPTED = "intercepted"
    POLLED = "polled"


class TrialKind(StrEnum):
    """Why a trial is run."""

    REFERENCE = "reference"
    NO_SAVE = "no_save"
    CONTROL = "control"
    CANARY = "canary"
    FAULTED = "faulted"
    EXPLORED = "explored"
    REPEATED = "repeated"
    FINGERPRINT = "fingerprint"


class Trial(Record, kw_only=True):
    """One lineage with its schedule: the n-th crash point strikes the n-th life; then one life runs to its end.

    An explored one begins in a crash state that was built, with the digest `state`: its crash points are those that
    lead there, and only the last life is run. Where the power is really cut, the output folder is on a file system of
    at least `image_bytes` in an image file. A fingerprint is the lineage of trial `repeats` once more, in which the
    part `reset` of the checkpoints (empty: none) is reset before the last life.
    """

    number: int
    kind: TrialKind
    crash_points: tuple[CrashPoint, ...] = ()
    hash_seed: int = 0
    state: str = ""
    image_bytes: int = 0
    repeats: int = 0
    reset: str = ""

    @property
    def is_real_cut(self) -> bool:
        """Tell whether the power is really cut in it."""
        return any(point.is_real for point in self.crash_points)

    @property
    def fault(self) -> FaultKind:
        """Return the kind of its faults: a lineage has one kind."""
        return self.crash_points[-1].fault if self.crash_points else FaultKind.KILL


class Enumeration(Record, kw_only=True):
    """Which crash states of a recorded life are enumerated: of which faults, how many.

    With `has_all_tears` each write is torn at all page boundaries in it, not at three. `num_losses` is the most states
    of a loss of power that are tried at one point for each of `file_systems`, `num_damages` the ways in which a
    checkpoint at rest is damaged.
    """

    faults: tuple[FaultKind, ...] = (FaultKind.KILL,)
    has_all_tears: bool = False
    file_systems: tuple[FileSystem, ...] = tuple(FileSystem)
    num_losses: int = 24
    num_damages: int = 8


class Start(Record, kw_only=True):
    """A crash state of a recorded life, to be built: the one right before operation `index`, or torn inside it.

    `recording` is the folder of the recording; `lives` are the lives until then, the last one as if killed there. With
    `loss` the power went, and this is what it left. With `damage` (a number) a checkpoint is damaged at rest.
    """

    recording: str
    index: int
    tear_offset: int | None = None
    loss: Loss | None = None
    damage: int | None = None
    lives: tuple[LifeRecord, ...]


class FinishedRecovery(Record, kw_only=True):
    """A recovery that ran to its end: the digest of the files that it began from, and of everything at each step.

    `trial` is the number of its trial, `has_acknowledged` whether a life before it had acknowledged a save. Of many
    `steps` only the first ones are given.
    """

    trial: int = 0
    files: str
    has_acknowledged: bool = False
    steps: tuple[str, ...]


class FoundState(Record, kw_only=True):
    """A crash point of a recorded life, and the state that a kill there leaves, known by its `digest`.

    `index` and `tear_offset` are as in `Start`. `num_acknowledged`, `steps`, `first_step`, `last_step` and `saves` are
    what the life had shown when it came there. `is_change`: the operation changes the folder. `loss` and `variant` tell
    the states of a loss of power, or of damage, apart.
    """

    index: int
    tear_offset: int | None = None
    fault: FaultKind = FaultKind.KILL
    variant: int = 0
    loss: Loss | None = None
    digest: str
    address: Address
    phase: Phase
    num_acknowledged: int
    steps: int
    first_step: int | None
    last_step: int | None
    saves: int
    is_change: bool


class TrialSpec(Record, kw_only=True):
    """All that an executor needs to run one trial: the argument of `chaos trial SPEC --out DIR`.

    `varying_leaves` maps a file key to leaf names that differ between the references and are left out of digests.
    `deadline_s` bounds each life. `reference_final` maps the key of each final file to where the reference's lies, to
    measure a difference against. `modules` is the file that says what a warm template imports; without it lives are
    fresh. `out` is the output folder (empty: `out` in the trial's own), `start` the crash state to build in it first.
    With `enumeration` the last life leaves a recording, and those of the crash states that it went through. `twins` are
    recoveries that ran to their end: the last life may be stopped when it goes the way of one from the same files
    (None: nobody asked, and its files are not digested). With `without_fsync` the target's fsync and fdatasync are
    answered, and not carried out. `probe_budget` is the share of step time, in percent, that the probe's digests may
    take, `known_steps` the file with the reference's records.
    """

    schema: int = SCHEMA
    target: Target
    profile: TargetProfile
    trial: Trial
    mode: LivesMode = LivesMode.INTERCEPTED
    deadline_s: float
    varying_leaves: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    reference_final: dict[str, str] = msgspec.field(default_factory=dict)
    modules: str = ""
    out: str = ""
    start: Start | None = None
    enumeration: Enumeration | None = None
    twins: tuple[FinishedRecovery, ...] | None = None
    without_fsync: bool = False
    probe_budget: float = 5.0
    known_steps: str = ""


class TensorDifference(Record, kw_only=True):
    """How two sets of named tensors differ, by bits: see `chaos.checkpoints.compare`."""

    tensors: int = 0
    tensors_differing: int = 0
    elements: int = 0
    elements_differing: int = 0
    largest_absolute: float = 0.0
    largest_ulp: int = 0
    first_name: str = ""
    leaves_differing: tuple[str, ...] = ()
    only_left: tuple[str, ...] = ()
    only_right: tuple[str, ...] = ()
    shape_or_dtype: tuple[str, ...] = ()


class Outcome(Record, kw_only=True):
    """What one trial did: its lives in order; the trial ends early when a life fails.

    `unreached` are crash points that the lives never came to (the life ended first). `differences` maps the key of each
    final file that is not the reference's, bit for bit, to how it differs. `cut` is what a real power cut showed.
    `reset` is what was reset before the last life of a fingerprint. `twin` is the trial beside whose recovery the last
    life was stopped early (None: it was not).
    """

    trial: Trial
    lives: tuple[LifeRecord, ...]
    unreached: tuple[CrashPoint, ...] = ()
    differences: dict[str, TensorDifference] = msgspec.field(default_factory=dict)
    elapsed_s: float = 0.0
    cut: Cut | None = None
    twin: int | None = None
    reset: ResetPart | None = None

    @property
    def kills_landed(self) -> int:
        """Count the kills with full evidence; crash states that were built are none."""
        kills = (life.evidence for life in self.lives if life.evidence is not None)
        return sum(1 for evidence in kills if evidence.is_landed and not evidence.is_built)


class Reference(Record, kw_only=True):
    """The uninterrupted run that supplies the expected bits; `deterministic` is None until two were compared.

    `final` are the final files of the first reference (role FINAL); `unsafe` the checkpoints that
    `torch.load(weights_only=True)` refuses. `no_save_final` are those of the run that does not save (None: not run).
    `acknowledgements` are the control's, whose checkpoints after each save tell later which save a surviving file is
    of. `steps` are the probe's records of the first run, `unsteady` the components that the two runs did not agree on.
    """

    outcomes: tuple[Outcome, ...]
    profile: TargetProfile
    final: tuple[FileState, ...]
    deterministic: bool
    differing_tensors: tuple[str, ...] = ()
    varying_leaves: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    unsafe: tuple[str, ...] | None = None
    no_save_final: tuple[FileState, ...] | None = None
    acknowledgements: tuple[Acknowledgement, ...] = ()
    seconds: float = 0.0
    steps: tuple[StepRecord, ...] = ()
    unsteady: tuple[str, ...] = ()
