"""The states that a loss of power may leave at every point of a recorded life, each where most was acknowledged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from chaos.model import Acknowledgement, Enumeration, FaultKind, FileRole, FileSystem, FoundState, Loss, Record
from chaos.states.durability.blaming import KeptFile, blame, files_of_save, with_blame
from chaos.states.durability.enumerating import Found, Losses, losses_at
from chaos.states.durability.history import History
from chaos.states.looking import Contents, content_of_node
from chaos.states.places import Place, state_at
from chaos.states.recording import Recording

_LOOKED_THROUGH: Final = 48
_ONE_IN_IS_ANY: Final = 4


class LossesFound(Record, kw_only=True):
    """The states, in the order of their points; at `num_cut` points the model allows more than were taken."""

    states: tuple[FoundState, ...]
    num_cut: int


def losses_of(
    recording: Recording,
    places: Sequence[Place],
    enumeration: Enumeration,
    acknowledgements: Sequence[Acknowledgement],
    before: Sequence[Acknowledgement] = (),
) -> LossesFound:
    """Return what a loss of power may leave, by the rules of the file systems asked for.

    A state that is possible at many points is told once for each number of acknowledged saves, for the last of them.
    """
    walk = _Walk(recording, places, enumeration, acknowledgements, before)
    kept: dict[object, FoundState] = {}
    for state in walk.states():
        assert state.loss is not None  # noqa: S101 - all of them are losses
        key = (state.digest, state.num_acknowledged, state.loss.profiles, state.loss.not_durable)
        kept.pop(key, None)
        kept[key] = state
    return LossesFound(states=tuple(kept.values()), num_cut=walk.num_cut)


def lose_at(
    recording: Recording,
    places: Sequence[Place],
    enumeration: Enumeration,
    acknowledgements: Sequence[Acknowledgement],
    before: Sequence[Acknowledgement],
    index: int,
    variant: int,
) -> Loss:
    """Return one state at one point, chosen by `variant` from the first ones that there are.

    Three of four variants are among those that lack something of the last acknowledged save, if there are any.
    """
    walk = _Walk(recording, places, enumeration, acknowledgements, before)
    losses = [walk.blamed(found) for found in walk.at(index, _LOOKED_THROUGH).found]
    harmful = [loss for loss in losses if loss.not_durable]
    turn, kind = divmod(variant, _ONE_IN_IS_ANY)
    chosen = harmful if harmful and kind else losses
    return chosen[turn % len(chosen)]


def loss_seen(
    recording: Recording,
    places: Sequence[Place],
    file_system: FileSystem,
    acknowledgements: Sequence[Acknowledgement],
    index: int,
    seen: Contents,
) -> Loss:
    """Return a loss that was seen at one point of a lineage's first life: what the last acknowledged save lacks."""
    walk = _Walk(recording, places, Enumeration(file_systems=(file_system,)), acknowledgements, ())
    return walk.blamed(walk.read(index, file_system, seen))


class _Walk:
    """Goes through a recording, and remembers the files of the last acknowledged save."""

    def __init__(
        self,
        recording: Recording,
        places: Sequence[Place],
        enumeration: Enumeration,
        acknowledgements: Sequence[Acknowledgement],
        before: Sequence[Acknowledgement],
    ) -> None:
        """Begin before the first operation."""
        self.num_cut = 0
        self._places = places
        self._enumeration = enumeration
        self._acknowledgements = acknowledgements
        self._history = History(recording, enumeration.file_systems)
        self._num_acknowledged = 0
        self._files: tuple[KeptFile, ...] = ()
        if before:
            self._files = files_of_save(self._history, _paths(before[-1]))

    def _go_to(self, index: int) -> bool:
        """Go on to a point; False where nothing has changed since the point before."""
        is_new = self._history.advance(index)
        num_acknowledged = self._places[index].num_acknowledged if index < len(self._places) else self._num_acknowledged
        if num_acknowledged > self._num_acknowledged:
            self._num_acknowledged = num_acknowledged
            self._files = files_of_save(self._history, _paths(self._acknowledgements[num_acknowledged - 1]))
            return True
        return is_new

    def states(self) -> Iterator[FoundState]:
        """Yield every state of every point that has an address."""
        losses = Losses(found=(), is_cut=False)
        blamed: tuple[Loss, ...] = ()
        for index, place in enumerate(self._places):
            if self._go_to(index) or not index:
                losses = losses_at(self._history, self._enumeration.num_losses)
                blamed = tuple(self.blamed(found) for found in losses.found)
            if place.address is None:
                continue
            self.num_cut += losses.is_cut
            for variant, (found, loss) in enumerate(zip(losses.found, blamed, strict=True)):
                yield state_at(place, index, found.digest, fault=FaultKind.POWER_LOSS, variant=variant, loss=loss)

    def at(self, index: int, limit: int) -> Losses:
        """Return the states at one point."""
        for passed in range(index + 1):
            self._go_to(passed)
        return losses_at(self._history, limit)

    def read(self, index: int, file_system: FileSystem, seen: Contents) -> Found:
        """Read a folder that was seen at one point as a state: which file each name leads to, told by its bytes.

        Where they are those of no file as it was then, it is the file that had the name, and its bytes were lost.
        """
        for passed in range(index + 1):
            self._go_to(passed)
        tree = self._history.tree
        owners = {content_of_node(tree, node): number for number, node in tree.nodes.items() if node.extents.size}
        paths: dict[str, int] = {}
        contents: dict[int, bytes] = {}
        for path, content in seen.items():
            now = tree.find(path)
            is_kept = now is not None and content_of_node(tree, now) == content
            number = now.number if now is not None else None
            if content is not None and not is_kept:
                number = owners.get(content, number)
            if number is not None:
                paths[path] = number
                contents |= {number: content} if content is not None else {}
        return Found(digest="", loss=Loss(profiles=(file_system,)), paths=paths, contents=contents)

    def blamed(self, found: Found) -> Loss:
        """Return a state's loss with what the last acknowledged save lacks in it."""
        return with_blame(found, blame(self._history, found, self._files, self._name_of))

    def _name_of(self, index: int) -> str:
        """Put an operation into words."""
        address = self._places[index].address if 0 <= index < len(self._places) else None
        return str(address) if address is not None else ""


def _paths(acknowledgement: Acknowledgement) -> tuple[str, ...]:
    """Return the names of the whole checkpoints at an acknowledgement."""
    return tuple(f.path for f in acknowledgement.files if f.role is FileRole.CHECKPOINT and f.is_whole is not False)
