"""The model's whole set of states, held against what is known of a pattern: no smaller than that, and no larger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from chaos.model import FileSystem, Record
from chaos.states.durability import enumerate_losses, size_of_set, tree_after
from chaos.states.recording import Recording
from cutting.looking import contents_of, matching
from cutting.patterns import Pattern
from cutting.views import Contents, View, digest_of, view_of_tree


class Modelled(Record, kw_only=True):
    """What the model says of one recorded save: its set's size at the end, and what is wrong with it.

    `num_states` counts the states that were built, over all operations, each once for each of these.
    """

    size_at_end: int
    num_states: int
    wrong: tuple[str, ...]


def hold_against(recording: Recording, start: int, pattern: Pattern, profile: FileSystem, limit: int) -> Modelled:
    """Build up to `limit` states before each operation from `start` on, and see what they are.

    The adversarial states come first, so the limit cuts off none of the corners.
    """
    end = recording.num_operations
    seen = _Seen(pattern=pattern, profile=profile, contents=contents_of(recording, start))
    for index in range(start, end + 1):
        for loss in enumerate_losses(recording, index, (profile,), limit):
            seen.take(view_of_tree(tree_after(recording, index, loss)), index, is_end=index == end)
    wrong = tuple(dict.fromkeys([*seen.broken, *seen.lacking(), *seen.unsettled()]))
    return Modelled(size_at_end=size_of_set(recording, end, profile), num_states=seen.num_states, wrong=wrong)


@dataclass(kw_only=True)
class _Seen:
    """What the states of a model were, as they are built one by one."""

    pattern: Pattern
    profile: FileSystem
    contents: Contents
    num_states: int = 0
    broken: list[str] = field(default_factory=list)
    corners: set[int] = field(default_factory=set)
    corners_at_end: set[int] = field(default_factory=set)
    at_end: dict[str, str] = field(default_factory=dict)

    def take(self, view: View, index: int, *, is_end: bool) -> None:
        """Take what a folder may hold after a loss of power before an operation."""
        self.num_states += 1
        corners = set(matching(self.pattern, self.contents, view))
        self.corners |= corners
        if is_end:
            self.corners_at_end |= corners
            self.at_end[digest_of(view)] = self.contents.describe(view)
        for promise in self.pattern.promises:
            fate = self.contents.fate(view, promise.name)
            is_due = self.profile in promise.on and (is_end or not promise.is_at_end)
            if is_due and fate not in promise.fates:
                moment = ", the end" if promise.is_at_end else ""
                self.broken.append(f"{self.profile} has {promise.name} {fate} before operation {index}{moment}")

    def lacking(self) -> Iterator[str]:
        """Yield the corners that no state was in."""
        for number, corner in enumerate(self.pattern.corners):
            seen = self.corners_at_end if corner.is_at_end else self.corners
            if self.profile in corner.on and number not in seen:
                fates = ", ".join(f"{name} {fate}" for name, fate in corner.names.items())
                yield f"{self.profile} lacks {fates}{' at the end' if corner.is_at_end else ''}"

    def unsettled(self) -> Iterator[str]:
        """Yield the states that are left at the end, where there should be one."""
        if self.profile in self.pattern.settles_on and len(self.at_end) != 1:
            states = "; ".join(self.at_end.values())
            yield f"{self.profile} leaves {len(self.at_end)} states at the end, and not one: {states}"
