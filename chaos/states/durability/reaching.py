"""What can be seen of a folder when its names came out in some way."""

from __future__ import annotations

from collections.abc import Mapping

import xxhash

from chaos.states.changes import ROOT, NodeKind
from chaos.states.durability.names import Cells
from chaos.states.tree import Tree


class Reach:
    """What can be seen of a folder whose cells are as given.

    `paths` leads from every path to its node, a folder before what is in it; `files` are the files among those.
    """

    def __init__(self, tree: Tree, cells: Cells) -> None:
        """Walk through the folder once; a folder under two names is seen under the first alone."""
        self._tree = tree
        self.paths: dict[str, int] = {}
        self._entries: dict[int, dict[str, int]] = {}
        for (parent, name), node in cells.items():
            entries = self._entries.setdefault(parent, dict(tree.node(parent).entries))
            entries.pop(name, None)
            if node is not None:
                entries[name] = node
        self._walk(ROOT, "", {ROOT})
        kinds = tree.nodes
        self.files = tuple(dict.fromkeys(n for n in self.paths.values() if kinds[n].kind is NodeKind.FILE))

    def _walk(self, folder: int, base: str, seen: set[int]) -> None:
        """List a folder and all below it."""
        for name, number in sorted(self._entries.get(folder, self._tree.node(folder).entries).items()):
            is_folder = self._tree.node(number).kind is NodeKind.FOLDER
            if is_folder and number in seen:
                continue
            self.paths[base + name] = number
            if is_folder:
                seen.add(number)
                self._walk(number, f"{base}{name}/", seen)

    def digest(self, files: Mapping[int, bytes]) -> str:
        """Return a digest of all that can be seen, with digests for the files that are not as they were."""
        digest = xxhash.xxh3_128()
        for path, number in self.paths.items():
            node = self._tree.nodes[number]
            digest.update(f"{path}\0{node.kind}\0{node.text}\0{number if len(node.names) > 1 else ''}\0".encode())
            if node.kind is NodeKind.FILE:
                digest.update(files.get(number) or node.extents.digest(self._tree.content))
        return digest.hexdigest()
