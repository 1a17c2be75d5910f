"""Mounts what the cuts of a save left, and asks the model about each whether it may be so."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.images import mounted
from chaos.model import FileSystem, Record
from chaos.states.durability import admits
from chaos.states.log import StateAt
from chaos.states.recording import Recording
from cutting.bench import Bench
from cutting.cutter import Cut
from cutting.patterns import Pattern
from cutting.saving import Save
from cutting.views import Contents, View, digest_of, view_of_folder, view_of_tree


class Strange(Record, kw_only=True):
    """An image that the model does not have: what was seen, where, and why it cannot be, by the model."""

    cut: Cut
    profile: FileSystem
    seen: str
    reason: str


class Looked(Record, kw_only=True):
    """What the images of one save held: digests of images and of states, the corners met, what was strange."""

    images: frozenset[str]
    states: frozenset[str]
    corners: frozenset[int]
    strange: tuple[Strange, ...]


def contents_of(recording: Recording, start: int) -> Contents:
    """Return what the names held when the old checkpoint was synced, and when the life was over."""
    old = view_of_tree(recording.tree_at(StateAt(index=start)))
    return Contents(old=dict(old), new=dict(view_of_tree(recording.tree_at(recording.end))))


def look(bench: Bench, save: Save, recording: Recording, pattern: Pattern) -> Looked:
    """Look at every image once, and ask about it for every cut that gave it."""
    contents = contents_of(recording, save.start)
    states, corners, strange = set(), set(), []
    for image, cuts in _by_image(save.cuts).items():
        with mounted(bench.kind, bench.path_of(image), bench.look):
            view = view_of_folder(bench.look / "out")
            strange += [_strange(cut, *found, contents, view) for cut in cuts for found in _ask(bench, cut, recording)]
        states.add(digest_of(view))
        corners |= set(matching(pattern, contents, view))
    return Looked(
        images=frozenset(cut.image for cut in save.cuts),
        states=frozenset(states),
        corners=frozenset(corners),
        strange=tuple(strange),
    )


def matching(pattern: Pattern, contents: Contents, view: View) -> Iterator[int]:
    """Yield the numbers of the corners that a folder is in."""
    for number, corner in enumerate(pattern.corners):
        if all(contents.fate(view, name) is fate for name, fate in corner.names.items()):
            yield number


def _by_image(cuts: tuple[Cut, ...]) -> dict[str, list[Cut]]:
    """Return the cuts of each image, one for each operation, in the order in which they were taken."""
    found: dict[str, dict[int, Cut]] = {}
    for cut in cuts:
        found.setdefault(cut.image, {}).setdefault(cut.index, cut)
    return {image: list(by_index.values()) for image, by_index in found.items()}


def _ask(bench: Bench, cut: Cut, recording: Recording) -> Iterator[tuple[FileSystem, str]]:
    """Ask by the rules of the file system itself, and by those of POSIX, which promise no more than it."""
    for profile in (bench.kind.file_system, FileSystem.POSIX):
        reason = admits(recording, cut.index, profile, bench.look / "out")
        if reason:
            yield profile, reason


def _strange(cut: Cut, profile: FileSystem, reason: str, contents: Contents, view: View) -> Strange:
    """Tell of an image that the model does not have."""
    return Strange(cut=cut, profile=profile, seen=contents.describe(view), reason=reason)
