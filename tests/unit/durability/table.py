"""The golden table: what a loss of power may leave, before the last operation of a save was done, and after it.

Letters are those of `patterns`; `{on}-` stands for `o-` and `n-`. `ordered` holds for ext4, XFS and btrfs where nothing
else is said for btrfs, and for POSIX where nothing else is said for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.model import FileSystem

States = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """One way to save, and the states before and after."""

    pattern: str
    how: str
    ordered: States
    posix: States | None = None
    btrfs: States | None = None

    def of(self, file_system: FileSystem) -> States:
        """Return the states on a file system."""
        other = {FileSystem.POSIX: self.posix, FileSystem.BTRFS: self.btrfs}.get(file_system)
        return other or self.ordered

    def __str__(self) -> str:
        """Return what tests are called by."""
        return f"{self.pattern}, {self.how}"


ANY = "{oeztn}"
NEW_NAME = "{-eztn}"
ROTATED = "o- o{eztn} -{eztn}"

TABLE = (
    # A cut is metadata: there or not. Once it is there, the bytes and the length come as they like.
    Line("in place", "nothing", ("{oe}", ANY)),
    Line("in place", "file", (ANY, "n")),
    Line("in place", "file+folder", (ANY, "n")),
    Line("in place", "folder", (ANY, ANY)),
    Line("in place", "fdatasync", (ANY, "n")),
    Line("in place", "msync", (ANY, "n")),
    Line("in place", "sync", (ANY, "n"), posix=(ANY, ANY)),
    Line("in place", "syncfs", (ANY, "n"), posix=(ANY, ANY)),
    Line("in place", "O_SYNC", (ANY, "n")),
    Line("in place", "O_DSYNC", (ANY, "n")),
    Line("in place", "sync_file_range", (ANY, ANY)),
    # The length is durable, the bytes that could not be written are not.
    Line("in place", "failed", (ANY, "{ztn}")),
    # Nothing but bytes: any of the pages, and the length stays.
    Line("overwrite", "nothing", ("o", "{otn}")),
    Line("overwrite", "file", ("{otn}", "n")),
    Line("overwrite", "folder", ("{otn}", "{otn}")),
    Line("overwrite", "msync", ("{otn}", "n")),
    Line("overwrite", "sync", ("{otn}", "n"), posix=("{otn}", "{otn}")),
    Line("overwrite", "O_SYNC", ("{otn}", "n")),
    Line("overwrite", "O_DSYNC", ("{otn}", "n")),
    Line("overwrite", "sync_file_range", ("{otn}", "{otn}")),
    Line("overwrite", "failed", ("{otn}", "{otn}")),
    # What was there stays.
    Line("append", "nothing", ("o", "{oztn}")),
    Line("append", "file", ("{oztn}", "n")),
    Line("append", "file+folder", ("{oztn}", "n")),
    Line("append", "folder", ("{oztn}", "{oztn}")),
    Line("append", "fdatasync", ("{oztn}", "n")),
    Line("append", "sync", ("{oztn}", "n"), posix=("{oztn}", "{oztn}")),
    Line("append", "O_SYNC", ("{oztn}", "n")),
    Line("append", "O_DSYNC", ("{oztn}", "n")),
    Line("append", "sync_file_range", ("{oztn}", "{oztn}")),
    Line("append", "failed", ("{oztn}", "{ztn}")),
    # The usual pattern: atomic, and no more durable than its bytes.
    Line("replace", "nothing", ("o", ANY)),
    Line("replace", "file", ("o", "{on}")),
    Line("replace", "file+folder", ("{on}", "n")),
    Line("replace", "folder", (ANY, "{eztn}")),
    Line("replace", "fdatasync", ("o", "{on}")),
    Line("replace", "sync", (ANY, "n"), posix=(ANY, ANY)),
    Line("replace", "syncfs", (ANY, "n"), posix=(ANY, ANY)),
    Line("replace", "O_SYNC", ("o", "{on}")),
    Line("replace", "O_DSYNC", ("o", "{on}")),
    Line("replace", "sync_file_range", ("o", ANY)),
    Line("replace", "failed", ("o", "{oztn}")),
    # The same, with nothing to fall back on.
    Line("new name", "nothing", ("-", NEW_NAME)),
    Line("new name", "file", ("-", "{-n}")),
    Line("new name", "file+folder", ("{-n}", "n")),
    Line("new name", "folder", (NEW_NAME, "{eztn}")),
    Line("new name", "fdatasync", ("-", "{-n}")),
    Line("new name", "sync", (NEW_NAME, "n"), posix=(NEW_NAME, NEW_NAME)),
    Line("new name", "O_SYNC", ("-", "{-n}")),
    Line("new name", "O_DSYNC", ("-", "{-n}")),
    Line("new name", "sync_file_range", ("-", NEW_NAME)),
    Line("new name", "failed", ("-", "{-ztn}")),
    # A file brings the name along that it was made under, except where only POSIX holds.
    Line("direct", "nothing", ("{-e}", NEW_NAME)),
    Line("direct", "file", (NEW_NAME, "n"), posix=(NEW_NAME, "{-n}")),
    Line("direct", "file+folder", (NEW_NAME, "n")),
    Line("direct", "folder", (NEW_NAME, "{eztn}")),
    Line("direct", "fdatasync", (NEW_NAME, "n"), posix=(NEW_NAME, "{-n}")),
    Line("direct", "msync", (NEW_NAME, "n"), posix=(NEW_NAME, "{-n}")),
    Line("direct", "sync", (NEW_NAME, "n"), posix=(NEW_NAME, NEW_NAME)),
    Line("direct", "O_SYNC", (NEW_NAME, "n"), posix=(NEW_NAME, "{-n}")),
    Line("direct", "O_DSYNC", (NEW_NAME, "n"), posix=(NEW_NAME, "{-n}")),
    Line("direct", "sync_file_range", (NEW_NAME, NEW_NAME)),
    Line("direct", "failed", (NEW_NAME, "{ztn}"), posix=(NEW_NAME, "{-ztn}")),
    # fsync of the file brings a rename along that came before it; fdatasync does not.
    Line("late", "file", (ANY, "n"), posix=(ANY, "{on}")),
    Line("late", "fdatasync", (ANY, "{on}")),
    Line("late", "msync", (ANY, "{on}")),
    Line("late", "sync_file_range", (ANY, ANY)),
    # In one journal, somebody else's fsync brings the rename along, and not the bytes. The log of btrfs does not.
    Line("unrelated", "nothing", (ANY, ANY)),
    Line("unrelated", "file", (ANY, "{eztn}"), posix=(ANY, ANY), btrfs=(ANY, ANY)),
    Line("unrelated", "fdatasync", (ANY, "{eztn}"), posix=(ANY, ANY), btrfs=(ANY, ANY)),
    Line("unrelated", "O_DSYNC", (ANY, "{eztn}"), posix=(ANY, ANY), btrfs=(ANY, ANY)),
    # A file brings along the folders that it lies in.
    Line("in folder", "nothing", ("{-e}", NEW_NAME)),
    Line("in folder", "file", (NEW_NAME, "n"), posix=(NEW_NAME, "{-n}")),
    Line("in folder", "fdatasync", (NEW_NAME, "n"), posix=(NEW_NAME, "{-n}")),
    Line("in folder", "file+folder", (NEW_NAME, "n")),
    Line("in folder", "folder", (NEW_NAME, "{eztn}")),
    # One after the other. The second file's fsync brings the first one's rename along in one journal.
    Line("two files", "nothing", ("{oeztn}o", "oo {eztn}o {eztn}{eztn}"), posix=("{oeztn}o", ANY + ANY)),
    Line(
        "two files",
        "file",
        ("oo no", "no nn"),
        posix=("oo no", "oo no on nn"),
        btrfs=("oo no", "oo no nn"),
    ),
    Line("two files", "file+folder", ("oo no nn", "nn"), posix=("oo no on nn", "nn")),
    Line(
        "two files",
        "folder",
        ("oo {eztn}o {eztn}{eztn}", "{eztn}{eztn}"),
        posix=(ANY + ANY, "{eztn}{eztn}"),
    ),
    Line(
        "two files",
        "sync",
        ("oo {eztn}o {eztn}{eztn}", "nn"),
        posix=(ANY + ANY, ANY + ANY),
    ),
    # A marker without what it stands for, where names are free.
    Line("marker", "nothing", (".", ". {eztn}"), posix=(".", ". {-eztn}")),
    Line("marker", "file", (".", ". n"), posix=(".", ". {-n}")),
    Line("marker", "file+folder", (". n", "n")),
    Line("marker", "fdatasync", (".", ". n"), posix=(".", ". {-n}")),
    Line("marker", "O_DSYNC", (".", ". n"), posix=(".", ". {-n}")),
    Line("marker", "folder", (". {eztn}", "{eztn}")),
    Line("marker late", "folder", (". {eztn}", "{eztn}"), posix=(". {-eztn}", "{eztn}")),
    Line("marker above", "folder", (". {eztn}", ". {eztn}"), posix=(". {-eztn}", ". {-eztn}")),
    Line("marker above", "sync", (". {eztn}", "n"), posix=(". {-eztn}", ". {-eztn}")),
    # The deletion durable and the creation not: never in order.
    Line("rotation by unlink", "nothing", ("o{-eztn}", ROTATED), posix=("o{-eztn}", "{o-}{-eztn}")),
    Line("rotation by unlink", "file", ("o{-n}", "o- on -n"), posix=("o{-n}", "{o-}{-n}")),
    Line("rotation by unlink", "file+folder", ("o{-n}", "{o-}n")),
    Line("rotation by unlink", "folder", ("o{-eztn}", "{o-}{eztn}")),
    Line("rotation by unlink", "fdatasync", ("o{-n}", "o- on -n"), posix=("o{-n}", "{o-}{-n}")),
    Line("rotation by unlink", "sync", ("o{-eztn}", "{o-}n"), posix=("o{-eztn}", "{o-}{-eztn}")),
    Line("rotation by unlink", "O_SYNC", ("o{-n}", "o- on -n"), posix=("o{-n}", "{o-}{-n}")),
    Line("rotation by unlink", "failed", ("o{-ztn}", "o- {o-}{ztn}"), posix=("o{-ztn}", "{o-}{-ztn}")),
    Line("rotation by rename", "nothing", ("o- -o", "o- -o {eztn}o"), posix=("{o-}{o-}", "{o-eztn}{o-}")),
    Line("rotation by rename", "file", ("o- -o", "o- -o no"), posix=("{o-}{o-}", "{on-}{o-}")),
    Line("rotation by rename", "file+folder", ("o- -o no", "no"), posix=("{on-}{o-}", "no")),
    Line("rotation by rename", "folder", ("o- -o {eztn}o", "{eztn}o"), posix=("{o-eztn}{o-}", "{eztn}o")),
    # The rename of the new one brings along the earlier one that freed its name.
    Line("rotation late", "file", ("o- -o {eztn}o", "no"), posix=("{o-eztn}{o-}", "{on-}{o-}")),
    Line("rotation late", "fdatasync", ("o- -o {eztn}o", "o- -o no"), posix=("{o-eztn}{o-}", "{on-}{o-}")),
    Line("rotation by link", "file", ("op oo", "op oo no"), posix=("o{po}", "{on}{po}")),
    Line("rotation by link", "file+folder", ("op oo no", "no"), posix=("{on}{po}", "no")),
    Line("latest", "nothing", ("o", ANY), posix=("o", "{o-eztn}")),
    Line("latest", "file", ("o", "{on}"), posix=("o", "{o-n}")),
    Line("latest", "file+folder", ("{on}", "n")),
    Line("latest", "folder", (ANY, "{eztn}")),
    Line("latest", "sync", ("{on}", "n"), posix=("{o-eztn}", "{o-eztn}")),
)
