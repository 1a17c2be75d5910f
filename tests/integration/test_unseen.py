"""After a life the log must explain the folder; what it does not explain is named, and nothing else is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("how", ["mapped", "mapped_then_written"])
def test_a_shared_mapping_is_named(lives: Callable[..., Any], how: str) -> None:
    """A file that is mapped so that it can be written without a call is not explained, whatever is written later."""
    assert lives("unseen.py", how).run().record.unseen_writers == ("state",)


@pytest.mark.parametrize(
    "how", ["mapped_to_read", "mapped_privately", "times", "link_from_outside", "memory", "number_used_again"]
)
def test_what_cannot_write_unseen_is_not_named(lives: Callable[..., Any], how: str) -> None:
    """Mappings that cannot reach the file, times set by the target, a name outside that leads inside: explained."""
    record = lives("unseen.py", how).run().record
    assert (record.exit_status, record.unseen_writers, record.outside_writes) == (0, (), ())


@pytest.mark.parametrize("how", ["moved_in", "folder_moved_in", "linked_in", "moved_in_again", "swapped_in"])
def test_what_is_moved_in_is_not_named(lives: Callable[..., Any], how: str) -> None:
    """What was written outside of the folder and then renamed or linked into it, with all below it, is explained."""
    record = lives("unseen.py", how).run().record
    assert (record.exit_status, record.unseen_writers) == (0, ())


def test_a_mapping_that_was_made_before_the_move_is_named(lives: Callable[..., Any]) -> None:
    """A file that comes in while it is mapped can still be written without any call."""
    record = lives("unseen.py", "moved_in_mapped").run().record
    assert (record.exit_status, record.unseen_writers) == (0, ("moved",))


def test_an_open_through_a_link_from_outside_is_on_the_clock(lives: Callable[..., Any]) -> None:
    """Emptying a file through a symbolic link elsewhere is logged under the file's own name."""
    log = lives("unseen.py", "link_from_outside").run().log
    assert [operation.path for operation in log if operation.call == "openat" and operation.creates] == [
        "state",
        "state",
    ]


@pytest.mark.parametrize("change", ["append", "rewrite", "new", "moved", "linked_twice"])
def test_another_process_is_named(lives: Callable[..., Any], eventually: Callable[..., bool], change: str) -> None:
    """Somebody outside of the life changes, rewrites or adds a file meanwhile: that file is named.

    So is one that was moved in before, and one that comes in once more under another name after the change.
    """
    runner = lives("unseen.py", {"moved": "moved_in_waits", "linked_twice": "linked_twice"}.get(change, "waits"))
    out: Path = runner.new_out()
    names = {"new": ("extra",), "moved": ("moved",), "linked_twice": ("again", "moved")}.get(change, ("state",))

    def meddle() -> None:
        assert eventually((out / "go").exists)
        if change == "new":
            (out / "extra").write_bytes(b"new")
        else:
            with (out / names[-1]).open("r+b") as file:
                file.seek(0, 0 if change == "rewrite" else 2)
                file.write(b"z")
        (out / "go").write_bytes(b"go")

    other = threading.Thread(target=meddle)
    other.start()
    record = runner.run(out).record
    other.join()
    assert record.exit_status == 0
    assert record.unseen_writers == names


def test_shared_memory_is_swept(lives: Callable[..., Any]) -> None:
    """What a life made in shared memory, folders too, goes with it; what was there before stays."""
    old = Path("/dev/shm/ninelives-test-old")  # noqa: S108 - shared memory is what the test is about
    old.write_bytes(b"somebody else's")
    try:
        record = lives("unseen.py", "shared_memory").run().record
        assert record.exit_status == 0
        left = sorted(path.name for path in old.parent.glob("ninelives-test-*"))
        assert left == [old.name]
    finally:
        old.unlink()
