"""Records of a made-up campaign: a target of 60 steps that saves `ck.pt` every 10 steps and keeps the one before."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chaos.model import (
    Acknowledgement,
    Address,
    CrashPoint,
    Evidence,
    FaultKind,
    FileRole,
    FileState,
    LifeEnd,
    LifeRecord,
    Outcome,
    Phase,
    Reference,
    SaveProfile,
    StepRecord,
    StepRun,
    Target,
    TargetProfile,
    Trial,
    TrialKind,
)
from chaos.verdict import Judgement, judge

TOTAL = 60
EVERY = 10
NUM_SAVES = 6


class Records:
    """Builders of good records, each of which a test may change in one place."""

    target = Target(
        command=("python", "train.py", "{out}"),
        resume_command=("python", "train.py", "{out}"),
        checkpoints=("ck*.pt",),
        final=("final.pt",),
    )

    def file(self, path: str, digest: str, role: FileRole = FileRole.CHECKPOINT, **changes: Any) -> FileState:
        """Return a whole file of the given content."""
        state = FileState(path=path, key=path, role=role, size_bytes=1000, is_whole=True, format="torch", digest=digest)
        return replace(state, **changes)

    def checkpoints(self, save: int) -> tuple[FileState, ...]:
        """Return the checkpoints after a save: the new one, and the one before where there is one."""
        files = (self.file("ck.pt", f"content{save}"),) if save else ()
        return (*files, self.file("ck.prev.pt", f"content{save - 1}")) if save > 1 else files

    def final(self, digest: str = "bits", **changes: Any) -> FileState:
        """Return the final file."""
        return self.file("final.pt", digest, FileRole.FINAL, **changes)

    def acknowledgement(self, save: int, *, ordinal: int | None = None) -> Acknowledgement:
        """Return what the target says after a save of the reference; `ordinal` is the one within the life."""
        number = save if ordinal is None else ordinal
        return Acknowledgement(save=number, step=save * EVERY, is_printed=True, files=self.checkpoints(save))

    def acknowledgements(self, first: int, last: int) -> tuple[Acknowledgement, ...]:
        """Return the acknowledgements of a life that does the saves `first` to `last` of the reference."""
        return tuple(self.acknowledgement(save, ordinal=save - first + 1) for save in range(first, last + 1))

    def point(self, save: int = 1, file: str = "ck.pt.tmp", call: str = "write") -> CrashPoint:
        """Return a crash point inside a save."""
        address = Address(save=save, file=file, incarnation=1, call=call, occurrence=2)
        return CrashPoint(address=address, expected_phase=Phase.SAVE)

    def step(self, ordinal: int, **changes: Any) -> StepRecord:
        """Return what the probe saw of one step of the reference: weights and a batch that no other step has."""
        components = {"weights": f"weights{ordinal - 1}", "data": f"data{ordinal}"}
        record = StepRecord(ordinal=ordinal, optimizer="AdamW", components=components, batches=(f"batch{ordinal}",))
        return replace(record, **changes)

    def steps(self, first: int = 1, last: int = TOTAL) -> tuple[StepRecord, ...]:
        """Return what the probe saw of some steps of the reference."""
        return tuple(self.step(ordinal) for ordinal in range(first, last + 1))

    def runs(self, resumed: int, steps: int) -> tuple[StepRun, ...]:
        """Return that a life's steps are those of the reference after the save `resumed`."""
        return (StepRun(first=0, reference=resumed * EVERY, count=steps),) if steps else ()

    def fed(self, resumed: int, first: int) -> dict[str, Any]:
        """Return what the probe saw of a last life that resumed from a save, and was fed from batch `first` on."""
        steps = self.steps(resumed * EVERY + 1)
        fed = (
            replace(step, ordinal=number, batches=(f"batch{first + number - 1}",))
            for number, step in enumerate(steps, start=1)
        )
        return {"step_runs": (), "step_records": tuple(fed)}

    def evidence(self, point: CrashPoint, **changes: Any) -> Evidence:
        """Return the full proof of a kill."""
        proof = Evidence(
            crash_point=point,
            phase=point.expected_phase,
            operation_index=7,
            was_alive=True,
            root_signal=9,
            processes_killed=1,
        )
        return replace(proof, **changes)

    def killed(self, number: int, resumed: int, saved: int, **changes: Any) -> LifeRecord:
        """Return a life that resumed from the save `resumed`, acknowledged up to `saved` and was killed in the next."""
        life = LifeRecord(
            number=number,
            end=LifeEnd.STRUCK,
            signal=9,
            evidence=self.evidence(self.point(saved - resumed + 1)),
            steps=(saved + 1 - resumed) * EVERY,
            first_step=resumed * EVERY + 1,
            last_step=(saved + 1) * EVERY,
            has_probe=True,
            acknowledgements=self.acknowledgements(resumed + 1, saved),
            crash_state=self.checkpoints(saved),
            step_runs=self.runs(resumed, min(saved + 1, NUM_SAVES) * EVERY - resumed * EVERY),
        )
        return replace(life, **changes)

    def finished(self, number: int, resumed: int, **changes: Any) -> LifeRecord:
        """Return a life that resumed from the save `resumed` (0: none) and ran to the end."""
        steps = TOTAL - resumed * EVERY
        life = LifeRecord(
            number=number,
            end=LifeEnd.EXITED,
            exit_status=0,
            steps=steps,
            first_step=resumed * EVERY + 1 if steps else None,
            last_step=TOTAL if steps else None,
            has_probe=True,
            acknowledgements=self.acknowledgements(resumed + 1, NUM_SAVES),
            crash_state=(*self.checkpoints(NUM_SAVES), self.final()),
            step_runs=self.runs(resumed, steps),
            elapsed_s=3.0,
        )
        return replace(life, **changes)

    def outcome(self, number: int, kind: TrialKind, *lives: LifeRecord) -> Outcome:
        """Return a lineage whose trial planned exactly the kills that the lives have evidence of."""
        points = tuple(life.evidence.crash_point for life in lives if life.evidence is not None)
        return Outcome(trial=Trial(number=number, kind=kind, crash_points=points), lives=lives, elapsed_s=4.0)

    def lineage(self, number: int, *saves: int) -> Outcome:
        """Return a faulted lineage with a kill after each of `saves`, each life resuming from the newest save."""
        starts = (0, *saves)
        lives = [self.killed(n, starts[n - 1], save) for n, save in enumerate(saves, start=1)]
        last = self.finished(len(saves) + 1, starts[-1])
        return self.outcome(number, TrialKind.FAULTED, *lives, last)

    def erring(self, number: int, resumed: int, saved: int, fault: FaultKind, **changes: Any) -> LifeRecord:
        """Return a life that resumed from the save `resumed`, acknowledged up to `saved`, and failed on an error."""
        point = replace(self.point(saved - resumed + 1), fault=fault)
        proof = self.evidence(point, root_signal=0, processes_killed=0, errors_injected=1)
        failed = {"end": LifeEnd.EXITED, "exit_status": 1, "signal": None, "evidence": proof}
        return self.killed(number, resumed, saved, **{**failed, **changes})

    def errors(self, number: int, fault: FaultKind = FaultKind.DISK_FULL, **changes: Any) -> Outcome:
        """Return a lineage whose first life fails on an error in its third save, and whose second life finishes."""
        lives = (self.erring(1, 0, 2, fault, **changes), self.finished(2, 2))
        return self.outcome(number, TrialKind.FAULTED, *lives)

    def ignoring(self, number: int, fault: FaultKind = FaultKind.DISK_FULL, **changes: Any) -> Outcome:
        """Return a lineage of one life, whose last save met an error, and which ends as if nothing had been."""
        state = (*self.checkpoints(NUM_SAVES - 1), self.final())
        life = self.erring(1, 0, NUM_SAVES - 1, fault, exit_status=0, crash_state=state)
        return self.outcome(number, TrialKind.FAULTED, replace(life, **changes))

    def rotten(self, number: int, *, resumed: int = 1, **changes: Any) -> Outcome:
        """Return a lineage whose newest checkpoint, of the second save, was damaged; its last life resumed earlier."""
        newest, before = self.checkpoints(2)
        point = replace(self.point(3), fault=FaultKind.BIT_FLIP)
        proof = self.evidence(point, damage="bit 30 of element 5 of w in ck.pt was flipped", damaged=newest)
        damaged = replace(newest, is_whole=False, digest="damaged")
        struck = self.killed(1, 0, 2, evidence=proof, crash_state=(damaged, before))
        last = replace(self.finished(2, resumed), **changes)
        return self.outcome(number, TrialKind.FAULTED, struck, last)

    def control(self) -> Outcome:
        """Return the lineage without a fault."""
        return self.outcome(2, TrialKind.CONTROL, self.finished(1, 0))

    def canary(self) -> Outcome:
        """Return the lineage with planted bugs: every checkpoint torn in life 1, other bits in the final file."""
        torn = tuple(replace(file, is_whole=False, digest="torn") for file in self.checkpoints(2))
        last = self.finished(2, 2, crash_state=(*self.checkpoints(NUM_SAVES), self.final("flipped")))
        return self.outcome(3, TrialKind.CANARY, self.killed(1, 0, 2, crash_state=torn), last)

    def reference(self, **changes: Any) -> Reference:
        """Return two equal uninterrupted runs."""
        saves = tuple(SaveProfile(ordinal=n, ticks_before=n * EVERY, step=n * EVERY) for n in range(1, NUM_SAVES + 1))
        profile = TargetProfile(
            has_steps=True,
            uses_ticks=True,
            prints_acknowledgements=True,
            total_steps=TOTAL,
            last_step=TOTAL,
            saves=saves,
        )
        runs = tuple(self.outcome(n, TrialKind.REFERENCE, self.finished(1, 0)) for n in (0, 1))
        reference = Reference(
            outcomes=runs,
            profile=profile,
            final=(self.final(),),
            deterministic=True,
            unsafe=(),
            no_save_final=(self.final(),),
            seconds=3.0,
            steps=self.steps(),
        )
        return replace(reference, **changes)

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return the control and three lineages with one, two and three kills: six kills in all."""
        return (self.control(), self.lineage(4, 2), self.lineage(5, 1, 3), self.lineage(6, 1, 2, 4))

    def judged(self, **changes: Any) -> Judgement:
        """Judge the good campaign of six kills, with some of its parts changed."""
        parts: dict[str, Any] = {
            "reference": self.reference(),
            "outcomes": self.outcomes(),
            "canary": self.canary(),
            "target": self.target,
            "run_name": "RUN",
            "kills_requested": 6,
        }
        return judge(**{**parts, **changes})

    def with_life(self, trial: int, position: int, **changes: Any) -> tuple[Outcome, ...]:
        """Return the good campaign's lineages with one life of one trial changed."""
        return tuple(
            self.altered(outcome, position, **changes) if outcome.trial.number == trial else outcome
            for outcome in self.outcomes()
        )

    def altered(self, outcome: Outcome, position: int, **changes: Any) -> Outcome:
        """Return a lineage in which one life (by position, from 0 or from the end) is changed."""
        lives = list(outcome.lives)
        lives[position] = replace(lives[position], **changes)
        return replace(outcome, lives=tuple(lives))


@pytest.fixture(scope="session")
def records() -> Records:
    """Give the builders of good records."""
    return Records()
