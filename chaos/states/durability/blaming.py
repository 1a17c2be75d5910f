"""What a lost checkpoint lacked: which call would have made it durable, and which operation published it without."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from chaos.model import FileSystem, Loss, NotDurable
from chaos.states.changes import NodeKind
from chaos.states.durability.enumerating import Found
from chaos.states.durability.history import History
from chaos.states.tree import Node

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
        if below.kind is NodeKind.FILE:
            yield name, below
        elif below.kind is NodeKind.SYMLINK:  # what it leads to, where that is in the folder, is told by its own name
            continue


def _kept(history: History, path: str, node: Node) -> KeptFile:
    """Describe a file as it is now."""
    open_by = (
        name
        for name, view in history.views.items()
        if node.number in view.floors and not view.floors[node.number].is_settled
    )
    content = node.extents.digest(history.tree.content)
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
    content = found.contents.get(file.node) or history.tree.node(file.node).extents.digest(history.tree.content)
    if holders and content == file.content:
        return None
    now = history.tree.find(file.path)
    if now is not None and now.number != file.node and now.kind is NodeKind.FILE:
        return _not_replaced(history, found, file, now, name_of)
    published = name_of(_published(history, file.path))
    if holders:
        missing = f"fsync of {history.written_as.get(file.node, file.path)}" if _is_unsynced(found, file) else _STAYS
    elif now is None:
        missing = f"fsync of what replaces {file.path}, before it goes away"
    else:
        missing = f"fsync of the folder of {file.path}"
    return NotDurable(path=file.path, missing=missing, published_by=published)


def _is_unsynced(found: Found, file: KeptFile) -> bool:
    """Tell whether the bytes of a file were not durable when its save was acknowledged, by the rules of this state."""
    return bool(file.not_synced & set(found.loss.profiles))


def _not_replaced(
    history: History, found: Found, file: KeptFile, now: Node, name_of: Callable[[int], str]
) -> NotDurable:
    """Say what is missing where a newer file had taken the name."""
    has_name = found.paths.get(file.path) == now.number
    written_as = history.written_as.get(now.number, file.path)
    missing = f"fsync of {written_as}" if has_name else f"fsync of the folder of {file.path}"
    return NotDurable(path=file.path, missing=missing, published_by=name_of(_published(history, file.path)))


def _published(history: History, path: str) -> int:
    """Return the operation that gave a path what it leads to."""
    base, _, name = path.rpartition("/")
    parent = history.tree.find(base)
    return history.published.get((parent.number, name), -1) if parent is not None else -1
