"""Every state that a loss of power may leave at a point, the adversarial ones first, bounded; and how many there are.

The order: for each outcome of the names (all, none, one alone, all but one, …), all open files in the same way
(everything there, nothing, zeros, halves, …), then one file in another way than all the others, then everything else.
The outcomes of names take turns, so that a bound cuts each of them alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import xxhash

from chaos.errors import InconclusiveError
from chaos.model import PAGE_BYTES, FileSystem, Loss, SurvivingBytes, SurvivingFile, SurvivingName
from chaos.states.changes import ROOT, NodeKind
from chaos.states.durability.contents import Choice, Outcomes
from chaos.states.durability.history import History, View
from chaos.states.durability.names import Cells, NameState
from chaos.states.recording import Recording
from chaos.states.tree import Tree

_DRAWN_FROM = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One state: a digest of all that can be seen, and the loss that leaves it."""

    digest: str
    loss: Loss


def enumerate_losses(
    recording: Recording, index: int, file_systems: Iterable[FileSystem], limit: int | None
) -> Iterator[Loss]:
    """Yield the states that a loss of power right before operation `index` may leave, each once.

    At most `limit` for each file system (None: all of them, which may be more than can ever be gone through).
    """
    history = History(recording, file_systems)
    history.advance(index)
    for found in losses_at(history, limit):
        yield found.loss


def draw_loss(recording: Recording, index: int, file_system: FileSystem, variant: int) -> Loss:
    """Return one of the first states at a point, number `variant` modulo how many there are."""
    found = list(enumerate_losses(recording, index, (file_system,), _DRAWN_FROM))
    return found[variant % len(found)]


def size_of_set(recording: Recording, index: int, file_system: FileSystem) -> int:
    """Return how many states may be left, those of equal bytes once for each way to come about."""
    history = History(recording, (file_system,))
    history.advance(index)
    return size_at(history, file_system)


def losses_at(history: History, limit: int | None) -> list[Found]:
    """Return the states at the point that a history has come to, each once, with the file systems it can be on."""
    found: dict[str, Found] = {}
    for file_system, view in history.views.items():
        for item in itertools.islice(_distinct(history, file_system, view), limit):
            known = found.get(item.digest)
            if known is None:
                found[item.digest] = item
            else:
                profiles = (*known.loss.profiles, file_system)
                found[item.digest] = Found(digest=item.digest, loss=_with_profiles(known.loss, profiles))
    return list(found.values())


def size_at(history: History, file_system: FileSystem) -> int:
    """Return how many states there are at the point that a history has come to."""
    view = history.views[file_system]
    total = 0
    for state in _counted(view):
        reach = _Reach(history.tree, state.cells)
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


def _distinct(history: History, file_system: FileSystem, view: View) -> Iterator[Found]:
    """Yield the states by the rules of one file system, each once."""
    seen = set()
    turns = [_of_names(history, file_system, view, state) for state in view.names.states()]
    while turns:
        for turn in list(turns):
            found = next(turn, None)
            if found is None:
                turns.remove(turn)
            elif found.digest not in seen:
                seen.add(found.digest)
                yield found


def _of_names(history: History, file_system: FileSystem, view: View, state: NameState) -> Iterator[Found]:
    """Yield the states with one outcome of the names, some more than once."""
    reach = _Reach(history.tree, state.cells)
    chosen: dict[int, Choice] = {}
    open_files: dict[int, list[Outcomes]] = {}
    for number in reach.files:
        if number in view.floors:
            outcomes = _choices(view, number, state)
            if len(outcomes) > 1 or outcomes[0].is_open:
                open_files[number] = outcomes
            else:
                chosen[number] = outcomes[0].everything()
    names = tuple(SurvivingName(parent=p, name=n, node=node) for (p, n), node in sorted(state.cells.items()))
    for combination in _combinations(open_files):
        choices = chosen | combination
        digest = reach.digest({number: history.files[number].digest(choice) for number, choice in choices.items()})
        files = tuple(_surviving(number, choice) for number, choice in sorted(choices.items()))
        yield Found(digest=digest, loss=Loss(profiles=(file_system,), names=names, files=files))


def _choices(view: View, number: int, state: NameState) -> list[Outcomes]:
    """Return what may be left of a file: with one limit for its cuts where names have an order, else with any."""
    floor = view.floors[number]
    limits = [state.upto] if state.upto is not None else list(reversed(floor.limits()))
    return [floor.outcomes(limit) for limit in limits]


def _combinations(files: Mapping[int, list[Outcomes]]) -> Iterator[dict[int, Choice]]:
    """Yield one choice for each open file, in the order that the head of this file tells."""
    corners = {number: [c for outcome in outcomes for c in outcome.corners()] for number, outcomes in files.items()}
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
    yield from _product(files)


def _product(files: Mapping[int, list[Outcomes]]) -> Iterator[dict[int, Choice]]:
    """Yield every choice for each open file, without holding more than one of them in memory at a time."""
    if not files:
        return
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


class _Reach:
    """What can be seen of a folder whose cells are as given: every path, and the files behind them."""

    def __init__(self, tree: Tree, cells: Cells) -> None:
        """Walk through the folder once; a folder under two names is seen under the first alone."""
        self._tree = tree
        self._paths: list[tuple[str, int]] = []
        self._entries: dict[int, dict[str, int]] = {}
        for (parent, name), node in cells.items():
            entries = self._entries.setdefault(parent, dict(tree.node(parent).entries))
            entries.pop(name, None)
            if node is not None:
                entries[name] = node
        self._walk(ROOT, "", {ROOT})
        kinds = tree.nodes
        self.files = tuple(dict.fromkeys(n for _, n in self._paths if kinds[n].kind is NodeKind.FILE))

    def _walk(self, folder: int, base: str, seen: set[int]) -> None:
        """List a folder and all below it."""
        for name, number in sorted(self._entries.get(folder, self._tree.node(folder).entries).items()):
            is_folder = self._tree.node(number).kind is NodeKind.FOLDER
            if is_folder and number in seen:
                continue
            self._paths.append((base + name, number))
            if is_folder:
                seen.add(number)
                self._walk(number, f"{base}{name}/", seen)

    def digest(self, files: Mapping[int, bytes]) -> str:
        """Return a digest of all that can be seen, with digests for the files that are not as they were."""
        digest = xxhash.xxh3_128()
        for path, number in self._paths:
            node = self._tree.nodes[number]
            digest.update(f"{path}\0{node.kind}\0{node.text}\0{number if len(node.names) > 1 else ''}\0".encode())
            if node.kind is NodeKind.FILE:
                digest.update(files.get(number) or node.extents.digest(self._tree.content))
        return digest.hexdigest()
