"""How programs save, as recordings; and what a reader finds at the published names after a loss.

A state is one letter for each published name: `o` the old content, `n` the new one, `e` an empty file, `z` zeros, `t`
anything else (torn), `-` nothing there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.model import FileSystem
from chaos.states.changes import Durability, NodeKind

from .brute_force import PAGE, Value
from .conftest import Script, after_loss

OLD, NEW, OLDER = b"A" * 2 * PAGE, b"B" * 2 * PAGE, b"C" * 2 * PAGE
LETTERS = {OLD: "o", NEW: "n", OLDER: "p", b"": "e", None: "-"}
Found = dict[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What a save asks to be made durable: calls on each file once it is written, then the folders, then everything."""

    calls: tuple[str, ...] = ()
    has_failed: bool = False
    folder: bool = False
    everything: str = ""
    durability: Durability = Durability.NONE


HOW = {
    "nothing": How(),
    "file": How(calls=("fsync",)),
    "file+folder": How(calls=("fsync",), folder=True),
    "folder": How(folder=True),
    "fdatasync": How(calls=("fdatasync",)),
    "msync": How(calls=("msync",)),
    "sync": How(everything="sync"),
    "syncfs": How(everything="syncfs"),
    "O_SYNC": How(durability=Durability.ALL),
    "O_DSYNC": How(durability=Durability.DATA),
    "sync_file_range": How(calls=("sync_file_range",)),
    "failed": How(calls=("fsync",), has_failed=True),
}


def written(script: Script, path: str, how: How, data: bytes = NEW, offset: int = 0) -> None:
    """Write a file's bytes and do what is to be done to the file."""
    script.write(path, offset, data, how.durability)
    if how.has_failed:
        script.sync(path, "fsync", has_failed=True)
    for call in how.calls:
        script.sync(path, call)


def made(script: Script, path: str, how: How, data: bytes = NEW) -> None:
    """Write a new file."""
    script.make(path)
    written(script, path, how, data)


def ended(script: Script, how: How, *folders: str) -> None:
    """Do what is to be done at the end of a save."""
    for folder in folders or ("",):
        if how.folder:
            script.sync(folder)
    if how.everything:
        script.sync(None, how.everything)


# --- one name -------------------------------------------------------------------------------------------


def in_place(script: Script, how: How) -> None:
    """Cut the file to nothing and write it again."""
    script.make("ckpt", OLD)
    script.begun().resize("ckpt", 0)
    written(script, "ckpt", how)
    ended(script, how)


def overwrite(script: Script, how: How) -> None:
    """Write over the file, as through a mapping."""
    script.make("ckpt", OLD)
    written(script.begun(), "ckpt", how)
    ended(script, how)


def append(script: Script, how: How) -> None:
    """Write at the end of the file."""
    script.make("ckpt", OLD)
    written(script.begun(), "ckpt", how, offset=len(OLD))
    ended(script, how)


def replace(script: Script, how: How) -> None:
    """Write a temporary file and rename it over the old one."""
    script.make("ckpt", OLD)
    made(script.begun(), "tmp", how)
    script.rename("tmp", "ckpt")
    ended(script, how)


def new_name(script: Script, how: How) -> None:
    """Write a temporary file and rename it to a name that was not there."""
    made(script.begun(), "tmp", how)
    script.rename("tmp", "ckpt")
    ended(script, how)


def direct(script: Script, how: How) -> None:
    """Write a new file under its own name."""
    made(script.begun(), "ckpt", how)
    ended(script, how)


def unrelated(script: Script, how: How) -> None:
    """Replace the file without any care, while somebody else writes a new file with all care."""
    replace(script, HOW["nothing"])
    made(script, "other", how)


def late(script: Script, how: How) -> None:
    """Replace the file, and only then do what is to be done to it."""
    script.make("ckpt", OLD)
    made(script.begun(), "tmp", HOW["nothing"])
    script.rename("tmp", "ckpt")
    for call in how.calls:
        script.sync("ckpt", call)


def in_folder(script: Script, how: How) -> None:
    """Write a new file in a new folder."""
    script.begun().make("new", kind=NodeKind.FOLDER)
    made(script, "new/ckpt", how)
    ended(script, how, "new", "")


# --- several names --------------------------------------------------------------------------------------


def two_files(script: Script, how: How) -> None:
    """Replace the weights, then the state to resume from."""
    script.make("weights", OLD)
    script.make("resume", OLD)
    script.begun()
    for name in ("weights", "resume"):
        made(script, "tmp-" + name, how)
        script.rename("tmp-" + name, name)
    ended(script, how)


def marker(script: Script, how: How) -> None:
    """Write a folder with a file, and a marker in it when that is done."""
    script.begun().make("new", kind=NodeKind.FOLDER)
    made(script, "new/ckpt", how)
    ended(script, how, "new")
    script.make("new/done")
    ended(script, how, "new", "")


def marker_late(script: Script, how: How) -> None:
    """Write a folder with a file and a marker, and see to the folders at the end alone."""
    script.begun().make("new", kind=NodeKind.FOLDER)
    made(script, "new/ckpt", how)
    script.make("new/done")
    ended(script, how, "new", "")


def marker_above(script: Script, how: How) -> None:
    """Write a folder with a file and a marker, and see to the folder above it alone."""
    script.begun().make("new", kind=NodeKind.FOLDER)
    made(script, "new/ckpt", how)
    script.make("new/done")
    ended(script, how, "")


def rotation_by_unlink(script: Script, how: How) -> None:
    """Publish a new name, then remove the old one."""
    script.make("old", OLD)
    made(script.begun(), "tmp", how)
    script.rename("tmp", "new")
    ended(script, how)
    script.unlink("old")


def rotation_by_rename(script: Script, how: How) -> None:
    """Move the old one aside, then rename the new one into its place."""
    script.make("ckpt", OLD)
    made(script.begun(), "tmp", how)
    script.rename("ckpt", "prev")
    script.rename("tmp", "ckpt")
    ended(script, how)


def rotation_late(script: Script, how: How) -> None:
    """Move the old one aside and the new one into its place, and only then do what is to be done to the new one."""
    script.make("ckpt", OLD)
    made(script.begun(), "tmp", HOW["nothing"])
    script.rename("ckpt", "prev")
    script.rename("tmp", "ckpt")
    for call in how.calls:
        script.sync("ckpt", call)


def rotation_by_link(script: Script, how: How) -> None:
    """Give the old one a second name in place of the one before, then rename the new one over it."""
    script.make("ckpt", OLD)
    script.make("prev", OLDER)
    made(script.begun(), "tmp", how)
    script.link("ckpt", "prev.tmp")
    script.rename("prev.tmp", "prev")
    script.rename("tmp", "ckpt")
    ended(script, how)


def latest(script: Script, how: How) -> None:
    """Publish a new name, then let the link `latest` lead to it."""
    script.make("old", OLD)
    script.make("latest", kind=NodeKind.SYMLINK, text="old")
    made(script.begun(), "tmp", how)
    script.rename("tmp", "new")
    ended(script, how)
    script.make("latest.tmp", kind=NodeKind.SYMLINK, text="new")
    script.rename("latest.tmp", "latest")
    ended(script, how)


# --- what a reader finds ----------------------------------------------------------------------------------


def letter(value: Value) -> str:
    """Return the letter of a file's bytes (None: it is missing)."""
    assert not isinstance(value, str)
    known = LETTERS.get(value)
    return known or ("z" if value is not None and not any(value) else "t")


def _of_append(found: Found) -> str:
    """Return the letter of a file that was appended to."""
    value = found.get("ckpt")
    if not isinstance(value, bytes) or not value.startswith(OLD):
        return "t"
    added = value.removeprefix(OLD)
    return "o" if not added else letter(added)


def _at(*paths: str) -> Callable[[Found], str]:
    """Return the reader of some paths."""
    return lambda found: "".join(letter(found.get(path)) for path in paths)


def _of_marker(found: Found) -> str:
    """Return the letter of a checkpoint that counts once its marker is there (`.`: it is not)."""
    return letter(found.get("new/ckpt")) if "new/done" in found else "."


def _of_latest(found: Found) -> str:
    """Return the letter of what the link leads to."""
    text = found.get("latest")
    return letter(found.get(text)) if isinstance(text, str) else "."


PATTERNS: dict[str, tuple[Callable[[Script, How], None], Callable[[Found], str]]] = {
    "in place": (in_place, _at("ckpt")),
    "overwrite": (overwrite, _at("ckpt")),
    "append": (append, _of_append),
    "replace": (replace, _at("ckpt")),
    "new name": (new_name, _at("ckpt")),
    "direct": (direct, _at("ckpt")),
    "unrelated": (unrelated, _at("ckpt")),
    "late": (late, _at("ckpt")),
    "in folder": (in_folder, _at("new/ckpt")),
    "two files": (two_files, _at("weights", "resume")),
    "marker": (marker, _of_marker),
    "marker late": (marker_late, _of_marker),
    "marker above": (marker_above, _of_marker),
    "rotation by unlink": (rotation_by_unlink, _at("old", "new")),
    "rotation by rename": (rotation_by_rename, _at("ckpt", "prev")),
    "rotation late": (rotation_late, _at("ckpt", "prev")),
    "rotation by link": (rotation_by_link, _at("ckpt", "prev")),
    "latest": (latest, _of_latest),
}


def outcomes(folder: Path, pattern: str, how: str, file_system: FileSystem) -> tuple[set[str], set[str]]:
    """Return what may be found after a loss before the last operation of a save was done, and after it."""
    save, read = PATTERNS[pattern]
    script = Script(folder)
    save(script, HOW[how])
    with script.close() as recording:
        before, after = set(), set()
        for index in range(recording.num_operations + 1):
            found = {read(dict(state)) for state in after_loss(recording, index, file_system)}
            if index < recording.num_operations:
                before |= found
            else:
                after = found
    return before, after


def first_states(folder: Path, pattern: str, how: str, file_system: FileSystem, limit: int) -> set[str]:
    """Return what is found in the first states after a save."""
    save, read = PATTERNS[pattern]
    script = Script(folder)
    save(script, HOW[how])
    with script.close() as recording:
        states = after_loss(recording, recording.num_operations, file_system, limit)
        return {read(dict(state)) for state in states}


def spelled(text: str) -> set[str]:
    """Return the states that a line of the table tells of: `{on}-` is `o-` and `n-`."""
    found = set()
    for word in text.split():
        parts = [part.strip("{}") if part.startswith("{") else part for part in re.findall(r"\{[^}]*\}|.", word)]
        found |= {"".join(chosen) for chosen in itertools.product(*parts)}
    return found
