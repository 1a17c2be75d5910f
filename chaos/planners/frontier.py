"""The crash states that are still to be tried, and by which slot; pure.

A state of the recorded runs may be tried in any slot, where it is found again by what it is in every run (address and
tear); a state of a recovery is tried in the slot of that recovery, whose output folder it may name. Faults that a life
has to meet have no states: their trials come last, in any slot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from chaos.model import FaultKind, FoundState, Trial
from chaos.planners.exhaustive import representatives, within_saves

_TRIES: Final = 3
Key = tuple[str, int | None, FaultKind, int]


class State:
    """A state to be tried: `found` in the recording of trial `trial` (0: of the slot's own recorded run)."""

    __slots__ = ("found", "state", "trial")

    def __init__(self, found: FoundState, state: str, trial: int) -> None:
        """Keep the digest by which the state is known in the whole exploration, whatever slot it is tried in."""
        self.found = found
        self.state = state
        self.trial = trial


class Frontier:
    """The states that are still to be tried, in an order that spreads what a budget covers."""

    def __init__(
        self,
        found: Iterable[FoundState],
        in_slots: Mapping[int, Mapping[Key, FoundState]],
        *,
        saves: str,
        jobs: int,
    ) -> None:
        """Begin with the states of the recorded runs, by slot; `found`, those of slot 0, say what there is."""
        chosen = within_saves(tuple(found), saves)
        self._in_slots = in_slots
        self._shared = deque(representatives(chosen))
        self._own: dict[int, deque[State | Trial]] = {slot: deque() for slot in range(jobs)}
        self._seen = {state.digest for state in chosen}
        self._taken: dict[str, tuple[int, State]] = {}
        self._led_on: set[int] = set()
        self._tries: dict[str, int] = {}
        self._trials: deque[Trial] = deque()
        self.num_states = len(self._shared)

    @property
    def num_left(self) -> int:
        """Count the states and trials that were not tried."""
        own = sum(isinstance(task, State) for own in self._own.values() for task in own)
        return len(self._shared) + len(self._trials) + own

    def take(self, slot: int) -> State | Trial | None:
        """Return the slot's next task: its own ones first, then one that any slot may try."""
        if self._own[slot]:
            task = self._own[slot].popleft()
            return self._note(slot, task) if isinstance(task, State) else task
        while self._shared:
            found = self._shared.popleft()
            here = self._in_slots.get(slot, {}).get(key_of(found))
            if here is not None:
                return self._note(slot, State(here, found.digest, 0))
            self._own[0].append(State(found, found.digest, 0))
            if slot == 0:
                return self.take(0)
        return self._trials.popleft() if self._trials else None

    def _note(self, slot: int, task: State) -> State:
        """Remember who tries a state."""
        self._taken[task.state] = (slot, task)
        return task

    def knows(self, digest: str) -> bool:
        """Tell whether a state was seen before."""
        return digest in self._seen

    def add(self, trial: int, slot: int, found: tuple[FoundState, ...]) -> None:
        """Add the new ones of the states that a recorded recovery went through: they are tried in its own slot."""
        for state in representatives([state for state in found if not self.knows(state.digest)]):
            self._own.setdefault(slot, deque()).append(State(state, state.digest, trial))
            self.num_states += 1
        self._seen.update(state.digest for state in found)
        self._led_on.add(trial)

    def add_trials(self, trials: Iterable[Trial]) -> None:
        """Add trials whose faults a life has to meet."""
        self._trials.extend(trials)
        self.num_states += len(self._trials)

    def repeat(self, slot: int, trial: Trial) -> None:
        """Let a trial be run once more in its slot."""
        self._own[slot].appendleft(trial)

    def again(self, state: str) -> bool:
        """Put a state back whose recovery said nothing; False where it was tried often enough."""
        self._tries[state] = self._tries.get(state, 0) + 1
        if self._tries[state] >= _TRIES:
            return False
        slot, task = self._taken[state]
        self._own[slot].append(task)
        return True

    def needs(self, trial: int) -> bool:
        """Tell whether states of a trial's recording, or what they led to, are built from it."""
        return trial in self._led_on

    def forget(self, done: Iterable[str]) -> None:
        """Take out the states that were tried."""
        tried = set(done)
        self._shared = deque(found for found in self._shared if found.digest not in tried)
        for slot, own in self._own.items():
            self._own[slot] = deque(t for t in own if not (isinstance(t, State) and t.state in tried))


def key_of(found: FoundState) -> Key:
    """Return what a crash point is in every run."""
    return msgspec.json.encode(found.address).decode(), found.tear_offset, found.fault, found.variant
