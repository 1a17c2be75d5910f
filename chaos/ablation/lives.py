"""One life of the bundled trainer, of which the resume file is looked at after every step, while the life is held."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from chaos.ablation.lanes import Lane
from chaos.ablation.omissions import Course, Omission
from chaos.checkpoints.process import Examiner
from chaos.errors import HarnessError, InconclusiveError
from chaos.lives.intercepted import run_intercepted
from chaos.lives.request import TICKS, LifeRequest
from chaos.lives.ticks import read_steps
from chaos.model import (
    Address,
    CrashPoint,
    FileState,
    LifeEnd,
    LifeRecord,
    Phase,
    Record,
    StepRecord,
    Target,
    TargetProfile,
)
from chaos.roles import FileNames
from chaos.scenario import load_scenario
from chaos.states.snapshot import Photographer

RESUME: Final = "resume.pt"
WEIGHTS: Final = "weights.pt"
LIFE_S: Final = 300.0
_EVERY_STEP: Final = 100.0  # percent: the probe may take as long as the steps themselves
_REPORT: Final = "please report this, with the run folder"
_LOSS: Final = re.compile(r"^step \d+ loss (\d+\.\d+) ", re.MULTILINE)
# All that addresses after a save depend on: ticks are the clock, and the trainer says itself when it has saved.
_PROFILE: Final = TargetProfile(has_steps=True, uses_ticks=True, prints_acknowledgements=True)


class MeasuredLife(Record, kw_only=True):
    """The loss of each of a life's steps, in their order, and the probe's records of them; each step was saved."""

    losses: tuple[float, ...]
    records: tuple[StepRecord, ...]


class _SaveListener(Photographer):
    """In place of photographs at each acknowledgement, calls back: the target is held, and its files are whole."""

    def __init__(self, out: Path, examiner: Examiner, target: Target, when_saved: Callable[[], None]) -> None:
        """Call `when_saved` at each save that the target acknowledges."""
        names = FileNames(target, _PROFILE)
        super().__init__(out, examiner, names.name, verify=(), deadline_s=LIFE_S, varying_leaves={})
        self._when_saved = when_saved

    def checkpoints(self) -> tuple[FileState, ...]:
        """Call back; of the checkpoints nothing is kept."""
        self._when_saved()
        return ()


def trainer_target(options: tuple[str, ...], imported: Path | None = None) -> Target:
    """Return the bundled trainer with `options` as a target; at its end it lists what it has imported in `imported`."""
    target = load_scenario("durable").target
    command = (*target.command, *options)
    return Target(
        command=command,
        resume_command=command,
        checkpoints=target.checkpoints,
        final=target.final,
        step=target.step,
        saved=target.saved,
        env={"NINELIVES_MODULES": str(imported)} if imported is not None else {},
        deadline_s=LIFE_S,
    )


def first_options(course: Course, omission: Omission) -> tuple[str, ...]:
    """Return the options of the life that is killed at the seam: only how it saves can be wrong in it."""
    return (*course.options(omission.order), "--save", omission.save)


def second_options(course: Course, omission: Omission) -> tuple[str, ...]:
    """Return the options of the life that resumes: it saves as it should, so that its weights can be measured."""
    forget = [word for part in omission.forget for word in ("--forget", part)]
    return (*course.options(omission.order), *forget)


class Task(Record, kw_only=True):
    """What a life is to do: its number, the trainer's options, its lineage's folder, how many steps.

    With `killed_after` it is killed when that step is saved and the next one about to be done. `imported` is the file
    that says what a warm life's template imports, which a fresh life (`is_fresh`) leaves there.
    """

    number: int
    options: tuple[str, ...]
    folder: Path
    steps: int
    imported: Path
    is_fresh: bool = False
    killed_after: int | None = None


def run_life(task: Task, lane: Lane, when_saved: Callable[[], None]) -> MeasuredLife:
    """Run a life with the output folder `out` in its folder; `when_saved` is called at each save, while it is held.

    Raises InconclusiveError where the life does not come to the end that is meant, HarnessError where it did not do as
    many steps as it was to do.
    """
    lane.go_on()
    folder, killed_after = task.folder, task.killed_after
    out, target = folder / "out", trainer_target(task.options, task.imported if task.is_fresh else None)
    out.mkdir(parents=True, exist_ok=True)
    request = LifeRequest(
        number=task.number,
        command=target.command,
        target=target,
        profile=_PROFILE,
        folder=str(folder / f"life-{task.number:02d}"),
        out=str(out),
        hash_seed=task.number,
        deadline_s=LIFE_S,
        crash_point=None if killed_after is None else _before_step_after(killed_after),
        without_fsync=True,  # only processes are killed here
        probe_budget=_EVERY_STEP,
    )

    def listen() -> None:
        """End the life where the experiment is over."""
        lane.go_on()
        when_saved()

    listener = _SaveListener(out, lane.examiner, target, listen)
    record = run_intercepted(request, listener, lane.starter(None if task.is_fresh else task.imported)).record
    _require_end(record, is_killed=killed_after is not None)
    losses = _losses(Path(request.folder))
    records = read_steps(Path(request.folder) / TICKS, has_all_details=True)
    _require_steps(task.steps, printed=len(losses), saved=len(record.acknowledgements), seen=len(records))
    return MeasuredLife(losses=losses, records=records)


def _before_step_after(step: int) -> CrashPoint:
    """Return the moment at which `step` is saved, and the next one about to be done."""
    return CrashPoint(address=Address(tick=step, call="tick"), expected_phase=Phase.STEP)


def _require_end(record: LifeRecord, *, is_killed: bool) -> None:
    """Raise InconclusiveError where a life ended otherwise than it should."""
    if is_killed:
        is_right = record.end is LifeEnd.STRUCK and record.evidence is not None and record.evidence.is_landed
    else:
        is_right = record.end is LifeEnd.EXITED and record.exit_status == 0
    if not is_right:
        wanted = "be killed at the seam" if is_killed else "run to its end"
        tail = "\n".join(record.output_tail.splitlines()[-8:])
        raise InconclusiveError(
            f"a life of the trainer was to {wanted}, and {record.end} instead: {tail}", hint=_REPORT
        )


def _require_steps(expected: int, *, printed: int, saved: int, seen: int) -> None:
    """Raise HarnessError where a life did not print and save each of its steps, or the probe did not see each."""
    if not printed == saved == seen == expected:
        message = (
            f"a life of the trainer was to do {expected} steps; it printed {printed} and saved {saved}, "
            f"and the probe saw {seen}"
        )
        raise HarnessError(message, hint=_REPORT)


def _losses(folder: Path) -> tuple[float, ...]:
    """Return the loss in each step line that a life printed, in nats."""
    try:
        text = (folder / "stdout.log").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise HarnessError(f"a life's output cannot be read: {error}", hint=_REPORT) from error
    return tuple(float(number) for number in _LOSS.findall(text))
