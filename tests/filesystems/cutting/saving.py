"""One save on a fresh image: recorded, and cut at every operation."""

from __future__ import annotations

import select
import sys
import time
from pathlib import Path
from typing import Final

from chaos.images import Nudge, mount_image, nudge, shut_down, unmount
from chaos.intercept.filter import build_filter
from chaos.intercept.session import Session
from chaos.intercept.syscalls import this_machine
from chaos.lives.intercepted import launch_plan
from chaos.lives.process import LifeProcess
from chaos.lives.request import LifeRequest, output_tail, prepare_folder
from chaos.lives.starters import FreshStarter, Starter
from chaos.lives.temporary import temporary_folder
from chaos.model import Record, Target, TargetProfile
from chaos.states.recorder import FolderRecorder
from cutting.bench import Bench
from cutting.cutter import Cut, Cutter
from cutting.patterns import Pattern
from cutting.schedules import Plan, Schedule

_DEADLINE_S: Final = 120.0


class SaveError(Exception):
    """A save did not end as it should, or was not recorded whole: no cut of it says anything."""


class Save(Record, kw_only=True):
    """A recorded save: `start` is the operation before which the old checkpoint was synced."""

    recording: Path
    start: int
    cuts: tuple[Cut, ...]


def run_save(bench: Bench, pattern: Pattern, schedule: Schedule, size_bytes: int, starter: Starter | None) -> Save:
    """Run a pattern on a fresh image; raises SaveError where anything about it is not as it should be."""
    folder = bench.renew()
    request = _request(pattern, size_bytes, folder, bench.out)
    is_shut_down = bench.kind.traits.has_shutdown and schedule.plan is Plan.QUIET
    mount_image(bench.kind, bench.image, bench.live)
    try:
        bench.out.mkdir()
        nudge(Nudge.COMMIT, bench.live, bench.out)
        with FolderRecorder(folder / "recording", bench.out) as recorder:
            cutter = Cutter(recorder, bench, schedule)
            index = _live(request, cutter, starter or FreshStarter())
            unexplained = recorder.finish()
        if unexplained or cutter.start is None:
            raise SaveError(f"{pattern.name}: the recording does not explain {unexplained}, or nothing was synced")
        cutter.cut(index, schedule.last())
        if is_shut_down:
            shut_down(bench.kind, bench.live)
    finally:
        unmount(bench.live)
    if is_shut_down:
        cutter.cuts.append(Cut(index=index, nudge=cutter.cuts[-1].nudge, image=bench.cut()))
    return Save(recording=folder / "recording", start=cutter.start, cuts=tuple(cutter.cuts))


def _request(pattern: Pattern, size_bytes: int, folder: Path, out: Path) -> LifeRequest:
    """Return what to run."""
    options = ("-P",) if pattern.has_torch else ("-S", "-E")
    command = (sys.executable, *options, str(pattern.path), "{out}", pattern.name, str(size_bytes), "1")
    target = Target(command=command, resume_command=command, checkpoints=("*",), final=())
    return LifeRequest(
        number=1,
        command=command,
        target=target,
        profile=TargetProfile(),
        folder=str(folder / "logs"),
        out=str(out),
        hash_seed=1,
        deadline_s=_DEADLINE_S,
    )


def _live(request: LifeRequest, cutter: Cutter, starter: Starter) -> int:
    """Run a life to its end; return the number of its operations."""
    sinks = prepare_folder(request)
    with temporary_folder() as temporary:
        plan = launch_plan(request, sinks, temporary, program=build_filter(this_machine()).hex())
        with starter.start(plan) as process:
            session = Session(
                process.listener_fd,
                root_pid=process.root_pid,
                out=Path(request.out),
                sinks=sinks,
                private=(Path(request.folder), temporary),
                is_killable_only=process.is_killable_only,
                recorder=cutter,
            )
            try:
                _serve(process, session)
            finally:
                session.close()
            if process.root_status != 0 or session.unexplained():
                raise SaveError(f"{request.command}: status {process.root_status}: {output_tail(sinks)}")
            return len(session.log)


def _serve(process: LifeProcess, session: Session) -> None:
    """Answer calls until nothing of the life is left."""
    limit = time.monotonic() + _DEADLINE_S
    poll = select.poll()
    poll.register(session.fd, select.POLLIN)
    poll.register(process.channel_fd, select.POLLIN)
    while not process.is_childless:
        if time.monotonic() > limit:
            raise SaveError(f"the life did not end within {_DEADLINE_S:.0f} s")
        for fd, event in poll.poll(200):
            if fd == process.channel_fd:
                process.read_event()
            elif not event & select.POLLIN:
                poll.unregister(fd)
            elif (pending := session.receive()) is not None:
                session.commit(pending)
