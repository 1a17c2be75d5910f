"""Flips one bit of a weight in a checkpoint on disk, or what comes next to it in a file without weights.

`flip_bit` plants a bug: one wrong bit with a checksum made over the wrong data, so that the file still looks whole, as
when memory fails before a save. `rot_bit` is a bit that rots on the disk: the container's checksum, where it has one,
is left as it was and tells.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from chaos.checkpoints.archive import LOCAL, STORED, Archive, Entry
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.examine import Examination, examine
from chaos.checkpoints.formats import Format
from chaos.checkpoints.in_place import kept_times, mend_checksum, place_of
from chaos.checkpoints.leaves import Leaf, clean_name
from chaos.checkpoints.members import format_of_member, members_of
from chaos.checkpoints.numbers import STEP, Change, change_in_json, change_in_pickle
from chaos.checkpoints.pickles import MAX_PICKLE_BYTES
from chaos.checkpoints.sources import TensorSource
from chaos.checkpoints.tensors import FLOATING, ITEM_BYTES, Tensor
from chaos.checkpoints.torch_file import torch_prefix
from chaos.checkpoints.window import OpenFile, Window
from chaos.errors import UsageError

_EXPONENT_BITS: Final = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11, "float8_e5m2": 5}
_EXPONENT_BITS_OF_OTHERS: Final = 4
# A complex number is two floating ones behind each other; the first is taken.
_PART_OF: Final = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_LOW_BITS: Final = 8
_MOST_TENSORS_TRIED: Final = 8


def flip_bit(path: Path) -> str:
    """Flip the lowest mantissa bit of the first element of the first floating tensor, and return the tensor's name.

    Modification times are kept: a trainer must not notice by them. Raises UsageError when there is no such bit to flip.
    """
    names = _floating_tensors(path)
    with _told_as_usage(path), ExitStack() as stack:
        _flip(TensorSource(path, stack).tensor(names[0]), 0, bit=0, mends_checksum=True)
    return names[0]


def rot_bit(path: Path, variant: int) -> str:
    """Flip a bit that means something, chosen by `variant`, and return in words which one, or which digit it changed.

    Another tensor, element and bit for each variant: of floating tensors, one of the highest of the mantissa or of the
    exponent, so that the number is another one by far; where there are none, of any other tensors; in JSON and pickles
    without any, a digit or a bit of a number, so that they still load; in a format of which nothing is known, a bit of
    the middle third, which may be padding. Headers are never touched otherwise, checksums and times are left as they
    are. Raises UsageError when there is no such bit.
    """
    found = examine(path)
    if found.is_whole is False:
        raise UsageError(f"no bit of {path} can be flipped: {found.reason}")
    with _told_as_usage(path):
        said = _rot_tensor(path, _tensors_to_rot(found), variant) or _rot_number(path, variant)
        said = said or _rot_unknown(path, variant, is_unread=found.is_whole is None)
    if said is None:
        raise UsageError(f"no bit of {path} can be flipped: it holds no number")
    return said


def _tensors_to_rot(found: Examination) -> list[Leaf]:
    """Return the floating tensors with an element, else all others with one."""
    leaves = [leaf for leaf in found.leaves if leaf.is_tensor and 0 not in leaf.shape]
    return [leaf for leaf in leaves if _number_of(leaf.dtype) in FLOATING] or leaves


def _number_of(dtype: str) -> str:
    """Return the dtype of the numbers that an element of `dtype` is made of, in whatever byte order."""
    plain = dtype.removeprefix(">")
    return _PART_OF.get(plain, plain)


def _rot_tensor(path: Path, leaves: list[Leaf], variant: int) -> str | None:
    """Flip a bit of an element of one of the tensors; None where none of those tried lies open in the file."""
    for each in range(min(_MOST_TENSORS_TRIED, len(leaves))):
        turn, which = divmod(variant + each, len(leaves))
        name = leaves[which].name
        with ExitStack() as stack:
            source = TensorSource(path, stack)
            tensor = source.tensor(name)
            if isinstance(tensor.storage, Entry) and tensor.storage.method != STORED:
                return _rot_compressed(tensor.storage, variant)
            if place_of(tensor.storage, source.member_of(name).path) is None:
                continue
            element = turn * STEP % math.prod(tensor.shape)
            bits = _telling_bits(tensor)
            bit = bits[0] if not any(_stored(tensor, element)) else bits[turn % len(bits)]
            _flip(tensor, element, bit=bit, mends_checksum=False, path=source.member_of(name).path)
            return f"bit {bit} of element {element:,} of {name}"
    return None


def _rot_compressed(entry: Entry, variant: int) -> str | None:
    """Flip a bit of what a record is compressed to: all of it means something."""
    if not entry.compressed_bytes:
        return None
    at, bit = variant * STEP % entry.compressed_bytes, variant % 8
    with kept_times(entry.window.path) as descriptor:
        _xor(descriptor, entry.window.start + entry.data_at + at, 1 << bit)
    return f"bit {bit} of byte {at:,} of the compressed record {entry.name}"


def _rot_number(path: Path, variant: int) -> str | None:
    """Change a number in one of the JSON files, pickles and torch files of a checkpoint; None where none has any."""
    known = {Format.JSON, Format.PICKLE, Format.TORCH}
    members = [each for each in members_of(path) if not each.is_distributed and format_of_member(each) in known]
    for turn in range(len(members)):
        member = members[(variant + turn) % len(members)]
        change = _change_in(member.path, format_of_member(member), variant)
        if change is not None:
            with kept_times(member.path) as descriptor:
                os.pwrite(descriptor, bytes([change.byte]), change.at)
            return f"{change.words} of {member.prefix}" if member.prefix else change.words
    return None


def _change_in(path: Path, kind: Format, variant: int) -> Change | None:
    """Return what to change in one file so that it still loads; raises OSError, DamagedError, UnjudgeableError."""
    with OpenFile(path) as window:
        part = _pickle_of_torch(window) if kind is Format.TORCH else window
        if part is None or part.size > MAX_PICKLE_BYTES:
            return None
        data = part.read(0, part.size)
        change = change_in_json(data, variant) if kind is Format.JSON else change_in_pickle(data, variant)
        return None if change is None else change._replace(at=part.start + change.at)


def _pickle_of_torch(window: Window) -> Window | None:
    """Return the window on the pickle in a torch archive; None for an older file, and where it is packed."""
    if window.read(0, min(len(LOCAL), window.size)) != LOCAL:
        return None
    archive = Archive(window)
    entry = archive.by_name.get(f"{torch_prefix(archive)}data.pkl")
    return window.part(entry.data_at, entry.size_bytes) if entry is not None and entry.method == STORED else None


def _rot_unknown(path: Path, variant: int, *, is_unread: bool) -> str | None:
    """Flip a bit in the middle third of the largest file of which nothing is known; None where none has a byte.

    `is_unread`: nothing is known of any of the files.
    """
    members = [each for each in members_of(path) if is_unread or format_of_member(each) is Format.UNKNOWN]
    files = [file for each in members for file in each.files if file.is_file() and not file.is_symlink()]
    largest = max(files, key=lambda file: file.stat().st_size, default=None)
    if largest is None or not largest.stat().st_size:
        return None
    size = largest.stat().st_size
    at, bit = size // 3 + variant * STEP % max(size // 3, 1), variant % 8
    with kept_times(largest) as descriptor:
        _xor(descriptor, at, 1 << bit)
    of = "" if largest == path else f" of {clean_name(largest.relative_to(path).as_posix())}"
    return f"bit {bit} of byte {at:,}{of} (of an unknown format: it may be padding)"


def _floating_tensors(path: Path) -> list[str]:
    """Return the names of the tensors with a bit to flip, in order; raises UsageError when there is none."""
    found = examine(path)
    if not found.is_whole:
        raise UsageError(f"no bit of {path} can be flipped: {found.reason}")
    names = [leaf.name for leaf in found.leaves if leaf.is_tensor and leaf.dtype in FLOATING and 0 not in leaf.shape]
    if not names:
        raise UsageError(f"no bit of {path} can be flipped: it holds no floating tensor with an element")
    return names


@contextmanager
def _told_as_usage(path: Path) -> Iterator[None]:
    """Turn what a damaged or unreadable file raises into a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"no bit of {path} can be flipped: {error.strerror or error}") from error
    except (DamagedError, UnjudgeableError) as error:
        raise UsageError(f"no bit of {path} can be flipped: {error}") from error


def _telling_bits(tensor: Tensor) -> tuple[int, ...]:
    """Return bits of an element whose value matters, from 0, the first of which makes another number even of a zero.

    Of a floating one the highest and the lowest of the exponent and the highest of the rest; of another the low ones,
    so that it stays a plausible number; of a bool the only one.
    """
    number = _number_of(tensor.dtype)
    if number not in FLOATING:
        return (0,) if number == "bool" else tuple(range(min(_LOW_BITS, tensor.item_bytes * 8)))
    sign = ITEM_BYTES[number] * 8 - 1
    lowest = max(sign - _EXPONENT_BITS.get(number, _EXPONENT_BITS_OF_OTHERS), 0)
    return tuple(dict.fromkeys((sign - 1, lowest, max(lowest - 1, 0))))


def _byte_of_bit(tensor: Tensor, bit: int) -> int:
    """Return the byte of an element that holds a bit, the lowest being 0."""
    number_bytes = ITEM_BYTES.get(_number_of(tensor.dtype), tensor.item_bytes)
    return number_bytes - 1 - bit // 8 if tensor.dtype.startswith(">") else bit // 8


def _position(tensor: Tensor, element: int) -> int:
    """Return the byte in the storage at which an element begins; elements are counted in row-major order."""
    position = tensor.offset
    for length, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        element, index = divmod(element, length)
        position += index * stride
    return position


def _stored(tensor: Tensor, element: int) -> bytes:
    """Return the bytes of an element."""
    start = _position(tensor, element)
    return b"".join(tensor.storage.part(start, start + tensor.item_bytes))


def _flip(tensor: Tensor, element: int, *, bit: int, mends_checksum: bool, path: Path | None = None) -> None:
    """Flip a bit of an element in its file (`path`, where it may lie in a pickle); raises UsageError, OSError."""
    place = place_of(tensor.storage, path)
    if place is None:
        raise UsageError("no bit can be flipped: the floating tensor is compressed, or lies inside a pickle")
    file, start = place
    with kept_times(file) as descriptor:
        _xor(descriptor, start + _position(tensor, element) + _byte_of_bit(tensor, bit), 1 << bit % 8)
        if mends_checksum and isinstance(tensor.storage, Entry):
            mend_checksum(tensor.storage, descriptor)


def _xor(descriptor: int, at: int, mask: int) -> None:
    """Flip the bits of `mask` in the byte at `at`; raises OSError."""
    os.pwrite(descriptor, bytes([os.pread(descriptor, 1, at)[0] ^ mask]), at)
