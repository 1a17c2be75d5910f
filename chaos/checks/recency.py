"""How new a checkpoint is: content is matched by digest with the saves of the uninterrupted reference.

File times and names say little (a restart may rewrite both), so age is decided by content alone. The content of
save k is what was not there at the acknowledgements before it. A target may acknowledge before it has written:
then the n-th new content belongs to the n-th acknowledgement, as long as there are as many of one as of the other;
otherwise each content is given the *oldest* save that it may belong to, so that no life is blamed wrongly.

Files whose names differ in numbers alone are parts of one save (the shards of two ranks): where two of them have equal
content, the save needs both. A copy under another kind of name (`latest.pt` beside `step_30.pt`) is needed once only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from chaos.checks.lineage import of_role
from chaos.model import Acknowledgement, FileRole, FileState, LifeRecord, Record, Reference

_NUMBER: Final = re.compile(r"\d+")


class KnownSave(Record, kw_only=True):
    """One save of the reference: ordinal, the content it put there, and where a life that resumes from it begins.

    A digest stands in `digests` as often as files of that content are needed.
    `ticks_before` counts the steps completed when it began, `next_step` is the smallest step number that a life
    resuming from it should print first; both None where that is unknown. `is_exact` is false where the content may
    belong to a later save.
    """

    ordinal: int
    digests: tuple[str, ...]
    step: int | None = None
    ticks_before: int | None = None
    next_step: int | None = None
    is_exact: bool = True


class SaveOrder(Record, kw_only=True):
    """The reference's saves in their order, oldest first; `start` says where a life without a checkpoint begins.

    `is_gapless` tells that every acknowledgement brought new content, so none was of content that had been there.
    """

    saves: tuple[KnownSave, ...] = ()
    is_gapless: bool = False
    start: KnownSave = KnownSave(ordinal=0, digests=(), ticks_before=0)

    def rank(self, digest: str) -> int | None:
        """Return the ordinal of the save that wrote this content (None: the reference never wrote it)."""
        return next((save.ordinal for save in self.saves if digest in save.digests), None)

    def newest_save(self, files: Iterable[FileState]) -> KnownSave | None:
        """Return the newest save all of whose content is whole among `files` (None: no save of the reference is)."""
        there = Counter(file.digest for file in not_damaged(files))
        return next((save for save in reversed(self.saves) if Counter(save.digests) <= there), None)

    def older_than(self, save: KnownSave) -> KnownSave:
        """Return the save before `save`; before the first, one without content that stands for the start."""
        return next((other for other in reversed(self.saves) if other.ordinal < save.ordinal), self.start)

    def acknowledged_save(self, acknowledgement: Acknowledgement) -> KnownSave | None:
        """Return the save that a printed step number names beyond doubt (None: none does)."""
        if not acknowledgement.is_printed or acknowledgement.step is None:
            return None
        named = [save for save in self.saves if save.step == acknowledgement.step and save.is_exact]
        return named[0] if len(named) == 1 else None


def order_of(reference: Reference) -> SaveOrder:
    """Work out the order of the reference's saves from its first run."""
    if not reference.outcomes or not reference.outcomes[0].lives:
        return SaveOrder()
    life = reference.outcomes[0].lives[0]
    acknowledged, contents = _acknowledged_contents(reference, life)
    if not acknowledged:
        return SaveOrder()
    clock = _Clock.of(reference, life, [item.step for item in acknowledged if item.step is not None])
    saves: list[KnownSave] = []
    for (position, digests), owner in zip(contents, _owners(contents, len(acknowledged)), strict=True):
        is_exact = owner == position or len(contents) == len(acknowledged)
        step = acknowledged[owner].step
        ticks, next_step = clock.resumed(step, *(_ticks(reference, acknowledged, at) for at in (owner, owner - 1)))
        saves.append(
            KnownSave(
                ordinal=len(saves) + 1,
                digests=digests,
                step=step,
                ticks_before=ticks,
                next_step=next_step,
                is_exact=is_exact,
            )
        )
    start = KnownSave(ordinal=0, digests=(), ticks_before=0, next_step=clock.first)
    return SaveOrder(saves=tuple(saves), start=start, is_gapless=len(contents) >= len(acknowledged))


_Contents = list[tuple[int, tuple[str, ...]]]


def _acknowledged_contents(reference: Reference, life: LifeRecord) -> tuple[list[Acknowledgement], _Contents]:
    """Return the acknowledgements that count, and the new contents at each of them and at the end.

    Those outside of saves are left out, unless with them there are exactly as many as contents: then each save is
    acknowledged before its first write.
    """
    repeated = _repeated(reference)
    inside = [item for item in life.acknowledgements if item.save > 0]
    named = [item for item in life.acknowledgements if item.save > 0 or item.step is not None]
    found = []
    for candidates in (inside, named):
        counted = _distinct(candidates)
        found.append((counted, _new_contents([*(item.files for item in counted), life.crash_state], repeated)))
    return next((pair for pair in found if len(pair[0]) == len(pair[1])), found[0])


def _distinct(acknowledgements: Sequence[Acknowledgement]) -> list[Acknowledgement]:
    """Leave out of several in a row with the same step number all but the last."""
    following = [item.step for item in acknowledgements[1:]]
    is_last = [
        item.step is None or item.step != after for item, after in zip(acknowledgements, following, strict=False)
    ]
    return [item for item, keep in zip(acknowledgements, [*is_last, True], strict=False) if keep]


def not_damaged(files: Iterable[FileState]) -> tuple[FileState, ...]:
    """Return the checkpoints that are whole or cannot be judged; one of the latter is known by its bytes alone."""
    return tuple(file for file in of_role(files, FileRole.CHECKPOINT) if file.is_whole is not False)


def _repeated(reference: Reference) -> frozenset[str]:
    """Return the digests that the second reference shows too: of files of unknown format, only these mean anything.

    Such a file may be the pointer that names the current checkpoint: its save is complete only when it is written.
    """
    lives = reference.outcomes[1].lives[:1] if len(reference.outcomes) > 1 else ()
    states = [state for life in lives for state in (*(item.files for item in life.acknowledgements), life.crash_state)]
    return frozenset(file.digest for state in states for file in not_damaged(state))


def _new_contents(
    states: Sequence[tuple[FileState, ...]], repeated: frozenset[str]
) -> list[tuple[int, tuple[str, ...]]]:
    """Return the position of each state that shows content not seen before, with that content's digests."""
    seen: set[str] = set()
    contents = []
    for position, files in enumerate(states):
        shown = [file for file in not_damaged(files) if file.is_whole or file.digest in repeated]
        new = _needed([file for file in shown if file.digest not in seen])
        seen.update(new)
        if new:
            contents.append((position, new))
    return contents


def _needed(files: Sequence[FileState]) -> tuple[str, ...]:
    """Return the digests of files, each as often as names that differ in numbers alone have that content."""
    alike = Counter((file.digest, _NUMBER.sub("", file.key)) for file in files)
    needed: Counter[str] = Counter()
    for (digest, _), count in alike.items():
        needed[digest] = max(needed[digest], count)
    return tuple(sorted(needed.elements()))


def _owners(contents: Sequence[tuple[int, tuple[str, ...]]], num_acknowledged: int) -> list[int]:
    """Give each content the position of its acknowledgement, the oldest possible one in doubt."""
    owners: list[int] = []
    for position, _ in contents:
        oldest = owners[-1] + 1 if owners else 0
        owners.append(min(oldest, position, num_acknowledged - 1))
    return owners


def _ticks(reference: Reference, acknowledged: Sequence[Acknowledgement], position: int) -> int | None:
    """Return the steps completed when the save of the acknowledgement at `position` began (None: unknown)."""
    if position < 0:
        return 0
    ordinal = acknowledged[position].save
    return next((save.ticks_before for save in reference.profile.saves if save.ordinal == ordinal), None)


class _Clock(Record, kw_only=True):
    """How the numbers in step lines follow the count of steps: `first` + `stride` * count, where that is known."""

    first: int | None
    stride: int | None

    @classmethod
    def of(cls, reference: Reference, life: LifeRecord, numbers: Sequence[int]) -> _Clock:
        """Read the numbering off the reference's first run; a stride needs a line for every counted step.

        `numbers` are those acknowledged: they must be of the same clock as the step lines.
        """
        if life.first_step is None or life.last_step is None:
            return cls(first=None, stride=None)
        span, intervals = life.last_step - life.first_step, max(reference.profile.total_steps - 1, 1)
        ahead = max(numbers, default=life.last_step) - life.last_step
        if not _is_one_clock(span, intervals, ahead, uses_ticks=reference.profile.uses_ticks):
            return cls(first=None, stride=None)
        stride, rest = divmod(span, intervals)
        return cls(first=life.first_step, stride=stride if stride and not rest else None)

    def resumed(self, step: int | None, ticks: int | None, previous: int | None) -> tuple[int | None, int | None]:
        """Return the count of steps in a save, and the smallest step number that may follow it.

        A background writer begins after its save was asked for, so the count when it began may be too large; the
        printed number corrects it where it is a step number at all (an epoch's would lie before the save before).
        """
        if self.first is None:
            return ticks, None
        by_number = None if step is None else step + (1 if self.first else 0)
        if self.stride is None or ticks is None:
            return ticks, by_number
        if by_number is None or previous is None or by_number <= self.first + self.stride * previous:
            return ticks, self.first + self.stride * ticks
        ticks = min(ticks, (by_number - self.first) // self.stride)
        return ticks, min(by_number, self.first + self.stride * ticks)


def _is_one_clock(span: int, intervals: int, ahead: int, *, uses_ticks: bool) -> bool:
    """Tell whether the numbers in step lines only grow, and acknowledged ones go on where they end.

    `span` is the last number less the first, `intervals` the counted steps less one, `ahead` by how much the largest
    acknowledged number is beyond the last line's. Numbers that begin anew in each epoch are fewer than the steps, by
    a whole epoch at least; lines that are left out are fewer by less than what the others span. An acknowledgement
    may come ahead of the next line by the steps that have no line, and by one where lines count from 0.
    """
    missing = intervals - span
    without_line = max(missing, 0) + 1 if uses_ticks else max(span // intervals, 1)
    return missing < max(span, 1) and ahead <= without_line
