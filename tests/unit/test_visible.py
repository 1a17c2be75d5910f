"""What a life finds in a folder is the same, or not, to the last thing that it could look at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.states.visible import visible_digest

NOW_NS = 1_700_000_000_123_456_789


def filled(folder: Path) -> Path:
    """Fill a new folder with files, a link to one, a second name of one, and a subfolder; each has its time."""
    (folder / "sub").mkdir(parents=True)
    (folder / "a").write_bytes(b"a" * 5000)
    (folder / "b").write_bytes(b"b")
    (folder / "sub" / "c").write_bytes(b"")
    (folder / "link").symlink_to("a")
    (folder / "second").hardlink_to(folder / "b")
    for place, name in enumerate(("a", "b", "sub/c", "link", "sub")):
        at = NOW_NS + place * 1_000_003
        os.utime(folder / name, ns=(at, at), follow_symlinks=False)
    return folder


def stamp(path: Path, offset: int) -> None:
    """Give a file the time of the first one, and some nanoseconds."""
    os.utime(path, ns=(NOW_NS + offset, NOW_NS + offset), follow_symlinks=False)


def change_byte(folder: Path) -> None:
    """Write another byte, and keep the time."""
    (folder / "a").write_bytes(b"a" * 4999 + b"x")
    stamp(folder / "a", 0)


def part_names(folder: Path) -> None:
    """Let the second name lead to a file of its own with the same content and time."""
    (folder / "second").unlink()
    shutil.copy2(folder / "b", folder / "second")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a byte": change_byte,
    "a new name": lambda folder: (folder / "b").rename(folder / "d"),
    "a missing file": lambda folder: (folder / "sub" / "c").unlink(),
    "an empty folder": lambda folder: (folder / "empty").mkdir(),
    "a mode": lambda folder: (folder / "a").chmod(0o600),
    "the folder's own mode": lambda folder: folder.chmod(0o700),
    "another target of a link": lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("b")),
    "two files in place of one": part_names,
    "another order of times": lambda folder: stamp(folder / "a", 500_000_000),
    "equal times": lambda folder: stamp(folder / "b", 0),
    "a pipe": lambda folder: os.mkfifo(folder / "pipe"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_that_can_be_seen_is_another_digest(tmp_path: Path, what: str) -> None:
    """Names, kinds, bytes, modes, links and the order of times count."""
    one, two = filled(tmp_path / "one"), filled(tmp_path / "two")
    assert visible_digest(one) == visible_digest(two) != ""
    CHANGES[what](two)
    assert visible_digest(one) != visible_digest(two)


def test_other_times_in_the_same_order_are_no_change(tmp_path: Path) -> None:
    """The clock goes on from one life to the next."""
    one, two = filled(tmp_path / "one"), filled(tmp_path / "two")
    for place, name in enumerate(("a", "b", "sub/c", "link", "sub")):
        stamp(two / name, 3_600_000_000_000 + place * 7_000_001)
    assert visible_digest(one) == visible_digest(two)


def test_a_time_that_was_set_counts(tmp_path: Path) -> None:
    """A time of whole seconds is no chance: a target that sets times may read them."""
    one, two = filled(tmp_path / "one"), filled(tmp_path / "two")
    for folder, second in ((one, 1000), (two, 2000)):
        os.utime(folder / "a", (second, second))
    assert visible_digest(one) != visible_digest(two)


def test_circumstances_count(tmp_path: Path) -> None:
    """The command line of the life is part of what it begins from, word by word."""
    folder = filled(tmp_path / "one")
    digests = {visible_digest(folder, words) for words in ((), ("a", "b"), ("ab",), ("a", "b", ""))}
    assert len(digests) == 4


def test_what_cannot_be_read_has_no_digest(tmp_path: Path) -> None:
    """Where there is no folder nobody can tell what a life finds."""
    assert visible_digest(tmp_path / "missing") == ""
