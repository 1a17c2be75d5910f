"""From which save a life killed at a point should resume, and what a reference's address is in the life after that.

A later life repeats the reference from the step after the one that it resumed from: its saves and steps are the same
ones, counted from there.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chaos.address import EXIT
from chaos.model import Address, Phase, PlannablePoint, SaveProfile, TargetProfile


def relative(point: PlannablePoint, resumed_from: SaveProfile | None) -> Address:
    """Return the address of a reference's `point` in a life that resumed from a save (None: it starts from nothing)."""
    address = point.address
    if resumed_from is None:
        return address
    if address.save:
        return msgspec.structs.replace(address, save=address.save - resumed_from.ordinal)
    return msgspec.structs.replace(address, tick=address.tick - resumed_from.ticks_before)


def is_reachable(profile: TargetProfile, point: PlannablePoint, resumed_from: SaveProfile | None) -> bool:
    """Tell whether a later life that resumed from a save comes to `point`, in the phase that it had in the reference.

    What lies at or before the resumed step is not done again, and a later life's first step belongs to its recovery.
    Without step numbers nobody knows where a later life's last step is, but its exit is its exit.
    """
    address = point.address
    if point.phase is Phase.FINISH and profile.last_step is None and address.call != EXIT:
        return False
    if resumed_from is None:
        return point.phase is not Phase.STARTUP
    if address.save:
        return address.save > resumed_from.ordinal
    if address.call == EXIT and not profile.has_steps:
        return True
    return address.tick > resumed_from.ticks_before


def does_steps(profile: TargetProfile, resumed_from: SaveProfile | None) -> bool:
    """Tell whether a life that resumed from a save has steps left to do, as far as is known."""
    return resumed_from is None or not profile.has_steps or resumed_from.ticks_before < profile.total_steps


def saves_resumed_from(profile: TargetProfile, points: Sequence[PlannablePoint]) -> tuple[SaveProfile | None, ...]:
    """Return for each of the reference's `points`, in their order, the newest save published before it.

    A save of which no operation is plannable counts as published by the step after it.
    """
    planned = {point.address.save for point in points}
    unseen = [save for save in profile.saves if save.ordinal not in planned]
    publishes = {save.addresses[save.publish]: save.ordinal for save in profile.saves if save.addresses}
    newest, resumed = 0, []
    for point in points:
        ordinal = point.address.save
        newest = max(newest, ordinal if point.is_published else ordinal - 1)
        newest = max([newest, *(save.ordinal for save in unseen if save.ticks_before < point.position)])
        resumed.append(profile.saves[newest - 1] if 0 < newest <= len(profile.saves) else None)
        newest = max(newest, publishes.get(point.address, 0))
    return tuple(resumed)
