"""The frozen records that all parts share: what is asked, where it strikes, what was seen, what follows.

Nothing here touches the world. Every record round-trips through JSON (msgspec), so the journal, the trial specification
and `result.json` need no code of their own. The words are those of the README's glossary.
"""

from chaos.model.diagnosed import Component, Diagnosis, LostState, Manner
from chaos.model.differences import CheckpointDifference, ComponentDifference, DifferenceKind, LeafDifference
from chaos.model.fingerprints import Fingerprint, ResetPart
from chaos.model.losses import Cut, FileSystem, Loss, NotDurable, SurvivingBytes, SurvivingFile, SurvivingName
from chaos.model.observed import Acknowledgement, Evidence, FileRole, FileState, LifeEnd, LifeRecord
from chaos.model.operations import Address, CrashPoint, FaultKind, Operation, OperationKind, Phase
from chaos.model.profile import NameRule, PlannablePoint, SaveProfile, TargetProfile
from chaos.model.record import PAGE_BYTES, SCHEMA, SIGKILL, TEXT_LIMIT_CHARACTERS, Record
from chaos.model.steps import StepRecord, StepRun, TensorFacts
from chaos.model.target import DEFAULT_STEP, Target
from chaos.model.trials import (
    Enumeration,
    FinishedRecovery,
    FoundState,
    LivesMode,
    Outcome,
    Reference,
    Start,
    TensorDifference,
    Trial,
    TrialKind,
    TrialSpec,
)
from chaos.model.verdicts import CheckName, CheckResult, CheckStatus, Expect, Finding, Severity, Verdict, Violation

__all__ = [
    "DEFAULT_STEP",
    "PAGE_BYTES",
    "SCHEMA",
    "SIGKILL",
    "TEXT_LIMIT_CHARACTERS",
    "Acknowledgement",
    "Address",
    "CheckName",
    "CheckResult",
    "CheckStatus",
    "CheckpointDifference",
    "Component",
    "ComponentDifference",
    "CrashPoint",
    "Cut",
    "Diagnosis",
    "DifferenceKind",
    "Enumeration",
    "Evidence",
    "Expect",
    "FaultKind",
    "FileRole",
    "FileState",
    "FileSystem",
    "Finding",
    "Fingerprint",
    "FinishedRecovery",
    "FoundState",
    "LeafDifference",
    "LifeEnd",
    "LifeRecord",
    "LivesMode",
    "Loss",
    "LostState",
    "Manner",
    "NameRule",
    "NotDurable",
    "Operation",
    "OperationKind",
    "Outcome",
    "Phase",
    "PlannablePoint",
    "Record",
    "Reference",
    "ResetPart",
    "SaveProfile",
    "Severity",
    "Start",
    "StepRecord",
    "StepRun",
    "SurvivingBytes",
    "SurvivingFile",
    "SurvivingName",
    "Target",
    "TargetProfile",
    "TensorDifference",
    "TensorFacts",
    "Trial",
    "TrialKind",
    "TrialSpec",
    "Verdict",
    "Violation",
]
