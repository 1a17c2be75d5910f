"""A life without interception: its output and the output folder are looked at many times a second.

A strike lands some milliseconds after what it waited for, so its place is only near; what happened between two looks is
not seen; nobody can say that nothing was written unseen. That a kill landed, and what it left, is as sure as ever.
"""

# ruff: noqa: PTH116, PTH118 - this walks the whole folder many times a second

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from chaos.intercept.pending import Sinks
from chaos.intercept.spelling import spell
from chaos.lives.ending import Ending, life_result
from chaos.lives.intercepted import ORPHAN_GRACE_S, launch_plan
from chaos.lives.process import LifeProcess, exit_of
from chaos.lives.request import (
    LifeRequest,
    LifeResult,
    prepare_folder,
)
from chaos.lives.starters import Starter
from chaos.lives.temporary import temporary_folder
from chaos.lives.watch import Watch
from chaos.model import TEXT_LIMIT_CHARACTERS, Evidence, LifeEnd, Operation, OperationKind
from chaos.states.snapshot import Photographer

_PAUSE_S: Final = 0.001
_LOOK_BYTES: Final = 1 << 20


def run_polled(request: LifeRequest, photographer: Photographer, starter: Starter) -> LifeResult:
    """Run one life to its end, near its crash point, or to its deadline; nothing of it runs when this returns."""
    sinks = prepare_folder(request)
    started = time.monotonic()
    with (
        temporary_folder() as temporary,
        starter.start(launch_plan(request, sinks, temporary, program="")) as process,
    ):
        life = _PolledLife(request, process, sinks, photographer)
        life.run(started + request.deadline_s)
        return life.result(time.monotonic() - started)


class _PolledLife:
    """The loop that looks, and kills when it sees its crash point."""

    def __init__(self, request: LifeRequest, process: LifeProcess, sinks: Sinks, photographer: Photographer) -> None:
        """Bind the parts."""
        self._request = request
        self._process = process
        self._sinks = sinks
        self._photographer = photographer
        self._watch = Watch(request, photographer.checkpoints)
        self._observer = Observer(Path(request.out), sinks)
        self._log: list[Operation] = []
        self._end: LifeEnd | None = None
        self._evidence: Evidence | None = None
        self._orphans: tuple[str, ...] = ()

    def run(self, deadline: float) -> None:
        """Look until the life is over."""
        look_s = 0.0
        while self._end is None:
            # No more than half of the time is spent with looking, however large the folder is.
            has_ended = self._poll_root(max(_PAUSE_S, look_s))
            began_s = time.monotonic()
            for operation in self._observer.look(len(self._log)):
                if self._watch.see(operation):
                    self._strike(operation)
                    return
                self._log.append(operation)
            look_s = time.monotonic() - began_s
            if has_ended:
                self._outlive_root()
            elif time.monotonic() >= deadline:
                self._end = LifeEnd.DEADLINE
        self._process.kill()

    def _poll_root(self, pause_s: float) -> bool:
        """Wait a moment; tell whether the root has ended (before the look that follows)."""
        self._process.wait_event(pause_s)
        return self._process.root_status is not None

    def _strike(self, operation: Operation) -> None:
        """Kill the whole life now."""
        point, phase = self._request.crash_point, self._watch.struck_phase
        assert point is not None and phase is not None  # noqa: S101, PT018 - `see` said so
        was_alive = self._process.is_root_alive()
        killed = self._process.kill()
        _, signal = exit_of(self._process.root_status or 0)
        self._end = LifeEnd.STRUCK
        self._evidence = Evidence(
            crash_point=point,
            phase=phase,
            operation_index=operation.index,
            was_alive=was_alive and killed.is_root,
            root_signal=signal or 0,
            processes_killed=killed.processes,
        )

    def _outlive_root(self) -> None:
        """Give the root's other processes a grace, then count those that are left as orphans."""
        limit = time.monotonic() + ORPHAN_GRACE_S
        while not self._process.is_childless and time.monotonic() < limit:
            self._process.wait_event(limit - time.monotonic())
        self._orphans = () if self._process.is_childless else self._process.descendants()
        _, signal = exit_of(self._process.root_status or 0)
        self._end = LifeEnd.EXITED if signal is None else LifeEnd.SIGNALLED

    def result(self, elapsed_s: float) -> LifeResult:
        """Put together what was seen."""
        snapshot = self._photographer.take()
        log = tuple(self._log)
        ending = Ending(end=self._end, evidence=self._evidence, orphans=self._orphans, elapsed_s=elapsed_s)
        return life_result(self._request, self._process, self._watch, self._sinks, snapshot, log, ending)


class _Seen(NamedTuple):
    """What a look remembers of a file."""

    inode: int
    size_bytes: int
    modified_ns: int


class Observer:
    """Turns what changed since the last look into operations, as near to the real ones as looking allows."""

    def __init__(self, out: Path, sinks: Sinks) -> None:
        """Start from the folder as it is."""
        self._out = str(out)
        self._tails = {name: _Tail(path) for name, path in (("stdout", sinks.stdout), ("stderr", sinks.stderr))}
        self._ticks = _Tail(sinks.ticks)
        self._files = self._scan()

    def look(self, index: int) -> Iterator[Operation]:
        """Yield the operations since the last look, numbered from `index`: ticks, then files, then output."""
        for word in self._ticks.lines():
            kind = OperationKind.TICK if word.startswith("tick") else OperationKind.MARK
            yield Operation(index=index, kind=kind, call=word.strip())
            index += 1
        for call, path, size in self._changes():
            creates = call == "openat"
            yield Operation(
                index=index, kind=OperationKind.FILE, call=call, path=path, creates=creates, size_bytes=size
            )
            index += 1
        for stream, tail in self._tails.items():
            for line in tail.lines():
                yield Operation(
                    index=index,
                    kind=OperationKind.OUTPUT,
                    call="write",
                    stream=stream,
                    text=line[:TEXT_LIMIT_CHARACTERS],
                )
                index += 1

    def _changes(self) -> list[tuple[str, str, int]]:
        """Compare the folder with the last look: (call, path, size)."""
        now, before = self._scan(), self._files
        self._files = now
        found = []
        for path in sorted(now):
            if path not in before or before[path].inode != now[path].inode:
                found.append(("openat", path, now[path].size_bytes))
            elif before[path] != now[path]:
                found.append(("write", path, now[path].size_bytes))
        found.extend(("unlink", path, 0) for path in sorted(before.keys() - now.keys()))
        return found

    def _scan(self) -> dict[str, _Seen]:
        """Return every file below the folder."""
        found = {}
        for folder, _, files in os.walk(self._out):
            for name in files:
                path = os.path.join(folder, name)
                try:
                    state = os.stat(path, follow_symlinks=False)
                except OSError:
                    continue
                found[spell(os.path.relpath(path, self._out))] = _Seen(state.st_ino, state.st_size, state.st_mtime_ns)
        return found


class _Tail:
    """New whole lines of a growing file."""

    def __init__(self, path: Path) -> None:
        """Start at the file's beginning."""
        self._path = path
        self._position = 0

    def lines(self) -> Iterator[str]:
        """Yield the lines completed since the last call; one that is longer than a look takes in comes in parts."""
        while self._path.stat().st_size != self._position:
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read(_LOOK_BYTES)
            whole = data.rfind(b"\n") + 1 or (len(data) if len(data) == _LOOK_BYTES else 0)
            if not whole:
                return
            self._position += whole
            yield from data[:whole].decode("utf-8", "replace").splitlines(keepends=True)
