"""Small logs, each with one rule at work that no way to save shows, or with what the model once got wrong."""

from __future__ import annotations

from typing import NamedTuple

from .brute_force import PAGE, Step


class Small(NamedTuple):
    """A log: what is there, durable, and the operations on it."""

    before: tuple[Step, ...]
    after: tuple[Step, ...]

    @property
    def steps(self) -> list[Step]:
        """Return all steps."""
        return [*self.before, *self.after]


def make(path: str) -> Step:
    """Make a file."""
    return Step(verb="make", path=path, call="file")


def folder(path: str) -> Step:
    """Make a folder."""
    return Step(verb="make", path=path, call="folder")


def write(path: str, letter: str, offset: int, end: int, durability: str = "none") -> Step:
    """Write one letter over a range."""
    return Step(verb="write", path=path, offset=offset, data=letter.encode() * (end - offset), durability=durability)


def cut(path: str, size: int) -> Step:
    """Set a length."""
    return Step(verb="resize", path=path, size=size)


def allocate(path: str, offset: int, size: int) -> Step:
    """Set room aside."""
    return Step(verb="allocate", path=path, offset=offset, size=size)


def punch(path: str, offset: int, size: int) -> Step:
    """Punch a hole."""
    return Step(verb="zero", path=path, offset=offset, size=size)


def sync(path: str | None, call: str = "fsync", *, has_failed: bool = False) -> Step:
    """Make something durable."""
    return Step(verb="sync", path=path, call=call, has_failed=has_failed)


def rename(path: str, target: str, verb: str = "rename") -> Step:
    """Move a name."""
    return Step(verb=verb, path=path, target=target)


def link(path: str, target: str) -> Step:
    """Give a second name."""
    return Step(verb="link", path=path, target=target)


def unlink(path: str) -> Step:
    """Take a name away."""
    return Step(verb="unlink", path=path)


TWO_PAGES = (make("a"), write("a", "A", 0, 2 * PAGE))
FAILED = sync("a", has_failed=True)

LOGS = {
    # Lengths.
    "lengths in between, in whole pages": Small((make("a"),), (write("a", "B", 0, 3 * PAGE + 100),)),
    "lengths that the file had": Small((make("a"),), (write("a", "B", 0, 100), write("a", "C", 100, 5000))),
    "appended bytes, and a hole elsewhere": Small(TWO_PAGES, (write("a", "B", 8192, 12288), punch("a", 0, PAGE))),
    "the end of a hole is a length": Small((make("a"),), (write("a", "B", 0, 3 * PAGE), punch("a", PAGE, 2000))),
    "the end of room set aside is a length": Small(
        (make("a"),), (write("a", "B", 0, 3 * PAGE), allocate("a", 0, 1000))
    ),
    "a file that grows": Small((make("a"),), (write("a", "B", 0, 5000), cut("a", 7000))),
    "appended bytes, and a durable write before them": Small(
        (make("a"), write("a", "A", 0, PAGE)), (write("a", "B", PAGE, 2 * PAGE), write("a", "C", 0, 100, "all"))
    ),
    # Pages.
    "a page is as at any moment": Small(
        TWO_PAGES, (write("a", "B", 0, 2 * PAGE), write("a", "C", 0, 2 * PAGE), write("a", "D", 0, 2 * PAGE))
    ),
    "a cut that was synced stays": Small(
        (make("a"), write("a", "A", 0, 3 * PAGE)),
        (write("a", "B", 0, PAGE), FAILED, cut("a", 2 * PAGE + 100), sync("a")),
    ),
    "a page that was cut in the middle is written late": Small(
        (make("a"),), (write("a", "B", 0, 3000), cut("a", 1500))
    ),
    "a cut brings no old page back": Small(TWO_PAGES, (cut("a", PAGE), cut("a", 2 * PAGE))),
    "a hole brings no old page back": Small(TWO_PAGES, (punch("a", PAGE, PAGE), write("a", "B", 0, PAGE))),
    "a hole in the middle of a page is written late": Small(
        (make("a"), write("a", "A", 0, PAGE)), (write("a", "B", 0, PAGE), punch("a", 1000, 500), make("b"), sync("b"))
    ),
    "written in place after a cut that is lost": Small(TWO_PAGES, (cut("a", PAGE), write("a", "B", 0, PAGE))),
    "not written in place after a cut that took the page": Small(TWO_PAGES, (cut("a", 0), write("a", "B", 0, PAGE))),
    "a durable page outlives a hole that is lost": Small(
        (make("a"), write("a", "A", 0, 3 * PAGE)),
        (punch("a", 2 * PAGE, PAGE), write("a", "B", 0, PAGE, "all")),
    ),
    "a durable page in a file whose room is lost": Small(
        (make("a"),), (write("a", "B", 0, PAGE), allocate("a", 1000, 8192), write("a", "C", 0, 8192, "all"))
    ),
    # Durable writes.
    "only its own pages": Small(TWO_PAGES, (write("a", "B", PAGE, 2 * PAGE), write("a", "C", 0, PAGE, "all"))),
    "only its own pages, of data": Small(
        TWO_PAGES, (write("a", "B", PAGE, 2 * PAGE), write("a", "C", 0, PAGE, "data"))
    ),
    "a durable write brings a rename along": Small((make("a"),), (rename("a", "b"), write("b", "B", 0, 10, "all"))),
    "one of data does not": Small((make("a"),), (rename("a", "b"), write("b", "B", 0, 10, "data"))),
    # Failures.
    "written again after a failure": Small(
        TWO_PAGES, (write("a", "B", 0, 2 * PAGE), FAILED, write("a", "C", 0, PAGE), sync("a"))
    ),
    "a failed sync makes nothing durable": Small(
        TWO_PAGES, (write("a", "B", 0, PAGE), sync(None, "sync", has_failed=True))
    ),
    "a failed sync spoils every file": Small(
        TWO_PAGES, (write("a", "B", 0, PAGE), sync(None, "syncfs", has_failed=True), sync("a"))
    ),
    "a failure spoils nothing that was durable": Small(
        TWO_PAGES, (write("a", "B", 0, PAGE), sync("a"), write("a", "C", PAGE, 2 * PAGE), FAILED, sync("a"))
    ),
    "sync does not help after a failure": Small(TWO_PAGES, (write("a", "B", 0, PAGE), FAILED, sync(None, "sync"))),
    # Changes of metadata in the order of names.
    "a cut without any name": Small(TWO_PAGES, (cut("a", 100),)),
    "fsync of a cut file brings earlier names along": Small(
        TWO_PAGES, (make("b"), cut("a", 100), sync("a", "fdatasync"))
    ),
    "a cut between names": Small(TWO_PAGES, (make("b"), cut("a", 100), make("c"))),
    "sync of all brings cuts along": Small(TWO_PAGES, (cut("a", 100), make("b"), sync(None, "syncfs"))),
    # Names.
    "a folder's own name": Small((), (folder("d"), sync("d"))),
    "a folder's own new name": Small((folder("d"),), (rename("d", "e"), sync("e"))),
    "fdatasync of a folder": Small((folder("d"),), (make("d/a"), make("b"), sync("d", "fdatasync"))),
    "msync of a folder": Small((folder("d"),), (make("d/a"), sync("d", "msync"))),
    "sync_file_range of a folder": Small((folder("d"),), (make("d/a"), sync("d", "sync_file_range"))),
    "a folder that is moved away with all in it": Small(
        (folder("d"), make("d/a"), write("d/a", "A", 0, 10)), (unlink("d"),)
    ),
    "a name that is durable again, while half of its rename is not": Small(
        (folder("d"), make("a")), (rename("a", "d/a"), make("a"), sync(""))
    ),
    "two names change places": Small((make("a"), folder("b")), (rename("a", "b", "exchange"),)),
    "a folder under two names": Small((folder("a"), make("a/b"), folder("e")), (rename("a", "e/a"),)),
    "a folder under two names, of which the first is deep": Small((folder("d"), folder("e")), (rename("e", "d/a"),)),
    "a folder that kept both names": Small((folder("d"), folder("e")), (rename("d", "e/f"), sync("e"))),
    "a name that leads back": Small(
        (folder("d"), folder("d/b")), (rename("d/b", "b"), sync(""), rename("d", "b/a"), sync("b"))
    ),
    "two names of one file, one over the other": Small((make("a"), link("a", "b")), (rename("a", "b"), sync(""))),
    "two names hold the same bytes": Small((make("a"),), (link("a", "b"), write("a", "B", 0, PAGE))),
    "a removed file that is written": Small((make("a"),), (unlink("a"), write("@1", "B", 0, 100), sync("@1"))),
}
