"""What a lost checkpoint lacked: which call would have made it durable, and which operation published it without."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from chaos.model import FileSystem, Loss, NotDurable
from chaos.states.changes import NodeKind
from chaos.states.durability.enumerating import Found
from chaos.states.durability.history import History
from chaos.states.tree import Node

_TOLD = frozenset({NodeKind.FILE, NodeKind.SYMLINK})
_STAYS = "a copy that stays until the new one is durable"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file of an acknowledged save as it was then: its node, a digest of its bytes, where these were not durable."""

    path: str
    node: int
    content: bytes
    not_synced: frozenset[FileSystem]


def files_of_save(history: History, paths: Iterable[str]) -> tuple[KeptFile, ...]:
    """Return the files at paths (of a folder: all below it) at the point that a history has come to."""
    return tuple(_kept(history, path, node) for path in paths for path, node in _below(history, path))


def _below(history: History, path: str) -> Iterator[tuple[str, Node]]:
    """Yield a file, or all files below a folder, with their paths."""
    node = history.tree.find(path)
    if node is None:
        return
    found = [(path, node)] if node.kind is not NodeKind.FOLDER else list(history.tree.walk(node, f"{path}/"))
    for name, below in found:
        if below.kind in _TOLD:
            yield name, below


def _kept(history: History, path: str, node: Node) -> KeptFile:
    """Describe a file as it is now."""
    open_by = (
        name
        for name, view in history.views.items()
        if node.number in view.floors and not view.floors[node.number].is_settled
    )
    content = _now(history, node)
    return KeptFile(path=path, node=node.number, content=content, not_synced=frozenset(open_by))


def blame(
    history: History, found: Found, files: Iterable[KeptFile], name_of: Callable[[int], str]
) -> tuple[NotDurable, ...]:
    """Say what the files of the last acknowledged save lack in a state; nothing where they are all there.

    `name_of` puts the operation of an index into words.
    """
    return tuple(dict.fromkeys(item for file in files if (item := _lacks(history, found, file, name_of)) is not None))


def with_blame(found: Found, not_durable: tuple[NotDurable, ...]) -> Loss:
    """Return the loss with what it lacks."""
    loss = found.loss
    return Loss(profiles=loss.profiles, names=loss.names, files=loss.files, not_durable=not_durable)


def _lacks(history: History, found: Found, file: KeptFile, name_of: Callable[[int], str]) -> NotDurable | None:
    """Say what one file lacks (None: it is there, under a name that it had when it was acknowledged, or has since)."""
    known = {file.path, *history.tree.paths(history.tree.node(file.node))}
    holders = [path for path, node in found.paths.items() if node == file.node and path in known]
    if holders and _content(history, found, file.node) == file.content:
        return None
    above = _folder_that_is_gone(history, found, file.path)
    if above:
        missing = f"fsync of the folder of {above}"
        return NotDurable(path=file.path, missing=missing, published_by=name_of(_published(history, above)))
    now = history.tree.find(file.path)
    if not holders and now is not None and now.number != file.node and now.kind in _TOLD:
        missing = _missing_of_new(history, found, file.path, now)
    else:
        missing = _missing_of_old(history, found, file, has_name=bool(holders), is_removed=now is None)
    if not missing:
        return None
    return NotDurable(path=file.path, missing=missing, published_by=name_of(_published(history, file.path)))


def _folder_that_is_gone(history: History, found: Found, path: str) -> str:
    """Return the uppermost folder of a path that is not there in a state, though it should be (empty: none)."""
    parts = path.split("/")[:-1]
    folders = ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    return next((above for above in folders if above not in found.paths and history.tree.find(above)), "")


def _content(history: History, found: Found, node: int) -> bytes:
    """Return a digest of what a file holds in a state."""
    return found.contents.get(node) or _now(history, history.tree.node(node))


def _now(history: History, node: Node) -> bytes:
    """Return a digest of what a file or link holds at the point that a history has come to."""
    return node.text.encode() if node.kind is NodeKind.SYMLINK else node.extents.digest(history.tree.content)


def _missing_of_old(history: History, found: Found, file: KeptFile, *, has_name: bool, is_removed: bool) -> str:
    """Say what is missing of a file that nothing has replaced."""
    is_unsynced = bool(file.not_synced & set(found.loss.profiles))
    is_overwritten = _now(history, history.tree.node(file.node)) != file.content
    own = f"fsync of {history.written_as.get(file.node, file.path)}"
    if has_name:
        return own if is_unsynced and not is_overwritten else _STAYS
    if is_removed:
        return f"fsync of what replaces {file.path}, before it goes away"
    return f"{own} and of its folder" if is_unsynced else f"fsync of the folder of {file.path}"


def _missing_of_new(history: History, found: Found, path: str, now: Node) -> str:
    """Say what is missing where a newer file had taken the name; nothing where that one is whole."""
    is_whole = _content(history, found, now.number) == _now(history, now)
    if found.paths.get(path) != now.number:
        return f"fsync of the folder of {path}"
    return "" if is_whole else f"fsync of {history.written_as.get(now.number, path)}"


def _published(history: History, path: str) -> int:
    """Return the operation that gave a path what it leads to."""
    base, _, name = path.rpartition("/")
    parent = history.tree.find(base)
    return history.published.get((parent.number, name), -1) if parent is not None else -1
