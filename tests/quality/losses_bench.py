"""Planted losses of state: the table of them, a lineage of each with one kill, and what its diagnosis gets wrong."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import msgspec

from chaos.attribution import with_diagnoses
from chaos.checkpoints.process import Examiner
from chaos.executors.bench import Bench
from chaos.lives.starters import MODULES_FILE
from chaos.lives.ticks import KnownSteps, write_known_steps
from chaos.model import (
    Address,
    CheckName,
    Component,
    CrashPoint,
    Diagnosis,
    FileRole,
    FileState,
    Finding,
    LifeEnd,
    Manner,
    Outcome,
    Phase,
    Record,
    Reference,
    Severity,
    Target,
    TargetProfile,
    Trial,
    TrialKind,
    TrialSpec,
)
from chaos.references import FIRST_REFERENCE, SECOND_REFERENCE, build_reference

LOSSES: Final = Path(__file__).parent / "targets" / "losses"
_TRIAL: Final = 3
_DEADLINE_S: Final = 90.0
# Nothing is left out: what is scored here is the diagnosis, not the budget.
_EVERY_STEP: Final = 100.0

Pairs = frozenset[tuple[Component, Manner]]


class Loss(Record, kw_only=True):
    """One entry of `expected.toml`, whose head says what each field means."""

    name: str
    command: tuple[str, ...]
    checkpoints: tuple[str, ...]
    final: tuple[str, ...]
    saves: tuple[int, ...]
    kill_after_step: int
    ticks_per_step: int = 1
    resumed_at: int
    first_difference: int | None = None
    is_intact: bool = False
    expect: Pairs
    also: tuple[Pairs, ...] = ()

    @property
    def target(self) -> Target:
        """Return the script as a target; its globs are relative to the output folder there."""
        command = (sys.executable, str(LOSSES / self.command[0]), *self.command[1:])
        return Target(
            command=command,
            resume_command=command,
            checkpoints=tuple(glob.removeprefix("{out}/") for glob in self.checkpoints),
            final=tuple(glob.removeprefix("{out}/") for glob in self.final),
            deadline_s=_DEADLINE_S,
        )

    @property
    def crash_point(self) -> CrashPoint:
        """Return where life 1 is killed: at the tick after the last step that it may do."""
        ticks = self.kill_after_step * self.ticks_per_step
        return CrashPoint(address=Address(tick=ticks, call="tick"), expected_phase=Phase.STEP)


def read_losses() -> tuple[Loss, ...]:
    """Return all entries of the table."""
    table = tomllib.loads((LOSSES / "expected.toml").read_text(encoding="utf-8"))
    return msgspec.convert(table["loss"], tuple[Loss, ...])


class Recorded(NamedTuple):
    """What two uninterrupted runs taught, and the lineage with its kill."""

    reference: Reference
    outcome: Outcome

    @property
    def is_same_at_end(self) -> bool:
        """Tell whether the lineage's final files are the reference's, bit for bit."""
        return _finals(self.reference.final) == _finals(self.outcome.lives[-1].crash_state)


class LossesBench:
    """Runs lineages of losses. Use as a context manager: leaving it ends the processes that it has kept.

    The very first life is fresh; all others are warm, of a template that imports what this one had imported.
    """

    def __init__(self) -> None:
        """Start nothing before it is needed."""
        self._bench = Bench()
        self._modules = ""

    def recorded(self, loss: Loss, folder: Path) -> Recorded:
        """Run two references and the lineage of a loss below `folder`."""
        runs = [self._run(loss, folder, number) for number in (FIRST_REFERENCE, SECOND_REFERENCE)]
        with Examiner() as examiner:
            reference, _ = build_reference(loss.target, tuple(runs), lambda number: _place(folder, number), examiner)
        return Recorded(reference, self._run(loss, folder, _TRIAL, reference))

    def _run(self, loss: Loss, folder: Path, number: int, reference: Reference | None = None) -> Outcome:
        """Run one trial: an uninterrupted run, or, where there is a reference, one with a kill."""
        points = (loss.crash_point,) if reference is not None else ()
        kind = TrialKind.FAULTED if reference is not None else TrialKind.REFERENCE
        spec = TrialSpec(
            target=loss.target,
            profile=reference.profile if reference is not None else TargetProfile(),
            trial=Trial(number=number, kind=kind, crash_points=points, hash_seed=7 * number),
            deadline_s=_DEADLINE_S,
            modules=self._modules,
            probe_budget=_EVERY_STEP,
            known_steps=_known_steps(folder, reference) if reference is not None else "",
        )
        outcome = self._bench.run(spec, _place(folder, number))
        self._modules = self._modules or str(_place(folder, number) / "life-01" / MODULES_FILE)
        return outcome

    def __enter__(self) -> Self:
        """Return the bench itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what was started."""
        self._bench.__exit__(kind, error, trace)


def diagnosis_of(recorded: Recorded) -> Diagnosis | None:
    """Return what the harness says of a lineage, as it would beside a finding of other final bits."""
    finding = Finding(
        id="planted",
        check=CheckName.SILENT_DIVERGENCE,
        severity=Severity.ERROR,
        trial=_TRIAL,
        crash_point=str(recorded.outcome.trial.crash_points[0]),
        step=None,
        detail="",
        replay="",
    )
    (found,) = with_diagnoses([finding], recorded.reference, [recorded.outcome])
    is_found = found.diagnosis is not None and found.diagnosis.resumed_at is not None
    return found.diagnosis if is_found else None  # where every step is the reference's, only the bits can be at fault


def faults_of_recording(loss: Loss, recorded: Recorded) -> list[str]:
    """Return what did not go as the table says, before anybody diagnoses anything."""
    first, *_, last = recorded.outcome.lives
    saves = tuple(item.step for item in recorded.reference.outcomes[0].lives[0].acknowledgements)
    facts = {
        "life 1 was killed": (first.end is LifeEnd.STRUCK, True),
        "life 2 ran to its end": ((last.end, last.exit_status), (LifeEnd.EXITED, 0)),
        "the references agree": (recorded.reference.deterministic, True),
        "saves": (saves, loss.saves),
        "the final bits are the reference's": (recorded.is_same_at_end, loss.is_intact),
    }
    return [f"{what}: {seen}, not {wanted}" for what, (seen, wanted) in facts.items() if seen != wanted]


def faults_of_diagnosis(loss: Loss, diagnosis: Diagnosis | None) -> list[str]:
    """Return what a diagnosis does not say as the table does; that nothing is said is right where nothing can be."""
    if diagnosis is None:
        return [] if not loss.expect else ["there is no diagnosis"]
    named = frozenset((lost.component, lost.manner) for lost in diagnosis.lost)
    faults = []
    if named not in {loss.expect, *loss.also}:
        faults.append(f"named {_words(named)}, not {_words(loss.expect)}")
    for field in ("resumed_at", "first_difference"):
        seen, wanted = getattr(diagnosis, field), getattr(loss, field)
        if seen != wanted:
            faults.append(f"{field} {seen}, not {wanted}")
    return faults


def _place(folder: Path, number: int) -> Path:
    """Return the folder of a trial; its path is as long for every one."""
    return folder / f"{number:04d}"


def _known_steps(folder: Path, reference: Reference) -> str:
    """Leave the reference's records where a trial finds them, and return where."""
    path = folder / "reference-steps.json"
    write_known_steps(path, KnownSteps(records=reference.steps, unsteady=reference.unsteady))
    return str(path)


def _finals(files: tuple[FileState, ...]) -> dict[str, str]:
    """Return the digest of each final file."""
    return {file.key: file.digest for file in files if file.role is FileRole.FINAL}


def _words(pairs: Pairs) -> str:
    """Return pairs in words, in a fixed order."""
    return "; ".join(sorted(f"{component} {manner}" for component, manner in pairs)) or "nothing"
