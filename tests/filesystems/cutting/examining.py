"""All of it for one pattern on one kind of image: saves with every schedule and size, cuts, and the model's answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chaos.images import DEFAULT_KINDS
from chaos.lives.starters import Starter
from chaos.model import FileSystem, Record
from chaos.states.recording import Recording
from cutting.bench import Bench
from cutting.looking import Looked, look
from cutting.patterns import Pattern
from cutting.promises import Modelled, hold_against
from cutting.saving import Save, run_save
from cutting.schedules import Schedule

SMALL_BYTES: Final = 3 * 4096
LARGE_BYTES: Final = 300_000


class Effort(Record, kw_only=True):
    """How much is done: which schedules, which sizes, how many states of the model are built before an operation."""

    schedules: tuple[Schedule, ...]
    sizes: tuple[int, ...]
    states: int


class Examined(Record, kw_only=True):
    """What came of one pattern on one kind of image; `set_size` is that of the model's set when a small save is over.

    `corners_seen` of the corners that the file system must have came up in an image.
    """

    pattern: str
    kind: str
    cuts: int
    images: int
    states: int
    set_size: int
    states_modelled: int
    corners: int
    corners_seen: int
    complaints: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Tell whether every image is in the model's set, and the set is what it should be."""
        return not self.complaints


def examine(bench: Bench, pattern: Pattern, effort: Effort, starter: Starter | None = None) -> Examined:
    """Run a pattern with every schedule and size, look at every image, and hold the model's set against what is known.

    The model is asked about what it allows once for each size; by the rules of POSIX with the first kind of image.
    """
    looked, modelled, cuts = [], [], 0
    for size in effort.sizes:
        for schedule in effort.schedules:
            save = run_save(bench, pattern, schedule, size, starter)
            cuts += len(save.cuts)
            with Recording(save.recording) as recording:
                looked.append(look(bench, save, recording, pattern))
                if schedule == effort.schedules[0]:
                    modelled += _hold(bench, save, recording, pattern, effort)
    return _sum_up(bench, pattern, cuts, looked, modelled)


def _hold(bench: Bench, save: Save, recording: Recording, pattern: Pattern, effort: Effort) -> list[Modelled]:
    """Hold the model's sets against what is known."""
    profiles = [bench.kind.file_system]
    if bench.kind == DEFAULT_KINDS[0]:
        profiles.append(FileSystem.POSIX)
    return [hold_against(recording, save.start, pattern, profile, effort.states) for profile in profiles]


def _sum_up(
    bench: Bench, pattern: Pattern, cuts: int, looked: Sequence[Looked], modelled: Sequence[Modelled]
) -> Examined:
    """Put together what was found."""
    strange = [
        f"before operation {one.cut.index}, after {one.cut.nudge}, {one.profile} cannot be {one.seen}: {one.reason}"
        for each in looked
        for one in each.strange
    ]
    expected = {number for number, corner in enumerate(pattern.corners) if bench.kind.file_system in corner.on}
    wrong = [complaint for each in modelled for complaint in each.wrong]
    return Examined(
        pattern=pattern.name,
        kind=str(bench.kind),
        cuts=cuts,
        images=len(frozenset().union(*(each.images for each in looked))),
        states=len(frozenset().union(*(each.states for each in looked))),
        set_size=modelled[0].size_at_end,
        states_modelled=sum(each.num_states for each in modelled),
        corners=len(expected),
        corners_seen=len(expected & frozenset().union(*(each.corners for each in looked))),
        complaints=tuple(dict.fromkeys([*strange, *wrong])),
    )
