"""One of two checkpoints that are compared: its members, opened in turn, and every complaint with its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.examine import MemberResult, merged, stand_in
from chaos.checkpoints.leaves import Leaf, tensor_leaf
from chaos.checkpoints.members import Member, members_of, open_member
from chaos.checkpoints.streams import Buffer, Stream, stream_of
from chaos.checkpoints.tensors import Storage, Tensor
from chaos.errors import UsageError


class Side:
    """The file or the folder at `path`."""

    def __init__(self, path: Path, *, follows_links: bool) -> None:
        """List its members; raises UsageError when it is missing or cannot be listed."""
        self.path = path
        self._follows_links = follows_links
        self._results: list[MemberResult] = []
        with self.reading():
            if not path.exists():
                raise DamagedError("missing")
            self.is_folder = path.is_dir()
            self.members = {member.prefix: member for member in members_of(path)}

    @contextmanager
    def reading(self, prefix: str = "") -> Iterator[None]:
        """Make whatever goes wrong while this side is read a UsageError that names it."""
        where = f"{prefix}: " if prefix else ""
        try:
            yield
        except (DamagedError, UnjudgeableError) as error:
            raise self._complaint(f"{where}{error}") from error
        except OSError as error:
            raise self._complaint(f"{where}it cannot be read: {error.strerror or error}") from error
        except MemoryError as error:
            raise self._complaint(f"{where}to read it takes more memory than the limit") from error
        except UsageError:
            raise
        except Exception as error:
            # A file that was made to break the reader is the user's to look at, no failure of ours.
            raise self._complaint(f"{where}it cannot be understood ({type(error).__name__})") from error

    def _complaint(self, reason: str) -> UsageError:
        """Return the sentence that says that this side is not whole."""
        return UsageError(
            f"{self.path} cannot be compared: {reason}", hint="Give two whole checkpoints of formats known here."
        )

    def open(self, prefix: str, stack: ExitStack) -> Part:
        """Return the member called `prefix`, open until `stack` closes; an empty part where there is none."""
        member = self.members.get(prefix)
        if member is None:
            return Part(self, prefix)
        with self.reading(prefix):
            found = stand_in(member, follows_links=self._follows_links) if self.is_folder else None
            part = Part(self, prefix)
            if found is None:
                part.take(member, stack)
                found = part.result(member)
            else:
                part.leaves = {leaf.name: leaf for leaf in found.leaves}
        self._results.append(found)
        return part

    def require_whole(self) -> None:
        """Raise UsageError unless all members together are a checkpoint: one may need another, or none be known."""
        if self.is_folder:
            is_whole, reason = merged(self._results)
            if not is_whole:
                raise self._complaint(reason)


class Part:
    """What one member holds: values and tensors by their full names, and the streams to read them by."""

    def __init__(self, side: Side, prefix: str) -> None:
        """Begin with nothing in it."""
        self.side = side
        self.prefix = prefix
        self.leaves: dict[str, Leaf] = {}
        self.tensors: dict[str, Tensor] = {}
        self._format = "unknown"
        self._needed: dict[str, tuple[str, ...]] = {}
        self._streams: dict[int, Reading] = {}

    def take(self, member: Member, stack: ExitStack) -> None:
        """Open the member and keep what it holds; raises what its reader raises."""
        contents = open_member(member, stack)
        self._format, self._needed = contents.format, contents.needed
        self.leaves = {member.leaf_name(leaf.name): leaf for leaf in contents.leaves}
        self.tensors = {member.leaf_name(name): tensor for name, tensor in contents.tensors.items()}
        for storage in (*contents.storages, *(tensor.storage for tensor in contents.tensors.values())):
            if id(storage) not in self._streams:
                self._streams[id(storage)] = Reading(self, storage, number=len(self._streams))

    def result(self, member: Member) -> MemberResult:
        """Return what the member needs of others, and the names that it holds."""
        names = (*self.leaves, *self.tensors) if self.side.is_folder else ()
        leaves = tuple(
            self.leaves[name] if name in self.leaves else tensor_leaf(name, self.tensors[name], "") for name in names
        )
        return MemberResult(member=member, is_whole=True, format=self._format, leaves=leaves, needed=self._needed)

    def reading(self, storage: Storage) -> Reading:
        """Return the stream of a storage of this member."""
        return self._streams[id(storage)]

    def finish(self) -> None:
        """Verify what is left; raises UsageError when a checksum says no."""
        for reading in self._streams.values():
            reading.finish()


class Reading:
    """A stream of one side: the same methods, and complaints that name the file. `number` is its place in the file."""

    def __init__(self, part: Part, storage: Storage, number: int) -> None:
        """Open the stream when it is needed."""
        self.number = number
        self.storage = storage
        self._part = part
        self._stream: Stream | None = None

    @property
    def stream(self) -> Stream:
        """The stream itself; raises what opening it raises."""
        if self._stream is None:
            self._stream = stream_of(self.storage)
        return self._stream

    def fill(self, start: int, buffer: Buffer) -> None:
        """Read into all of `buffer` from offset `start`; raises UsageError."""
        with self._part.side.reading(self._part.prefix):
            self.stream.fill(start, buffer)

    def reach(self, start: int) -> None:
        """Read what lies before `start` for the checksum; raises UsageError."""
        with self._part.side.reading(self._part.prefix):
            self.stream.reach(start)

    def note(self, start: int, piece: Buffer) -> None:
        """Work a piece into the checksum; raises UsageError."""
        with self._part.side.reading(self._part.prefix):
            self.stream.note(start, piece)

    def finish(self) -> None:
        """Verify the rest; raises UsageError."""
        with self._part.side.reading(self._part.prefix):
            self.stream.finish()
