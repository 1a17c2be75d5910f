"""A strike at an operation leaves exactly what those before it had made; a torn write leaves its first pages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.address import Locator
from chaos.learning import learn
from chaos.lives import intercepted
from chaos.model import PAGE_BYTES, Address, CrashPoint, LifeEnd, Operation, OperationKind, Phase

CONTENT = bytes(offset // 512 % 251 for offset in range(64 * 4096))
WRITES = ("write", "writev", "pwrite", "pwritev")
REPETITIONS = 5


class Model:
    """A folder of names that share files, changed by operations as the kernel would."""

    def __init__(self) -> None:
        """Start empty."""
        self.files: dict[str, bytearray] = {}

    def apply(self, operation: Operation, end: int | None = None) -> None:
        """Do one operation; a write only up to the file offset `end`, where one is given."""
        path, new = operation.path, operation.new_path
        if operation.call == "openat":
            self.files.setdefault(path, bytearray()).clear()
        elif operation.call in WRITES:
            self._write(self.files[path], operation.offset, end or operation.offset + operation.size_bytes)
        elif operation.call == "ftruncate":
            content = self.files[path]
            content[:] = content[: operation.size_bytes].ljust(operation.size_bytes, b"\0")
        elif operation.call == "rename":
            self.files[new] = self.files.pop(path)
        elif operation.call == "link":
            self.files[new] = self.files[path]
        elif operation.call == "unlink":
            del self.files[path]
        else:
            assert operation.call in ("fsync", "fdatasync"), operation

    def _write(self, content: bytearray, start: int, end: int) -> None:
        """Write the bytes that belong at these offsets."""
        if len(content) < end:
            content.extend(bytes(end - len(content)))
        content[start:end] = CONTENT[start:end]


def read(folder: Path) -> dict[str, bytes]:
    """Return the content of each file of a flat folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def prefix(log: tuple[Operation, ...], *, end: int | None = None) -> dict[str, bytes]:
    """Return what a log leaves; with `end` the last operation is a write that got no further than this offset."""
    model = Model()
    files = [operation for operation in log if operation.kind is OperationKind.FILE]
    for operation in files[:-1] if end is not None else files:
        model.apply(operation)
    if end is not None:
        model.apply(files[-1], end)
    return {name: bytes(content) for name, content in model.files.items()}


def addressed(runner: Any, log: tuple[Operation, ...]) -> Iterator[tuple[Operation, Address]]:
    """Yield the operations of a log that have an address, with it."""
    locator = Locator(runner.target, runner.profile, is_first_life=True)
    for operation in log:
        address = locator.locate(operation).address
        if address is not None:
            yield operation, address


def strike(runner: Any, address: Address, tear: int | None = None) -> Any:
    """Run a life that is struck at an address, and check that the kill is proven."""
    point = CrashPoint(address=address, expected_phase=Phase.SAVE, tear_offset=tear)
    result = runner.run(point=point)
    record = result.record
    assert record.end is LifeEnd.STRUCK, (str(address), record)
    assert record.evidence.is_landed, (str(address), record)
    assert record.unseen_writers == ()
    return result


def learned(lives: Callable[..., Any], how: str) -> tuple[Any, tuple[Operation, ...]]:
    """Return the lives of a saver whose habits were learnt from two runs, and the log of the second."""
    runner = lives("saver.py", how, checkpoints=("state*", "left*", "right*"))
    first, second = runner.run(), runner.run()
    assert first.record.exit_status == second.record.exit_status == 0, runner.output("stderr")
    runner.profile = learn(runner.target, first.log, second.log)
    return runner, second.log


def test_the_log_of_a_whole_run_explains_the_folder(lives: Callable[..., Any]) -> None:
    """The model fed with the log gives the very files that the run left, whoever wrote them."""
    for how in ("main", "native", "forked", "program", "threads"):
        runner = lives("saver.py", how)
        result = runner.run()
        assert result.record.exit_status == 0, runner.output("stderr")
        assert prefix(result.log) == read(runner.out), how
        assert result.record.unseen_writers == ()


def test_a_strike_at_every_operation_of_a_run_leaves_the_prefix(lives: Callable[..., Any]) -> None:
    """Before each operation of the clock in turn: what came before is there, the rest never happened."""
    runner, log = learned(lives, "main")
    seen = 0
    for operation, address in addressed(runner, log):
        result = strike(runner, address)
        assert result.log == log[: operation.index]
        assert read(runner.out) == prefix(log[: operation.index]), str(address)
        seen += 1
    assert seen > 30


def test_a_torn_write_leaves_its_first_pages(lives: Callable[..., Any]) -> None:
    """At each page boundary inside each write of the second save: the bytes up to it are there and no others."""
    runner, log = learned(lives, "main")
    seen = 0
    for operation, address in addressed(runner, log):
        if address.save != 2 or operation.call not in WRITES:
            continue
        first = (operation.offset // PAGE_BYTES + 1) * PAGE_BYTES
        for end in range(first, operation.offset + operation.size_bytes, PAGE_BYTES):
            result = strike(runner, address, end)
            assert result.record.evidence.executed_bytes == end - operation.offset
            assert read(runner.out) == prefix(log[: operation.index + 1], end=end), str(address)
            seen += 1
    assert seen == 5


@pytest.mark.parametrize("how", ["native", "forked", "program"])
def test_a_strike_hits_whoever_writes(lives: Callable[..., Any], how: str) -> None:
    """The C library, a forked child and another program are struck as exactly as the script itself."""
    runner, log = learned(lives, how)
    points = [
        (operation, address) for operation, address in addressed(runner, log) if address.save == 2 and address.file
    ]
    assert len(points) > 5
    for operation, address in points:
        strike(runner, address)
        assert read(runner.out) == prefix(log[: operation.index]), str(address)


@contextmanager
def busy() -> Iterator[None]:
    """Keep all cores busy."""
    loads = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for load in loads:
            load.kill()
            load.wait()


def test_two_writers_keep_the_order_of_the_reference(lives: Callable[..., Any]) -> None:
    """However the threads race, under load too, a strike at an address leaves the same folder each time."""
    runner, log = learned(lives, "threads")
    assert any(save.has_several_writers for save in runner.profile.saves)
    shares = (0.2, 0.5, 0.8)
    points = [address for _, address in addressed(runner, log) if address.save == 2 and address.file]
    with busy():
        for share in shares:
            address = points[int(share * len(points))]
            seen = set()
            for _ in range(REPETITIONS):
                record = strike(runner, address).record
                assert record.order_releases == 0
                seen.add((record.state_digest, tuple(sorted(read(runner.out).items()))))
            assert len(seen) == 1, str(address)


def test_writers_that_wait_for_each_other_in_another_way_are_let_go(
    lives: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the recorded order can never come about, the target goes on all the same, and that is counted."""
    monkeypatch.setattr(intercepted, "GRACE_S", 0.02)
    monkeypatch.setattr(intercepted, "_POLL_S", 0.01)
    runner, _ = learned(lives, "threads")
    backwards = [replace(save, addresses=save.addresses[::-1]) for save in runner.profile.saves]
    runner.profile = replace(runner.profile, saves=tuple(backwards))
    result = runner.run()
    assert (result.record.end, result.record.exit_status) == (LifeEnd.EXITED, 0)
    assert result.record.order_releases > 0
    assert [operation.index for operation in result.log] == list(range(len(result.log)))
    assert prefix(result.log) == read(runner.out)
