"""What is answered to a held call in place of its result, and the calls that errors are about, by name."""

from __future__ import annotations

from typing import Final

from chaos.address import DATA_WRITES, STDOUT
from chaos.model import PlannablePoint, Record

# Names of calls are those of the operation log (`chaos.intercept.decode`).
TRANSFERS: Final = frozenset({"sendfile", "copy_file_range", "clone_range", "fallocate"})
WRITES: Final = DATA_WRITES | TRANSFERS
SYNCS: Final = frozenset({"fsync", "fdatasync"})
# These fail with EEXIST, whatever else is wrong, where the name is there already.
MAKERS: Final = frozenset({"mkdir", "mknod", "symlink", "link"})


class Answer(Record, kw_only=True):
    """An error (`errno`), or the count of a write that was carried out only up to the file offset `until`."""

    errno: int = 0
    until: int | None = None


def is_on_file(point: PlannablePoint, calls: frozenset[str]) -> bool:
    """Tell whether a point is one of some calls on a file of the output folder."""
    return point.address.file not in {"", STDOUT} and point.address.call in calls
