"""Real file systems in image files: nothing of them leaks, a cut loses what was not synced, errors say what to do."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.errors import HarnessError
from chaos.images import (
    DEFAULT_KINDS,
    ImageKind,
    Nudge,
    Template,
    copy_image,
    find_usable,
    is_mounted,
    isolate,
    mount_image,
    mount_memory,
    mounted,
    nudge,
    parse_kind,
    shut_down,
    unmount,
)
from chaos.images.isolation import is_isolated, require_isolation
from chaos.model import FileSystem

TARGET = Path(__file__).with_name("targets") / "mounts.py"
DEADLINE_S = 60
KINDS = [str(kind) for kind in DEFAULT_KINDS]
WITH_SHUTDOWN = [str(kind) for kind in DEFAULT_KINDS if kind.traits.has_shutdown]


@pytest.fixture(scope="module")
def reasons() -> dict[str, str]:
    """Say of each kind why it cannot be used here; an empty text where it can."""
    return {usable.kind: usable.reason for usable in find_usable()}


@pytest.fixture
def kind(request: pytest.FixtureRequest, reasons: dict[str, str]) -> ImageKind:
    """Give the kind of the test's parameter; skip, with the reason, where it cannot be used."""
    if reasons[request.param]:
        pytest.skip(f"no image of {request.param} here: {reasons[request.param]}")
    return parse_kind(request.param)


@pytest.fixture
def memory(kind: ImageKind, tmp_path: Path) -> Iterator[Path]:
    """Give a folder in memory for images of the kind, in a mount namespace of this process."""
    assert kind
    isolate()
    folder = tmp_path / "memory"
    for place in (folder, tmp_path / "live", tmp_path / "look"):
        place.mkdir()
    mount_memory(folder, 1 << 30)
    yield folder
    unmount(folder)


def of_kinds(*kinds: str) -> pytest.MarkDecorator:
    """Run a test for each of the kinds."""
    return pytest.mark.parametrize("kind", kinds, indirect=True)


def loop_files() -> list[str]:
    """Return the files behind the loop devices of this machine: they are the same in every namespace."""
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            found.append(path.read_text(encoding="utf-8"))
        except OSError:
            continue  # detached meanwhile
    return found


def mounts() -> str:
    """Return what is mounted in the first namespace of this machine, and in this process's own."""
    return "".join(Path(f"/proc/{who}/mounts").read_text(encoding="utf-8") for who in ("1", "self"))


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    """Wait until a process has printed a word."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], DEADLINE_S)
    line = process.stdout.readline() if ready else ""
    assert line.strip() == word, f"it said `{line}` and not `{word}`"


@of_kinds(*KINDS)
@pytest.mark.parametrize("stage", ["made", "mounted", "written"])
def test_nothing_leaks_from_a_process_that_is_killed(
    kind: ImageKind,
    stage: str,
    tmp_path: Path,
    eventually: Callable[..., bool],
    processes_with: Callable[[str], list[object]],
) -> None:
    """Killed by SIGKILL, with files open and a child that goes on: no mount is seen outside, and all of it goes."""
    command = [sys.executable, str(TARGET), str(tmp_path), str(kind), stage]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        wait_for(process, stage)
        assert str(tmp_path) not in mounts()
        has_loop = any("/image" in name and str(tmp_path) in name for name in loop_files())
        assert has_loop is (stage != "made")
        process.send_signal(signal.SIGKILL)
        assert process.wait(DEADLINE_S) == -signal.SIGKILL
    # Its standard input has ended with us, so the child ends too, and the namespace with it.
    assert eventually(lambda: not processes_with(str(tmp_path)), within_s=DEADLINE_S)
    assert eventually(lambda: not any(str(tmp_path) in name for name in loop_files()), within_s=DEADLINE_S)
    assert str(tmp_path) not in mounts()
    assert not list((tmp_path / "memory").iterdir())  # the image was in the memory that is gone


@of_kinds("ext4")
def test_what_is_mounted_here_is_seen_by_nobody_else(kind: ImageKind, memory: Path, tmp_path: Path) -> None:
    """Mounts are in this process's namespace alone, its children's included; unmounting frees the loop device."""
    Template(kind, memory).make_image(memory / "image")
    with mounted(kind, memory / "image", tmp_path / "live"):
        assert is_mounted(tmp_path / "live")
        assert str(tmp_path) not in Path("/proc/1/mounts").read_text(encoding="utf-8")
        child = subprocess.run(["/bin/cat", "/proc/mounts"], check=True, capture_output=True, text=True)
        assert str(tmp_path / "live") in child.stdout
    assert not is_mounted(tmp_path / "live")
    assert not any(str(tmp_path) in name for name in loop_files())


def write(path: Path, data: bytes, *, is_synced: bool) -> None:
    """Write a file, and make it durable with its name, or not."""
    with path.open("wb") as file:
        file.write(data)
        if is_synced:
            os.fsync(file.fileno())
    if is_synced:
        fd = os.open(path.parent, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


def content(folder: Path) -> dict[str, bytes]:
    """Return the files of a mounted image."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# Anybody's sync(2) writes these file systems out, too: what is not synced is lost, but for such luck. So it is tried
# again until it is lost; what is synced has to be there each time.


@of_kinds(*WITH_SHUTDOWN)
def test_a_shutdown_loses_the_unsynced_and_keeps_the_synced(
    kind: ImageKind, memory: Path, tmp_path: Path, eventually: Callable[..., bool]
) -> None:
    """After the ioctl nothing reaches the image any more: a synced file is whole, an unsynced one is not."""
    live, image = tmp_path / "live", memory / "image"
    synced, unsynced = os.urandom(50_000), os.urandom(50_000)

    def left() -> dict[str, bytes]:
        Template(kind, memory).make_image(image)
        mount_image(kind, image, live)
        write(live / "synced", synced, is_synced=True)
        write(live / "unsynced", unsynced, is_synced=False)
        assert content(live) == {"synced": synced, "unsynced": unsynced}
        shut_down(kind, live)
        with pytest.raises(OSError, match=r"Input/output|shut"):
            write(live / "late", b"late", is_synced=True)
        unmount(live)
        with mounted(kind, image, live):
            found = content(live)
        assert found["synced"] == synced
        assert "late" not in found
        return found

    assert eventually(lambda: left() == {"synced": synced}, within_s=DEADLINE_S)


@of_kinds(*KINDS)
def test_a_copy_is_what_the_disk_held(
    kind: ImageKind, memory: Path, tmp_path: Path, eventually: Callable[..., bool]
) -> None:
    """A copy has what was synced when it was made, not what came later, and the original goes on beside it."""
    live, look = tmp_path / "live", tmp_path / "look"
    first, second = os.urandom(50_000), os.urandom(50_000)

    def looked_at(name: str) -> dict[str, bytes]:
        with mounted(kind, memory / name, look):
            return content(look)

    def copied_early() -> dict[str, bytes]:
        Template(kind, memory).make_image(memory / "image")
        with mounted(kind, memory / "image", live):
            write(live / "first", first, is_synced=True)
            write(live / "second", second, is_synced=False)
            digest = copy_image(memory / "image", memory / "early")
            write(live / "second", second, is_synced=True)
            assert copy_image(memory / "image", memory / "late") != digest
            beside = looked_at("early")
        assert beside == looked_at("early")
        assert beside["first"] == first
        assert looked_at("late") == {"first": first, "second": second}
        return beside

    assert eventually(lambda: copied_early() == {"first": first}, within_s=DEADLINE_S)


@of_kinds("ext4:noauto_da_alloc", "xfs", "btrfs")
def test_nudges_bring_parts_to_the_disk(
    kind: ImageKind, memory: Path, tmp_path: Path, eventually: Callable[..., bool]
) -> None:
    """Nothing is on the disk by itself; a commit brings names and no bytes, and writeback of a half half of these."""
    live, look = tmp_path / "live", tmp_path / "look"
    Template(kind, memory).make_image(memory / "image")
    data = os.urandom(64 << 10)

    def held() -> bytes | None:
        copy_image(memory / "image", memory / "cut")
        with mounted(kind, memory / "cut", look):
            path = look / "out" / "file"
            return path.read_bytes() if path.exists() else None

    def held_in_turn() -> list[bytes | None]:
        Template(kind, memory).make_image(memory / "image")
        found = []
        with mounted(kind, memory / "image", live):
            (live / "out").mkdir()
            nudge(Nudge.COMMIT, live, live / "out")
            with (live / "out" / "file").open("wb", buffering=0) as file:
                for start in range(0, len(data), 4096):  # page by page: what is written at once is written back at once
                    file.write(data[start : start + 4096])
            found.append(held())
            for which in (Nudge.NONE, Nudge.FIRST_HALF, Nudge.SECOND_HALF):
                nudge(which, live, live / "out")
                nudge(Nudge.COMMIT, live, live / "out")
                found.append(held())
            # btrfs puts what was written into the file a moment after it is on the disk.
            assert eventually(lambda: nudge(Nudge.COMMIT, live, live / "out") or held() == data, within_s=DEADLINE_S)
        return found

    # All pages are one extent to btrfs, which is in the file when the last of them is written.
    half = b"" if kind.file_system is FileSystem.BTRFS else data[: len(data) // 2]
    assert eventually(lambda: held_in_turn()[:3] == [None, b"", half], within_s=DEADLINE_S)


@of_kinds("ext4", "xfs", "btrfs")
def test_an_unrelated_fsync_brings_names_where_there_is_one_journal(
    kind: ImageKind, memory: Path, tmp_path: Path, eventually: Callable[..., bool]
) -> None:
    """Another file's fsync makes a new name durable on ext4 and xfs (without data), and not on btrfs."""
    live, look = tmp_path / "live", tmp_path / "look"

    def left() -> dict[str, bytes]:
        Template(kind, memory).make_image(memory / "image")
        with mounted(kind, memory / "image", live):
            nudge(Nudge.COMMIT, live, live)
            write(live / "file", b"data" * 5000, is_synced=False)
            nudge(Nudge.UNRELATED_FSYNC, live, live)
            copy_image(memory / "image", memory / "copy")
        with mounted(kind, memory / "copy", look):
            found = content(look)
        del found["unrelated"]  # it is there each time
        return found

    expected = {} if kind.file_system is FileSystem.BTRFS else {"file": b""}
    assert eventually(lambda: left() == expected, within_s=DEADLINE_S)


@of_kinds("ext4")
def test_a_mount_option_of_ones_own_is_in_force(kind: ImageKind, memory: Path, tmp_path: Path) -> None:
    """`ext4:noauto_da_alloc` is mounted so; an option that ext4 does not know is an error that says so."""
    live = tmp_path / "live"
    Template(kind, memory).make_image(memory / "image")
    with mounted(parse_kind("ext4:noauto_da_alloc"), memory / "image", live):
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        assert "noauto_da_alloc" in next(line for line in lines if str(live) in line)
    with pytest.raises(HarnessError, match=r"ext4.*nonsense") as caught:
        mount_image(parse_kind("ext4:nonsense"), memory / "image", live)
    assert "mount options" in caught.value.hint
    assert not any(str(tmp_path) in name for name in loop_files())


@of_kinds("btrfs")
def test_btrfs_is_cut_by_copies_alone(kind: ImageKind, memory: Path, tmp_path: Path) -> None:
    """What has no shutdown says so, and what to use."""
    Template(kind, memory).make_image(memory / "image")
    with (
        mounted(kind, memory / "image", tmp_path / "live"),
        pytest.raises(HarnessError, match="copy of the image"),
    ):
        shut_down(kind, tmp_path / "live")


@of_kinds("ext4")
def test_a_folder_in_use_is_not_unmounted_silently(kind: ImageKind, memory: Path, tmp_path: Path) -> None:
    """While a file is open there unmounting is an error; then it works."""
    live = tmp_path / "live"
    Template(kind, memory).make_image(memory / "image")
    mount_image(kind, memory / "image", live)
    with (live / "file").open("wb"), pytest.raises(HarnessError, match="busy") as caught:
        unmount(live)
    assert "open" in caught.value.hint
    unmount(live)
    assert not is_mounted(live)


@of_kinds("ext4")
def test_missing_programs_are_told_with_their_package(
    kind: ImageKind, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty PATH mkfs and mount are missing; the error says which, and what to install."""
    Template(kind, memory).make_image(memory / "image")
    monkeypatch.setenv("PATH", "")
    for text, package in (("ext4", "e2fsprogs"), ("xfs", "xfsprogs"), ("btrfs", "btrfs-progs")):
        (memory / text).mkdir()
        with pytest.raises(HarnessError, match=rf"mkfs\.{text} is missing") as caught:
            Template(parse_kind(text), memory / text).make_image(memory / text / "image")
        assert f"apt-get install {package}" in caught.value.hint
    with pytest.raises(HarnessError, match="mount is missing"):
        mount_image(kind, memory / "image", tmp_path / "live")


@of_kinds("ext4")
def test_a_process_moves_once_and_only_its_main_thread_does(kind: ImageKind) -> None:
    """A second call changes nothing; a thread that would move alone is refused."""
    assert kind
    isolate()
    before = Path("/proc/self/ns/mnt").readlink()
    isolate()
    assert Path("/proc/self/ns/mnt").readlink() == before
    assert is_isolated()
    require_isolation()
    code = """
import threading
from chaos.errors import HarnessError
from chaos.images import isolate
def move():
    try:
        isolate()
    except HarnessError as error:
        print(error.message)
thread = threading.Thread(target=move)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    assert done.stdout == "only the main thread can move to a mount namespace\n"
