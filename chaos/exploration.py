"""The campaign of `chaos explore`: every crash state of a recorded run is built, recovered from, and judged.

One run without faults is recorded for each slot (a place with an output folder of its own, by one path for all that is
tried there, since checkpoints may name it). Its crash points give the states; of several points with the same state,
the one where most was acknowledged stands for all. A recovery is recorded in its turn, and what it newly passes
through up to the end of its first save is tried too, to the depth asked for.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import msgspec

from chaos.agreement import ONE_IN
from chaos.campaign import FIRST_FAULTED, Campaign
from chaos.checks.lineage import is_interrupted, is_stopped
from chaos.errors import InconclusiveError, UsageError
from chaos.executors.lineage import RECORDING
from chaos.executors.pool import LocalPool
from chaos.faults.every_point import error_points
from chaos.journal import (
    ExplorationPlan,
    ReferenceRecorded,
    StatesFound,
    TrialFinished,
    TrialRepeated,
    TrialsPlanned,
)
from chaos.lives.request import read_log
from chaos.model import FaultKind, FoundState, LifeRecord, Outcome, Reference, Start, Trial, TrialKind, TrialSpec
from chaos.planners.exhaustive import within_first_save
from chaos.planners.frontier import Frontier, Key, State, key_of
from chaos.states.enumerating import FOUND, Enumerated, read_found
from chaos.states.places import places_of
from chaos.struck import crash_point_of, struck_life

_MOST_KEPT: Final = 20
_LEADING_ON: Final = frozenset({FaultKind.KILL, FaultKind.POWER_LOSS})


class Exploration(Campaign):
    """A campaign whose faults are crash states, enumerated."""

    def _strike(self, pool: LocalPool, recorded: ReferenceRecorded) -> None:
        """Record a run in each slot, then try every state that was found, and those that recoveries lead to."""
        plan = self._begin(recorded)
        self._record_slots(pool)
        frontier = Frontier(self._found(0), self._found_in_slots(), saves=plan.saves, jobs=pool.jobs)
        frontier.add_trials(self._error_trials(recorded))
        self._repeats_at = self._started.seed % max(min(ONE_IN, frontier.num_states), 1)
        self._restore(frontier)
        for outcome in pool.run_each(lambda slot: self._take_next(frontier, slot)):
            self._take_explored(frontier, outcome)
        if frontier.num_left:
            self._causes.append(self._bounds.why_not_run(frontier.num_left, frontier.num_states))
        if not self._keeps_all:
            shutil.rmtree(self._folder / "slots", ignore_errors=True)

    def _require_possible(self, reference: Reference) -> None:
        """Stop where the save that was asked for does not exist."""
        plan, num_saves = self._started.exploration, len(reference.profile.saves)
        saves = plan.saves if plan is not None else ""
        if saves.isdecimal() and int(saves) > num_saves:
            message = f"the target saves {num_saves} times: there is no save {saves} to explore"
            raise InconclusiveError(message, hint="give --saves first, last, all, or a smaller number")

    def _begin(self, recorded: ReferenceRecorded) -> ExplorationPlan:
        """Take what was asked and learnt."""
        plan = self._started.exploration
        assert plan is not None  # noqa: S101 - this class is made for a plan
        self._plan: ExplorationPlan = plan
        self._reference_found = recorded.reference
        self._slots: dict[int, int] = {}
        self._last_number = 0
        self._num_kept = 0
        self._repeats_at = 0
        self._has_repeated_resume = False
        return plan

    def spec_again(self, number: int) -> TrialSpec:
        """Specify the trial of a state once more, from the journal; UsageError where its recording is gone."""
        recorded = next(event for event in self._events if isinstance(event, ReferenceRecorded))
        self._begin(recorded)
        self._is_warm = self._asks_for_warm(recorded)
        trial = self._finished[number].trial
        for event in self._events:
            if isinstance(event, StatesFound) and (event.slot == 0 or event.life > 1):
                for found in event.states:
                    if _is_of(found, trial) and event.life == len(trial.crash_points):
                        task = State(found, trial.state, 0 if event.life == 1 else event.trial)
                        spec = self._state_spec(task, number, event.slot)
                        if spec.start is not None and Path(spec.start.recording).is_dir():
                            return msgspec.structs.replace(spec, enumeration=None)
        message = f"the recording that trial {number} began from is gone"
        raise UsageError(message, hint="explore again")

    def _explored(self) -> list[Outcome]:
        """Return the outcomes of the states tried so far."""
        return [outcome for outcome in self._outcomes() if outcome.trial.kind is TrialKind.EXPLORED]

    # --- the recorded runs --------------------------------------------------------------------------------

    def _record_slots(self, pool: LocalPool) -> None:
        """Run one control in each slot, recorded, and journal the crash points that it went through."""
        known = {event.slot for event in self._events if isinstance(event, StatesFound)}
        missing = [slot for slot in range(pool.jobs) if slot not in known]
        tasks = {slot: (self._control_spec(slot), self._state_folder(FIRST_FAULTED + slot)) for slot in missing}
        for _, folder in tasks.values():
            shutil.rmtree(folder, ignore_errors=True)
        for outcome in pool.run_each(lambda slot: tasks.pop(slot, None)):
            slot = outcome.trial.number - FIRST_FAULTED
            self._record(TrialFinished(outcome=outcome))
            found = read_found(self._recording(outcome.trial.number, life=1))
            self._record_found(outcome.trial.number, slot, 1, found)

    def _control_spec(self, slot: int) -> TrialSpec:
        """Specify the recorded run of a slot."""
        trial = self._trial(FIRST_FAULTED + slot, TrialKind.CONTROL)
        spec = self.spec(trial, self._reference_found)
        enumeration = msgspec.structs.replace(self._plan.enumeration, faults=self._started.scenario.kinds)
        return msgspec.structs.replace(spec, out=str(self._out(slot)), enumeration=enumeration)

    def _record_found(self, number: int, slot: int, life: int, found: Enumerated) -> None:
        """Journal what was enumerated in a recorded life."""
        self._record(StatesFound(trial=number, slot=slot, life=life, states=found.states, num_cut=found.num_cut))

    def _found(self, slot: int) -> tuple[FoundState, ...]:
        """Return the crash points of a slot's recorded run."""
        events = (event for event in self._events if isinstance(event, StatesFound))
        return next((event.states for event in events if event.slot == slot and event.life == 1), ())

    def _error_trials(self, recorded: ReferenceRecorded) -> tuple[Trial, ...]:
        """Return the trials not yet run in which a life meets an error, one or two at each operation that can fail."""
        planned = self._planned(TrialKind.FAULTED)
        if not planned:
            target, profile = self._started.scenario.target, recorded.reference.profile
            log = read_log(self._recording(FIRST_FAULTED, life=1).parent)
            places = tuple(places_of(log, target, profile, is_first_life=True))
            kinds, num_saves = self._started.scenario.kinds, len(profile.saves)
            points = error_points(log, places, kinds, self._plan.saves, num_saves)
            first = FIRST_FAULTED + self._started.jobs
            planned = tuple(
                self._trial(number, TrialKind.FAULTED, (point,)) for number, point in enumerate(points, first)
            )
            if planned:
                self._record(TrialsPlanned(trials=planned))
        self._last_number = max([self._last_number, *(trial.number for trial in planned)])
        return tuple(trial for trial in planned if trial.number not in self._finished)

    def _found_in_slots(self) -> dict[int, dict[Key, FoundState]]:
        """Return the crash points of each slot by what they are in every run: address, tear, fault, variant."""
        slots = {event.slot for event in self._events if isinstance(event, StatesFound)}
        return {slot: {key_of(found): found for found in self._found(slot)} for slot in slots}

    def _restore(self, frontier: Frontier) -> None:
        """Take out of the frontier what an earlier sitting has done, and add what that has led to."""
        done = {outcome.trial.state for outcome in self._explored()}
        for event in self._events:
            if isinstance(event, StatesFound) and event.life > 1:
                frontier.add(event.trial, event.slot, event.states)
        frontier.forget(done)

    # --- one state after the other --------------------------------------------------------------------------

    def _take_next(self, frontier: Frontier, slot: int) -> tuple[TrialSpec, Path] | None:
        """Return the next trial for a slot; None where there is none, or a bound is reached."""
        if self._bounds.are_reached():
            return None
        task = frontier.take(slot)
        if task is None:
            return None
        number, spec, folder = self._prepared(task, slot)
        self._slots[number] = slot
        shutil.rmtree(folder, ignore_errors=True)
        return spec, folder

    def _prepared(self, task: State | Trial, slot: int) -> tuple[int, TrialSpec, Path]:
        """Return number, specification and folder of a state, of a trial that meets an error, or of a repetition."""
        if isinstance(task, State):
            number = self._next_number()
            spec = self._with_twins(self._state_spec(task, number, slot), self._reference_found)
            return number, spec, self._state_folder(number)
        if task.number in self._finished:
            return task.number, self._repetition(task, slot), self._repetition_folder(task.number)
        spec = self._with_twins(self.spec(task, self._reference_found), self._reference_found)
        spec = msgspec.structs.replace(spec, out=str(self._out(slot)))
        return task.number, spec, self._state_folder(task.number)

    def _state_spec(self, task: State, number: int, slot: int) -> TrialSpec:
        """Specify the recovery from a crash state."""
        before = self._lives_before(task, slot)
        *earlier, last = before
        lives = (*earlier, struck_life(last, task.found))
        trial = self._trial(number, TrialKind.EXPLORED, tuple(crash_point_of(life) for life in lives))
        trial = msgspec.structs.replace(trial, state=task.state)
        start = Start(
            recording=str(self._recording(task.trial or FIRST_FAULTED + slot, life=len(lives)).absolute()),
            index=task.found.index,
            tear_offset=task.found.tear_offset,
            loss=task.found.loss,
            damage=task.found.variant if task.found.fault is FaultKind.BIT_FLIP else None,
            lives=lives,
        )
        goes_on = len(lives) < self._plan.depth and task.found.fault in _LEADING_ON
        enumeration = msgspec.structs.replace(self._plan.enumeration, faults=(task.found.fault,))
        if task.found.loss is not None:  # a machine has the same file system after the restart
            enumeration = msgspec.structs.replace(enumeration, file_systems=task.found.loss.profiles)
        return msgspec.structs.replace(
            self.spec(trial, self._reference_found),
            out=str(self._out(slot)),
            start=start,
            enumeration=enumeration if goes_on else None,
        )

    def _lives_before(self, task: State, slot: int) -> tuple[LifeRecord, ...]:
        """Return the lives that lead to a state, as they ran on."""
        number = task.trial or FIRST_FAULTED + slot
        return self._finished[number].lives

    def _repetition(self, trial: Trial, slot: int) -> TrialSpec:
        """Specify an explored trial once more, with a fresh life."""
        spec = msgspec.json.decode((self._state_folder(trial.number) / "spec.json").read_bytes(), type=TrialSpec)
        repeated = msgspec.structs.replace(trial, kind=TrialKind.REPEATED)
        return msgspec.structs.replace(
            spec, trial=repeated, modules="", enumeration=None, twins=None, out=str(self._out(slot))
        )

    def _take_explored(self, frontier: Frontier, outcome: Outcome) -> None:
        """Record the outcome of a recovery; add the states that it went through; keep what is worth keeping."""
        number, slot = outcome.trial.number, self._slots[outcome.trial.number]
        if outcome.trial.kind is TrialKind.REPEATED:
            self._take_repeated(outcome)
            if not self._keeps_all and not frontier.needs(number):
                self._keep_little(self._finished[number], slot)
            return
        is_state = outcome.trial.kind is TrialKind.EXPLORED
        if is_interrupted(outcome) and is_state and frontier.again(outcome.trial.state):
            return
        self._record(TrialFinished(outcome=outcome))
        life = len(outcome.lives)
        if is_state and life <= self._plan.depth and (self._recording(number, life=life) / FOUND).exists():
            self._add_found(frontier, number, slot, life)
        if self._is_warm and self._is_to_be_repeated(outcome):
            frontier.repeat(slot, outcome.trial)
        elif not self._keeps_all and not frontier.needs(number):
            self._keep_little(outcome, slot)

    def _is_to_be_repeated(self, outcome: Outcome) -> bool:
        """Tell whether a trial is run once more with a fresh life: one in twenty, and the first that has a save."""
        kind = outcome.trial.kind
        if is_stopped(outcome):
            return False
        same = sum(1 for other in self._finished.values() if other.trial.kind is kind and not is_stopped(other))
        if same % ONE_IN == (self._repeats_at + 1) % ONE_IN:
            return True
        if kind is not TrialKind.EXPLORED:
            return False
        is_first = not self._has_repeated_resume and bool(outcome.lives[-2].acknowledgements)
        self._has_repeated_resume |= is_first
        return is_first

    def _keep_little(self, outcome: Outcome, slot: int) -> None:
        """Remove what a trial left; of the first ones that broke a rule the output folder and the logs stay.

        What was removed can be built again from the slot's recording.
        """
        number = outcome.trial.number
        if self._is_clean(outcome) or self._num_kept >= _MOST_KEPT:
            self._discard(number)
            return
        self._num_kept += 1
        shutil.rmtree(self._recording(number, life=len(outcome.lives)), ignore_errors=True)
        shutil.move(self._out(slot), self._state_folder(number) / "out")

    def _add_found(self, frontier: Frontier, number: int, slot: int, life: int) -> None:
        """Journal the crash points of a recorded recovery that lead to states not seen before."""
        found = read_found(self._recording(number, life=life))
        states = within_first_save(found.states)
        if not all(frontier.knows(state.digest) for state in states):
            self._record_found(number, slot, life, Enumerated(states=states, num_cut=found.num_cut))
            frontier.add(number, slot, states)

    def _take_repeated(self, outcome: Outcome) -> None:
        """Record a fresh repetition, and compare it with the warm run."""
        if is_interrupted(outcome):
            return
        self._record(TrialRepeated(outcome=outcome))
        self._require_agreement_of(outcome, self._reference_found)

    # --- places -----------------------------------------------------------------------------------------------

    def _out(self, slot: int) -> Path:
        """Return the output folder of a slot; its path is as long for every slot."""
        return self._folder.absolute() / "slots" / f"{slot:03d}" / "out"

    def _state_folder(self, number: int) -> Path:
        """Return the folder of an explored trial."""
        return self._folder / "states" / f"{number:06d}"

    def _recording(self, number: int, *, life: int) -> Path:
        """Return the recording of the last life of a trial."""
        return self._state_folder(number) / f"life-{life:02d}" / RECORDING

    def _discard(self, number: int) -> None:
        """Remove the folder of a trial that nobody needs any more."""
        shutil.rmtree(self._state_folder(number), ignore_errors=True)
        shutil.rmtree(self._repetition_folder(number), ignore_errors=True)

    def _next_number(self) -> int:
        """Return the first trial number that is not taken."""
        self._last_number = max(self._last_number, *self._finished) + 1
        return self._last_number


def _is_of(found: FoundState, trial: Trial) -> bool:
    """Tell whether a crash point is the last one of a trial."""
    point = trial.crash_points[-1]
    is_same = (found.address, found.tear_offset, found.variant) == (point.address, point.tear_offset, point.variant)
    return found.digest == trial.state and is_same
