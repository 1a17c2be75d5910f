"""Reads numpy's files: npy (a header, then the bytes) and npz (a zip archive of npy)."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator

from chaos.checkpoints.archive import Archive
from chaos.checkpoints.contents import Contents
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.flatten import Flattened
from chaos.checkpoints.inert import NUMPY_NAMES
from chaos.checkpoints.pickles import MAX_PICKLE_BYTES, load_pickle
from chaos.checkpoints.tensors import PlainStorage, Storage, Tensor, column_strides, contiguous_strides
from chaos.checkpoints.window import Window

MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 64 << 10
# Magic, version, and a length of 4 bytes (2 in version 1).
PREFIX_BYTES = 12
UNICODE_VERSION = 3
SIMPLE = re.compile(r"([<>|=])([a-zA-Z])(\d*)(\[.*\])?")
# Widths that the code does not give in bytes.
CHARACTER_BYTES = {"U": 4}


class Header:
    """What an npy header says: dtype, width, shape, order, and where the data begins."""

    __slots__ = ("data_at", "dtype", "is_fortran", "is_objects", "item_bytes", "shape")

    def __init__(self, text: str, data_at: int) -> None:
        """Decode the dict in `text`; raises DamagedError."""
        # Imported here: only these files need it.
        import ast

        try:
            entries = ast.literal_eval(text.strip())
            descr, shape = entries["descr"], entries["shape"]
            self.is_fortran = bool(entries["fortran_order"])
        except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as error:
            raise DamagedError("its header is damaged") from error
        if not isinstance(shape, tuple) or not all(type(length) is int and length >= 0 for length in shape):
            raise DamagedError("its header is damaged")
        self.shape = shape
        self.data_at = data_at
        self.dtype, self.item_bytes = _dtype(descr)
        self.is_objects = self.dtype == "object"

    @property
    def size_bytes(self) -> int:
        """The number of bytes of data that the header promises."""
        return math.prod(self.shape) * self.item_bytes


def _dtype(descr: object) -> tuple[str, int]:
    """Return a dtype's name and width in bytes; raises DamagedError when it is none."""
    match = SIMPLE.fullmatch(descr) if isinstance(descr, str) else None
    if match is not None:
        order, kind, digits, unit = match.groups()
        if kind == "O":
            return "object", 8
        if not digits:
            raise DamagedError("its header names no known dtype")
        plain = NUMPY_NAMES.get(kind + digits)
        width = int(digits) * CHARACTER_BYTES.get(kind, 1)
        return f"{'>' if order == '>' else ''}{plain or kind + digits}{unit or ''}", width
    # Structured dtypes are numpy's business.
    import numpy as np

    try:
        dtype = np.dtype(descr)  # type: ignore[call-overload]  # anything that the header holds
    except (TypeError, ValueError, SyntaxError, OverflowError) as error:
        raise DamagedError("its header names no known dtype") from error
    if dtype.hasobject:
        return "object", 8
    return str(dtype), dtype.itemsize


def read_header(pieces: Iterator[bytes]) -> Header:
    """Return the header at the start of an npy stream; raises DamagedError when it is cut short."""
    data = b""
    for piece in pieces:
        data += piece
        if len(data) >= MAX_HEADER_BYTES + PREFIX_BYTES:
            break
    if len(data) < PREFIX_BYTES or data[:6] != MAGIC:
        raise DamagedError("its header is cut short")
    short = data[6] == 1
    length = struct.unpack_from("<H" if short else "<I", data, 8)[0]
    start = PREFIX_BYTES - 2 if short else PREFIX_BYTES
    if data[6] not in {1, 2, UNICODE_VERSION} or length > MAX_HEADER_BYTES or start + length > len(data):
        raise DamagedError("its header is damaged or cut short")
    try:
        text = data[start : start + length].decode("utf-8" if data[6] == UNICODE_VERSION else "latin-1")
    except UnicodeDecodeError as error:
        raise DamagedError("its header is damaged") from error
    return Header(text, start + length)


def add_array(found: Flattened, name: str, storage: Storage) -> None:
    """Add the array of one npy stream to `found`: a tensor, or a pickled array's objects; raises DamagedError."""
    header = read_header(storage.part(0, min(storage.size_bytes, MAX_HEADER_BYTES + PREFIX_BYTES)))
    if header.is_objects:
        if storage.size_bytes > MAX_PICKLE_BYTES:
            raise UnjudgeableError("it holds a pickle too large to be read at once")
        found.add(name, load_pickle(b"".join(storage.part(header.data_at, storage.size_bytes))))
        return
    if header.data_at + header.size_bytes != storage.size_bytes:
        have = storage.size_bytes - header.data_at
        raise DamagedError(f"its header promises {header.size_bytes} bytes of data and {have} are there")
    order = column_strides if header.is_fortran else contiguous_strides
    strides = order(header.shape, header.item_bytes)
    found.add(name, Tensor(header.dtype, header.item_bytes, header.shape, strides, header.data_at, storage))


def read_npy(window: Window) -> Contents:
    """Return the contents of an npy file; raises DamagedError."""
    storage = PlainStorage(window)
    found = Flattened()
    add_array(found, "", storage)
    return Contents("npy", found.leaves, found.tensors, [storage])


def read_npz_archive(archive: Archive) -> Contents:
    """Return the contents of an archive of npy files; any other record in it is one tensor of bytes."""
    found = Flattened()
    for entry in archive.by_name.values():
        if entry.name.endswith(".npy"):
            add_array(found, entry.name.removesuffix(".npy"), entry)
        else:
            found.add(entry.name, Tensor("uint8", 1, (entry.size_bytes,), (1,), 0, entry))
    return Contents("npz", found.leaves, found.tensors, archive.entries)
