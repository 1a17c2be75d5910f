"""The bugs that a canary trial plants in a target's files, to show that this campaign's checks would find them.

They stand for a save that tears every checkpoint, and for a resume that ends one bit away from the reference.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.checkpoints.process import Examiner
from chaos.model import FileRole, FileState


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
    """Flip the lowest bit of one number in the first final file, so that it still reads as whole."""
    for state in files:
        if state.role is FileRole.FINAL:
            examiner.flip_bit(out / state.path)
            return
