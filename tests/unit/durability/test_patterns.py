"""What may be left of a save, for each way to save and each file system: worked out by hand from the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.model import FileSystem

from .patterns import first_states, outcomes, spelled
from .table import TABLE, Line


@pytest.mark.parametrize("line", TABLE, ids=str)
def test_what_may_be_left(tmp_path: Path, line: Line) -> None:
    """Before the save's last operation was done, and after it: these states, and no others."""
    found = {fs: outcomes(tmp_path / fs, line.pattern, line.how, fs) for fs in FileSystem}
    assert found == {fs: (spelled(line.of(fs)[0]), spelled(line.of(fs)[1])) for fs in FileSystem}


@pytest.mark.parametrize("file_system", FileSystem)
@pytest.mark.parametrize(
    ("pattern", "how", "corners"),
    [
        ("in place", "nothing", "{oeztn}"),
        ("overwrite", "nothing", "{otn}"),
        ("append", "nothing", "{oztn}"),
        ("replace", "nothing", "{oeztn}"),
        ("replace", "file", "{on}"),
        ("replace", "folder", "{eztn}"),
        ("new name", "nothing", "{-eztn}"),
        ("direct", "nothing", "{-eztn}"),
        ("two files", "nothing", "oo nn ee zz tt"),
        ("two files", "file+folder", "nn"),
        ("marker", "nothing", ". {eztn}"),
        ("rotation by unlink", "nothing", "o- -e -z -n"),
        ("rotation by rename", "file", "o- no"),
        ("latest", "nothing", "{oeztn}"),
    ],
)
def test_what_hurts_comes_first(tmp_path: Path, pattern: str, how: str, corners: str, file_system: FileSystem) -> None:
    """Among the first eight states are those that a save without enough care is lost by."""
    found = first_states(tmp_path / "recording", pattern, how, file_system, limit=8)
    assert spelled(corners) <= found


@pytest.mark.parametrize(
    ("pattern", "how", "corners"),
    [
        ("two files", "nothing", "on"),
        ("two files", "file", "oo no on nn"),
        ("rotation by unlink", "file", "--"),
        ("rotation by rename", "file", "-- n- oo -o"),
        ("marker", "file", "-"),
        ("latest", "file", "-"),
    ],
)
def test_what_hurts_comes_first_where_names_are_free(tmp_path: Path, pattern: str, how: str, corners: str) -> None:
    """There, also one name without the other: both gone, a marker without what it stands for."""
    found = first_states(tmp_path / "recording", pattern, how, FileSystem.POSIX, limit=8)
    assert spelled(corners) <= found


@pytest.mark.parametrize("file_system", [FileSystem.EXT4, FileSystem.XFS, FileSystem.BTRFS])
def test_one_of_two_files_comes_first(tmp_path: Path, file_system: FileSystem) -> None:
    """In order, the first file alone: it is new, or empty, and the second one is old."""
    assert spelled("no eo") <= first_states(tmp_path / "recording", "two files", "nothing", file_system, limit=8)
