"""Image files without a mount: copies of them, kinds as they are written, and what is said where root is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.errors import HarnessError, UsageError
from chaos.images import DEFAULT_KINDS, copy_image, find_usable, parse_kind
from chaos.model import FileSystem

DEADLINE_S = 60
KINDS = [str(kind) for kind in DEFAULT_KINDS]


def test_a_copy_leaves_out_holes_and_zeros(tmp_path: Path) -> None:
    """A copy is the same bytes on fewer blocks, and zeros count as holes in its digest."""
    image, zeros = tmp_path / "image", tmp_path / "zeros"
    with image.open("wb") as file:
        file.truncate(64 << 20)
        os.pwrite(file.fileno(), b"begin", 5)
        os.pwrite(file.fileno(), bytes(1 << 20), 8 << 20)
        os.pwrite(file.fileno(), b"end", (64 << 20) - 3)
    digest = copy_image(image, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == image.read_bytes()
    assert (tmp_path / "copy").stat().st_blocks < image.stat().st_blocks
    assert copy_image(tmp_path / "copy", zeros) == digest
    with zeros.open("r+b") as file:
        os.pwrite(file.fileno(), b"x", 8 << 20)
    assert copy_image(zeros, tmp_path / "other") != digest


def test_equal_images_have_equal_digests(tmp_path: Path) -> None:
    """A copy's digest is that of what it was copied from."""
    (tmp_path / "image").write_bytes(os.urandom(1 << 20))
    digest = copy_image(tmp_path / "image", tmp_path / "copy")
    assert copy_image(tmp_path / "copy", tmp_path / "again") == digest


@pytest.fixture
def disturbed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, int], list[int]]:
    """Give a function that lets an image be written to, at its begin and at its end, after each of its next reads."""

    def disturb(image: Path, times: int) -> list[int]:
        read, done = os.pread, []

        def read_and_write(fd: int, length: int, offset: int) -> bytes:
            data = read(fd, length, offset)
            if len(done) < times:
                done.append(offset)
                with image.open("r+b", buffering=0) as file:
                    for place in (0, image.stat().st_size - 8):
                        os.pwrite(file.fileno(), len(done).to_bytes(8, "little"), place)
            return data

        monkeypatch.setattr(os, "pread", read_and_write)
        return done

    return disturb


def test_a_write_in_between_is_in_a_copy_wholly_or_not_at_all(
    disturbed: Callable[[Path, int], list[int]], tmp_path: Path
) -> None:
    """What is written to both ends of an image while it is read is the same at both ends of the copy."""
    image, copy = tmp_path / "image", tmp_path / "copy"
    image.write_bytes(os.urandom(4 << 20))
    writes = disturbed(image, 70)
    digest = copy_image(image, copy)
    assert len(writes) == 70
    assert copy.read_bytes() == image.read_bytes()
    assert copy.read_bytes()[:8] == copy.read_bytes()[-8:] == (70).to_bytes(8, "little")
    assert copy_image(copy, tmp_path / "again") == digest


def test_a_copy_of_what_never_rests_is_refused(disturbed: Callable[[Path, int], list[int]], tmp_path: Path) -> None:
    """An image that is written to all the time has no state that a copy could be of: an error, and no endless wait."""
    image = tmp_path / "image"
    image.write_bytes(os.urandom(4 << 20))
    disturbed(image, 1_000_000)
    with pytest.raises(HarnessError, match="written to all the time"):
        copy_image(image, tmp_path / "copy")


def test_a_machine_without_the_programs_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts for `doctor`: no kind can be used without mkfs (or root), each with its reason, and none is raised."""
    monkeypatch.setenv("PATH", "")
    found = find_usable()
    assert [usable.kind for usable in found] == KINDS
    assert not any(usable.is_usable for usable in found)
    for usable in found:
        assert "Debian: apt-get install" in usable.reason or "root" in usable.reason


def test_without_root_it_says_so(tmp_path: Path) -> None:
    """A process that may not make a namespace is told to be run as root."""
    code = "import os, sys; os.getuid() or os.setuid(65534)\nfrom chaos.images import isolate\nisolate()"
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [sys.executable, "-c", f"import chaos.images, chaos.errors\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S, env=environment)
    assert "HarnessError: no mount namespace can be made: Operation not permitted" in done.stderr
    assert "run it as root" in done.stderr


def test_nothing_is_mounted_outside_of_a_namespace_of_our_own(tmp_path: Path) -> None:
    """Mounting and unmounting are refused before `isolate`, whoever one is."""
    code = """
import pathlib, sys
from chaos.errors import HarnessError
from chaos.images import mount_memory, unmount
for act in (lambda: mount_memory(pathlib.Path(sys.argv[1]), 1 << 20), lambda: unmount(pathlib.Path("/"))):
    try:
        act()
    except HarnessError as error:
        print(error.message)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    assert done.stdout.splitlines() == ["nothing is mounted outside of a namespace of our own"] * 2


def test_kinds_are_read_as_they_are_written() -> None:
    """A kind's text is read back; what is no kind is an error with the nearest one, or an example."""
    for text in (*KINDS, "ext4:noauto_da_alloc,commit=1"):
        assert str(parse_kind(text)) == text
    assert parse_kind("ext4:data=journal").options == ("data=journal",)
    with pytest.raises(UsageError, match="xsf") as caught:
        parse_kind("xsf")
    assert "`xfs`" in caught.value.hint
    with pytest.raises(UsageError, match=FileSystem.POSIX) as caught:
        parse_kind("posix")
    assert "ext4, xfs, btrfs" in caught.value.hint
    for text in ("ext4:", "ext4:a b", "ext4:,", "ext4:a=/b"):
        with pytest.raises(UsageError, match="no mount option"):
            parse_kind(text)
