"""The bugs that a canary trial plants in a target's files, to show that this campaign's checks would find them.

They stand for a save that tears every checkpoint, and for a resume that ends one bit away from the reference.
"""

from __future__ import annotations

import pickle
import re
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.checkpoints.process import Examiner
from chaos.errors import InconclusiveError, UsageError
from chaos.model import FileRole, FileState

# An array of no dimension that holds one byte: the format's magic and version, the length of its header, header, data.
_HEADER = b"{'descr': '|u1', 'fortran_order': False, 'shape': (), }"
_PLANTED_NPY = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + _HEADER.ljust(117) + b"\n" + b"\x01"


@contextmanager
def truncated_checkpoints(out: Path, files: tuple[FileState, ...]) -> Iterator[None]:
    """Cut every checkpoint (each file of a checkpoint folder) to half its length for the duration, then put it back."""
    with tempfile.TemporaryDirectory(dir=out.parent) as kept:
        originals = []
        for position, path in enumerate(_regular_files(out, files)):
            original = Path(kept) / str(position)
            shutil.copy2(path, original)
            originals.append((original, path))
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size // 2)
        yield
        for original, path in originals:
            shutil.copy2(original, path)


def _regular_files(out: Path, files: tuple[FileState, ...]) -> Iterator[Path]:
    """Yield the files of all checkpoints, those in checkpoint folders too; each file once, whatever links to it."""
    seen: set[tuple[int, int]] = set()
    for state in files:
        if state.role is not FileRole.CHECKPOINT:
            continue
        top = out / state.path
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and not path.is_symlink():
                identity = (path.stat().st_dev, path.stat().st_ino)
                if identity not in seen:
                    seen.add(identity)
                    yield path


def flip_final_bit(out: Path, files: tuple[FileState, ...], examiner: Examiner) -> None:
    """Make one final file another one that still reads as whole: flip a bit of a number in it, or alter a plain file.

    Raises InconclusiveError where there are final files, and none of them can be altered so.
    """
    complaints = []
    for state in files:
        if state.role is FileRole.FINAL:
            try:
                examiner.flip_bit(out / state.path)
            except UsageError as error:
                if _is_altered(out / state.path, state.format):
                    return
                complaints.append(str(error))
            else:
                return
    if complaints:
        message = (
            f"no bug could be planted in a final file, so nothing shows that the checks would find one: {complaints[0]}"
        )
        raise InconclusiveError(message)


def _is_altered(path: Path, format_: str) -> bool:
    """Change a file without floating tensors so that it stays whole; False where its format allows no way to."""
    if not path.is_file():
        return False
    data = path.read_bytes()
    digit = re.search(rb"[0-9]", data) if format_ == "json" else None
    if digit:
        other = b"2" if digit[0] == b"1" else b"1"
        path.write_bytes(data[: digit.start()] + other + data[digit.end() :])
    elif format_ == "npz":
        with zipfile.ZipFile(path, "a") as archive, archive.open("planted.npy", "w") as member:
            member.write(_PLANTED_NPY)
    elif format_ == "pickle":
        path.write_bytes(data + pickle.dumps("planted"))
    elif format_ == "unknown" and data:
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    else:
        return False
    return True
