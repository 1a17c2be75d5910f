"""What a folder holds, real or modelled, as far as a save is about it; and what became of its names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from chaos.model import Record
from chaos.states.changes import NodeKind
from chaos.states.tree import Tree
from cutting.patterns import Fate

# The bytes of each file, the text of each symbolic link, and None for a folder, by their names.
View = Mapping[str, bytes | str | None]


def view_of_folder(folder: Path) -> View:
    """Read a real folder."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


def view_of_tree(tree: Tree) -> View:
    """Read a model of a folder."""
    found: dict[str, bytes | str | None] = {}
    for name, node in tree.walk():
        match node.kind:
            case NodeKind.FOLDER:
                found[name] = None
            case NodeKind.SYMLINK:
                found[name] = node.text
            case _:
                found[name] = node.extents.read(0, node.extents.size, tree.content)
    return found


class Contents(Record, kw_only=True):
    """What the names held before a save, and after it."""

    old: dict[str, bytes | str | None]
    new: dict[str, bytes | str | None]

    def fate(self, view: View, name: str) -> Fate:
        """Say what became of a name; one that the save does not change stays old."""
        if name not in view:
            return Fate.MISSING
        content = view[name]
        if name in self.old and content == self.old[name]:
            return Fate.OLD
        if name in self.new and content == self.new[name]:
            return Fate.NEW
        if not content:
            return Fate.EMPTY
        return Fate.ZEROS if content == bytes(len(content)) else Fate.TORN

    def describe(self, view: View) -> str:
        """Say in one line what became of all names."""
        names = sorted({*self.old, *self.new, *view})
        return ", ".join(f"{name} {self.fate(view, name)}{_size(view.get(name))}" for name in names)


def digest_of(view: View) -> str:
    """Return the digest of a view."""
    state = hashlib.sha256()
    for name, content in sorted(view.items()):
        state.update(repr((name, content)).encode())
    return state.hexdigest()


def _size(content: bytes | str | None) -> str:
    """Return the length of a file in words."""
    return f" ({len(content):,} bytes)" if isinstance(content, bytes) else ""
