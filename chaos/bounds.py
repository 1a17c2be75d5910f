"""What bounds a campaign: time, bytes written, and the room that is left on the disk."""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path
from typing import Final

_ROOM_FACTOR: Final = 2


class Bounds:
    """Tells when nothing more may be started."""

    def __init__(self, folder: Path, *, needed_by: Path, jobs: int) -> None:
        """Watch the run in `folder`, from now on; `needed_by` holds what one of `jobs` trials at once writes."""
        self.begin_s = time.monotonic()
        self._folder = folder
        self._needed_by = needed_by
        self._jobs = jobs
        self._stop_s: float | None = None
        self._max_bytes: int | None = None

    def limit(self, *, budget_s: float | None, max_bytes: int | None) -> None:
        """Set the budget, from the beginning of the campaign, and the most bytes below the run's folder."""
        self._stop_s = None if budget_s is None else self.begin_s + budget_s
        self._max_bytes = max_bytes

    def are_reached(self) -> bool:
        """Tell whether the budget of time or bytes, or the disk, is used up."""
        if self._stop_s is not None and time.monotonic() >= self._stop_s:
            return True
        if self._max_bytes is not None and folder_bytes(self._folder) >= self._max_bytes:
            return True
        return self._is_disk_full()

    def _is_disk_full(self) -> bool:
        """Tell whether the disk might not hold the trials that run at once, and so make them fail."""
        needed = _ROOM_FACTOR * self._jobs * folder_bytes(self._needed_by)
        return shutil.disk_usage(self._folder).free < needed

    def why_not_run(self, num_left: int, num_planned: int) -> str:
        """Say why trials were not run."""
        if self._is_disk_full():
            return f"the disk was nearly full before {num_left} of {num_planned} trials could be run: free some space"
        if self.are_reached():
            return f"the budget was used up before {num_left} of {num_planned} trials could be run"
        return f"{num_left} of {num_planned} trials were interrupted by signals of the target's own each time"


def folder_bytes(folder: Path) -> int:
    """Return the bytes below a folder."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total
