"""A life under the filter: struck exactly before, at, or inside the operation at its crash point."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from chaos.early_stop import LEAST_STEPS, may_stop
from chaos.faults.answers import Answer
from chaos.faults.injection import Injector
from chaos.faults.unsynced import UnsyncedFiles
from chaos.intercept.filter import build_filter
from chaos.intercept.pending import Pending, Sinks
from chaos.intercept.recorder import Recorder
from chaos.intercept.session import Session
from chaos.intercept.syscalls import this_machine
from chaos.lives.ending import Ending, life_result
from chaos.lives.environment import find_executable, life_environment
from chaos.lives.order import GRACE_S, Order
from chaos.lives.process import LaunchPlan, LifeProcess, exit_of
from chaos.lives.request import (
    TICKS,
    LifeRequest,
    LifeResult,
    prepare_folder,
)
from chaos.lives.starters import MODULES_FILE, Starter
from chaos.lives.step_digests import step_digests
from chaos.lives.temporary import temporary_folder
from chaos.lives.watch import Watch, tear_within
from chaos.model import Evidence, FileState, LifeEnd, OperationKind
from chaos.roles import FileNames
from chaos.states.snapshot import Photographer

ORPHAN_GRACE_S: Final = 5.0
_POLL_S: Final = 0.2


def launch_plan(request: LifeRequest, sinks: Sinks, temporary: Path, *, program: str) -> LaunchPlan:
    """Say how the target is started; `program` is the seccomp program in hexadecimal, or empty.

    `temporary` is the life's TMPDIR; the guardian removes it when the life is over.
    """
    target = request.target
    cwd = target.cwd or str(Path.cwd())
    extra = {name: value.replace("{out}", request.out) for name, value in target.env.items()}
    environment = life_environment(
        os.environ,
        extra,
        hash_seed=request.hash_seed,
        scratch=Path(request.folder) / "scratch",
        temporary=temporary,
        ticks=sinks.ticks,
        probe_budget=request.probe_budget,
    )
    if request.is_learning:
        environment["NINELIVES_MODULES"] = str(Path(request.folder) / MODULES_FILE)
    command = tuple(word.replace("{out}", request.out) for word in request.command)
    return LaunchPlan(
        executable=find_executable(command, environment, cwd),
        command=command,
        env=environment,
        cwd=cwd.replace("{out}", request.out),
        temporary=str(temporary),
        stdout=str(sinks.stdout),
        stderr=str(sinks.stderr),
        filter=program,
        seccomp=this_machine().numbers["seccomp"] if program else 0,
    )


def run_intercepted(
    request: LifeRequest,
    photographer: Photographer,
    starter: Starter,
    recorder: Recorder | None = None,
    when_held: Callable[[], None] | None = None,
) -> LifeResult:
    """Run one life to its end, its crash point or its deadline; nothing of it runs when this returns.

    `recorder` is told what each call does; it is the caller's to finish. `when_held` is called while the life is held
    at its crash point, right before it is killed.
    """
    sinks = prepare_folder(request)
    started = time.monotonic()
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
                recorder=recorder,
                without_fsync=request.without_fsync,
            )
            try:
                life = InterceptedLife(request, process, session, photographer.checkpoints, when_held)
                life.run(started + request.deadline_s)
                return life.result(photographer, sinks, time.monotonic() - started)
            finally:
                session.close()


class InterceptedLife:
    """The loop over one life's notifications."""

    def __init__(
        self,
        request: LifeRequest,
        process: LifeProcess,
        session: Session,
        checkpoints: Callable[[], tuple[FileState, ...]],
        when_held: Callable[[], None] | None = None,
    ) -> None:
        """Bind the parts; nothing is answered before `run`."""
        self._when_held = when_held
        self._request = request
        self._process = process
        self._session = session
        self._watch = Watch(request, checkpoints)
        self._order = Order(request.profile)
        self._held: list[Pending] = []
        self._num_ticks = 0
        self._held_since_s = 0.0
        self._order_releases = 0
        self._end: LifeEnd | None = None
        self._evidence: Evidence | None = None
        point = request.crash_point
        names = FileNames(request.target, request.profile)
        self._errors = Injector(point) if point is not None and point.fault.is_error else None
        self._unsynced = UnsyncedFiles(lambda path: names.name(path).role)
        self._orphans: tuple[str, ...] = ()
        self._grace_end_s: float | None = None
        self._poll = select.poll()
        self._poll.register(session.fd, select.POLLIN)
        self._poll.register(process.channel_fd, select.POLLIN)

    def run(self, deadline: float) -> None:
        """Serve calls until the life is over, one way or another; then end what is left of it."""
        while self._end is None:
            if self._process.root_status is not None:
                self._outlive_root()
            elif time.monotonic() >= deadline:
                self._end = LifeEnd.DEADLINE
            if self._end is None:
                self._serve()
                self._end_long_wait()
        if self._end not in (LifeEnd.STRUCK, LifeEnd.STOPPED):
            self._process.kill()

    def _serve(self) -> None:
        """Wait a little for events and handle them."""
        for fd, event in self._poll.poll(_POLL_S * 1000):
            if fd == self._process.channel_fd:
                self._process.read_event()
            elif event & select.POLLIN:
                pending = self._session.receive()
                if pending is not None:
                    self._take(pending)
            else:
                self._poll.unregister(fd)
            if self._end is not None:
                break

    def _take(self, pending: Pending) -> None:
        """Handle one operation: hold it, strike at it, or let it happen."""
        if self._order.is_needed and self._order.rank(self._watch.locator, pending.operation) is not None:
            if not self._held:
                self._held_since_s = time.monotonic()
            self._held.append(pending)
            return
        self._go(pending)
        while self._end is None and (ready := self._next_ready()) is not None:
            self._go_late(ready)

    def _next_ready(self) -> Pending | None:
        """Take the held operation whose predecessors are done by now, if there is one."""
        for position, pending in enumerate(self._held):
            if self._order.rank(self._watch.locator, pending.operation) is None:
                self._held_since_s = time.monotonic()
                return self._held.pop(position)
        return None

    def _end_long_wait(self) -> None:
        """Give the order up where an operation was held for too long: a deadlock of our own making."""
        if not self._held or time.monotonic() - self._held_since_s <= GRACE_S:
            return
        self._order_releases += 1
        self._order.is_given_up = True
        while self._held and self._end is None:
            self._go_late(self._held.pop(0))

    def _go_late(self, pending: Pending) -> None:
        """Let an operation happen that was held back, if its thread has not given up on it meanwhile."""
        if self._session.is_pending(pending):
            self._go(self._session.renumbered(pending))
        else:
            self._session.withdraw(pending)

    def _go(self, pending: Pending) -> None:
        """Let an operation happen, unless a fault strikes at it; `pending` is checked to be waited for."""
        operation = pending.operation
        known = len(self._watch.acknowledgements)
        is_point = self._watch.see(operation)
        if self._errors is not None and len(self._watch.acknowledgements) > known:
            self._unsynced.acknowledge()
        if is_point and self._errors is None:
            self._strike(pending)
            return
        answer = self._answer_to(pending, is_point=is_point)
        if answer is not None:
            self._inject(pending, answer)
        elif self._session.commit(pending):
            if self._errors is not None:
                self._unsynced.take(operation)
            self._order.note(self._watch.last_address)
            if operation.kind is OperationKind.TICK:
                self._num_ticks += 1
                if self._may_stop():
                    self._process.kill()
                    self._end = LifeEnd.STOPPED

    def _may_stop(self) -> bool:
        """Tell whether the life goes the way of its twin, and has left nothing where nobody looks."""
        twin = self._request.twin
        if twin is None or not LEAST_STEPS <= self._num_ticks < len(twin.steps):
            return False
        if not may_stop(twin, self._request.files, self._step_digests()):
            return False
        return not (self._session.outside_writes or self._session.foreign_calls or self._session.unexplained())

    def _step_digests(self) -> tuple[str, ...]:
        """Return the digests of the first steps; nothing where nobody asked."""
        request = self._request
        return step_digests(Path(request.folder) / TICKS, request.unsteady) if request.files else ()

    def _answer_to(self, pending: Pending, *, is_point: bool) -> Answer | None:
        """Return what a call is answered in place of being carried out (None: it is carried out)."""
        if self._errors is None:
            return None
        name = pending.path if pending.new_path is None else pending.new_path
        return self._errors.answer_to(
            pending.operation,
            is_point=is_point,
            is_there=lambda: name is not None and os.path.lexists(Path(self._request.out) / name),
        )

    def _inject(self, pending: Pending, answer: Answer) -> None:
        """Answer a call with an error, or carry out a part of it; nobody knows in which order the target goes on."""
        assert self._errors is not None  # noqa: S101 - it gave the answer
        if answer.until is None:
            is_answered = self._session.refuse(pending, answer.errno)
            self._unsynced.refuse(pending.operation)
        else:
            is_answered = self._session.shorten(pending, answer.until)
        self._order.is_given_up = True
        if is_answered:
            self._errors.count(pending.operation)

    def _strike(self, pending: Pending) -> None:
        """Kill the whole life while the call at the crash point is held, and never answer it."""
        point = self._request.crash_point
        assert point is not None and self._watch.struck_phase is not None  # noqa: S101, PT018 - `see` said so
        was_alive = self._process.is_root_alive() and self._session.is_pending(pending)
        tear = tear_within(point, pending.operation)
        done = self._session.tear(pending, tear) if tear is not None and was_alive else 0
        if self._when_held is not None:
            self._when_held()
        killed = self._process.kill()
        self._end = LifeEnd.STRUCK
        signal = exit_of(self._process.root_status)[1] if self._process.root_status is not None else None
        self._evidence = Evidence(
            crash_point=point,
            phase=self._watch.struck_phase,
            operation_index=pending.operation.index,
            was_alive=was_alive and killed.is_root,
            root_signal=signal or 0,
            processes_killed=killed.processes,
            executed_bytes=done,
        )

    def _errors_met(self) -> Evidence | None:
        """Return the evidence of the errors that the life was given (None: it did not come to the crash point)."""
        errors, point = self._errors, self._request.crash_point
        if errors is None or point is None or self._watch.struck_phase is None:
            return None
        return Evidence(
            crash_point=point,
            phase=self._watch.struck_phase,
            operation_index=errors.first_index,
            was_alive=True,
            root_signal=0,
            processes_killed=0,
            errors_injected=errors.num_injected,
            unsynced=self._unsynced.ignored,
        )

    def _outlive_root(self) -> None:
        """End the life of a root that has ended: at once if nobody is left, else after the grace of its orphans."""
        now = time.monotonic()
        self._grace_end_s = self._grace_end_s or now + ORPHAN_GRACE_S
        if self._process.is_childless or now >= self._grace_end_s:
            self._orphans = () if self._process.is_childless else self._process.descendants()
            _, signal = exit_of(self._process.root_status or 0)
            self._end = LifeEnd.EXITED if signal is None else LifeEnd.SIGNALLED

    def result(self, photographer: Photographer, sinks: Sinks, elapsed_s: float) -> LifeResult:
        """Put together what was seen; looks at the output folder, in which nothing moves any more."""
        self._session.sweep_shared_memory()
        snapshot = photographer.take()
        log = tuple(self._session.log)
        evidence = self._evidence or self._errors_met()
        ending = Ending(end=self._end, evidence=evidence, orphans=self._orphans, elapsed_s=elapsed_s)
        result = life_result(self._request, self._process, self._watch, sinks, snapshot, log, ending)
        record = msgspec.structs.replace(
            result.record,
            unseen_writers=self._session.unexplained(),
            outside_writes=self._session.outside_writes,
            foreign_calls=self._session.foreign_calls,
            interrupted_calls=self._session.interrupted_calls,
            order_releases=self._order_releases,
            step_digests=self._step_digests(),
        )
        return LifeResult(record=record, log=log)
