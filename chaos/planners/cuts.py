"""Where the power is really cut: places of a first life, drawn from a seed, most where saves are published; pure."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Final

from chaos.model import CrashPoint, FaultKind, Phase, PlannablePoint

# The calls between which what is durable and what can be seen part. The order is that of how much depends on them.
_PUBLISHING: Final = ("rename", "fsync", "link", "unlink", "fdatasync", "symlink", "sync_file_range", "rmdir", "mkdir")
_WEIGHTS: Final = (0.6, 0.25, 0.15)  # around publishing, elsewhere in saves, outside of saves


def draw_cuts(points: Sequence[PlannablePoint], cuts: int, seed: int) -> tuple[PlannablePoint, ...]:
    """Return `cuts` of the points of a reference, the same for the same arguments, in an order drawn by chance.

    Right after an acknowledgement, and before each kind of call that publishes, there is at least one, as far as there
    are enough. No point comes twice before every other has come. Without points there are none.
    """
    rng = random.Random(f"ninelives cuts {seed}")
    after = _after_saves(points)
    groups: dict[str, list[PlannablePoint]] = {"after": after}
    groups |= {
        call: [p for p in points if p.phase is Phase.SAVE and p.address.call == call and p not in after]
        for call in _PUBLISHING
    }
    first = [rng.choice(group) for group in groups.values() if group][:cuts]
    decisive = [point for group in groups.values() for point in group]
    others = [point for point in points if point not in decisive]
    in_saves = [point for point in others if point.phase is Phase.SAVE]
    elsewhere = [point for point in others if point.phase is not Phase.SAVE]
    drawn = list(first)
    left = [[point for point in pool if point not in first] for pool in (decisive, in_saves, elsewhere)]
    while points and len(drawn) < cuts:
        if not any(left):
            left = [list(pool) for pool in (decisive, in_saves, elsewhere)]
        weights = [weight if pool else 0.0 for weight, pool in zip(_WEIGHTS, left, strict=True)]
        (pool,) = rng.choices(left, weights)
        drawn.append(pool.pop(rng.randrange(len(pool))))
    rng.shuffle(drawn)
    return tuple(drawn)


def crash_points(points: Sequence[PlannablePoint], kind: str) -> Iterator[CrashPoint]:
    """Yield the crash points on an image of a kind: at every second place the journal is committed first."""
    for position, point in enumerate(points):
        yield CrashPoint(
            address=point.address,
            expected_phase=point.phase,
            fault=FaultKind.POWER_LOSS,
            profile=kind,
            variant=position % 2,
            is_real=True,
        )


def _after_saves(points: Sequence[PlannablePoint]) -> list[PlannablePoint]:
    """Return the first point after each save: by then it was acknowledged."""
    pairs = itertools.pairwise(points)
    return [later for earlier, later in pairs if earlier.address.save and later.address.save != earlier.address.save]
