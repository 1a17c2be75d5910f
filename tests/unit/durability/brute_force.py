"""Every state that a loss of power may leave of a small log, found by trying everything; shares nothing with the model.

The rules are those of the design, said once more in the simplest way: a log is a list of steps; what it begins with is
durable; names are cells (folder, name), bytes are pages. Exponential in everything, and meant to be.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

PAGE = 4096
ROOT = 0
NEVER = -1
NAMES_IN_ORDER = ("ext4", "xfs", "btrfs")

Cell = tuple[int, str]
Value = bytes | str | None
State = frozenset[tuple[str, Value]]


class TooManyStatesError(Exception):
    """There are more states than a test wants to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operation; `verb` is a method of the writer of recordings. A path `@3` is node 3, counted as they are made.

    `data` is what is written; `size` a length; `target` a new name, or a link's text.
    """

    verb: str
    path: str | None = ""
    target: str = ""
    offset: int = 0
    size: int = 0
    data: bytes = b""
    durability: str = "none"
    call: str = "fsync"
    has_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A change of names: what cells hold after it, whom it is about, and the node that it made."""

    position: int
    cells: dict[Cell, int | None]
    about: frozenset[int]
    made: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A change of a file: all its bytes after it, the pages that it touched, and those that it took away as a whole.

    `reach`: the length that it tells of besides that of `content`.
    """

    position: int
    node: int
    is_metadata: bool
    sets_length: bool
    pages: range
    taken: range
    reach: int
    content: bytes


@dataclass(slots=True)
class Log:
    """What a process sees, and everything that happened."""

    kinds: dict[int, str] = field(default_factory=lambda: {ROOT: "folder"})
    texts: dict[int, str] = field(default_factory=dict)
    cells: dict[Cell, int] = field(default_factory=dict)
    content: dict[int, bytes] = field(default_factory=dict)
    named: list[Named] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)

    # --- what a process sees --------------------------------------------------------------------------

    def find(self, path: str) -> int:
        """Return the node at a path."""
        if path.startswith("@"):
            return int(path[1:])
        node = ROOT
        for name in path.split("/") if path else ():
            node = self.cells[node, name]
        return node

    def cell(self, path: str) -> Cell:
        """Return the cell of a path."""
        base, _, name = path.rpartition("/")
        return self.find(base), name

    def below(self, cell: Cell) -> list[Cell]:
        """Return a cell and all below it."""
        node = self.cells[cell]
        return [cell] + [found for other in list(self.cells) if other[0] == node for found in self.below(other)]

    # --- what happens ---------------------------------------------------------------------------------

    def take(self, position: int, step: Step) -> None:
        """Carry one operation out."""
        match step.verb:
            case "make":
                self._make(position, step)
            case "link":
                self._name(position, {self.cell(step.target): self.find(step.path or "")})
            case "unlink":
                self._name(position, dict.fromkeys(self.below(self.cell(step.path or ""))))
            case "rename" | "exchange":
                self._rename(position, step)
            case "write" | "resize" | "allocate" | "zero":
                self._change(position, step)

    def _make(self, position: int, step: Step) -> None:
        """Make a node."""
        node = len(self.kinds)
        self.kinds[node] = step.call
        self.texts[node] = step.target
        self.content[node] = b""
        self._name(position, {self.cell(step.path or ""): node}, made=node)

    def _rename(self, position: int, step: Step) -> None:
        """Move a name."""
        old, new = self.cell(step.path or ""), self.cell(step.target)
        moved, replaced = self.cells[old], self.cells.get(new)
        if moved != replaced:
            self._name(position, {old: replaced if step.verb == "exchange" else None, new: moved})

    def _name(self, position: int, cells: dict[Cell, int | None], made: int | None = None) -> None:
        """Set cells."""
        nodes = {*cells.values(), *(self.cells.get(cell) for cell in cells)}
        about = frozenset(node for node in nodes if node is not None)
        self.named.append(Named(position=position, cells=cells, about=about, made=made))
        for cell, node in cells.items():
            self.cells.pop(cell, None)
            if node is not None:
                self.cells[cell] = node

    def _change(self, position: int, step: Step) -> None:
        """Change a file."""
        node = self.find(step.path or "")
        old = self.content[node]
        new, start, end = _changed(old, step)
        self.content[node] = new
        is_metadata = step.verb != "write"
        last = end if step.verb == "resize" else end // PAGE * PAGE  # what follows the end of a file is none of it
        change = Changed(
            position=position,
            node=node,
            is_metadata=is_metadata,
            sets_length=is_metadata and len(new) != len(old),
            pages=range(start // PAGE, -(-end // PAGE)) if start < end else range(0),
            taken=range(-(-start // PAGE), -(-last // PAGE)) if is_metadata else range(0),
            reach=min(step.offset + step.size, len(new)) if step.verb in ("zero", "allocate") else 0,
            content=new,
        )
        self.changed.append(change)


def _changed(old: bytes, step: Step) -> tuple[bytes, int, int]:
    """Return a file's bytes after a step, and the range of bytes that the step touches."""
    match step.verb:
        case "write":
            end = step.offset + len(step.data)
            return old[: step.offset].ljust(step.offset, b"\0") + step.data + old[end:], step.offset, end
        case "resize":
            return old[: step.size].ljust(step.size, b"\0"), min(step.size, len(old)), len(old)
        case "allocate":
            return old.ljust(step.offset + step.size, b"\0"), 0, 0
        case _:
            end = step.offset + step.size
            hole = bytes(max(min(end, len(old)) - step.offset, 0))
            return old[: step.offset] + hole + old[step.offset + len(hole) :], step.offset, end


@dataclass(slots=True)
class Durable:
    """What is durable on one file system, as positions in the log; what is not told is as the log began."""

    log: Log
    file_system: str
    prefix: int = NEVER
    logged: set[int] = field(default_factory=set)
    cells: dict[Cell, int] = field(default_factory=dict)
    pages: dict[tuple[int, int], int] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    spoilt: set[tuple[int, int]] = field(default_factory=set)

    def take(self, position: int, step: Step) -> None:
        """See what a step makes durable, or spoils."""
        if step.verb in ("write", "resize", "allocate", "zero"):
            mine = self.log.changed[-1]
            self.spoilt -= {(mine.node, page) for page in set(mine.pages) - set(mine.taken)}
            if step.durability != "none":
                is_last = mine.pages[-1] == (len(mine.content) - 1) // PAGE
                self._keep_bytes(position, mine.node, mine.pages, is_whole=is_last)
                self._keep_names(position, mine.node, "fsync" if step.durability == "all" else "fdatasync")
        elif step.verb == "sync" and step.path is None:
            if step.has_failed:
                for node in self.log.kinds:
                    self._spoil(node)
            elif self.file_system in NAMES_IN_ORDER:
                self.prefix = position
                for node in self.log.kinds:
                    self._keep_bytes(position, node, None, is_whole=True)
        elif step.verb == "sync" and step.call != "sync_file_range":
            node = self.log.find(step.path or "")
            if step.has_failed:
                self._spoil(node)
            else:
                self._keep_bytes(position, node, None, is_whole=True)
                self._keep_names(position, node, step.call)

    def _spoil(self, node: int) -> None:
        """Take it that what was written and is not durable counts as clean."""
        for change in self.log.changed:
            if change.node == node:
                written = set(change.pages) - set(change.taken)
                lost = {(node, page) for page in written if self.pages.get((node, page), NEVER) < change.position}
                self.spoilt |= lost

    def _keep_bytes(self, position: int, node: int, pages: range | None, *, is_whole: bool) -> None:
        """Take it that pages (None: all) are durable, and the length where the whole file is meant."""
        touched = {page for change in self.log.changed if change.node == node for page in change.pages}
        for page in touched if pages is None else pages:
            if (node, page) not in self.spoilt:
                self.pages[node, page] = position
        if is_whole:
            self.lengths[node] = position

    def _keep_names(self, position: int, node: int, call: str) -> None:
        """Take it that the names are durable which a sync of a node brings along."""
        is_all = call == "fsync"
        is_folder = self.log.kinds[node] == "folder"
        mine = [c for c in self.log.named if (node in c.about if is_all else c.made == node)]
        inside = [c for c in self.log.named if is_all and is_folder and any(cell[0] == node for cell in c.cells)]
        if self.file_system == "posix":
            self.cells.update({cell: position for change in inside for cell in change.cells if cell[0] == node})
        elif self.file_system == "btrfs":
            self.logged |= self._closure([*mine, *inside])
        else:
            cuts = [change.position for change in self.log.changed if change.node == node and change.is_metadata]
            self.prefix = max([self.prefix, *cuts, *(change.position for change in [*mine, *inside])])

    def _closure(self, wanted: list[Named]) -> set[int]:
        """Return changes with all earlier ones on the same cells, and those that made the folders of the cells."""
        found = {change.position for change in wanted}
        for change in wanted:
            folders = {cell[0] for cell in change.cells}
            for other in self.log.named:
                is_under = not change.cells.keys().isdisjoint(other.cells) or other.made in folders
                if other.position < change.position and is_under and other.position not in found:
                    found |= self._closure([other])
        return found


def survivors(steps: list[Step], begin: int, index: int, file_system: str, most: int = 100_000) -> set[State]:
    """Return every state that a loss of power right before operation `index` may leave.

    The first `begin` steps are what was there, durable; operation 0 is the step after them. Raises TooManyStatesError
    where more than `most` would have to be tried.
    """
    log = Log()
    for step in steps[:begin]:
        log.take(NEVER, step)
    start = Log(cells=dict(log.cells), content=dict(log.content))
    log.named.clear()
    log.changed.clear()
    durable = Durable(log, file_system)
    for position, step in enumerate(steps[begin : begin + index]):
        log.take(position, step)
        durable.take(position, step)
    for step in steps[begin + index : begin + index + 1]:
        if step.verb == "write" and step.durability != "none":  # under way
            log.take(index, step)
    return set(_Survivors(start, log, durable, most).states())


@dataclass(slots=True)
class _Survivors:
    """Tries everything."""

    start: Log
    log: Log
    durable: Durable
    most: int

    def states(self) -> Iterator[State]:
        """Yield all states, many more than once."""
        for cells, limit in self._names():
            paths = dict(self._walk(cells, ROOT, "", {ROOT}))
            files = sorted({node for node in paths.values() if self.log.kinds[node] == "file"})
            contents = [sorted(self._contents(node, limit)) for node in files]
            for chosen in itertools.product(*contents):
                self._count()
                bytes_of = dict(zip(files, chosen, strict=True))
                yield frozenset((path, self._value(node, bytes_of)) for path, node in paths.items())

    def _count(self) -> None:
        """Give up where there is too much to try."""
        self.most -= 1
        if self.most < 0:
            raise TooManyStatesError

    def _value(self, node: int, bytes_of: dict[int, bytes]) -> Value:
        """Return what is to be seen at a node."""
        kind = self.log.kinds[node]
        return bytes_of[node] if kind == "file" else self.log.texts[node] if kind == "symlink" else None

    def _walk(self, cells: dict[Cell, int], folder: int, base: str, seen: set[int]) -> Iterator[tuple[str, int]]:
        """Yield what can be reached; a folder is where it is met first."""
        for (_, name), node in sorted(item for item in cells.items() if item[0][0] == folder):
            if self.log.kinds[node] != "folder":
                yield base + name, node
            elif node not in seen:
                seen.add(node)
                yield base + name, node
                yield from self._walk(cells, node, f"{base}{name}/", seen)

    # --- names ------------------------------------------------------------------------------------------

    def _names(self) -> Iterator[tuple[dict[Cell, int], int | None]]:
        """Yield what cells may hold, with the position up to which changes of metadata are there (None: any)."""
        if self.durable.file_system == "posix":
            options = {cell: list(self._options(cell)) for named in self.log.named for cell in named.cells}
            for chosen in itertools.product(*options.values()):
                self._count()
                yield self._with(dict(zip(options, chosen, strict=True)), self.start.cells), None
            return
        happened = [*self.log.named, *(change for change in self.log.changed if change.is_metadata)]
        for end in sorted({self.durable.prefix, *(change.position for change in happened)}):
            if end >= self.durable.prefix:
                cells = self.start.cells
                for named in self.log.named:
                    if named.position <= end or named.position in self.durable.logged:
                        cells = self._with(named.cells, cells)
                yield cells, end

    def _options(self, cell: Cell) -> set[int | None]:
        """Return what a cell may hold where it is free: what it had when it became durable, or later."""
        values = [(NEVER, self.start.cells.get(cell))]
        values += [(named.position, named.cells[cell]) for named in self.log.named if cell in named.cells]
        floor = self.durable.cells.get(cell, NEVER)
        durable = [node for position, node in values if position <= floor][-1]
        return {durable, *(node for position, node in values if position > floor)}

    @staticmethod
    def _with(changes: dict[Cell, int | None], cells: dict[Cell, int]) -> dict[Cell, int]:
        """Return cells with some of them set."""
        both: dict[Cell, int | None] = {**cells, **changes}
        return {cell: node for cell, node in both.items() if node is not None}

    # --- bytes ------------------------------------------------------------------------------------------

    def _contents(self, node: int, limit: int | None) -> set[bytes]:
        """Return all that a file may hold."""
        synced = self.durable.lengths.get(node, NEVER)
        mine = [change for change in self.log.changed if change.node == node]
        cuts = [change.position for change in mine if change.is_metadata and change.position > synced]
        limits = [synced, *cuts] if limit is None else [max(synced, limit)]
        found: set[bytes] = set()
        for end in limits:
            first_lost = min((position for position in cuts if position > end), default=1 << 30)
            kept = [change for change in mine if change.position < first_lost]
            found |= self._mixtures(node, kept, mine[len(kept) :])
        return found

    def _mixtures(self, node: int, kept: list[Changed], lost: list[Changed]) -> set[bytes]:
        """Return all mixtures of pages and lengths of a file of which some changes are lost."""
        floor = max([self.durable.lengths.get(node, NEVER), *(c.position for c in kept if c.sets_length)])
        durable = len(self._at(node, floor))
        later = [change for change in kept if change.position > floor]
        lengths = {durable, *(len(change.content) for change in later), *(c.reach for c in later if c.reach > durable)}
        lengths |= set(range(durable // PAGE * PAGE + PAGE, max(lengths), PAGE))
        found: set[bytes] = set()
        for length in lengths:
            pages = [self._versions(node, page, kept, lost) for page in range(-(-length // PAGE))]
            for chosen in itertools.product(*pages):
                self._count()
                found.add(b"".join(chosen)[:length])
        return found

    def _versions(self, node: int, page: int, kept: list[Changed], lost: list[Changed]) -> set[bytes]:
        """Return all that one page may hold, 4096 bytes each; a page that was not taken away is written in place."""
        floor = max([self.durable.pages.get((node, page), NEVER), *(c.position for c in kept if page in c.taken)])
        in_place = itertools.takewhile(lambda change: page not in change.taken, lost)
        moments = [floor, *(change.position for change in [*kept, *in_place] if change.position > floor)]
        return {self._at(node, p)[page * PAGE : (page + 1) * PAGE].ljust(PAGE, b"\0") for p in moments}

    def _at(self, node: int, position: int) -> bytes:
        """Return a file's bytes after the changes up to a position."""
        content = self.start.content.get(node, b"")
        for change in self.log.changed:
            if change.node == node and change.position <= position:
                content = change.content
        return content
