"""The one loop that all commands share: references, control, canary, kills, until as many landed as were asked for.

A campaign is a function of its journal: each step first looks whether its result is recorded already, so that a
campaign whose supervisor was killed goes on where it was.
Nothing is judged here; `judging` works the verdict out from the same journal.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from chaos.agreement import chosen_for_repetition, first_disagreement
from chaos.bounds import Bounds
from chaos.checkpoints.process import Examiner
from chaos.checks.lineage import is_clean, is_interrupted
from chaos.early_stop import CAN_BE_TWINS, Twins, are_steps_comparable, with_end_of_twin
from chaos.errors import HarnessError, InconclusiveError
from chaos.executors.pool import LocalPool
from chaos.faults.planning import draw_each_kind, missing_faults, redraw_each_kind
from chaos.fingerprints import next_fingerprints
from chaos.journal import (
    CampaignEnded,
    CampaignStarted,
    Event,
    Journal,
    ReferenceRecorded,
    TrialDiscarded,
    TrialFinished,
    TrialRepeated,
    TrialsPlanned,
)
from chaos.learning import plannable_points, recovery_points
from chaos.lives.request import read_log
from chaos.lives.starters import MODULES_FILE, warm_plan
from chaos.model import (
    CrashPoint,
    FaultKind,
    Outcome,
    PlannablePoint,
    Reference,
    Trial,
    TrialKind,
    TrialSpec,
)
from chaos.planners.canary import canary_points
from chaos.references import FIRST_REFERENCE, SECOND_REFERENCE, build_reference, unsafe_checkpoints
from chaos.settings import LivesKind
from chaos.specifying import specify, specify_reference

FIRST_FAULTED: Final = 6
_CONTROL: Final = 3
_CANARY: Final = 4
_NO_SAVE: Final = 5
_REDRAWS: Final = 8
_DISCARDS: Final = 3


class Campaign:
    """One invocation's trials, from the first reference to the last kill."""

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        events: tuple[Event, ...],
        observe: Callable[[Event], None],
    ) -> None:
        """Go on from `events` (the first is CampaignStarted) in the run's folder; a new event is kept, then shown."""
        self._folder = folder
        self._journal = journal
        self._observe = observe
        self._events = list(events)
        self._finished = {e.outcome.trial.number: e.outcome for e in events if isinstance(e, TrialFinished)}
        self._twins = Twins(self._finished.values())
        self._started = next(event for event in events if isinstance(event, CampaignStarted))
        self._causes: list[str] = []
        first = self.trial_folder(FIRST_REFERENCE)
        self._bounds = Bounds(folder, needed_by=first, jobs=self._started.jobs)
        self._keeps_all = False
        self._is_warm = False
        self._repeated: frozenset[int] = frozenset()

    def limit(self, *, budget_s: float | None, max_bytes: int | None, keep: bool) -> None:
        """Bound the campaign in time (from its start) and in bytes written below the run's folder."""
        self._bounds.limit(budget_s=budget_s, max_bytes=max_bytes)
        self._keeps_all = keep

    def run(self) -> None:
        """Run everything that is not recorded yet. A campaign that cannot conclude ends with the cause recorded."""
        try:
            with LocalPool(self._started.jobs) as pool:
                recorded = self._reference(pool)
                self._require_possible(recorded.reference)
                self._execute(pool, self._companions(recorded), recorded.reference)
                self._strike(pool, recorded)
        except InconclusiveError as error:
            self._causes.append(error.sentences)
        self._record(CampaignEnded(elapsed_s=time.monotonic() - self._bounds.begin_s, causes=tuple(self._causes)))

    def _require_possible(self, reference: Reference) -> None:
        """Raise InconclusiveError where the target cannot be struck as asked."""

    def _strike(self, pool: LocalPool, recorded: ReferenceRecorded) -> None:
        """Run the faulted trials, until as many kills have landed as were asked for."""
        schedule = self._schedule(recorded)
        self._execute(pool, (*self._repetitions(schedule), *schedule), recorded.reference)
        self._require_agreement(recorded.reference)
        self._replace_missing(pool, recorded)
        if self._started.has_fingerprints:
            self._fingerprint(pool, recorded.reference)

    def learn(self) -> ReferenceRecorded:
        """Run the references only, and return what they taught."""
        with LocalPool(self._started.jobs) as pool:
            return self._reference(pool)

    def plan(self) -> tuple[ReferenceRecorded, tuple[Trial, ...]]:
        """Run the references, the control and the canary, and return the trials that would follow: the dry run."""
        with LocalPool(self._started.jobs) as pool:
            recorded = self._reference(pool)
            self._execute(pool, self._companions(recorded), recorded.reference)
        return recorded, self._schedule(recorded)

    # --- the steps --------------------------------------------------------------------------------------

    def _reference(self, pool: LocalPool) -> ReferenceRecorded:
        """Run the target twice without faults, and learn from it."""
        for event in self._events:
            if isinstance(event, ReferenceRecorded):
                self._choose_lives(pool, event)
                return event
        trials = [self._trial(FIRST_REFERENCE, TrialKind.REFERENCE), self._trial(SECOND_REFERENCE, TrialKind.REFERENCE)]
        for trial in trials:
            _forget(self.trial_folder(trial.number))
        specs = [(specify_reference(self._started, trial), self.trial_folder(trial.number)) for trial in trials]
        outcomes = sorted(pool.run(specs), key=lambda outcome: outcome.trial.number)
        with Examiner() as examiner:
            reference, logs = build_reference(
                self._started.scenario.target, tuple(outcomes), self.trial_folder, examiner
            )
        unsafe = unsafe_checkpoints(reference, self.trial_folder(FIRST_REFERENCE) / "out")
        reference = msgspec.structs.replace(reference, unsafe=unsafe)
        points = plannable_points(self._started.scenario.target, reference.profile, *logs)
        uses_cuda = warm_plan(self._modules_file()).uses_cuda
        event = ReferenceRecorded(reference=reference, points=points, uses_cuda=uses_cuda)
        self._record(event)
        self._choose_lives(pool, event)
        return event

    def _choose_lives(self, pool: LocalPool, recorded: ReferenceRecorded) -> None:
        """Settle how the lives after the references are started: where CUDA is used, fresh, and one at a time."""
        self._is_warm = self._asks_for_warm(recorded)
        if recorded.uses_cuda:
            pool.narrow(1)

    def _asks_for_warm(self, recorded: ReferenceRecorded) -> bool:
        """Tell whether lives after the references are warm."""
        return self._started.lives is LivesKind.WARM and not recorded.uses_cuda

    def _modules_file(self) -> Path:
        """Return where the first reference left what it had imported."""
        return self.trial_folder(FIRST_REFERENCE).absolute() / "life-01" / MODULES_FILE

    def _companions(self, recorded: ReferenceRecorded) -> tuple[Trial, ...]:
        """Return the trials that every campaign has: the canary, the control, and the run that does not save."""
        planned = self._planned(TrialKind.CANARY, TrialKind.CONTROL, TrialKind.NO_SAVE)
        if planned:
            return planned
        trials = [self._trial(_CANARY, TrialKind.CANARY, canary_points(recorded.reference.profile, recorded.points))]
        trials.append(self._trial(_CONTROL, TrialKind.CONTROL))
        if self._started.scenario.target.no_save_command:
            trials.append(self._trial(_NO_SAVE, TrialKind.NO_SAVE))
        self._record(TrialsPlanned(trials=tuple(trials)))
        return tuple(trials)

    def _schedule(self, recorded: ReferenceRecorded) -> tuple[Trial, ...]:
        """Return the faulted trials planned so far; draw them from the seed if there are none."""
        planned = self._planned(TrialKind.FAULTED)
        if planned:
            return planned
        trials = draw_each_kind(
            self._started.scenario.kinds,
            recorded.reference.profile,
            self._points(recorded),
            wanted=self._started.kills,
            phases=self._started.scenario.schedule.phases,
            seed=self._started.seed,
            first_number=FIRST_FAULTED,
        )
        points = tuple(point for point in self._points(recorded) if point not in recorded.points)
        self._record(TrialsPlanned(trials=trials, recovery_points=points))
        return trials

    def _planned(self, *kinds: TrialKind) -> tuple[Trial, ...]:
        """Return the trials of some kinds that were planned so far."""
        planned = (trial for event in self._events if isinstance(event, TrialsPlanned) for trial in event.trials)
        return tuple(trial for trial in planned if trial.kind in kinds)

    def _points(self, recorded: ReferenceRecorded) -> tuple[PlannablePoint, ...]:
        """Return the references' points, and those of the canary's second life: only a later life recovers."""
        canary = next((outcome for outcome in self._outcomes() if outcome.trial.kind is TrialKind.CANARY), None)
        if canary is None or len(canary.lives) < 2:  # noqa: PLR2004 - the killed one and the one after it
            return recorded.points
        log = read_log(self.trial_folder(_CANARY) / "life-02")
        target, profile = self._started.scenario.target, recorded.reference.profile
        return (*recorded.points, *recovery_points(target, profile, log))

    def _replace_missing(self, pool: LocalPool, recorded: ReferenceRecorded) -> None:
        """Draw new crash points for faults that did not land, until none is missing or drawing does not help."""
        attempt = sum(isinstance(event, TrialsPlanned) for event in self._events) - 1
        while (missing := self._missing()) and attempt <= _REDRAWS and not self._bounds.are_reached():
            trials = redraw_each_kind(
                missing,
                recorded.reference.profile,
                self._points(recorded),
                seed=self._started.seed,
                attempt=attempt,
                first_number=self._next_number(),
            )
            attempt += 1
            self._record(TrialsPlanned(trials=trials))
            self._execute(pool, trials, recorded.reference)

    def _execute(self, pool: LocalPool, trials: tuple[Trial, ...], reference: Reference) -> None:
        """Run the trials that have no outcome yet; one that a signal of the target's own spoilt is run again."""
        for _ in range(_DISCARDS):
            left = self._unfinished(trials)
            if not left:
                return
            for outcome in pool.run(self._specs(left, reference)):
                self._take(outcome)
            if self._bounds.are_reached():
                break
        if left := self._unfinished(trials):
            self._causes.append(self._bounds.why_not_run(len(left), len(trials)))

    def _fingerprint(self, pool: LocalPool, reference: Reference) -> None:
        """Run a diverged lineage again, then with parts of its checkpoints reset, as far as the bounds allow."""
        for is_reset in (False, True):
            trials = tuple(t for t in self._planned(TrialKind.FINGERPRINT) if bool(t.reset) is is_reset)
            if not trials:
                target, first = self._started.scenario.target, self._next_number()
                trials = next_fingerprints(reference, self._outcomes(), target, first)
                if not trials or self._bounds.are_reached():
                    return
                self._record(TrialsPlanned(trials=trials))
            for outcome in pool.run(self._specs(self._unfinished(trials), reference)):
                self._take(outcome)

    def _unfinished(self, trials: tuple[Trial, ...]) -> list[Trial]:
        """Return the trials that have no outcome yet."""
        finished = {outcome.trial.number for outcome in self._outcomes()}
        repeated = {event.outcome.trial.number for event in self._events if isinstance(event, TrialRepeated)}
        return [t for t in trials if t.number not in (repeated if t.kind is TrialKind.REPEATED else finished)]

    def _repetitions(self, trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
        """Return the trials of a warm campaign that are run once more with fresh lives."""
        if not self._is_warm:
            return ()
        chosen = chosen_for_repetition(trials, seed=self._started.seed)
        self._repeated = frozenset(trial.number for trial in chosen)
        return tuple(msgspec.structs.replace(trial, kind=TrialKind.REPEATED) for trial in chosen)

    def _require_agreement(self, reference: Reference) -> None:
        """Compare the trials that were run with warm and with fresh lives."""
        for event in self._events:
            if isinstance(event, TrialRepeated) and event.outcome.trial.number in self._finished:
                self._require_agreement_of(event.outcome, reference)

    def _require_agreement_of(self, repeated: Outcome, reference: Reference) -> None:
        """Compare a fresh repetition with the warm run; HarnessError where they disagree."""
        found = first_disagreement(self._finished[repeated.trial.number], repeated, reference)
        if found is not None:
            raise HarnessError(str(found), hint="use --lives fresh; please report this, with the run folder")

    def _specs(self, trials: list[Trial], reference: Reference) -> Iterator[tuple[TrialSpec, Path]]:
        """Yield specifications until a bound is reached."""
        for trial in trials:
            if self._bounds.are_reached():
                return
            is_repeated = trial.kind is TrialKind.REPEATED
            folder = self._repetition_folder(trial.number) if is_repeated else self.trial_folder(trial.number)
            _forget(folder)
            spec = self.spec(trial, reference, is_fresh=is_repeated)
            # A trial that is run twice, to compare, is run to its end both times.
            yield (spec if is_repeated or trial.number in self._repeated else self._with_twins(spec, reference)), folder

    def _with_twins(self, spec: TrialSpec, reference: Reference) -> TrialSpec:
        """Name the recoveries beside which the last life may be stopped; none where the references disagreed."""
        is_possible = self._started.stops_early and are_steps_comparable(reference)
        if not is_possible or spec.trial.kind not in CAN_BE_TWINS:
            return spec
        return msgspec.structs.replace(spec, twins=self._twins.under(spec.trial.fault))

    def _is_clean(self, outcome: Outcome) -> bool:
        """Tell whether nobody needs a trial's files; of one that was stopped early, whether its twin's were clean."""
        return is_clean(with_end_of_twin(outcome, self._finished))

    def _take(self, outcome: Outcome) -> None:
        """Record an outcome, and free the space of one that shows nothing worth keeping."""
        if outcome.trial.kind is TrialKind.REPEATED:
            if not is_interrupted(outcome):
                self._record(TrialRepeated(outcome=outcome))
            return
        if is_interrupted(outcome):
            reason = "a signal of the target's own interrupted a held call, so its failure says nothing"
            self._record(TrialDiscarded(number=outcome.trial.number, reason=reason))
            return
        self._record(TrialFinished(outcome=outcome))
        if not self._keeps_all and outcome.trial.kind is not TrialKind.REFERENCE and self._is_clean(outcome):
            self._free(outcome.trial.number)

    # --- specifications -----------------------------------------------------------------------------------

    def _trial(self, number: int, kind: TrialKind, points: tuple[CrashPoint, ...] = ()) -> Trial:
        """Make a trial with a hash seed of its own, drawn from the seed and the number."""
        rng = random.Random(f"{self._started.seed}:hash_seed:{number}")
        return Trial(number=number, kind=kind, crash_points=points, hash_seed=rng.randrange(1, 2**31))

    def spec(self, trial: Trial, reference: Reference, *, is_fresh: bool = False) -> TrialSpec:
        """Specify a trial, with what the references taught; with fresh lives in any case where `is_fresh`."""
        modules = str(self._modules_file()) if self._is_warm and not is_fresh else ""
        first = self.trial_folder(FIRST_REFERENCE)
        return specify(self._started, trial, reference, folder=self._folder, first=first, modules=modules)

    def trial_folder(self, number: int) -> Path:
        """Return the folder of a trial; its path is as long for every trial."""
        return self._folder / "trials" / f"{number:04d}"

    def _repetition_folder(self, number: int) -> Path:
        """Return where a trial is repeated with fresh lives: by a path as long as the trial's own."""
        return self._folder / "repeat" / f"{number:04d}"

    # --- what is recorded -----------------------------------------------------------------------------------

    def _record(self, event: Event) -> None:
        """Journal an event, then let others see it; HarnessError where the disk does not take it."""
        try:
            self._journal.append(event)
        except OSError as error:
            message = f"the journal of the run in {self._folder} cannot be written: {error.strerror}"
            hint = "free some space, then go on with `chaos run --continue`, or choose another place with --runs DIR"
            raise HarnessError(message, hint=hint) from error
        self._events.append(event)
        if isinstance(event, TrialFinished):
            self._finished[event.outcome.trial.number] = event.outcome
            self._twins.add(event.outcome)
        self._observe(event)

    def _outcomes(self) -> list[Outcome]:
        """Return all outcomes recorded so far."""
        return list(self._finished.values())

    def _missing(self) -> dict[FaultKind, tuple[CrashPoint, ...]]:
        """Return the crash points whose faults did not land, by kind."""
        return missing_faults(self._outcomes(), self._started.scenario.kinds, self._started.kills)

    def _next_number(self) -> int:
        """Return the first trial number that is not taken."""
        planned = [trial.number for event in self._events if isinstance(event, TrialsPlanned) for trial in event.trials]
        return max([FIRST_FAULTED - 1, *planned]) + 1

    # --- the rest -------------------------------------------------------------------------------------------

    def _free(self, number: int) -> None:
        """Remove a clean trial's output and scratch folders; its logs and outcome stay."""
        folder = self.trial_folder(number)
        for path in (folder / "out", *folder.glob("life-*/scratch")):
            shutil.rmtree(path, ignore_errors=True)


def _forget(folder: Path) -> None:
    """Remove what an earlier attempt at a trial left."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
