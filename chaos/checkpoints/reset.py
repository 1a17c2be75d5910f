"""Resets one part of a checkpoint where it lies: its tensors' bytes and its numbers become zero, or its file goes.

So one sees from outside what a resume uses: where a part is reset and the run ends with the same bits all the same,
that part was not used. Checksums of the container are made over the new data; times are kept.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path

from chaos.checkpoints.archive import LOCAL, STORED, Archive, Entry
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.examine import Examination, examine
from chaos.checkpoints.formats import Format
from chaos.checkpoints.in_place import kept_times, mend_checksum, place_of
from chaos.checkpoints.leaves import Leaf
from chaos.checkpoints.members import format_of_member, members_of
from chaos.checkpoints.parts import members_as_parts, part_by_name
from chaos.checkpoints.pickles import MAX_PICKLE_BYTES
from chaos.checkpoints.sources import TensorSource
from chaos.checkpoints.tensors import Storage, Tensor
from chaos.checkpoints.torch_file import torch_prefix
from chaos.checkpoints.window import OpenFile
from chaos.checkpoints.zeros import zeroed_json, zeroed_pickle
from chaos.errors import UsageError


def parts_of(path: Path) -> tuple[str, ...]:
    """Return the names of the parts of a whole checkpoint, in order; raises UsageError where it is not whole."""
    found = _whole(path)
    with _told_as_usage(path):
        members = members_as_parts(path)
        if members:
            return tuple(member.prefix for member in members if not member.path.is_symlink())
        return tuple(sorted(set(_part_by_leaf(path, found).values())))


def reset_part(path: Path, part: str) -> int:
    """Reset one part of a checkpoint and return how many of its values are others now (0: all were zero).

    Raises UsageError where there is no such part, where it holds nothing that can be reset, or only with others.
    """
    found = _whole(path)
    with _told_as_usage(path):
        for member in members_as_parts(path):
            if member.prefix == part:
                for file in member.files:
                    file.unlink()
                return 1
        of = _part_by_leaf(path, found)
        wanted = [leaf for leaf in found.leaves if of[leaf.name] == part]
        if not wanted:
            raise UsageError(f"{path} has no part {part}")
        _zero_tensors(path, [leaf.name for leaf in wanted if leaf.is_tensor])
        _zero_numbers(path, [leaf for leaf in wanted if not leaf.is_tensor], found)
    return _num_changed(path, found, {leaf.name for leaf in wanted})


def _part_by_leaf(path: Path, found: Examination) -> dict[str, str]:
    """Return the part that each leaf belongs to, of a checkpoint whose parts are no members."""
    prefix = next((member.prefix for member in members_of(path)), "")
    return part_by_name([leaf.name for leaf in found.leaves], prefix)


def _whole(path: Path) -> Examination:
    """Return what is in a checkpoint; raises UsageError where it is not whole."""
    found = examine(path)
    if not found.is_whole:
        raise UsageError(f"no part of {path} can be reset: {found.reason}")
    return found


@contextmanager
def _told_as_usage(path: Path) -> Iterator[None]:
    """Turn what a damaged or unreadable file raises into a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"no part of {path} can be reset: {error.strerror or error}") from error
    except (DamagedError, UnjudgeableError) as error:
        raise UsageError(f"no part of {path} can be reset: {error}") from error


def _num_changed(path: Path, before: Examination, wanted: set[str]) -> int:
    """Count the wanted values that are others now; raises UsageError where others have changed with them, or none can.

    A value that is no number (a text, a flag, nothing at all) stays what it is.
    """
    after = _whole(path)
    now = {leaf.name: leaf.digest for leaf in after.leaves}
    changed = {leaf.name for leaf in before.leaves if now.pop(leaf.name, "") != leaf.digest} | now.keys()
    if changed - wanted:
        raise UsageError(f"it cannot be reset apart from {min(changed - wanted)}")
    is_possible = any(leaf.is_tensor or leaf.dtype in {"int", "float"} for leaf in before.leaves if leaf.name in wanted)
    if not is_possible:
        raise UsageError("it holds no number")
    return len(changed)


def _zero_tensors(path: Path, names: Sequence[str]) -> None:
    """Write zeros over tensors; raises UsageError for one that does not lie open in its file."""
    packed: list[Tensor] = []
    with ExitStack() as stack:
        source = TensorSource(path, stack)
        for name in names:
            tensor = source.tensor(name)
            file = source.member_of(name).path
            if isinstance(tensor.storage, Entry) and tensor.storage.method != STORED:
                packed.append(tensor)
            elif tensor.size_bytes:
                _zero_tensor(tensor, place_of(tensor.storage, file))
        if packed:
            _write(path, _repacked(path, {_entry(tensor.storage).name: tensor.offset for tensor in packed}))


def _entry(storage: Storage) -> Entry:
    """Return a storage as the record that it is."""
    assert isinstance(storage, Entry)  # noqa: S101 - the caller has looked
    return storage


def _zero_tensor(tensor: Tensor, place: tuple[Path, int] | None) -> None:
    """Write zeros over the elements of one tensor, and nothing between them; raises UsageError, OSError."""
    if place is None:
        raise UsageError("it does not lie open in the file")
    file, start = place
    with kept_times(file) as descriptor:
        for at, data in _zeros(tensor):
            os.pwrite(descriptor, data, start + at)
        if isinstance(tensor.storage, Entry):
            mend_checksum(tensor.storage, descriptor)


def _zeros(tensor: Tensor) -> Iterator[tuple[int, bytes]]:
    """Yield what to write where in a tensor's storage."""
    if tensor.is_contiguous:
        yield tensor.offset, bytes(tensor.size_bytes)
        return
    # Imported here: hardly any file has such tensors, and numpy is most of the start-up time.
    import numpy as np

    span = bytearray(b"".join(tensor.storage.part(tensor.offset, tensor.stop)))
    view = np.ndarray(tensor.shape, dtype=f"V{tensor.item_bytes}", buffer=span, strides=tensor.strides)
    view[...] = bytes(tensor.item_bytes)
    yield tensor.offset, bytes(span)


def _repacked(path: Path, offsets: dict[str, int]) -> bytes:
    """Return an archive in which the records named are zeros from an offset on, packed as they were."""
    packed = BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            kept = offsets.get(info.filename, len(data))
            new.writestr(info, data[:kept] + bytes(len(data) - kept))
    return packed.getvalue()


def _zero_numbers(path: Path, leaves: Sequence[Leaf], found: Examination) -> None:
    """Make the numbers among the leaves zero; raises UnjudgeableError, OSError."""
    if not leaves or path.is_dir():
        return
    kind = format_of_member(members_of(path)[0])
    names = {leaf.name for leaf in leaves}
    if kind is Format.JSON:
        _write(path, zeroed_json(path.read_bytes(), names.__contains__))
    elif kind is Format.PICKLE and path.stat().st_size <= MAX_PICKLE_BYTES:
        _write(path, zeroed_pickle(path.read_bytes(), names))
    elif found.format == Format.TORCH:
        _zero_in_torch(path, names)


def _zero_in_torch(path: Path, names: set[str]) -> None:
    """Make numbers zero in the pickle inside a torch file."""
    with OpenFile(path) as window:
        if window.read(0, min(len(LOCAL), window.size)) != LOCAL:
            return
        archive = Archive(window)
        entry = archive.by_name.get(f"{torch_prefix(archive)}data.pkl")
        if entry is None or entry.method != STORED or entry.size_bytes > MAX_PICKLE_BYTES:
            return
        data = zeroed_pickle(entry.read(MAX_PICKLE_BYTES), names)
        with kept_times(path) as descriptor:
            os.pwrite(descriptor, data, window.start + entry.data_at)
            mend_checksum(entry, descriptor)


def _write(path: Path, data: bytes) -> None:
    """Put other bytes into a file, and keep its times."""
    with kept_times(path) as descriptor:
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
