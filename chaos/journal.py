"""The append-only record of a campaign: one JSON object a line, each flushed to the disk before the next step.

Record first, judge second: the verdict is worked out from these events alone, by `chaos run` as by `chaos judge`. A
torn last line (the supervisor died while it wrote) is passed over when read, and cut off before anything is appended.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from chaos.errors import UsageError
from chaos.model import SCHEMA, Enumeration, FoundState, LivesMode, Outcome, PlannablePoint, Record, Reference, Trial
from chaos.scenario import Scenario
from chaos.settings import DEFAULT_PROBE_BUDGET, LivesKind

FILE_NAME = "journal.ndjson"


class ExplorationPlan(Record, kw_only=True):
    """What `chaos explore` enumerates: faults in how many lives of a lineage, which saves, which states.

    `saves` is `all`, `first`, `last`, or an ordinal as text.
    """

    depth: int
    saves: str
    enumeration: Enumeration = Enumeration()


class PowerCutPlan(Record, kw_only=True):
    """What `chaos powercut` does: so many real power cuts on each kind of image, as `chaos.images` writes them."""

    kinds: tuple[str, ...]
    cuts: int


class CampaignStarted(Record, tag="campaign_started", tag_field="event", kw_only=True):
    """What was asked.

    `stops_early`: a recovery that goes the way of one from the same files is not run to its end. `has_fingerprints`: a
    lineage that diverged is run again with parts of its checkpoints reset.
    """

    schema: int = SCHEMA
    run: str
    seed: int
    kills: int
    jobs: int
    mode: LivesMode
    strict: bool
    lives: LivesKind = LivesKind.FRESH
    without_fsync: bool = False
    stops_early: bool = False
    has_fingerprints: bool = True
    probe_budget: float = DEFAULT_PROBE_BUDGET
    exploration: ExplorationPlan | None = None
    power_cut: PowerCutPlan | None = None
    scenario: Scenario


class ReferenceRecorded(Record, tag="reference_recorded", tag_field="event", kw_only=True):
    """The expected bits and what was learnt about the target; `uses_cuda`: it had initialised CUDA at its end."""

    reference: Reference
    points: tuple[PlannablePoint, ...]
    uses_cuda: bool = False


class TrialsPlanned(Record, tag="trials_planned", tag_field="event", kw_only=True):
    """Trials drawn, with their schedules resolved; `recovery_points` are what the canary's second life showed."""

    trials: tuple[Trial, ...]
    recovery_points: tuple[PlannablePoint, ...] = ()


class StatesFound(Record, tag="states_found", tag_field="event", kw_only=True):
    """The crash points of a recorded life: of trial `trial`, run in slot `slot`, whose last life is number `life`.

    Of a later life than the first they are journalled only where one of the states had not been seen before. At
    `num_cut` points a loss of power may leave more states than were enumerated.
    """

    trial: int
    slot: int
    life: int
    states: tuple[FoundState, ...]
    num_cut: int = 0


class TrialFinished(Record, tag="trial_finished", tag_field="event", kw_only=True):
    """One trial's outcome."""

    outcome: Outcome


class TrialRepeated(Record, tag="trial_repeated", tag_field="event", kw_only=True):
    """The outcome of a warm campaign's trial that was run again with fresh lives; it is compared, not judged."""

    outcome: Outcome


class TrialDiscarded(Record, tag="trial_discarded", tag_field="event", kw_only=True):
    """A trial that says nothing about the target: a signal of its own interrupted a held call."""

    number: int
    reason: str


class CampaignEnded(Record, tag="campaign_ended", tag_field="event", kw_only=True):
    """Nothing more is run; `causes` say what was not covered, in sentences."""

    elapsed_s: float
    causes: tuple[str, ...] = ()


Event = (
    CampaignStarted
    | ReferenceRecorded
    | TrialsPlanned
    | StatesFound
    | TrialFinished
    | TrialRepeated
    | TrialDiscarded
    | CampaignEnded
)


class Journal:
    """An open journal, for appending."""

    def __init__(self, folder: Path) -> None:
        """Open the journal in `folder`, making it if it is missing; a torn last line is cut off."""
        self._fd = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with open(self._fd, "rb", closefd=False) as file:
            whole = file.read().rfind(b"\n") + 1
        os.ftruncate(self._fd, whole)
        os.lseek(self._fd, whole, os.SEEK_SET)
        self._encoder = msgspec.json.Encoder()

    def append(self, event: Event) -> None:
        """Write one event and see it onto the disk."""
        data = self._encoder.encode(event) + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        """Return the journal itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()


def read_events(folder: Path) -> tuple[Event, ...]:
    """Return all whole events of the journal in `folder`; UsageError where there is none or it is not ours."""
    path = folder / FILE_NAME
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        message = f"there is no campaign in {folder}: {error.strerror}"
        raise UsageError(message, hint="give a folder that `chaos run` made, such as .chaos/latest") from error
    decoder = msgspec.json.Decoder(Event)
    events = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            events.append(decoder.decode(line))
        except msgspec.MsgspecError as error:
            message = f"line {number} of {path} is not an event of this version: {error}"
            raise UsageError(message, hint="judge it with the version that made it (environment.json)") from error
    return tuple(events)
