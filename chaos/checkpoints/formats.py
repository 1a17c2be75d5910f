"""Which format a file is in: by its first bytes, and only where those say nothing by the suffix of its name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePath

from chaos.checkpoints.archive import END, LOCAL, Archive
from chaos.checkpoints.contents import Contents
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.numpy_file import MAGIC as NPY_MAGIC
from chaos.checkpoints.numpy_file import read_npy, read_npz_archive
from chaos.checkpoints.plain_file import read_json, read_pickles
from chaos.checkpoints.safetensors_file import MAX_HEADER_BYTES, read_safetensors
from chaos.checkpoints.torch_file import LEGACY_MAGIC, read_torch, read_torch_archive, torch_prefix
from chaos.checkpoints.window import Window


class Format(StrEnum):
    """The formats that are told apart."""

    TORCH = "torch"
    SAFETENSORS = "safetensors"
    NPZ = "npz"
    NPY = "npy"
    PICKLE = "pickle"
    JSON = "json"
    UNKNOWN = "unknown"


SUFFIXES = {
    ".pt": Format.TORCH,
    ".pth": Format.TORCH,
    ".bin": Format.TORCH,
    ".ckpt": Format.TORCH,
    ".safetensors": Format.SAFETENSORS,
    ".npz": Format.NPZ,
    ".npy": Format.NPY,
    ".pkl": Format.PICKLE,
    ".pickle": Format.PICKLE,
    ".json": Format.JSON,
}
HEAD_BYTES = 16
# What a write leaves that never came: a hole or a page of zeros, in whatever format.
FIRST_PAGE_BYTES = 4096
LENGTH_BYTES = 8
PICKLE_BYTE = 0x80
PICKLE_PROTOCOLS = frozenset({2, 3, 4, 5})


def format_by_name(path: PurePath) -> Format:
    """Return the format that the last known suffix names: `resume.pt.tmp` is a torch file in the making."""
    return next((SUFFIXES[suffix] for suffix in reversed(path.suffixes) if suffix in SUFFIXES), Format.UNKNOWN)


def format_of(window: Window) -> Format:
    """Return the format of a file by its first bytes, else by its name."""
    head = window.read(0, min(HEAD_BYTES, window.size))
    named = format_by_name(window.path)
    if head.startswith((LOCAL, END)):
        # An archive that cannot be read any more is of the kind that its name says.
        return named if named in {Format.NPZ, Format.TORCH} else _archive_format(window)
    if head.startswith(LEGACY_MAGIC):
        return Format.TORCH
    if head.startswith(NPY_MAGIC):
        return Format.NPY
    length = int.from_bytes(head[:LENGTH_BYTES], "little")
    if head[LENGTH_BYTES : LENGTH_BYTES + 1] == b"{" and length <= MAX_HEADER_BYTES:
        return Format.SAFETENSORS
    if len(head) > 1 and head[0] == PICKLE_BYTE and head[1] in PICKLE_PROTOCOLS:
        return Format.PICKLE
    return Format.UNKNOWN if named is Format.TORCH and not _may_have_been_torch(window) else named


def _may_have_been_torch(window: Window) -> bool:
    """Tell whether a file that only its name calls torch's is one that was torn; else its format is one of its own.

    It is cut within torch's first bytes, or its first page never came.
    """
    page = window.read(0, min(FIRST_PAGE_BYTES, window.size))
    return not any(page) or any(magic.startswith(page) for magic in (LOCAL, LEGACY_MAGIC))


def _archive_format(window: Window) -> Format:
    """Return which kind of zip archive this is; one of neither kind, or damaged, is unknown or torch's."""
    try:
        archive = Archive(window)
    except DamagedError:
        return Format.TORCH
    if torch_prefix(archive) is not None:
        return Format.TORCH
    is_npz = bool(archive.entries) and any(name.endswith(".npy") for name in archive.by_name)
    return Format.NPZ if is_npz else Format.UNKNOWN


def read_contents(window: Window, kind: Format) -> Contents:
    """Return the contents of a file in format `kind`; raises DamagedError or UnjudgeableError."""
    match kind:
        case Format.TORCH | Format.NPZ if window.read(0, min(4, window.size)) in {LOCAL, END}:
            # The records decide: accelerate names torch files .pkl, others name npz files .ckpt.
            return _read_archive(Archive(window), kind)
        case Format.TORCH:
            if window.read(0, min(len(LEGACY_MAGIC), window.size)) == LEGACY_MAGIC:
                return read_torch(window)
            raise DamagedError("it is no torch file: it does not begin as one")
        case Format.SAFETENSORS:
            return read_safetensors(window)
        case Format.NPZ:
            raise DamagedError("it is no npz file: it does not begin as one")
        case Format.NPY:
            return read_npy(window)
        case Format.JSON:
            return read_json(window)
        case Format.PICKLE:
            return _read_pickles(window)
        case Format.UNKNOWN:
            raise UnjudgeableError("its format is not known here")


def _read_archive(archive: Archive, kind: Format) -> Contents:
    """Return the contents of a zip archive; one that is not understood is still damaged where a checksum says so."""
    try:
        return read_torch_archive(archive) if torch_prefix(archive) is not None else _read_npz(archive, kind)
    except UnjudgeableError:
        for entry in archive.entries:
            for _ in entry.verified():
                pass
        raise


def _read_npz(archive: Archive, kind: Format) -> Contents:
    """Return the contents of an archive without torch's records; raises DamagedError when it had to be torch's."""
    if kind is Format.TORCH and not any(name.endswith(".npy") for name in archive.by_name):
        raise DamagedError("its record data.pkl is missing")
    return read_npz_archive(archive)


def _read_pickles(window: Window) -> Contents:
    """Return a pickle's contents; two first bytes and no name are too little to call a file damaged."""
    try:
        return read_pickles(window)
    except DamagedError as error:
        if format_by_name(window.path) is Format.UNKNOWN:
            raise UnjudgeableError(f"it begins like a pickle, but {error}") from error
        raise
