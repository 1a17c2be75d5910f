"""Every state that a loss of power may leave at a point, the adversarial ones first, bounded; and how many there are.

The order: for each outcome of the names (all, none, one alone, all but one, …), all open files in the same way
(everything there, nothing, zeros, halves, …), then one file in another way than all the others, then everything else.
The outcomes of names take turns, one more in each round, so that a bound leaves some of each.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from chaos.errors import InconclusiveError
from chaos.model import PAGE_BYTES, FileSystem, Loss, SurvivingBytes, SurvivingFile, SurvivingName
from chaos.states.durability.contents import Outcomes
from chaos.states.durability.history import History, View
from chaos.states.durability.names import NameState
from chaos.states.durability.reaching import Reach
from chaos.states.durability.rules import Rules
from chaos.states.durability.written import Choice
from chaos.states.recording import Recording

_GONE_THROUGH = 4096
_TRIES_FOR_EACH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One state: a digest of all that can be seen, the loss that leaves it, and what it leaves.

    `paths` leads from every path to its node, `contents` from nodes to the digests of files that can come out in more
    than one way.
    """

    digest: str
    loss: Loss
    paths: Mapping[str, int]
    contents: Mapping[int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The states at one point; `is_cut`: the model allows more than these."""

    found: tuple[Found, ...]
    is_cut: bool


def enumerate_losses(
    recording: Recording, index: int, file_systems: Iterable[FileSystem], limit: int | None
) -> Iterator[Loss]:
    """Yield the states that a loss of power right before operation `index` may leave, each once.

    At most `limit` for each file system (None: all of them, which may be more than can ever be gone through).
    """
    history = History(recording, file_systems)
    history.advance(index)
    for found in losses_at(history, limit).found:
        yield found.loss


def size_of_set(recording: Recording, index: int, file_system: FileSystem) -> int:
    """Return how many states may be left, those of equal bytes once for each way to come about."""
    history = History(recording, (file_system,))
    history.advance(index)
    return size_at(history, file_system)


def losses_at(history: History, limit: int | None) -> Losses:
    """Return the states at the point that a history has come to, each once, with the file systems it can be on.

    With a `limit`, files of which too much is open to go through it all are held to the outcomes that hurt.
    """
    found: dict[str, Found] = {}
    is_cut = False
    for file_systems in _alike(history):
        distinct = _Distinct(history, file_systems, tries=None if limit is None else limit * _TRIES_FOR_EACH)
        for item in itertools.islice(distinct, limit):
            known = found.get(item.digest)
            profiles = (*(known.loss.profiles if known is not None else ()), *file_systems)
            found[item.digest] = replace(known or item, loss=_with_profiles((known or item).loss, profiles))
        is_cut |= distinct.is_cut or (limit is not None and next(distinct, None) is not None)
    return Losses(found=tuple(found.values()), is_cut=is_cut)


def _alike(history: History) -> list[tuple[FileSystem, ...]]:
    """Return the file systems in groups of equal rules: what one of them may leave, all of them may."""
    groups: dict[Rules, list[FileSystem]] = {}
    for file_system, view in history.views.items():
        groups.setdefault(view.rules, []).append(file_system)
    return [tuple(group) for group in groups.values()]


def size_at(history: History, file_system: FileSystem) -> int:
    """Return how many states there are at the point that a history has come to."""
    view = history.views[file_system]
    total = 0
    for state in _counted(view):
        reach = Reach(history.tree, state.cells)
        files = (_choices(view, number, state) for number in reach.files if number in view.floors)
        total += math.prod(sum(outcome.count() for outcome in outcomes) for outcomes in files)
    return total


_MOST_COUNTED = 100_000


def _counted(view: View) -> Iterator[NameState]:
    """Yield the outcomes of names, to be counted one by one; InconclusiveError where they are too many for that."""
    if view.names.count() > _MOST_COUNTED:
        message = f"the names alone can come out in {view.names.count():,} ways: their states are not counted"
        raise InconclusiveError(message, hint="count at a point with less that is not durable")
    return view.names.states()


def _with_profiles(loss: Loss, profiles: tuple[FileSystem, ...]) -> Loss:
    """Return the same loss, on other file systems."""
    return Loss(profiles=profiles, names=loss.names, files=loss.files, not_durable=loss.not_durable)


class _Distinct:
    """The states by the rules that some file systems share, each once; `is_cut`: not all were gone through.

    With a number of `tries` no more are looked at: many outcomes may be the same state, as where files are rewritten
    with the bytes that they had.
    """

    def __init__(self, history: History, file_systems: tuple[FileSystem, ...], *, tries: int | None) -> None:
        """Begin before the first state."""
        self.is_cut = False
        self._history = history
        self._file_systems = file_systems
        self._view = view = history.views[file_systems[0]]
        self._tries = tries
        self._seen: set[str] = set()
        self._waiting = (self._of_names(state) for state in view.names.states())
        self._begun: list[Iterator[Found]] = []
        self._turns: deque[Iterator[Found]] = deque()

    def __iter__(self) -> Iterator[Found]:
        """Return itself."""
        return self

    def __next__(self) -> Found:
        """Return the next state that was not seen before."""
        while self._turns or self._begin_round():
            if self._tries is not None:
                if self._tries == 0:
                    self.is_cut = True
                    break
                self._tries -= 1
            turn = self._turns.popleft()
            found = next(turn, None)
            if found is None:
                self._begun.remove(turn)
            elif found.digest not in self._seen:
                self._seen.add(found.digest)
                return found
        raise StopIteration

    def _begin_round(self) -> bool:
        """Give each outcome of names that was begun a turn, and one more; False where there is none."""
        another = next(self._waiting, None)
        if another is not None:
            self._begun.append(another)
        self._turns.extend(self._begun)
        return bool(self._turns)

    def _of_names(self, state: NameState) -> Iterator[Found]:
        """Yield the states with one outcome of the names, some more than once."""
        history, view = self._history, self._view
        reach = Reach(history.tree, state.cells)
        chosen: dict[int, Choice] = {}
        open_files: dict[int, list[Outcomes]] = {}
        for number in reach.files:
            if number in view.floors:
                outcomes = _choices(view, number, state)
                if len(outcomes) > 1 or outcomes[0].is_open:
                    open_files[number] = outcomes
                else:
                    chosen[number] = outcomes[0].everything
        names = tuple(SurvivingName(parent=p, name=n, node=node) for (p, n), node in sorted(state.cells.items()))
        for combination in self._combinations(open_files):
            choices = chosen | combination
            contents = {number: history.files[number].digest(choice) for number, choice in choices.items()}
            files = tuple(_surviving(number, choice) for number, choice in sorted(choices.items()))
            loss = Loss(profiles=self._file_systems, names=names, files=files)
            yield Found(digest=reach.digest(contents), loss=loss, paths=reach.paths, contents=contents)

    def _combinations(self, files: Mapping[int, list[Outcomes]]) -> Iterator[dict[int, Choice]]:
        """Yield one choice for each open file, in the order that the head of this file tells."""
        yield from _corners(files)
        if not files:
            return
        outcomes = itertools.chain.from_iterable(files.values())
        if self._tries is not None and not all(outcome.is_at_most(_GONE_THROUGH) for outcome in outcomes):
            self.is_cut = True
        else:
            yield from _product(files)


def _choices(view: View, number: int, state: NameState) -> list[Outcomes]:
    """Return what may be left of a file: with one limit for its cuts where names have an order, else with any."""
    floor = view.floors[number]
    limits = [state.upto] if state.upto is not None else list(reversed(floor.limits()))
    return [floor.outcomes(limit) for limit in limits]


def _corners(files: Mapping[int, list[Outcomes]]) -> Iterator[dict[int, Choice]]:
    """Yield the choices that hurt: all files in the same way, then one in another way than the others."""
    corners = {number: [c for outcome in outcomes for c in outcome.corners] for number, outcomes in files.items()}
    most = max((len(choices) for choices in corners.values()), default=1)
    for kind in range(most):
        yield {number: choices[min(kind, len(choices) - 1)] for number, choices in corners.items()}
    if len(files) > 1:
        for kind, number in itertools.product(range(1, most), files):
            if kind < len(corners[number]):
                yield {other: choices[0] for other, choices in corners.items()} | {number: corners[number][kind]}
                yield {other: choices[min(1, len(choices) - 1)] for other, choices in corners.items()} | {
                    number: corners[number][kind]
                }


def _product(files: Mapping[int, list[Outcomes]]) -> Iterator[dict[int, Choice]]:
    """Yield every choice for each open file, without holding more than one of them in memory at a time."""
    (number, outcomes), *others = files.items()
    for choice in itertools.chain.from_iterable(outcome.all() for outcome in outcomes):
        if not others:
            yield {number: choice}
        else:
            for rest in _product(dict(others)):
                yield {number: choice} | rest


def _surviving(number: int, choice: Choice) -> SurvivingFile:
    """Return a choice as a record: byte ranges, none beyond the length."""
    ranges = []
    for first, end, position in choice.runs:
        start, stop = first * PAGE_BYTES, min(end * PAGE_BYTES, choice.size_bytes)
        if start < stop:
            ranges.append(SurvivingBytes(start=start, end=stop, position=position))
    return SurvivingFile(node=number, size_bytes=choice.size_bytes, ranges=tuple(ranges))
