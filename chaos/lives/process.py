"""The supervisor's handle on one life: its guardian, the listener, the end of its root, the end of everything."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import psutil

from chaos.errors import HarnessError
from chaos.model import Record

_GUARDIAN: Final = Path(__file__).with_name("guardian.py")
_START_S: Final = 30.0
_REAP_S: Final = 60.0


class LaunchPlan(Record, kw_only=True):
    """What the guardian is told: everything is absolute; `filter` is the seccomp program in hexadecimal, or empty."""

    executable: str
    command: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdout: str
    stderr: str
    filter: str
    seccomp: int
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
    error: str = ""


class LifeProcess:
    """One running life. Use as a context manager: leaving it ends every process of the life."""

    def __init__(self, plan: LaunchPlan) -> None:
        """Start the guardian and, through it, the target; HarnessError where the filter cannot be installed."""
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._guardian = subprocess.Popen(  # noqa: S603 - our own interpreter and program
            [sys.executable, "-I", "-S", str(_GUARDIAN)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        launch = _Launch(**msgspec.structs.asdict(plan), channel=theirs.fileno())
        self.root_status: int | None = None
        self.root_pid = 0
        self.listener_fd = -1
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

    def _receive(self) -> _Message:
        """Take one message and note what it says of the root."""
        message = _decode(self._channel.recv(65536))
        if not message.event:
            text = "the guardian of a life ended unexpectedly; its processes were ended with it"
            raise HarnessError(text, hint="was it killed by hand, or by a lack of memory?")
        if message.event == "root_ended":
            self.root_status = message.status
        if message.event == "failed":
            text = f"the target could not be executed: {message.error}"
            raise HarnessError(text, hint="check that the program is an executable for this machine")
        return message

    def kill(self) -> int:
        """End every process of the life; return how many were killed. Nothing of the life runs when this returns."""
        self._tell(b"kill\n")
        limit = time.monotonic() + _REAP_S
        while (left := limit - time.monotonic()) > 0:
            if select.select([self._channel], [], [], left)[0]:
                message = self._receive()
                if message.event == "reaped":
                    return message.killed
        text = f"a process of the target did not end within {_REAP_S:.0f} s of SIGKILL"
        raise HarnessError(text, hint="it hangs in the kernel, usually in a file system; see `ps` for state D")

    def descendants(self) -> tuple[str, ...]:
        """Return the command lines of the life's processes that still run (zombies left out)."""
        found = []
        try:
            for process in psutil.Process(self._guardian.pid).children(recursive=True):
                try:
                    if process.status() != psutil.STATUS_ZOMBIE:
                        found.append(" ".join(process.cmdline())[:200] or process.name())
                except psutil.Error:
                    continue
        except psutil.Error:
            return ()
        return tuple(sorted(found))

    def close(self) -> None:
        """End the life and its guardian, and give all descriptors back."""
        if self._guardian.stdin is not None and not self._guardian.stdin.closed:
            self._guardian.stdin.close()
        try:
            self._guardian.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait()
        self._channel.close()

    def _tell(self, data: bytes) -> None:
        """Write to the guardian's standard input."""
        try:
            assert self._guardian.stdin is not None  # noqa: S101 - opened with PIPE above
            self._guardian.stdin.write(data)
            self._guardian.stdin.flush()
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
