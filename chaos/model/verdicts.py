"""What follows: rules that were broken, findings, verdicts."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from chaos.model.diagnosed import Diagnosis
from chaos.model.fingerprints import Fingerprint
from chaos.model.operations import CrashPoint, FaultKind
from chaos.model.record import Record


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
    FAILED_SAVE_IGNORED = "failed_save_ignored"
    RESUME_CRASHED = "resume_crashed"
    RESUME_HUNG = "resume_hung"
    LOST_WORK = "lost_work"
    CORRUPTION_ACCEPTED = "corruption_accepted"
    DID_NOT_FINISH = "did_not_finish"
    SILENT_DIVERGENCE = "silent_divergence"
    DATA_REPEATED = "data_repeated"
    DATA_SKIPPED = "data_skipped"
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
    """A failed rule, de-duplicated, with the command that shows it again; `life` is the one it showed in (0: none).

    `fault` is the kind of fault that it showed under (None: without any). `diagnosis` says which state was lost, where
    the probe could see it.
    """

    id: str
    check: CheckName
    fault: FaultKind | None = None
    severity: Severity
    trial: int
    life: int = 0
    crash_point: str
    step: int | None
    detail: str
    replay: str
    seen: int = 1
    diagnosis: Diagnosis | None = None
    fingerprint: Fingerprint | None = None


class Verdict(StrEnum):
    """What a campaign says; the order of merging is fail, inconclusive, pass."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"

    def is_as_grave_as(self, other: Verdict) -> bool:
        """Tell whether this verdict stands where both are merged."""
        order = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)
        return order.index(self) >= order.index(other)


class Expect(Record, kw_only=True):
    """What a scenario expects: a verdict, and of a failure at least one of `findings` and none outside both lists.

    `verdict` is that of all together; `verdicts` are those of single kinds of fault, where they are to be told apart.
    """

    verdict: Verdict = Verdict.PASS
    verdicts: dict[FaultKind, Verdict] = msgspec.field(default_factory=dict)
    findings: tuple[CheckName, ...] = ()
    allow: tuple[CheckName, ...] = ()
