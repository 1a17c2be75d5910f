"""The supervisor's handle on one life: its guardian, the listener, the end of its root, the end of everything."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import psutil

from chaos.errors import HarnessError
from chaos.intercept.spelling import spell
from chaos.model import Record

_GUARDIAN: Final = Path(__file__).with_name("guardian.py")
_START_S: Final = 30.0
_REAP_S: Final = 60.0
_POLL_S: Final = 0.2
_CLOCK_SLACK_S: Final = 1.0
_PR_SET_CHILD_SUBREAPER: Final = 36


class LaunchPlan(Record, kw_only=True):
    """What the guardian is told: everything is absolute; `filter` is the seccomp program in hexadecimal, or empty.

    The guardian removes the folder `temporary` at its end.
    """

    executable: str
    command: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdout: str
    stderr: str
    filter: str
    seccomp: int
    temporary: str = ""
    umask: int = 0o022


class _Launch(LaunchPlan, kw_only=True):
    """The plan with the number of the guardian's socket."""

    channel: int


class _Message(msgspec.Struct, frozen=True):
    """One packet from the guardian."""

    event: str
    pid: int = 0
    status: int = 0
    killed: int = 0
    is_root_killed: bool = False
    is_killable_only: bool = False
    error: str = ""


class Killed(Record, kw_only=True):
    """What `LifeProcess.kill` ended: how many living processes, and whether the root was one of them."""

    processes: int
    is_root: bool


class LifeProcess:
    """One running life. Use as a context manager: leaving it ends every process of the life."""

    def __init__(self, plan: LaunchPlan) -> None:
        """Start the guardian and, through it, the target; HarnessError where the filter cannot be installed."""
        _adopt_orphans()
        self._started_s = time.time()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARDIAN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        assert self._guardian.stdin is not None  # noqa: S101 - opened with PIPE
        self._stdin = self._guardian.stdin
        launch = _Launch(**msgspec.structs.asdict(plan), channel=theirs.fileno())
        self.root_status: int | None = None
        self.root_pid = 0
        self.listener_fd = -1
        self.is_killable_only = False
        self.is_childless = False
        try:
            self._tell(msgspec.json.encode(launch) + b"\n")
            theirs.close()
            self._await_start()
        except BaseException:
            self.close()
            raise

    def _await_start(self) -> None:
        """Take the first message: the target's process and the listener."""
        if not select.select([self._channel], [], [], _START_S)[0]:
            message = f"the target could not be started within {_START_S:.0f} s"
            raise HarnessError(message, hint="the machine may be overloaded; try again with --jobs 1")
        data, fds, _, _ = socket.recv_fds(self._channel, 65536, 1)
        message_ = _decode(data)
        if message_.event != "started":
            text = f"the target could not be started: {message_.error or 'its guardian ended'}"
            raise HarnessError(text, hint="run `chaos doctor`, or use --no-intercept")
        self.root_pid = message_.pid
        self.is_killable_only = message_.is_killable_only
        if fds:
            self.listener_fd = fds[0]

    @property
    def channel_fd(self) -> int:
        """The descriptor to poll for the root's end."""
        return self._channel.fileno()

    def read_event(self) -> None:
        """Take one message; afterwards `root_status` may be set. HarnessError where the guardian is gone."""
        self._receive()

    def wait_event(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for a message, and take it."""
        if select.select([self._channel], [], [], timeout_s)[0]:
            self._receive()

    def is_root_alive(self) -> bool:
        """Tell whether the root runs still, right now: what the guardian has told is taken in first."""
        while select.select([self._channel], [], [], 0)[0]:
            self._receive()
        try:
            stat = Path(f"/proc/{self.root_pid}/stat").read_bytes()
        except OSError:
            return False
        return self.root_status is None and stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")

    def _receive(self) -> _Message:
        """Take one message and note what it says of the root."""
        message = _decode(self._channel.recv(65536))
        if not message.event:
            text = "the guardian of a life ended unexpectedly; its processes were ended with it"
            raise HarnessError(text, hint="was it killed by hand, or by a lack of memory?")
        if message.event == "root_ended":
            self.root_status = message.status
        if message.event == "none_left":
            self.is_childless = True
        if message.event == "failed":
            text = f"the target could not be executed: {message.error}"
            raise HarnessError(text, hint="check that the program is an executable for this machine")
        return message

    def kill(self) -> Killed:
        """End every process of the life and say what was killed. Nothing of the life runs when this returns."""
        self._tell(b"kill\n")
        limit = time.monotonic() + _REAP_S
        while (left := limit - time.monotonic()) > 0:
            if select.select([self._channel], [], [], left)[0]:
                message = self._receive()
                if message.event == "reaped":
                    return Killed(processes=message.killed, is_root=message.is_root_killed)
        text = f"a process of the target did not end within {_REAP_S:.0f} s of SIGKILL"
        raise HarnessError(text, hint="it hangs in the kernel, usually in a file system; see `ps` for state D")

    def descendants(self) -> tuple[str, ...]:
        """Return the command lines of the life's processes that still run (zombies left out)."""
        found = []
        try:
            for process in psutil.Process(self._guardian.pid).children(recursive=True):
                try:
                    if process.status() != psutil.STATUS_ZOMBIE:
                        found.append(spell(" ".join(process.cmdline()))[:200] or process.name())
                except psutil.Error:
                    continue
        except psutil.Error:
            return ()
        return tuple(sorted(found))

    def close(self) -> None:
        """End the life and its guardian, and give all descriptors back."""
        with suppress(OSError):  # what the guardian can no longer read is of no use to it
            self._stdin.close()
        try:
            self._guardian.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait()
        if self._guardian.returncode != 0:
            self._end_adopted()
        self._channel.close()

    def _end_adopted(self) -> None:
        """End what a guardian that died left to us: all younger than the life, and none in our own session."""
        limit = time.monotonic() + _REAP_S
        ours = os.getsid(0)
        while (left := self._adopted(ours)) and time.monotonic() < limit:
            for process in left:
                with suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(left, timeout=_POLL_S)

    def _adopted(self, our_session: int) -> list[psutil.Process]:
        """Return our descendants that belong to the life."""
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error, ProcessLookupError):
                is_younger = process.create_time() >= self._started_s - _CLOCK_SLACK_S
                if is_younger and process.pid != self._guardian.pid and os.getsid(process.pid) != our_session:
                    found.append(process)
        return found

    def _tell(self, data: bytes) -> None:
        """Write to the guardian's standard input."""
        try:
            self._stdin.write(data)
            self._stdin.flush()
        except OSError as error:
            text = "the guardian of a life ended unexpectedly"
            raise HarnessError(text, hint="was it killed by hand, or by a lack of memory?") from error

    def __enter__(self) -> Self:
        """Return the life itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the life."""
        self.close()


def _decode(data: bytes) -> _Message:
    """Decode one packet; an empty one means that the guardian is gone."""
    return msgspec.json.decode(data, type=_Message) if data else _Message(event="")


def _adopt_orphans() -> None:
    """Let the processes of a life come to us if their guardian dies, instead of going on under nobody's eyes."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def exit_of(status: int) -> tuple[int | None, int | None]:
    """Split a wait status into (exit status, signal), one of which is None."""
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def signal_name(number: int) -> str:
    """Return a signal's name, such as SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
