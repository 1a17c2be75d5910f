"""A file is published so that a whole one always survives, and a damaged one is never believed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer import checkpoint
from trainer.checkpoint import RESUME_FORMAT, DamagedError, Payload, checksum, newest_whole, publish, read
from trainer.options import SaveWay, TrainerError


class Killed(BaseException):
    """Stands for SIGKILL: not an Exception, so no handler of the trainer runs."""


def payload(step: int) -> Payload:
    """Return a small resume payload of some step."""
    return {"format": RESUME_FORMAT, "step": step, "model": {"weight": torch.full((40, 50), float(step))}}


def steps_of(out: Path) -> dict[str, int]:
    """Return the step that each published file holds, after verifying it."""
    return {path.name: read(path, RESUME_FORMAT)["step"] for path in sorted(out.glob("resume*.pt"))}


def on_call(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int, error: BaseException) -> None:
    """Make the `number`-th call of `owner.name` raise `error` instead of being done."""
    original, calls = getattr(owner, name), []

    def replaced(*arguments: Any, **named: Any) -> Any:
        """Count, and fail at the one asked for."""
        calls.append(arguments)
        if len(calls) == number:
            raise error
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, replaced)


# --- the checksum -------------------------------------------------------------------------------


def test_checksum_does_not_depend_on_the_order_of_keys() -> None:
    """The same content in another order has the same checksum."""
    assert checksum({"a": 1, "b": {"c": 2, "d": 3}}) == checksum({"b": {"d": 3, "c": 2}, "a": 1})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.zeros(2, 3), torch.zeros(3, 2)),
        (torch.zeros(2), torch.zeros(2, dtype=torch.int32)),
        (torch.tensor(1.0), torch.tensor([1.0])),
        (1, True),
        (1, 1.0),
        (1, "1"),
        (0.1, 0.1 + 2**-56),
        (None, "None"),
        ([], {}),
        ([1], (1,)),
        ({1: 2}, {"1": 2}),
    ],
)
def test_checksum_tells_what_equality_does_not(left: object, right: object) -> None:
    """Bits, types and shapes count, not values."""
    assert checksum({"x": left}) != checksum({"x": right})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.uint8])
def test_checksum_sees_every_bit(dtype: torch.dtype) -> None:
    """Each flipped bit of a tensor gives another checksum."""
    value = torch.arange(6).to(dtype).view(2, 3)
    seen = {checksum({"x": value})}
    raw = value.view(-1).view(torch.uint8)
    for place in range(len(raw)):
        for bit in range(8):
            raw[place] ^= 1 << bit
            seen.add(checksum({"x": value}))
            raw[place] ^= 1 << bit
    assert len(seen) == 1 + 8 * len(raw)


def test_checksum_takes_views_as_what_they_show() -> None:
    """A transposed view counts as its content in its shape."""
    matrix = torch.arange(6.0).view(2, 3)
    assert checksum({"x": matrix.T}) == checksum({"x": matrix.T.contiguous()})


# --- reading ---------------------------------------------------------------------------------------


def test_a_published_file_reads_back(tmp_path: Path) -> None:
    """What was published is read, without the checksum."""
    publish(payload(3), tmp_path / "resume.pt", SaveWay.DURABLE)
    found = read(tmp_path / "resume.pt", RESUME_FORMAT)
    assert checksum(found) == checksum(payload(3))


def test_flipped_byte_in_a_weight_is_damage(tmp_path: Path) -> None:
    """Torch loads a file with a flipped byte without complaint; this reader does not."""
    path = tmp_path / "resume.pt"
    publish(payload(3), path, SaveWay.DURABLE)
    content = bytearray(path.read_bytes())
    content[content.index(torch.full((9,), 3.0).numpy().tobytes()) + 2] ^= 1
    path.write_bytes(content)
    assert torch.load(path, weights_only=True)["step"] == 3
    with pytest.raises(DamagedError, match="does not agree with its checksum"):
        read(path, RESUME_FORMAT)


def test_every_truncation_is_damage(tmp_path: Path) -> None:
    """Cut anywhere, the empty file included, it is damaged."""
    path = tmp_path / "resume.pt"
    publish(payload(3), path, SaveWay.DURABLE)
    content = path.read_bytes()
    for size in range(0, len(content), 97):
        path.write_bytes(content[:size])
        with pytest.raises(DamagedError):
            read(path, RESUME_FORMAT)


@pytest.mark.parametrize("content", [[1, 2], {"format": RESUME_FORMAT}])
def test_foreign_content_is_damage(tmp_path: Path, content: object) -> None:
    """A file of torch that holds no checksum is not believed."""
    torch.save(content, tmp_path / "resume.pt")
    with pytest.raises(DamagedError, match="no checksum"):
        read(tmp_path / "resume.pt", RESUME_FORMAT)


def test_other_format_is_refused(tmp_path: Path) -> None:
    """A whole file of another kind, such as weights.pt renamed to resume.pt, is named and not taken for damage."""
    publish({"format": "weights 1"}, tmp_path / "resume.pt", SaveWay.DURABLE)
    with pytest.raises(TrainerError, match=r"has the format `weights 1`, expected is `resume 1`"):
        read(tmp_path / "resume.pt", RESUME_FORMAT)


def test_pickled_code_is_not_run(tmp_path: Path) -> None:
    """A file that would run code when unpickled is damaged, and the code has not run."""

    class Hostile:
        """Unpickles into a call."""

        def __reduce__(self) -> tuple[Any, ...]:
            """Name the call."""
            return os.mkdir, (str(tmp_path / "pwned"),)

    torch.save({"checksum": Hostile()}, tmp_path / "resume.pt")
    with pytest.raises(DamagedError):
        read(tmp_path / "resume.pt", RESUME_FORMAT)
    assert not (tmp_path / "pwned").exists()


# --- publishing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", SaveWay)
def test_names_that_a_way_leaves(tmp_path: Path, way: SaveWay) -> None:
    """After two saves the newest is there, the one before only where it is kept, and no temporary name."""
    for step in (1, 2, 3):
        publish(payload(step), tmp_path / "resume.pt", way)
    kept = {} if way in {SaveWay.IN_PLACE, SaveWay.MINIMIND} else {"resume.prev.pt": 2}
    assert steps_of(tmp_path) == {**kept, "resume.pt": 3}
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "resume.pt"}


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        (SaveWay.DURABLE, ["fsync file", "hardlink_to", "replace", "replace", "fsync folder"]),
        (SaveWay.HALF, ["fsync file", "hardlink_to", "replace", "replace", "fsync folder"]),
        (SaveWay.NO_FSYNC, ["hardlink_to", "replace", "replace"]),
        (SaveWay.MINIMIND, ["replace"]),
        (SaveWay.IN_PLACE, []),
    ],
)
def test_operations_of_a_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: SaveWay, expected: list[str]
) -> None:
    """The file is durable before any name changes and the names are before going on; not so in the wrong ways."""
    publish(payload(1), tmp_path / "resume.pt", way)
    seen: list[str] = []
    fsync, folder = os.fsync, tmp_path.stat().st_ino

    def noted_fsync(descriptor: int) -> None:
        """Note what is made durable."""
        seen.append("fsync folder" if os.fstat(descriptor).st_ino == folder else "fsync file")
        fsync(descriptor)

    def noted(name: str) -> Callable[..., Any]:
        """Return a method that notes its name."""
        original = getattr(Path, name)

        def method(path: Path, other: Path) -> Any:
            """Note the name, then do it."""
            seen.append(name)
            return original(path, other)

        return method

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted("replace"))
    monkeypatch.setattr(Path, "hardlink_to", noted("hardlink_to"))
    publish(payload(2), tmp_path / "resume.pt", way)
    assert seen == expected


POINTS = [(os, "fsync", 1), (Path, "hardlink_to", 1), (Path, "replace", 1), (Path, "replace", 2), (os, "fsync", 2)]


@pytest.mark.parametrize(("owner", "name", "number"), POINTS)
def test_failing_save_is_a_sentence_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int
) -> None:
    """A full disk at any operation: file and reason are named, a whole file stays, no temporary one does."""
    path = tmp_path / "resume.pt"
    publish(payload(1), path, SaveWay.DURABLE)
    publish(payload(2), path, SaveWay.DURABLE)
    on_call(monkeypatch, owner, name, number, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(TrainerError, match=r"saving .*resume.pt failed: No space left on device"):
        publish(payload(3), path, SaveWay.DURABLE)
    assert steps_of(tmp_path)["resume.pt"] == (3 if (name, number) == ("fsync", 2) else 2)
    assert not list(tmp_path.glob("*.tmp"))


def test_full_disk_in_torchs_writer_is_told_in_the_systems_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch turns a failed write into an error about positions; the message still says that the disk is full."""
    path = tmp_path / "resume.pt"
    publish(payload(1), path, SaveWay.DURABLE)
    original = Path.open
    monkeypatch.setattr(Path, "open", lambda _path, mode, **named: original(Path("/dev/full"), mode, **named))
    with pytest.raises(TrainerError, match=r"resume.pt failed: No space left on device"):
        publish(payload(2), path, SaveWay.DURABLE)
    monkeypatch.undo()
    assert steps_of(tmp_path) == {"resume.pt": 1}


@pytest.mark.parametrize(("owner", "name", "number"), POINTS)
def test_killed_save_leaves_a_whole_file_and_the_next_ones_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int
) -> None:
    """Killed at any operation of a save, a whole file at most one save old is left, and later saves rotate."""
    path = tmp_path / "resume.pt"
    publish(payload(1), path, SaveWay.DURABLE)
    publish(payload(2), path, SaveWay.DURABLE)
    with monkeypatch.context() as patched:
        on_call(patched, owner, name, number, Killed())
        with pytest.raises(Killed):
            publish(payload(3), path, SaveWay.DURABLE)
    found = newest_whole(tmp_path)
    assert found is not None
    assert (found[0], found[1]["step"]) == ("resume.pt", 3 if (name, number) == ("fsync", 2) else 2)
    checkpoint.remove_stale(tmp_path)
    assert set(steps_of(tmp_path)) == {path.name for path in tmp_path.iterdir()}
    publish(payload(4), path, SaveWay.DURABLE)
    publish(payload(5), path, SaveWay.DURABLE)
    assert steps_of(tmp_path) == {"resume.prev.pt": 4, "resume.pt": 5}
    assert len(list(tmp_path.iterdir())) == 2


def test_copies_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without hard links keeps the previous file as a copy; another error is not taken for that."""
    path = tmp_path / "resume.pt"
    publish(payload(1), path, SaveWay.DURABLE)
    on_call(monkeypatch, Path, "hardlink_to", 1, OSError(errno.EPERM, "Operation not permitted"))
    publish(payload(2), path, SaveWay.DURABLE)
    assert steps_of(tmp_path) == {"resume.prev.pt": 1, "resume.pt": 2}
    on_call(monkeypatch, Path, "hardlink_to", 1, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(TrainerError, match="Input/output error"):
        publish(payload(3), path, SaveWay.DURABLE)


def test_temporary_names_match_no_glob(tmp_path: Path) -> None:
    """`resume*.pt` and `weights.pt` match no temporary name, and only own names are removed at the start."""
    for name in (tmp_path / "resume.pt", tmp_path / "weights.pt"):
        checkpoint.temporary_name(name).touch()
        checkpoint.temporary_name(checkpoint.previous_name(name)).touch()
    (tmp_path / "mine.tmp").touch()
    assert not [*tmp_path.glob("resume*.pt"), *tmp_path.glob("weights*.pt")]
    checkpoint.remove_stale(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.tmp"]


# --- which file to resume from ---------------------------------------------------------------------------


def test_an_empty_folder_starts_anew(tmp_path: Path) -> None:
    """Nothing published means nothing to resume, even beside a half-written temporary file."""
    (tmp_path / "resume.pt.tmp").write_bytes(b"half")
    assert newest_whole(tmp_path) is None


@pytest.mark.parametrize("damage", ["empty", "missing"])
def test_falls_back_loudly(tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    """With the newest damaged or gone, the previous one is taken, and standard error names file and reason."""
    path = tmp_path / "resume.pt"
    publish(payload(1), path, SaveWay.DURABLE)
    publish(payload(2), path, SaveWay.DURABLE)
    path.unlink()
    if damage == "empty":
        path.touch()
    found = newest_whole(tmp_path)
    assert found is not None
    assert (found[0], found[1]["step"]) == ("resume.prev.pt", 1)
    said = capsys.readouterr().err
    assert said.startswith(
        f"trainer: warning: resume.pt is {'missing' if damage == 'missing' else 'damaged (EOFError'}"
    )
    assert said.endswith("; falling back to resume.prev.pt\n")


def test_a_damaged_file_never_takes_the_place_of_the_previous(tmp_path: Path) -> None:
    """After a fall-back the whole file has both names, and the next save keeps it, not the damaged one."""
    path = tmp_path / "resume.pt"
    publish(payload(1), path, SaveWay.DURABLE)
    publish(payload(2), path, SaveWay.DURABLE)
    path.write_bytes(b"damaged")
    checkpoint.reinstate(path)
    assert steps_of(tmp_path) == {"resume.prev.pt": 1, "resume.pt": 1}
    publish(payload(3), path, SaveWay.DURABLE)
    assert steps_of(tmp_path) == {"resume.prev.pt": 1, "resume.pt": 3}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("names", [["resume.pt"], ["resume.prev.pt"], ["resume.pt", "resume.prev.pt"], ["weights.pt"]])
def test_refuses_rather_than_starts_anew(tmp_path: Path, names: list[str]) -> None:
    """Where a run was but nothing whole is left, weights alone included, nothing is started and the files are named."""
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(TrainerError, match="nothing to resume from") as refusal:
        newest_whole(tmp_path)
    assert all(name in str(refusal.value) for name in names)
