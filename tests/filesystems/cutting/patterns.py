"""The save patterns, and what is known of each: which losses there must be, and which there must not be."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

from chaos.model import FileSystem, Record

_TARGETS: Final = Path(__file__).parents[1] / "targets"
ALL: Final = tuple(FileSystem)
REAL: Final = (FileSystem.EXT4, FileSystem.XFS, FileSystem.BTRFS)
POSIX: Final = (FileSystem.POSIX,)
# btrfs starts the writeback of what replaces a file; whether it can be late, its documentation does not say.
NOT_BTRFS: Final = (FileSystem.POSIX, FileSystem.EXT4, FileSystem.XFS)


class Fate(StrEnum):
    """What a loss of power made of a name: the content that it had before the save or was to have after, or else."""

    OLD = "old"
    NEW = "new"
    MISSING = "missing"
    EMPTY = "empty"
    ZEROS = "zeros"
    TORN = "torn"


class Corner(Record, kw_only=True):
    """A state that must be in the model's set once the save is over (or at some point of it, where not `is_at_end`)."""

    names: dict[str, Fate]
    on: tuple[FileSystem, ...] = ALL
    is_at_end: bool = True


class Promise(Record, kw_only=True):
    """All that a name may ever be; with `is_at_end`, once the save is over."""

    name: str
    fates: tuple[Fate, ...]
    on: tuple[FileSystem, ...] = ALL
    is_at_end: bool = False


class Pattern(Record, kw_only=True):
    """A way to save, its script, and what is known of it.

    `settles_on` are the file systems on which nothing can come out otherwise once the save is over: one state is left.
    """

    name: str
    settles_on: tuple[FileSystem, ...] = ()
    corners: tuple[Corner, ...] = ()
    promises: tuple[Promise, ...] = ()
    script: str = "saves.py"

    @property
    def has_torch(self) -> bool:
        """Tell whether its script imports torch."""
        return self.script != "saves.py"

    @property
    def path(self) -> Path:
        """Return where its script is."""
        return _TARGETS / self.script


def _corner(on: tuple[FileSystem, ...] = ALL, *, is_at_end: bool = True, **fates: Fate) -> Corner:
    """Make a corner of one of the short words for names."""
    return Corner(names={_NAMES[word]: fate for word, fate in fates.items()}, on=on, is_at_end=is_at_end)


def _each(word: str, *fates: Fate, on: tuple[FileSystem, ...] = ALL, is_at_end: bool = True) -> tuple[Corner, ...]:
    """Make a corner for each fate of one name."""
    return tuple(_corner(on, is_at_end=is_at_end, **{word: fate}) for fate in fates)


def _only(word: str, *fates: Fate, on: tuple[FileSystem, ...] = ALL) -> Promise:
    """Make a promise about the whole save."""
    return Promise(name=_NAMES[word], fates=fates, on=on)


def _finally(word: str, *fates: Fate, on: tuple[FileSystem, ...] = ALL) -> Promise:
    """Make a promise about the end."""
    return Promise(name=_NAMES[word], fates=fates, on=on, is_at_end=True)


_NAMES: Final = {
    "model": "model.pt",
    "first": "step-1.pt",
    "second": "step-2.pt",
    "weights": "weights.pt",
    "resume": "resume.pt",
    "latest": "latest",
    "log": "log",
    "tensors": "model.safetensors",
    "old_folder": "step-1/weights.pt",
    "folder_weights": "step-2/weights.pt",
    "folder_optimizer": "step-2/optimizer.pt",
    "complete": "step-2/complete",
    "metadata": "step-2/.metadata",
    "shard": "step-2/__0_0.distcp",
}

OLD, NEW, MISSING = Fate.OLD, Fate.NEW, Fate.MISSING
EMPTY, ZEROS, TORN = Fate.EMPTY, Fate.ZEROS, Fate.TORN
_DAMAGED: Final = (EMPTY, ZEROS, TORN)
_WHOLE: Final = (OLD, NEW)

_ONE_NAME: Final = (
    Pattern(name="in_place", corners=_each("model", *_DAMAGED)),
    Pattern(
        name="in_place_fsync",
        settles_on=ALL,
        corners=_each("model", EMPTY, TORN, is_at_end=False),
        promises=(_finally("model", NEW),),
    ),
    Pattern(name="overwrite", corners=_each("model", OLD, TORN)),
    Pattern(
        name="overwrite_fdatasync",
        settles_on=ALL,
        corners=_each("model", TORN, is_at_end=False),
        promises=(_finally("model", NEW),),
    ),
    Pattern(name="rename", corners=_each("model", *_DAMAGED, on=NOT_BTRFS) + _each("model", OLD)),
    Pattern(name="rename_range", corners=_each("model", *_DAMAGED, on=NOT_BTRFS)),
    Pattern(name="rename_fsync", corners=_each("model", OLD), promises=(_only("model", *_WHOLE),)),
    Pattern(name="rename_folder_fsync", corners=_each("model", *_DAMAGED)),
    *(
        Pattern(
            name=f"rename_{how}",
            settles_on=ALL,
            corners=_each("model", OLD, is_at_end=False),
            promises=(_only("model", *_WHOLE), _finally("model", NEW)),
        )
        for how in ("durable", "fdatasync")
    ),
    Pattern(
        name="rename_syncfs",
        settles_on=REAL,
        corners=_each("model", OLD, is_at_end=False) + _each("model", EMPTY, on=POSIX),
        promises=(_only("model", *_WHOLE, on=REAL), _finally("model", NEW, on=REAL)),
    ),
    Pattern(name="keep_previous", settles_on=ALL, promises=(_only("model", *_WHOLE), _finally("model", NEW))),
    Pattern(
        name="rotate_rename",
        corners=_each("model", *_DAMAGED, MISSING),
    ),
    Pattern(
        name="relink",
        corners=(*_each("model", EMPTY, ZEROS), *_each("model", MISSING, is_at_end=False)),
    ),
    Pattern(name="append", corners=_each("log", OLD, TORN)),
    Pattern(name="safetensors", corners=_each("tensors", *_DAMAGED, on=NOT_BTRFS)),
)

_NEW_NAMES: Final = (
    Pattern(name="new_name", corners=_each("second", *_DAMAGED, MISSING), promises=(_only("first", OLD),)),
    Pattern(
        name="new_name_fsync",
        settles_on=REAL,
        corners=_each("second", MISSING, on=POSIX),
        promises=(_finally("second", NEW, on=REAL), _finally("second", NEW, MISSING)),
    ),
    Pattern(name="new_name_folder_fsync", corners=_each("second", *_DAMAGED), promises=(_only("first", OLD),)),
    Pattern(
        name="new_name_durable",
        settles_on=ALL,
        corners=_each("second", MISSING, EMPTY, is_at_end=False),
        promises=(_only("first", OLD), _finally("second", NEW)),
    ),
    Pattern(
        name="new_name_sync",
        settles_on=REAL,
        corners=_each("second", MISSING, EMPTY, is_at_end=False) + _each("second", MISSING, EMPTY, on=POSIX),
        promises=(_only("first", OLD), _finally("second", NEW, on=REAL)),
    ),
    *(
        Pattern(
            name=name,
            settles_on=REAL,
            corners=_each("second", MISSING, on=POSIX),
            promises=(_finally("second", NEW, MISSING), _finally("second", NEW, on=REAL)),
        )
        for name in ("o_sync", "o_dsync", "holes")
    ),
    Pattern(name="preallocated", corners=_each("second", ZEROS, TORN)),
    Pattern(
        name="rotate_unlink",
        corners=(
            _corner(first=MISSING, second=EMPTY),
            _corner(first=MISSING, second=ZEROS),
            _corner(first=MISSING, second=MISSING, on=POSIX),
        ),
    ),
    Pattern(
        name="rotate_unlink_fsync",
        settles_on=ALL,
        corners=(_corner(first=MISSING, second=MISSING, on=POSIX, is_at_end=False),),
        promises=(_finally("second", NEW), _finally("first", MISSING)),
    ),
    Pattern(
        name="latest",
        corners=(_corner(latest=NEW, second=EMPTY), _corner(latest=NEW, second=MISSING, on=POSIX)),
    ),
    Pattern(
        name="latest_fsync",
        settles_on=ALL,
        corners=(_corner(latest=NEW, second=MISSING, on=POSIX, is_at_end=False),),
        promises=(_only("latest", *_WHOLE), _finally("latest", NEW), _finally("second", NEW)),
    ),
)

_SEVERAL: Final = (
    Pattern(
        name="two_files",
        corners=(
            _corner(weights=NEW, resume=OLD),
            _corner(weights=OLD, resume=NEW, on=POSIX),
            *_each("weights", EMPTY, on=NOT_BTRFS),
            *_each("resume", EMPTY, on=NOT_BTRFS),
        ),
    ),
    Pattern(
        name="two_files_durable",
        settles_on=ALL,
        corners=(_corner(weights=NEW, resume=OLD, is_at_end=False),),
        promises=(
            _only("weights", *_WHOLE),
            _only("resume", *_WHOLE),
            _finally("weights", NEW),
            _finally("resume", NEW),
        ),
    ),
    Pattern(
        name="folder_marker",
        corners=(
            _corner(complete=NEW, folder_weights=EMPTY),
            _corner(complete=NEW, folder_weights=MISSING, on=POSIX),
            _corner(complete=MISSING, folder_weights=MISSING),
        ),
        promises=(_only("old_folder", OLD),),
    ),
    Pattern(
        name="folder_marker_fsync",
        settles_on=REAL,
        corners=(
            _corner(complete=NEW, folder_weights=MISSING, on=POSIX),
            _corner(complete=MISSING, folder_weights=MISSING, on=POSIX),
        ),
        promises=(
            _finally("folder_weights", NEW, MISSING),
            _finally("folder_weights", NEW, on=REAL),
            _finally("complete", NEW, on=REAL),
        ),
    ),
    Pattern(name="folder_moved", corners=(_corner(folder_weights=EMPTY), _corner(folder_weights=MISSING))),
    Pattern(
        name="folder_moved_durable",
        settles_on=ALL,
        promises=(
            _only("folder_weights", NEW, MISSING),
            _finally("folder_weights", NEW),
            _finally("folder_optimizer", NEW),
        ),
    ),
    Pattern(
        name="rotate_folder",
        corners=(_corner(old_folder=MISSING, folder_weights=MISSING, on=POSIX),),
        promises=(_finally("folder_weights", NEW, on=REAL),),
    ),
)

_TORCH: Final = (
    Pattern(name="torch_in_place", script="torch_saves.py", corners=_each("model", *_DAMAGED)),
    Pattern(
        name="torch_rename",
        script="torch_saves.py",
        corners=_each("model", *_DAMAGED, on=NOT_BTRFS) + _each("model", OLD),
    ),
    Pattern(
        name="dcp",
        script="torch_saves.py",
        # The writer calls fsync for `.metadata.tmp` before what is buffered of it was written.
        corners=(
            *_each("metadata", MISSING, EMPTY, ZEROS),
            _corner(metadata=NEW, shard=MISSING, on=POSIX),
        ),
        promises=(_finally("shard", NEW, on=REAL), _finally("shard", NEW, MISSING)),
    ),
)

PATTERNS: Final = {pattern.name: pattern for pattern in (*_ONE_NAME, *_NEW_NAMES, *_SEVERAL, *_TORCH)}
