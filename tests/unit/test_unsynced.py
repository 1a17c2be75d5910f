"""A file whose fsync failed counts as saved only when it was written anew."""

from __future__ import annotations

import pytest

from chaos.faults.unsynced import UnsyncedFiles
from chaos.model import FileRole, Operation, OperationKind

Call = tuple[str, str, str]


def role_of(path: str) -> FileRole:
    """Tell a checkpoint by its ending."""
    return FileRole.CHECKPOINT if path.endswith(".pt") else FileRole.TEMPORARY


def operation(call: str, path: str, new: str = "") -> Operation:
    """Return one operation on a file."""
    creates = call in {"openat", "rename"}
    return Operation(index=0, kind=OperationKind.FILE, call=call, path=path, new_path=new, creates=creates)


def ignored(*calls: Call) -> tuple[str, ...]:
    """Return what was acknowledged though its sync had failed, after calls of which those of name `failed …` did."""
    files = UnsyncedFiles(role_of)
    for call, path, new in calls:
        if call.startswith("failed "):
            files.refuse(operation(call.removeprefix("failed "), path, new))
        else:
            files.take(operation(call, path, new))
    files.acknowledge()
    return files.ignored


WRITTEN: tuple[Call, ...] = (("openat", "c.tmp", ""), ("write", "c.tmp", ""))
FAILED: Call = ("failed fsync", "c.tmp", "")
PUBLISHED: Call = ("rename", "c.tmp", "c.pt")


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((*WRITTEN, ("fsync", "c.tmp", ""), PUBLISHED), ()),
        ((*WRITTEN, FAILED, PUBLISHED), ("c.pt",)),
        # Trying the fsync again proves nothing; writing the bytes again does.
        ((*WRITTEN, FAILED, ("fsync", "c.tmp", ""), PUBLISHED), ("c.pt",)),
        ((*WRITTEN, FAILED, *WRITTEN, ("fsync", "c.tmp", ""), PUBLISHED), ()),
        # Given up: it was never published, or it was taken away.
        ((*WRITTEN, FAILED), ()),
        ((*WRITTEN, FAILED, ("unlink", "c.tmp", "")), ()),
        # A newer file takes its name.
        ((*WRITTEN, FAILED, PUBLISHED, *WRITTEN, ("fsync", "c.tmp", ""), PUBLISHED), ()),
        # A folder: its names are written with the next sync.
        ((*WRITTEN, PUBLISHED, ("failed fsync", ".", "")), (".",)),
        ((*WRITTEN, PUBLISHED, ("failed fsync", ".", ""), ("fsync", ".", "")), ()),
    ],
)
def test_what_may_not_be_acknowledged(calls: tuple[Call, ...], expected: tuple[str, ...]) -> None:
    """Exactly the published files (and folders) that may not be on the disk."""
    assert ignored(*calls) == expected
