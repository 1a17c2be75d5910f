"""A state that lost an acknowledged checkpoint says which call would have kept it, and which operation published it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.model import FileSystem, NotDurable
from chaos.states.durability.blaming import blame, files_of_save
from chaos.states.durability.enumerating import losses_at
from chaos.states.durability.history import History

from .conftest import Script

OLD, NEW = b"A" * 8192, b"B" * 8192
Blamed = dict[FileSystem, set[tuple[str, str, str]]]


def blamed(script: Script, path: str, *, acknowledged_at: int, index: int | None = None) -> Blamed:
    """Return all that any state at a point lacks of the file that was acknowledged right before an operation."""
    with script.close() as recording:
        index = recording.num_operations if index is None else index
        found: Blamed = {}
        for file_system in FileSystem:
            history = History(recording, (file_system,))
            history.advance(acknowledged_at)
            files = files_of_save(history, (path,))
            history.advance(index) if index > acknowledged_at else None
            items: list[NotDurable] = []
            for state in losses_at(history, None).found:
                items += blame(history, state, files, lambda operation: f"operation {operation}")
            found[file_system] = {(item.path, item.missing, item.published_by) for item in items}
    return found


def everywhere(*expected: tuple[str, str, str]) -> Blamed:
    """Return the same for each file system."""
    return {file_system: set(expected) for file_system in FileSystem}


def published(script: Script, *, syncs_file: bool, syncs_folder: bool) -> tuple[int, int]:
    """Replace `ckpt` by a new file; return the operations of the rename, and after the last one."""
    script.make("ckpt", OLD)
    script.begun()
    script.make("tmp", NEW)
    if syncs_file:
        script.sync("tmp")
    renamed = last = script.rename("tmp", "ckpt")
    if syncs_folder:
        last = script.sync("")
    return renamed, last + 1


def test_a_durable_save_lacks_nothing(script: Callable[[], Script]) -> None:
    """File and folder were synced: no state loses it."""
    one = script()
    _, end = published(one, syncs_file=True, syncs_folder=True)
    assert blamed(one, "ckpt", acknowledged_at=end) == everywhere()


def test_the_file_was_not_synced(script: Callable[[], Script]) -> None:
    """Its name is durable and its bytes are not: fsync of the name that it was written under."""
    one = script()
    renamed, end = published(one, syncs_file=False, syncs_folder=True)
    expected = ("ckpt", "fsync of tmp", f"operation {renamed}")
    assert blamed(one, "ckpt", acknowledged_at=end) == everywhere(expected)


def test_the_folder_was_not_synced(script: Callable[[], Script]) -> None:
    """Its bytes are durable and its name is not."""
    one = script()
    renamed, end = published(one, syncs_file=True, syncs_folder=False)
    expected = ("ckpt", "fsync of the folder of ckpt", f"operation {renamed}")
    assert blamed(one, "ckpt", acknowledged_at=end) == everywhere(expected)


def test_neither_was_synced(script: Callable[[], Script]) -> None:
    """Where the name is gone, the bytes would have been lost as well: both are named."""
    one = script()
    renamed, end = published(one, syncs_file=False, syncs_folder=False)
    by = f"operation {renamed}"
    expected = {("ckpt", "fsync of tmp", by), ("ckpt", "fsync of tmp and of its folder", by)}
    assert blamed(one, "ckpt", acknowledged_at=end) == dict.fromkeys(FileSystem, expected)


@pytest.mark.parametrize("syncs_file", [True, False])
def test_a_newer_file_that_takes_the_name(script: Callable[[], Script], *, syncs_file: bool) -> None:
    """While the next save is not yet acknowledged, the old file is lost only if the new one was not synced."""
    one = script()
    renamed, end = published(one, syncs_file=syncs_file, syncs_folder=False)
    expected = () if syncs_file else (("ckpt", "fsync of tmp", f"operation {renamed}"),)
    assert blamed(one, "ckpt", acknowledged_at=0, index=end) == everywhere(*expected)


def test_overwritten_in_place(script: Callable[[], Script]) -> None:
    """What was durable is being destroyed: no sync helps, only a second file."""
    one = script()
    one.make("ckpt", OLD)
    one.begun()
    end = one.write("ckpt", 0, NEW) + 1
    expected = ("ckpt", "a copy that stays until the new one is durable", "operation -1")
    assert blamed(one, "ckpt", acknowledged_at=0, index=end) == everywhere(expected)


def test_removed_before_another_one_is_durable(script: Callable[[], Script]) -> None:
    """A rotation that unlinks the old file first."""
    one = script()
    one.make("step-1", OLD)
    one.begun()
    removed = one.unlink("step-1")
    expected = ("step-1", "fsync of what replaces step-1, before it goes away", f"operation {removed}")
    assert blamed(one, "step-1", acknowledged_at=0, index=removed + 1) == everywhere(expected)
