"""What two references teach about a target: its clock, its names, its saves, and the points at which it can be struck.

Two passes over the logs: the first sees whether there are ticks, step lines and printed acknowledgements, and which
file names vary; the second lets a `Locator` that knows this read the first reference's log, which gives the saves. A
point is plannable if both references came to its address exactly once, and in the same phase: what only one of them
did, or did in another order, is nothing to aim at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from chaos.address import DATA_WRITES, PUTS, Located, Locator
from chaos.lines import LineReader, Reading
from chaos.model import (
    PAGE_BYTES,
    Address,
    FileRole,
    Operation,
    OperationKind,
    Phase,
    PlannablePoint,
    Record,
    SaveProfile,
    Target,
    TargetProfile,
)
from chaos.names import learn_names
from chaos.roles import FileNames

CHANGES = PUTS | DATA_WRITES | {"truncate", "ftruncate", "unlink", "unlinkat", "symlink", "symlinkat"}
MAX_TEARS = 64
MAX_BESIDE_FILES = 8  # a save: kills are spread over files, and the checkpoints must have their share

Log = Sequence[Operation]


def learn(target: Target, log_a: Log, log_b: Log) -> TargetProfile:
    """Return the profile of `target` from the operation logs of its two references, each an uninterrupted first life.

    What counts (steps, saves) is taken from `log_a`; a habit (ticks, acknowledgements) must show in both.
    """
    profile = _with_names(target, _habits(target, log_a, log_b), log_a, log_b)
    locator = Locator(target, profile, is_first_life=True)
    for operation in log_a:
        locator.locate(operation)
    profile = msgspec.structs.replace(profile, total_steps=locator.steps, last_step=locator.last_step)
    return msgspec.structs.replace(profile, saves=_saves(target, profile, log_a))


def plannable_points(target: Target, profile: TargetProfile, log_a: Log, log_b: Log) -> tuple[PlannablePoint, ...]:
    """Return the points that both references came to exactly once in the same phase, in the order of `log_a`."""
    visits_a, visits_b = (list(_visits(target, profile, log)) for log in (log_a, log_b))
    counts_a, counts_b = (Counter(visit.address for visit in visits) for visits in (visits_a, visits_b))
    by_address = {visit.address: visit for visit in visits_b}
    shared = [
        visit
        for visit in visits_a
        if counts_a[visit.address] == counts_b[visit.address] == 1 and by_address[visit.address].phase is visit.phase
    ]
    published = _published_addresses(profile, visits_a)
    doubtful = _doubtful_addresses(visits_a, published)
    shared = [visit for visit in shared if visit.address not in doubtful]
    beside = _chosen_beside(shared)
    return tuple(
        PlannablePoint(
            address=visit.address,
            phase=visit.phase,
            position=visit.position,
            tears=_tears(visit, by_address[visit.address]),
            start=_shared(visit, by_address[visit.address])[0],
            end=_shared(visit, by_address[visit.address])[1],
            is_published=visit.address in published,
        )
        for visit in shared
        if not visit.is_beside or (visit.address.save, visit.address.file) in beside
    )


def recovery_points(target: Target, profile: TargetProfile, log: Log) -> tuple[PlannablePoint, ...]:
    """Return where a later life changed checkpoints before its first step, from the log of a life after a kill.

    No reference shows this, since nothing lies in its folder when it starts.
    """
    visits = list(_visits(target, profile, log, is_first_life=False))
    counts = Counter(visit.address for visit in visits)
    return tuple(
        PlannablePoint(
            address=visit.address,
            phase=visit.phase,
            position=visit.position,
            tears=_tears(visit, visit),
            start=visit.start,
            end=visit.end,
        )
        for visit in visits
        if visit.phase is Phase.RECOVERY and visit.is_of_checkpoint and counts[visit.address] == 1
    )


# --- the first pass: habits and names -------------------------------------------------------------


def _habits(target: Target, log_a: Log, log_b: Log) -> TargetProfile:
    """Return a profile that knows only the clock, and whether saves are acknowledged in print."""
    logs = (log_a, log_b)
    uses_ticks = all(any(operation.kind is OperationKind.TICK for operation in log) for log in logs)
    readings = [_read_output(target, log) for log in logs]
    return TargetProfile(
        uses_ticks=uses_ticks,
        has_steps=uses_ticks or all(any(steps for steps, _ in reading) for reading in readings),
        prints_acknowledgements=all(any(is_saved for _, is_saved in reading) for reading in readings),
    )


def _read_output(target: Target, log: Log) -> list[tuple[bool, bool]]:
    """Tell of each operation whether it completes a step line and whether it prints an acknowledgement."""
    reader = LineReader(target)
    readings = (_read(reader, operation) for operation in log)
    return [(bool(reading and reading.steps), bool(reading and reading.acknowledged)) for reading in readings]


def _read(reader: LineReader, operation: Operation) -> Reading | None:
    """Let `reader` take in an operation that writes to standard output or error (None: it does not)."""
    if operation.kind is not OperationKind.OUTPUT:
        return None
    return reader.read(operation.stream, operation.text, thread=operation.thread)


def _with_names(target: Target, habits: TargetProfile, log_a: Log, log_b: Log) -> TargetProfile:
    """Return `habits` with the rules for names that vary and the keys of temporaries."""
    literal = _with_temporaries(target, habits, log_a, log_b)
    paths_a, paths_b = (_paths_by_save(target, literal, log) for log in (log_a, log_b))
    named = msgspec.structs.replace(habits, names=learn_names(paths_a, paths_b))
    return _with_temporaries(target, named, log_a, log_b)


def _with_temporaries(target: Target, profile: TargetProfile, log_a: Log, log_b: Log) -> TargetProfile:
    """Return `profile` with the keys of what becomes a checkpoint or a final file, in any number of renames."""
    names = FileNames(target, profile)
    moves = {
        (names.key_of(operation.path), names.key_of(operation.new_path)): names.role_of(operation.new_path)
        for log in (log_a, log_b)
        for operation in log
        if operation.call in PUTS and _is_inside(operation.path) and names.role_of(operation.path) is FileRole.OTHER
    }
    ends = {
        role: {new for (_, new), new_role in moves.items() if new_role is role}
        for role in (FileRole.CHECKPOINT, FileRole.FINAL)
    }
    for keys in ends.values():
        _follow_back(moves, keys)
    checkpoint, final = ({old for old, new in moves if new in ends[role]} for role in ends)
    return msgspec.structs.replace(
        profile, temporaries=tuple(sorted(checkpoint | final)), final_temporaries=tuple(sorted(final - checkpoint))
    )


def _follow_back(moves: dict[tuple[str, str], FileRole], keys: set[str]) -> None:
    """Add to `keys` every key that a chain of moves leads from to one of them."""
    while earlier := {old for old, new in moves if new in keys} - keys:
        keys |= earlier


def _is_inside(path: str) -> bool:
    """Tell whether a path names something in the output folder."""
    return path not in {"", "."} and not path.startswith(("/", "../"))


def _paths_by_save(target: Target, literal: TargetProfile, log: Log) -> list[list[str]]:
    """Return the watched paths that a log used, roughly save by save: learning the names is what makes saves exact."""
    names = FileNames(target, literal)
    groups: list[list[str]] = [[]]
    for operation, is_end in zip(log, _ends_of_saves(target, literal, names, log), strict=True):
        if is_end and groups[-1]:
            groups.append([])
        if operation.kind is OperationKind.FILE:
            paths = (operation.path, operation.new_path)
            groups[-1] += (path for path in paths if names.role_of(path) is not FileRole.OTHER)
    return groups if groups[-1] else groups[:-1]


def _ends_of_saves(target: Target, literal: TargetProfile, names: FileNames, log: Log) -> list[bool]:
    """Tell of each operation whether a save is over there: acknowledged, a step done, or its beginning come again."""
    readings = _read_output(target, log)
    if literal.prints_acknowledgements:
        return [is_saved for _, is_saved in readings]
    if literal.uses_ticks:
        return [operation.kind is OperationKind.TICK for operation in log]
    if literal.has_steps:
        return [is_step for is_step, _ in readings]
    watched = [operation for operation in log if names.role_of(operation.path) is not FileRole.OTHER]
    first = _masked(watched[0]) if watched else None
    return [_masked(operation) == first for operation in log]


def _masked(operation: Operation) -> tuple[str, str, bool]:
    """Return what an operation does, to a file whose numbers are masked."""
    return re.sub(r"[0-9]+", "#", operation.path), operation.call, operation.creates


# --- the second pass: saves -------------------------------------------------------------------------


class _Draft:
    """A save of which not all operations have been seen."""

    def __init__(self, ticks_before: int) -> None:
        """Begin with no operation."""
        self.ticks_before = ticks_before
        self.step: int | None = None
        self.addresses: list[Address] = []
        self.publish: int | None = None
        self.writers: set[int] = set()

    def add(self, operation: Operation, located: Located, address: Address) -> None:
        """Take in one operation of the save."""
        if located.role is not None:
            self.writers.add(operation.thread)
        if located.role is FileRole.CHECKPOINT and operation.call in PUTS | DATA_WRITES:
            self.publish = len(self.addresses)
        self.addresses.append(address)

    def finished(self, ordinal: int) -> SaveProfile:
        """Return the save's profile; if nothing puts a checkpoint in place, its last operation counts as that."""
        last = len(self.addresses) - 1
        return SaveProfile(
            ordinal=ordinal,
            ticks_before=self.ticks_before,
            step=self.step,
            addresses=tuple(self.addresses),
            publish=last if self.publish is None else self.publish,
            has_several_writers=len(self.writers) > 1,
        )


def _saves(target: Target, profile: TargetProfile, log: Log) -> tuple[SaveProfile, ...]:
    """Return the saves of a first life.

    A save is published by the last operation in it that writes data to a checkpoint, or puts something in its place
    by rename or link: before that, a checkpoint of several files is not complete. Files beside are not its operations:
    nothing has to wait for them.
    """
    locator = Locator(target, profile, is_first_life=True)
    drafts: dict[int, _Draft] = {}
    for operation in log:
        steps = locator.steps
        located = locator.locate(operation)
        if located.address is not None and located.address.save and located.role is not FileRole.OTHER:
            drafts.setdefault(located.address.save, _Draft(steps)).add(operation, located, located.address)
        if located.acknowledges is not None and located.acknowledges.save in drafts:
            drafts[located.acknowledges.save].step = located.acknowledges.step
    return tuple(draft.finished(ordinal) for ordinal, draft in drafts.items())


# --- points -------------------------------------------------------------------------------------------


class _Visit(Record, kw_only=True):
    """That a log came to an address: its phase, the steps completed, and the bytes of a write that can be torn.

    `is_of_checkpoint` tells that the operation is one of a checkpoint or of a temporary, `is_beside` one of a file
    without a role, `is_change` that it changes content or name; `moved` is the key that the file had before.
    """

    address: Address
    phase: Phase
    position: int
    start: int = 0
    end: int = 0
    is_of_checkpoint: bool = False
    is_beside: bool = False
    is_change: bool = False
    moved: str = ""


def _visits(target: Target, profile: TargetProfile, log: Log, *, is_first_life: bool = True) -> Iterator[_Visit]:
    """Yield what a log came to that has an address."""
    locator = Locator(target, profile, is_first_life=is_first_life)
    names = FileNames(target, profile)
    for operation in log:
        position = locator.steps
        located = locator.locate(operation)
        if located.address is None:
            continue
        can_tear = located.role is not None and operation.call in DATA_WRITES
        start, end = (operation.offset, operation.offset + operation.size_bytes) if can_tear else (0, 0)
        yield _Visit(
            address=located.address,
            phase=located.phase,
            position=position,
            start=start,
            end=end,
            is_of_checkpoint=located.role in {FileRole.CHECKPOINT, FileRole.TEMPORARY},
            is_beside=located.role is FileRole.OTHER,
            is_change=operation.creates or operation.call in CHANGES,
            moved=names.key_of(operation.path) if operation.call in PUTS else "",
        )


def _published_addresses(profile: TargetProfile, visits: Sequence[_Visit]) -> frozenset[Address]:
    """Return the addresses among `visits`, in their order, at which the new checkpoint of their save is in place."""
    publishing = {save.addresses[save.publish] for save in profile.saves if save.addresses}
    saves: set[int] = set()
    published = []
    for visit in visits:
        if visit.address.save in saves:
            published.append(visit.address)
        if visit.address in publishing:
            saves.add(visit.address.save)
    return frozenset(published)


def _doubtful_addresses(visits: Sequence[_Visit], published: frozenset[Address]) -> frozenset[Address]:
    """Return where a new checkpoint is in place and the last file beside is still as the save before left it.

    That file may be what names the newest checkpoint, and then a life that resumes from the one before loses nothing:
    so no kill there could be judged. From the last file's first change on it is either half done or done.
    """
    moved = {(visit.address.save, visit.moved) for visit in visits if visit.moved}
    begun: dict[tuple[int, str], int] = {}
    for position, visit in enumerate(visits):
        file = (visit.address.save, visit.address.file)
        if visit.is_beside and visit.is_change and file not in moved:
            begun.setdefault(file, position)
    last: dict[int, int] = {}
    for (save, _), position in begun.items():
        last[save] = max(last.get(save, 0), position)
    return frozenset(
        visit.address
        for position, visit in enumerate(visits)
        if visit.is_beside and visit.address in published and position <= last.get(visit.address.save, len(visits))
    )


def _chosen_beside(visits: Sequence[_Visit]) -> frozenset[tuple[int, str]]:
    """Return (save, file key) of the files beside that are struck: a few a save, one for all that differ in numbers."""
    families: dict[int, dict[str, str]] = {}
    for visit in visits:
        family = re.sub(r"[0-9]+", "#", visit.address.file)
        found = families.setdefault(visit.address.save, {})
        if visit.is_beside and len(found) < MAX_BESIDE_FILES:
            found.setdefault(family, visit.address.file)
    return frozenset((save, file) for save, found in families.items() for file in found.values())


def _shared(visit_a: _Visit, visit_b: _Visit) -> tuple[int, int]:
    """Return the file offsets between which both wrote; equal ones where that is nothing."""
    start = max(visit_a.start, visit_b.start)
    return start, max(start, min(visit_a.end, visit_b.end))


def _tears(visit_a: _Visit, visit_b: _Visit) -> tuple[int, ...]:
    """Return page boundaries strictly inside both writes, at most `MAX_TEARS` of them, evenly spread."""
    start, end = _shared(visit_a, visit_b)
    boundaries = range((start // PAGE_BYTES + 1) * PAGE_BYTES, end, PAGE_BYTES)
    if len(boundaries) <= MAX_TEARS:
        return tuple(boundaries)
    return tuple(boundaries[i * (len(boundaries) - 1) // (MAX_TEARS - 1)] for i in range(MAX_TEARS))
