"""The model of a folder against a real one: the same changes give the same folder, and equal folders equal digests."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.states.book import Book
from chaos.states.building import build
from chaos.states.changes import (
    ROOT,
    Change,
    Linked,
    Made,
    NodeKind,
    Renamed,
    Resized,
    Stamp,
    Stamped,
    Unlinked,
    Wrote,
    Zeroed,
)
from chaos.states.comparing import differences
from chaos.states.content import ContentStore
from chaos.states.tree import Node, Tree, UnknownNodeError

NAMES = ("a", "b", "c", "folder", "folder/a", "folder/b", "folder/deep")
NEAR_PAGES = st.one_of(st.integers(0, 20000), st.sampled_from([0, 1, 4095, 4096, 4097, 8192, 12288]))
NAMED = st.sampled_from(NAMES)
OFTEN = st.sampled_from(("a", "a", "b", "folder/a"))  # names that are likely to be there already
BYTES = st.tuples(st.integers(1, 9000), st.integers(0, 3))
STEPS = st.one_of(
    st.tuples(st.just("write"), OFTEN, NEAR_PAGES, BYTES),
    st.tuples(st.just("write"), OFTEN, NEAR_PAGES, BYTES),
    st.tuples(st.just("resize"), OFTEN, NEAR_PAGES),
    st.tuples(st.just("zero"), OFTEN, NEAR_PAGES, st.integers(1, 9000)),
    st.tuples(st.just("mkdir"), st.sampled_from(("folder", "folder", "folder/deep", "c"))),
    st.tuples(st.just("symlink"), NAMED),
    st.tuples(st.just("remove"), NAMED),
    st.tuples(st.just("chmod"), OFTEN, st.sampled_from([0o600, 0o640, 0o755])),
    st.tuples(st.just("link"), OFTEN, NAMED),
    st.tuples(st.just("rename"), OFTEN, NAMED),
    st.tuples(st.just("rename"), NAMED, NAMED),
)


def some(size: int, kind: int) -> bytes:
    """Return bytes: zeros, or a pattern."""
    return bytes(size) if kind == 0 else (b"%d-%%d" % kind * (size // 4 + 1))[:size]


class Both:
    """A real folder and its model, changed side by side; a step that the real one refuses is left out."""

    def __init__(self, base: Path) -> None:
        """Begin with an empty folder below `base`."""
        self.out = base / "out"
        self.out.mkdir()
        self.store = ContentStore(base / "content", is_new=True)
        self.tree = Tree(self.store)
        self._base = base
        self._looks = 0
        self._next = 1
        self._apply(Stamped(stamps=(self._stamp(ROOT, self.out),)))

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def step(self, what: str, *arguments: Any) -> None:
        """Do one step in both."""
        try:
            changes = getattr(self, what)(*arguments)
        except OSError:
            return
        for change in changes:
            self._apply(change)
        for path in (".", *(path for path, _ in self.tree.walk())):
            node = self.tree.find(path)
            assert node is not None
            self._apply(Stamped(stamps=(self._stamp(node.number, self.out / path),)))

    def _apply(self, change: Change) -> None:
        """Change the model."""
        self.tree.apply(change)

    def _stamp(self, number: int, path: Path) -> Stamp:
        """Return what a real file shows."""
        state = path.lstat()
        return Stamp(node=number, mode=stat.S_IMODE(state.st_mode), modified_ns=state.st_mtime_ns)

    def _place(self, name: str) -> tuple[int, str]:
        """Return the folder and the last part of a name."""
        folder, _, last = name.rpartition("/")
        parent = self.tree.find(folder)
        assert parent is not None
        return parent.number, last

    def _new(self, name: str, kind: NodeKind, text: str = "") -> Made:
        """Return the change that makes a node."""
        parent, last = self._place(name)
        self._next += 1
        return Made(node=self._next, kind=kind, parent=parent, name=last, text=text)

    def _file(self, name: str) -> tuple[int, list[Change]]:
        """Return the node that a file of this name has, or will have after the changes."""
        node: Node | None = self.tree.find(name)
        if node is not None:
            return node.number, []
        made = self._new(name, NodeKind.FILE)
        return made.node, [made]

    def write(self, name: str, offset: int, data: tuple[int, int]) -> list[Change]:
        """Write into a file, which is made where it is missing."""
        fd = os.open(self.out / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        os.pwrite(fd, some(*data), offset)
        os.close(fd)
        number, changes = self._file(name)
        half = data[0] // 2
        pieces = tuple(self.store.put(part) for part in (some(*data)[:half], some(*data)[half:]) if part)
        return [*changes, Wrote(node=number, offset=offset, pieces=pieces)]

    def resize(self, name: str, size: int) -> list[Change]:
        """Cut a file, or let it grow."""
        fd = os.open(self.out / name, os.O_RDWR | os.O_NOFOLLOW)
        os.ftruncate(fd, size)
        os.close(fd)
        return [Resized(node=self._file(name)[0], size_bytes=size)]

    def zero(self, name: str, offset: int, length: int) -> list[Change]:
        """Make zeros, in the real file by writing them, in the model as a hole."""
        fd = os.open(self.out / name, os.O_RDWR | os.O_NOFOLLOW)
        os.pwrite(fd, bytes(length), offset)
        size = os.fstat(fd).st_size
        os.close(fd)
        return [Zeroed(node=self._file(name)[0], offset=offset, length_bytes=length, size_bytes=size)]

    def mkdir(self, name: str) -> list[Change]:
        """Make a folder."""
        (self.out / name).mkdir()
        return [self._new(name, NodeKind.FOLDER)]

    def symlink(self, name: str) -> list[Change]:
        """Make a symbolic link."""
        (self.out / name).symlink_to("elsewhere/" + name)
        return [self._new(name, NodeKind.SYMLINK, "elsewhere/" + name)]

    def remove(self, name: str) -> list[Change]:
        """Remove a file, or an empty folder."""
        path = self.out / name
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        parent, last = self._place(name)
        return [Unlinked(parent=parent, name=last)]

    def chmod(self, name: str, mode: int) -> list[Change]:
        """Change permissions (the stamps that follow tell the model)."""
        if not (self.out / name).is_symlink():
            (self.out / name).chmod(mode)
        return []

    def link(self, name: str, new: str) -> list[Change]:
        """Give a file a further name."""
        os.link(self.out / name, self.out / new, follow_symlinks=False)
        parent, last = self._place(new)
        return [Linked(node=self._file(name)[0], parent=parent, name=last)]

    def rename(self, name: str, new: str) -> list[Change]:
        """Move a file or folder."""
        (parent, last), number = self._place(name) if self.tree.find(name) else (0, ""), 0
        (self.out / name).rename(self.out / new)
        new_parent, new_last = self._place(new)
        assert number == 0
        return [Renamed(parent=parent, name=last, new_parent=new_parent, new_name=new_last)]

    def imported(self) -> str:
        """Return the digest of the real folder as one who sees it for the first time finds it."""
        self._looks += 1
        book = Book(self._base / f"look-{self._looks}", self.out, None)
        try:
            return book.tree.digest()
        finally:
            book.close(0)

    def rebuilt(self) -> Path:
        """Build the model in another folder and return it."""
        other = self._base / f"built-{self._looks}"
        other.mkdir()
        build(self.tree, other, self.store)
        return other


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=25))
def test_the_model_follows_a_real_folder(steps: list[tuple[Any, ...]]) -> None:
    """After every step: no difference, the digest of one who has only seen the result, and that of a copy."""
    with tempfile.TemporaryDirectory() as base:
        both = Both(Path(base))
        try:
            for step in steps:
                both.step(*step)
                assert differences(both.tree, both.out) == ()
                assert both.tree.digest() == both.imported() == both.tree.copy().digest()
            assert differences(both.tree, both.rebuilt()) == ()
        finally:
            both.close()


@pytest.fixture
def both(tmp_path: Path) -> Any:
    """Give an empty folder and its model."""
    one = Both(tmp_path)
    yield one
    one.close()


def test_each_thing_that_can_be_seen_counts(both: Both) -> None:
    """No two of these folders have the same digest, each differing from the one before in one thing."""
    steps: list[tuple[Any, ...]] = [
        ("write", "a", 0, (9000, 1)),
        ("write", "a", 4096, (1, 2)),
        ("resize", "a", 9001),
        ("resize", "a", 12289),
        ("write", "a", 12288, (1, 3)),
        ("write", "b", 0, (100, 1)),
        ("link", "b", "c"),
        ("remove", "c"),
        ("write", "c", 0, (100, 1)),
        ("chmod", "c", 0o600),
        ("mkdir", "folder"),
        ("chmod", "folder", 0o600),
        ("remove", "b"),
        ("symlink", "b"),
    ]
    digests = {both.tree.digest()}
    for step in steps:
        before = len(digests)
        both.step(*step)
        digests.add(both.tree.digest())
        assert len(digests) == before + (step != ("remove", "c")), step


def test_a_file_that_was_cut_has_zeros_where_it_grows_again(both: Both) -> None:
    """What a file held beyond the point where it was cut never comes back, in bytes or in the digest."""
    both.step("write", "a", 0, (5000, 1))
    both.step("resize", "a", 20000)
    expected = both.tree.digest()
    both.step("write", "a", 4000, (16000, 2))
    assert both.tree.digest() != expected
    both.step("resize", "a", 4000)
    both.step("write", "a", 0, (5000, 1))
    both.step("resize", "a", 20000)
    assert both.tree.digest() == expected == both.imported()


def test_the_same_content_by_other_ways_has_the_same_digest(both: Both) -> None:
    """A hole equals written zeros, and many small writes out of order equal one."""
    both.step("write", "a", 0, (9000, 1))
    both.step("resize", "a", 30000)
    whole = both.tree.digest()
    both.step("remove", "a")
    both.step("write", "a", 0, (30000, 0))
    assert both.tree.digest() != whole
    for start in (8000, 0, 4000):
        data = some(9000, 1)[start : start + 4000]
        node = both.tree.find("a")
        assert node is not None
        both._apply(Wrote(node=node.number, offset=start, pieces=(both.store.put(data),)))
    assert both.tree.digest() == whole


def test_a_change_costs_what_it_changes(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a first digest of a file, a few bytes more in it make two pages be read, not the file."""
    both.step("write", "a", 0, (5 << 20, 1))
    both.tree.digest()
    read: list[int] = []
    node = both.tree.find("a")
    assert node is not None
    original = type(node.extents).read

    def counted(extents: Any, start: int, end: int, content: Any) -> bytes:
        read.append(end - start)
        return original(extents, start, end, content)

    monkeypatch.setattr(type(node.extents), "read", counted)
    both.step("write", "a", (1 << 20) - 10, (20, 2))
    both.tree.digest()
    assert sum(read) == 8192


def test_an_exchange_and_a_rename_onto_the_same_file(both: Both) -> None:
    """Two names change places, whatever they are of; a rename between two names of one file does nothing."""
    both.step("write", "a", 0, (10, 1))
    both.step("mkdir", "folder")
    both.step("write", "folder/a", 0, (20, 2))
    both._apply(Renamed(parent=ROOT, name="a", new_parent=ROOT, new_name="folder", is_exchange=True))
    kinds = {path: node.kind for path, node in both.tree.walk()}
    assert kinds == {"a": NodeKind.FOLDER, "a/a": NodeKind.FILE, "folder": NodeKind.FILE}
    node = both.tree.find("folder")
    assert node is not None
    both._apply(Linked(node=node.number, parent=ROOT, name="twin"))
    before = both.tree.digest()
    both._apply(Renamed(parent=ROOT, name="folder", new_parent=ROOT, new_name="twin"))
    assert both.tree.digest() == before
    assert both.tree.paths(node) == ["folder", "twin"]


def test_what_does_not_fit_is_refused(both: Both) -> None:
    """A change of a node or a name that is not there raises."""
    for change in (Unlinked(parent=ROOT, name="missing"), Resized(node=99, size_bytes=0), Unlinked(parent=7, name="a")):
        with pytest.raises(UnknownNodeError):
            both.tree.apply(change)
