"""Run one trial: start, strike, restart, strike, …, finish; look at the folder after every life. Nobody is judged."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

import msgspec

from chaos.checkpoints.process import Examiner
from chaos.early_stop import twin_for
from chaos.errors import HarnessError
from chaos.executors.aftermath import Aftermath
from chaos.executors.planted import flip_final_bit, truncated_checkpoints
from chaos.faults.power_loss import Scene
from chaos.lives.intercepted import run_intercepted
from chaos.lives.polled import run_polled
from chaos.lives.request import LifeRequest, LifeResult
from chaos.lives.starters import Starter
from chaos.lives.ticks import read_known_steps
from chaos.model import (
    CrashPoint,
    Enumeration,
    FaultKind,
    FileRole,
    FileSystem,
    FinishedRecovery,
    LifeEnd,
    LifeRecord,
    LivesMode,
    Outcome,
    ResetPart,
    Start,
    TensorDifference,
    TrialKind,
    TrialSpec,
)
from chaos.roles import FileNames
from chaos.states.building import build
from chaos.states.durability import tree_after
from chaos.states.enumerating import enumerate_states, write_found
from chaos.states.log import StateAt
from chaos.states.places import places_of
from chaos.states.recorder import FolderRecorder
from chaos.states.recording import Recording
from chaos.states.snapshot import Photographer
from chaos.states.visible import visible_digest
from chaos.steps import shortened

RECORDING: Final = "recording"
_EVERY_STEP: Final = 100.0


def run_trial(spec: TrialSpec, folder: Path, *, examiner: Examiner, starter: Starter) -> Outcome:
    """Run the lineage of `spec` below `folder` and return what it did.

    The output folder must be new, unless the specification names one.
    """
    started = time.monotonic()
    out = Path(spec.out) if spec.out else folder / "out"
    try:
        if spec.out:
            shutil.rmtree(out, ignore_errors=True)  # a place that is used again and again
        out.mkdir(parents=True)
    except OSError as error:
        message = f"the trial's folder cannot be made: {error.strerror}: {out}"
        raise HarnessError(message, hint="choose another place with --runs DIR, or remove the old folder") from error
    lineage = Lineage(spec, folder, out, examiner, starter)
    lineage.run()
    return lineage.outcome(time.monotonic() - started)


class Lineage:
    """The chain of lives of one trial over one output folder."""

    def __init__(
        self,
        spec: TrialSpec,
        folder: Path,
        out: Path,
        examiner: Examiner,
        starter: Starter,
    ) -> None:
        """Bind the parts."""
        self._starter = starter
        self._spec = spec
        self._folder = folder
        self._out = out
        self._photographer = Photographer(
            out,
            examiner,
            FileNames(spec.target, spec.profile).name,
            verify=spec.target.verify,
            deadline_s=spec.deadline_s,
            varying_leaves=spec.varying_leaves,
        )
        self._examiner = examiner
        self._aftermath = Aftermath(out, self._photographer, examiner)
        self._lives: list[LifeRecord] = []
        self._unreached: tuple[CrashPoint, ...] = ()
        self._twin: FinishedRecovery | None = None
        self._reset: ResetPart | None = None

    def run(self) -> None:
        """Run one life for each crash point, then one to the end; stop where a life does not come to its point.

        One that met an error and says that all went well is not started again: nobody would.
        """
        if self._spec.start is not None:
            self._build(self._spec.start)
            self._lives.append(self._run_life(len(self._lives) + 1, None).record)
            return
        points = self._spec.trial.crash_points
        for position, point in enumerate((*points, None)):
            if point is None and self._spec.trial.kind is TrialKind.FINGERPRINT:
                self._reset = self._aftermath.reset(self._lives[-1], self._spec.trial.reset)
            record = self._run_life(position + 1, point).record
            if self._spec.trial.kind is TrialKind.CANARY:
                record = self._plant(record)
            self._lives.append(record)
            if point is not None and record.evidence is None:
                self._unreached = points[position:]
                return
            if point is not None and point.fault.is_error and record.end is LifeEnd.EXITED and record.exit_status == 0:
                self._unreached = points[position + 1 :]
                return

    def _build(self, start: Start) -> None:
        """Make the crash state that this lineage begins in; the lives until then are known from their recordings."""
        with Recording(Path(start.recording)) as recording:
            if start.loss is not None:
                tree = tree_after(recording, start.index, start.loss)
            else:
                tree = recording.tree_at(StateAt(index=start.index, tear_offset=start.tear_offset))
            build(tree, self._out, recording.store)
        *before, struck = start.lives
        struck = self._aftermath.seen_again(struck)
        if start.damage is not None:
            struck = self._aftermath.rot(struck, start.damage)
        self._lives = [*before, struck]

    def _run_life(self, number: int, point: CrashPoint | None) -> LifeResult:
        """Run one life in a folder of its own."""
        files = self._files() if point is None and number > 1 and self._spec.twins is not None else ""
        # What a recorded recovery passes through is needed to its end.
        twins = self._spec.twins if self._spec.enumeration is None else None
        self._twin = twin_for(twins or (), files, self._lives)
        request = LifeRequest(
            number=number,
            command=self._command(number),
            target=self._spec.target,
            profile=self._spec.profile,
            folder=str(self._folder / f"life-{number:02d}"),
            out=str(self._out),
            hash_seed=(self._spec.trial.hash_seed + number) % 4294967296,
            deadline_s=self._spec.deadline_s,
            crash_point=point,
            is_learning=self._spec.trial.kind is TrialKind.REFERENCE,
            files=files,
            twin=self._twin,
            unsteady=self._unsteady() if files else (),
            without_fsync=self._spec.without_fsync,
            probe_budget=self._probe_budget(has_twins=bool(files)),
        )
        if self._spec.enumeration is not None and point is None:
            return self._run_recorded(request, self._spec.enumeration)
        if self._spec.mode is LivesMode.POLLED:
            return run_polled(request, self._photographer, self._starter)
        if point is not None and point.fault is FaultKind.POWER_LOSS:
            return self._run_until_power_loss(request)
        result = run_intercepted(request, self._photographer, self._starter)
        if point is not None and point.fault is FaultKind.BIT_FLIP:
            return LifeResult(record=self._aftermath.rot(result.record, point.variant), log=result.log)
        return result

    def _files(self) -> str:
        """Return a digest of all that a recovery finds: the folder, its command line, its environment."""
        target = self._spec.target
        env = (f"{name}={value}" for name, value in sorted(target.env.items()))
        return visible_digest(self._out, (*target.resume_command, "\0", target.cwd, *env))

    def _run_until_power_loss(self, request: LifeRequest) -> LifeResult:
        """Run a life whose every change is kept until the power goes; what is there when it begins is durable."""
        folder = Path(request.folder) / RECORDING
        with FolderRecorder(folder, self._out) as recorder:
            result = run_intercepted(request, self._photographer, self._starter, recorder)
            unexplained = recorder.finish()
        unseen = tuple(sorted({*result.record.unseen_writers, *unexplained}))
        record = msgspec.structs.replace(result.record, unseen_writers=unseen)
        target, profile = self._spec.target, self._spec.profile
        scene = Scene(
            recording=folder,
            places=tuple(places_of(result.log, target, profile, is_first_life=request.number == 1)),
            acknowledged=record.acknowledgements,
            before=tuple(item for life in self._lives for item in life.acknowledgements),
            file_systems=self._file_systems(),
        )
        record = self._aftermath.lose_power(record, scene)
        shutil.rmtree(folder)  # the bytes of every save
        return LifeResult(record=record, log=result.log)

    def _file_systems(self) -> tuple[FileSystem, ...]:
        """Return the file systems by whose rules all losses of the lives before can be."""
        losses = [life.evidence.loss for life in self._lives if life.evidence is not None]
        return tuple(name for name in FileSystem if all(name in loss.profiles for loss in losses if loss is not None))

    def _run_recorded(self, request: LifeRequest, enumeration: Enumeration) -> LifeResult:
        """Run a life whose every change is kept, and leave the crash states that it went through."""
        folder = Path(request.folder) / RECORDING
        start = self._spec.start
        base = None
        if start is not None and start.loss is None and start.damage is None:
            base = (Path(start.recording), StateAt(index=start.index, tear_offset=start.tear_offset))
        with FolderRecorder(folder, self._out, base=base) as recorder:
            result = run_intercepted(request, self._photographer, self._starter, recorder)
            unexplained = recorder.finish()
        with Recording(folder) as recording:
            found = enumerate_states(
                recording,
                result.log,
                self._spec.target,
                self._spec.profile,
                enumeration,
                is_first_life=request.number == 1,
                acknowledgements=result.record.acknowledgements,
                before=[item for life in self._lives for item in life.acknowledgements],
            )
            write_found(folder, found)
        unseen = tuple(sorted({*result.record.unseen_writers, *unexplained}))
        return LifeResult(record=msgspec.structs.replace(result.record, unseen_writers=unseen), log=result.log)

    def _command(self, number: int) -> tuple[str, ...]:
        """Return the command of a life."""
        target = self._spec.target
        if self._spec.trial.kind is TrialKind.NO_SAVE:
            return target.no_save_command
        return target.command if number == 1 else target.resume_command

    def _plant(self, record: LifeRecord) -> LifeRecord:
        """Plant the canary's bugs: the killed life leaves only broken checkpoints, the finished one a wrong bit."""
        if record.end is LifeEnd.STRUCK:
            with truncated_checkpoints(self._out, record.crash_state):
                snapshot = self._photographer.take()
        elif record.end is LifeEnd.EXITED and record.exit_status == 0:
            flip_final_bit(self._out, record.crash_state, self._examiner)
            snapshot = self._photographer.take()
        else:
            return record
        return msgspec.structs.replace(record, crash_state=snapshot.files, state_digest=snapshot.digest)

    def _differences(self) -> dict[str, TensorDifference]:
        """Compare the final files of a finished lineage with the reference's."""
        last = self._lives[-1]
        if last.end is not LifeEnd.EXITED or last.exit_status != 0:
            return {}
        found = {}
        for state in last.crash_state:
            reference = self._spec.reference_final.get(state.key)
            if state.role is FileRole.FINAL and state.is_whole and reference is not None:
                without = frozenset(self._spec.varying_leaves.get(state.key, ()))
                if self._examiner.examine(Path(reference), without).digest != state.digest:
                    found[state.key] = self._examiner.compare(Path(reference), self._out / state.path, without)
        return found

    def _probe_budget(self, *, has_twins: bool) -> float:
        """Return what the probe may cost: anything, where each step must be held against a twin's."""
        return _EVERY_STEP if has_twins and self._spec.probe_budget > 0 else self._spec.probe_budget

    def _unsteady(self) -> tuple[str, ...]:
        """Return the components that vary between uninterrupted runs."""
        known = self._spec.known_steps
        return read_known_steps(Path(known)).unsteady if known else ()

    def _with_known_steps(self, life: LifeRecord) -> LifeRecord:
        """Keep the probe's records of a life short: of those that are the reference's, only where they are in it."""
        if not self._spec.known_steps or not life.step_records or life.step_runs:
            return life
        known = read_known_steps(Path(self._spec.known_steps))
        others, runs = shortened(life.step_records, known.records, frozenset(known.unsteady))
        return msgspec.structs.replace(life, step_records=others, step_runs=runs)

    def outcome(self, elapsed_s: float) -> Outcome:
        """Return what the lineage did."""
        return Outcome(
            trial=self._spec.trial,
            lives=tuple(self._with_known_steps(life) for life in self._lives),
            unreached=self._unreached,
            differences=self._differences(),
            twin=self._twin.trial if self._twin is not None and self._lives[-1].end is LifeEnd.STOPPED else None,
            reset=self._reset,
            elapsed_s=elapsed_s,
        )
