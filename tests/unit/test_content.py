"""The store of recorded bytes: once each, found again, checked when read, and clear about a full disk."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.errors import HarnessError
from chaos.states.changes import Stamped, to_bytes, to_text
from chaos.states.content import ChangeWriter, ContentStore
from chaos.states.log import CHANGES, CONTENT, End, Head, read_changes


@contextmanager
def room_for(size_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_bytes_are_stored_once(tmp_path: Path) -> None:
    """The same bytes again take no room, here or in a store that goes on from this one; both give them back."""
    first = ContentStore(tmp_path / "first", is_new=True)
    piece = first.put(b"x" * 5000)
    size = first.size_bytes
    assert first.put(memoryview(b"x" * 5000)) == piece
    assert first.size_bytes == size
    second = ContentStore(tmp_path / "second", first, is_new=True)
    assert second.put(b"x" * 5000) == piece
    other = second.put(b"y" * 100)
    assert second.size_bytes < 200
    assert (second.read(piece.digest), second.read(other.digest)) == (b"x" * 5000, b"y" * 100)
    for store in (second, first):
        store.close()


def test_a_store_is_read_again(tmp_path: Path) -> None:
    """What was stored is found by a later process; a piece that was cut off at the end is not."""
    store = ContentStore(tmp_path / "content", is_new=True)
    pieces = [store.put(bytes([number]) * 3000) for number in range(10)]
    store.close()
    with (tmp_path / "content").open("r+b") as file:
        file.truncate(store.size_bytes - 1)
    again = ContentStore(tmp_path / "content")
    assert [again.read(piece.digest) for piece in pieces[:-1]] == [bytes([number]) * 3000 for number in range(9)]
    with pytest.raises(HarnessError, match="lacks bytes"):
        again.read(pieces[-1].digest)
    again.close()


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    """Bytes that are no longer those that were stored are never given out."""
    store = ContentStore(tmp_path / "content", is_new=True)
    piece = store.put(b"x" * 5000)
    with (tmp_path / "content").open("r+b") as file:
        file.seek(2500)
        file.write(b"?")
    with pytest.raises(HarnessError, match="no longer those that were stored"):
        store.read(piece.digest)
    store.close()


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """Where a piece does not fit, a sentence says so with what to do, and what fitted stays good."""
    store = ContentStore(tmp_path / "content", is_new=True)
    piece = store.put(b"x" * 5000)
    with room_for(8000), pytest.raises(HarnessError, match="no more of a recording") as caught:
        store.put(b"y" * 5000)
    assert "free some space" in caught.value.hint
    assert caught.value.exit_status == 3
    assert store.read(piece.digest) == b"x" * 5000
    other = store.put(b"z" * 10)
    store.close()
    again = ContentStore(tmp_path / "content")
    assert again.read(other.digest) == b"z" * 10
    again.close()


def test_a_full_disk_is_told_by_the_log_too(tmp_path: Path) -> None:
    """The log's own lines, which are written late, end in the same sentence."""
    writer = ChangeWriter(tmp_path / "changes")
    for number in range(100):
        writer.write(Stamped(index=number))
    with room_for(100), pytest.raises(HarnessError, match="no more of a recording"):
        writer.close()


def test_a_recording_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    """Without its last line, or with a line that is none, a recording is not taken for a whole one."""
    ContentStore(tmp_path / CONTENT, is_new=True).close()
    for number, records in enumerate(
        ((Head(),), (Head(), Stamped(index=1)), (Stamped(index=1), End(num_operations=1)))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        writer = ChangeWriter(folder / CHANGES)
        for record in records:
            writer.write(record)
        writer.close()
        with pytest.raises(HarnessError, match="not whole"):
            read_changes(folder)
    (tmp_path / CHANGES).write_bytes(b'{"type":"head"}\n{"type":"stam')
    with pytest.raises(HarnessError, match="cannot be read"):
        read_changes(tmp_path)


@pytest.mark.parametrize(
    "name", [b"plain", b"\xc3\xa9", b"\xff\xfe", b"a\\b", b"\\udcff", b"\\\\udcff\xff", b"new\nline"]
)
def test_a_name_is_turned_back(name: bytes) -> None:
    """Any name can be written as text and read again."""
    text = to_text(name)
    assert text.encode("utf-8")
    assert to_bytes(text) == name
