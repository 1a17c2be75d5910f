"""The frozen records that all parts share: what is asked, where it strikes, what was seen, what follows.

Nothing here touches the world. Every record round-trips through JSON (msgspec), so the journal, the
trial specification and `result.json` need no code of their own. The words are those of the README's glossary.
"""

from __future__ import annotations

from enum import StrEnum
from typing import dataclass_transform

import msgspec

SCHEMA = 1
PAGE_BYTES = 4096
SIGKILL = 9
TEXT_LIMIT_CHARACTERS = 16384
# A line that begins with the step, after no more than marks, times, an epoch, or what loggers put there: so not
# "resumed at step 30". In JSON the key may come anywhere, unless a value tells of something else than a step done. The
# one group that takes part is the step's number.
_BEFORE_STEP = r"(?:debug|info|warn(?:ing)?|root|main|train(?:er|ing)?|epoch|rank)(?![a-z])"
_STEP_WORD = r"(?:global[_ ])?(?:step|iter(?:ation)?)"
_NO_STEP_TOLD = r"(?!.*:\s*[\"'][^\"']*\b(?:sav|resum|restor|load|start|checkpoint))"
DEFAULT_STEP = (
    rf"(?i)^(?:(?:[\W\d_]|{_BEFORE_STEP})*?{_STEP_WORD}[ =:]*(\d+)"
    rf"|(?:[^\w{{]|[\d_]|{_BEFORE_STEP})*?(?:\{{{_NO_STEP_TOLD}.*?)?"
    rf"[\"'](?:train(?:er)?/)?{_STEP_WORD}[\"'][ =:]*(\d+))"
)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all records: immutable, strict about unknown fields; `kw_only` has to be said again by each subclass."""


class Phase(StrEnum):
    """The part of a lineage in which a fault strikes."""

    STARTUP = "startup"
    STEP = "step"
    SAVE = "save"
    RECOVERY = "recovery"
    FINISH = "finish"


class FaultKind(StrEnum):
    """What happens at a crash point."""

    KILL = "kill"


class LivesMode(StrEnum):
    """How a life is observed: `intercepted` sees every call exactly, `polled` only output and the folder."""

    INTERCEPTED = "intercepted"
    POLLED = "polled"


# --- the target ---------------------------------------------------------------------------------


class Target(Record, kw_only=True):
    """The command under test and where its files are; globs are relative to the output folder."""

    command: tuple[str, ...]
    resume_command: tuple[str, ...]
    no_save_command: tuple[str, ...] = ()
    checkpoints: tuple[str, ...]
    final: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    step: str = DEFAULT_STEP
    saved: str = r"(?i)\bsaved\b.*?\bstep[ =:]*(\d+)"
    verify: tuple[str, ...] = ()
    deadline_s: float = 600.0
    env: dict[str, str] = {}
    cwd: str = ""


# --- the operation log of one life ----------------------------------------------------------------


class OperationKind(StrEnum):
    """Which of the four kinds of event on the one clock an operation is."""

    FILE = "file"
    OUTPUT = "output"
    TICK = "tick"
    MARK = "mark"


class Operation(Record, kw_only=True):
    """One notified event of a life, in the order of the one clock.

    `path` and `new_path` are relative to the output folder (no leading slash) or absolute outside it. `call` is the
    system call's name without width suffixes (`openat`, `write`, `writev`, `rename`, …), `write` for output, `tick` for
    an optimizer step, and the mark's name (`interpreter`, `torch`, `exit`) for a mark. `creates` says that the call
    makes or empties `path` (open with O_CREAT of a missing file, or with O_TRUNC) or, for rename and link, `new_path`.
    `offset` and `size_bytes` are those of a data write. `thread` is the ordinal of the thread in order of first
    appearance in this life. `text` is the output written, cut at `TEXT_LIMIT_CHARACTERS`; `stream` is `stdout` or
    `stderr`.
    """

    index: int
    kind: OperationKind
    call: str
    thread: int = 0
    path: str = ""
    new_path: str = ""
    creates: bool = False
    offset: int = 0
    size_bytes: int = 0
    stream: str = ""
    text: str = ""


class Address(Record, kw_only=True):
    """A crash point's place, the same in every run: never a time, never a global ordinal.

    Inside a save, `save` is the ordinal of that save *within the life*, from 1, and `tick` is 0. Outside of saves
    `save` is 0 and `tick` is the number of steps that this life had completed. `file` is the file key (placeholders for
    tokens that vary), or `stdout`, `stderr`, or empty for ticks and marks. `incarnation` counts how often that file was
    created anew in this context (0: not created here), `occurrence` counts this call on this incarnation in this
    context, from 1.
    """

    save: int = 0
    tick: int = 0
    file: str = ""
    incarnation: int = 0
    call: str
    occurrence: int = 1

    def __str__(self) -> str:
        """Return the address in words, such as `save 3: writev #7 of resume.pt.tmp`."""
        context = f"save {self.save}" if self.save else f"after {self.tick} steps"
        return f"{context}: {self.operation}"

    @property
    def operation(self) -> str:
        """Return in words which operation it is within its context."""
        again = f" (incarnation {self.incarnation})" if self.incarnation > 1 else ""
        what = f" of {self.file}{again}" if self.file else ""
        return f"{self.call} #{self.occurrence}{what}"


class CrashPoint(Record, kw_only=True):
    """Where one fault of a trial strikes: before the operation at `address`, or inside it.

    With `tear_offset` (a file offset, multiple of 4096) the write at `address` is carried out up to that offset and no
    further. `expected_phase` is the phase that the planner drew it for. In polled lives, `address` is only approximate.
    """

    address: Address
    expected_phase: Phase
    fault: FaultKind = FaultKind.KILL
    tear_offset: int | None = None

    def __str__(self) -> str:
        """Return the crash point in words."""
        save, tick = self.address.save, self.address.tick
        context = f"in save {save}" if save else f"after {tick} {'step' if tick == 1 else 'steps'}"
        if self.tear_offset is None:
            return f"{context}, before {self.address.operation}"
        return f"{context}, inside {self.address.operation}, torn at byte {self.tear_offset:,}"


# --- what the references taught -------------------------------------------------------------------


class NameRule(Record, kw_only=True):
    """One family of file names: `pattern` (a regular expression, full match on the relative path) gives `key`."""

    pattern: str
    key: str


class SaveProfile(Record, kw_only=True):
    """One save of the reference, as later saves are expected to be.

    `ordinal` counts from 1, `ticks_before` is the number of steps completed when it began, `step` the one it
    acknowledged. `addresses` are the save's watched operations in their order, `publish` the position in it of the
    operation that puts the new checkpoint in place (a kill at a later one should resume from this save).
    `has_several_writers` is true when more than one thread wrote; only then need the order be enforced.
    """

    ordinal: int
    ticks_before: int
    step: int | None = None
    addresses: tuple[Address, ...] = ()
    publish: int = 0
    has_several_writers: bool = False


class TargetProfile(Record, kw_only=True):
    """What the two references taught about the target: all that addresses and plans need.

    `temporaries` are file keys that become a checkpoint or a final file by rename or link; `final_temporaries` those of
    them that become only a final file, so that a change of one begins no save. `has_steps`: ticks or step lines were
    seen. `uses_ticks`: the clock is the probe's ticks; otherwise step lines. `total_steps` counts ticks (or step lines)
    of the whole reference; `last_step` is the largest step number that a step line showed.
    """

    names: tuple[NameRule, ...] = ()
    temporaries: tuple[str, ...] = ()
    final_temporaries: tuple[str, ...] = ()
    has_steps: bool = False
    uses_ticks: bool = False
    prints_acknowledgements: bool = False
    total_steps: int = 0
    last_step: int | None = None
    saves: tuple[SaveProfile, ...] = ()


class PlannablePoint(Record, kw_only=True):
    """A crash point that both references reached: its address in a first life, phase, and position.

    `position` is the number of steps that the reference had completed there. `tears` are the file offsets, multiples of
    4096, strictly inside the write (empty for other calls; at most 64 of them, spread evenly). `is_published` tells
    that the save this point is in had been put in place before it.
    """

    address: Address
    phase: Phase
    position: int
    tears: tuple[int, ...] = ()
    is_published: bool = False


# --- a trial ----------------------------------------------------------------------------------------


class TrialKind(StrEnum):
    """Why a trial is run."""

    REFERENCE = "reference"
    NO_SAVE = "no_save"
    CONTROL = "control"
    CANARY = "canary"
    FAULTED = "faulted"
    EXPLORED = "explored"
    REPEATED = "repeated"


class Trial(Record, kw_only=True):
    """One lineage with its schedule: the n-th crash point strikes the n-th life; then one life runs to its end.

    An explored one begins in a crash state that was built, with the digest `state`: its crash points are those that
    lead there, and only the last life is run.
    """

    number: int
    kind: TrialKind
    crash_points: tuple[CrashPoint, ...] = ()
    hash_seed: int = 0
    state: str = ""


class TrialSpec(Record, kw_only=True):
    """All that an executor needs to run one trial: the argument of `chaos trial SPEC --out DIR`.

    `varying_leaves` maps a file key to leaf names that differ between the references and are left out of digests.
    `deadline_s` bounds each life. `reference_final` maps the key of each final file to where the reference's lies, to
    measure a difference against. `modules` is the file that says what a warm template imports; without it lives are
    fresh. `out` is the output folder (empty: `out` in the trial's own), `start` the crash state to build in it first.
    With `is_recorded` the last life leaves a recording, and the crash states that it went through; with `has_all_tears`
    each write is torn at all page boundaries in it, not at three. `twin` is a recovery from the same files that ran to
    its end: the last life may be stopped when it goes the same way.
    """

    schema: int = SCHEMA
    target: Target
    profile: TargetProfile
    trial: Trial
    mode: LivesMode = LivesMode.INTERCEPTED
    deadline_s: float
    varying_leaves: dict[str, tuple[str, ...]] = {}
    reference_final: dict[str, str] = {}
    modules: str = ""
    out: str = ""
    start: Start | None = None
    is_recorded: bool = False
    has_all_tears: bool = False
    twin: FinishedRecovery | None = None


class Start(Record, kw_only=True):
    """A crash state of a recorded life, to be built: the one right before operation `index`, or torn inside it.

    `recording` is the folder of the recording; `lives` are the lives until then, the last one as if killed there.
    """

    recording: str
    index: int
    tear_offset: int | None = None
    lives: tuple[LifeRecord, ...]


class FinishedRecovery(Record, kw_only=True):
    """A recovery that ran to its end: the digest of the files that it began from, and of everything after each step."""

    files: str
    steps: tuple[str, ...]


class FoundState(Record, kw_only=True):
    """A crash point of a recorded life, and the state that a kill there leaves, known by its `digest`.

    `index` and `tear_offset` are as in `Start`. `num_acknowledged`, `steps`, `first_step`, `last_step` and `saves` are
    what the life had shown when it came there. `is_change`: the operation changes the folder.
    """

    index: int
    tear_offset: int | None = None
    digest: str
    address: Address
    phase: Phase
    num_acknowledged: int
    steps: int
    first_step: int | None
    last_step: int | None
    saves: int
    is_change: bool


# --- what was seen ------------------------------------------------------------------------------------


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
    """The proof that a kill fired: the root was alive and held at the point, and then ended by our SIGKILL.

    `root_signal` is the signal that the guardian's wait reported (9), `was_alive` that the process was there, blocked
    in the notified call, right before the kill. `executed_bytes` is what a torn write had carried out.
    `processes_killed` counts all processes of the life that were killed. `is_built`: nobody was killed; the crash state
    was built from the log of a life that ran on, which stands for a kill as far as its log explains the folder.
    """

    crash_point: CrashPoint
    phase: Phase
    operation_index: int
    was_alive: bool
    root_signal: int
    processes_killed: int
    executed_bytes: int = 0
    is_built: bool = False

    @property
    def is_landed(self) -> bool:
        """Tell whether this is proof of a landed kill, or of a crash state that stands for one."""
        return self.is_built or (self.was_alive and self.root_signal == SIGKILL)


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
    the output folder. `step_digests` has one entry for each tick: the probe's digest of everything that training
    depends on, or an empty text.
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
    step_digests: tuple[str, ...] = ()
    output_tail: str = ""
    elapsed_s: float = 0.0


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
    final file that is not the reference's, bit for bit, to how it differs.
    """

    trial: Trial
    lives: tuple[LifeRecord, ...]
    unreached: tuple[CrashPoint, ...] = ()
    differences: dict[str, TensorDifference] = {}
    elapsed_s: float = 0.0

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
    of.
    """

    outcomes: tuple[Outcome, ...]
    profile: TargetProfile
    final: tuple[FileState, ...]
    deterministic: bool
    differing_tensors: tuple[str, ...] = ()
    varying_leaves: dict[str, tuple[str, ...]] = {}
    unsafe: tuple[str, ...] | None = None
    no_save_final: tuple[FileState, ...] | None = None
    acknowledgements: tuple[Acknowledgement, ...] = ()
    seconds: float = 0.0


# --- what follows ----------------------------------------------------------------------------------------


class Severity(StrEnum):
    """How much a finding weighs; warnings fail a campaign only under `--strict`."""

    ERROR = "error"
    WARNING = "warning"


class CheckStatus(StrEnum):
    """What became of a check; `not_run` is never `passed`."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not_run"


class CheckName(StrEnum):
    """The stable names of findings, one check each."""

    NO_VALID_CHECKPOINT = "no_valid_checkpoint"
    ACKNOWLEDGED_LOST = "acknowledged_lost"
    RESUME_CRASHED = "resume_crashed"
    RESUME_HUNG = "resume_hung"
    LOST_WORK = "lost_work"
    DID_NOT_FINISH = "did_not_finish"
    SILENT_DIVERGENCE = "silent_divergence"
    SAVING_CHANGES_TRAINING = "saving_changes_training"
    ORPHAN_PROCESSES = "orphan_processes"
    LEAKED_FILES = "leaked_files"
    UNSAFE_CHECKPOINT = "unsafe_checkpoint"


class Violation(Record, kw_only=True):
    """One failed rule at one place, as a check returns it: before de-duplication.

    `life` is the ordinal of the life at whose end (or after whose kill) it showed; `step` a step number where one is
    known.
    """

    check: CheckName
    trial: int
    life: int = 0
    crash_point: CrashPoint | None = None
    step: int | None = None
    detail: str


class CheckResult(Record, kw_only=True):
    """What one check said over the whole campaign; `reason` says why it was not run."""

    check: CheckName
    status: CheckStatus
    reason: str = ""
    violations: tuple[Violation, ...] = ()


class Finding(Record, kw_only=True):
    """A failed rule, de-duplicated, with the command that shows it again; `life` is the one it showed in (0: none)."""

    id: str
    check: CheckName
    severity: Severity
    trial: int
    life: int = 0
    crash_point: str
    step: int | None
    detail: str
    replay: str
    seen: int = 1


class Verdict(StrEnum):
    """What a campaign says; the order of merging is fail, inconclusive, pass."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Expect(Record, kw_only=True):
    """What a scenario expects: a verdict, and of a failure at least one of `findings` and none outside both lists."""

    verdict: Verdict = Verdict.PASS
    findings: tuple[CheckName, ...] = ()
    allow: tuple[CheckName, ...] = ()
