"""Temporary folders of lives and templates, by short paths; none is left when this process ends by itself."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from chaos.errors import HarnessError

_PREFIX: Final = "9l-"
_lock = threading.Lock()
_made: set[Path] = set()


def make_temporary() -> Path:
    """Make a temporary folder; HarnessError where that is not possible."""
    with _lock:
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        except OSError as error:
            message = f"no temporary folder can be made: {error.strerror}"
            hint = "free some space, or set TMPDIR to another place (a short path)"
            raise HarnessError(message, hint=hint) from error
        _made.add(folder)
        return folder


def remove_temporary(folder: Path) -> None:
    """Remove a temporary folder."""
    with _lock:
        shutil.rmtree(folder, ignore_errors=True)
        _made.discard(folder)


def remove_all_temporaries() -> None:
    """Remove all of them, right before this process ends from another thread: none can be made any more."""
    _lock.acquire()
    for folder in _made:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a life's TMPDIR, and remove it afterwards (the guardian does, where this process dies)."""
    folder = make_temporary()
    try:
        yield folder
    finally:
        remove_temporary(folder)
