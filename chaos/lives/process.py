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
from typing import Any, Final, Self

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
_WAS_IT_KILLED: Final = "was it killed by hand, or by a lack of memory?"
_NOT_STARTED: Final = "the target could not be started"
_OURS: Final[set[int]] = set()


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


class Message(msgspec.Struct, frozen=True):
    """One packet from the guardian."""

    event: str
    pid: int = 0
    root: int = 0
    status: int = 0
    killed: int = 0
    is_root_killed: bool = False
    is_killable_only: bool = False
    error: str = ""
    failed_modules: tuple[str, ...] = ()
    threads_left: int = 0
    threads_started: tuple[str, ...] = ()


class Killed(Record, kw_only=True):
    """What `LifeProcess.kill` ended: how many living processes, and whether the root was one of them."""

    processes: int
    is_root: bool


class Keeper:
    """A guardian's process, told through its standard input, and heard through a socket."""

    def __init__(self, command: tuple[str, ...], *, env: dict[str, str] | None = None, cwd: str | None = None) -> None:
        """Start `command`, a program that guards lives; HarnessError where that is not possible."""
        adopt_orphans()
        self._started_s = time.time()
        self._channel, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=None if env is None else subprocess.DEVNULL,
                pass_fds=[self._theirs.fileno()],
                start_new_session=True,
                env=env,
                cwd=cwd,
            )
        except OSError as error:
            text = f"the guardian of a life could not be started: {error.strerror}"
            raise HarnessError(text, hint="run `chaos doctor`") from error
        assert self._process.stdin is not None  # noqa: S101 - opened with PIPE
        self._stdin = self._process.stdin
        keep_alive(self.pid)

    @property
    def pid(self) -> int:
        """Return the guardian's process id."""
        return self._process.pid

    @property
    def channel_fd(self) -> int:
        """Return the descriptor that is readable when there is a message."""
        return self._channel.fileno()

    def introduce(self, configuration: dict[str, Any]) -> None:
        """Tell the guardian, once, what it needs to know; the number of its socket is added."""
        self.tell(msgspec.json.encode({**configuration, "channel": self._theirs.fileno()}) + b"\n")
        self._theirs.close()

    def tell(self, data: bytes) -> None:
        """Write to the guardian's standard input."""
        try:
            self._stdin.write(data)
            self._stdin.flush()
        except OSError as error:
            text = "the guardian of a life ended unexpectedly"
            raise HarnessError(text, hint=_WAS_IT_KILLED) from error

    def has_message(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` for a message; it is still to be received then."""
        return bool(select.select([self._channel], [], [], timeout_s)[0])

    def receive(self) -> tuple[Message, list[int]]:
        """Take one message, and the descriptors that came with it. HarnessError where the guardian is gone."""
        data, fds, _, _ = socket.recv_fds(self._channel, 65536, 1)
        message = _decode(data)
        if not message.event:
            text = "the guardian of a life ended unexpectedly; its processes were ended with it"
            raise HarnessError(text, hint=_WAS_IT_KILLED)
        if message.event == "failed":
            text = f"the target could not be executed: {message.error}"
            raise HarnessError(text, hint="check that the program is an executable for this machine")
        return message, fds

    def close(self) -> None:
        """End the guardian and all that it guards, and give the descriptors back."""
        with suppress(OSError):  # what the guardian can no longer read is of no use to it
            self._stdin.close()
        try:
            self._process.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _OURS.discard(self.pid)
        if self._process.returncode != 0:
            end_adopted(self._started_s)
        self._channel.close()
        self._theirs.close()


def fresh_keeper() -> Keeper:
    """Start the guardian of one life."""
    return Keeper((sys.executable, "-I", "-S", str(_GUARDIAN)))


class LifeProcess:
    """One running life. Use as a context manager: leaving it ends every process of the life."""

    def __init__(self, keeper: Keeper, *, is_kept: bool = False) -> None:
        """Take the start of a life from `keeper`, which ends with it unless `is_kept`.

        Raises HarnessError where the target or the filter could not be started.
        """
        self._keeper = keeper
        self._is_kept = is_kept
        self._is_over = False
        self.root_status: int | None = None
        self.root_pid = 0
        self.listener_fd = -1
        self.is_killable_only = False
        self.is_childless = False
        try:
            self._await_start()
        except BaseException:
            self.close()
            raise

    def _await_start(self) -> None:
        """Take the first message: the target's process and the listener."""
        try:
            started, fds = self._first_message()
        except HarnessError as error:
            if error.message.startswith(_NOT_STARTED):
                raise
            text = f"{_NOT_STARTED}: {error.message.removeprefix('the target could not be executed: ')}"
            raise HarnessError(text, hint="run `chaos doctor`, or use --no-intercept") from error
        self.root_pid = started.pid
        self.is_killable_only = started.is_killable_only
        if fds:
            self.listener_fd = fds[0]

    def _first_message(self) -> tuple[Message, list[int]]:
        """Wait for `started`, passing over what was still on its way about an earlier life."""
        limit = time.monotonic() + _START_S
        while self._keeper.has_message(max(limit - time.monotonic(), 0)):
            message, fds = self._keeper.receive()
            if message.event == "started":
                return message, fds
        text = f"{_NOT_STARTED} within {_START_S:.0f} s"
        raise HarnessError(text, hint="the machine may be overloaded; try again with --jobs 1")

    @property
    def channel_fd(self) -> int:
        """The descriptor to poll for the root's end."""
        return self._keeper.channel_fd

    def read_event(self) -> None:
        """Take one message; afterwards `root_status` may be set. HarnessError where the guardian is gone."""
        self._receive()

    def wait_event(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for a message, and take it."""
        if self._keeper.has_message(timeout_s):
            self._receive()

    def is_root_alive(self) -> bool:
        """Tell whether the root runs still, right now: what the guardian has told is taken in first."""
        while self._keeper.has_message(0):
            self._receive()
        try:
            stat = Path(f"/proc/{self.root_pid}/stat").read_bytes()
        except OSError:
            return False
        return self.root_status is None and stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")

    def _receive(self) -> Message:
        """Take one message and note what it says of the root; one about an earlier life is void."""
        message, _ = self._keeper.receive()
        if message.root != self.root_pid:
            return Message(event="void")
        if message.event == "root_ended":
            self.root_status = message.status
        if message.event == "none_left":
            self.is_childless = True
        return message

    def kill(self) -> Killed:
        """End every process of the life and say what was killed. Nothing of the life runs when this returns."""
        self._keeper.tell(b"kill\n")
        limit = time.monotonic() + _REAP_S
        while (left := limit - time.monotonic()) > 0:
            if self._keeper.has_message(left):
                message = self._receive()
                if message.event == "reaped":
                    self._is_over = True
                    return Killed(processes=message.killed, is_root=message.is_root_killed)
        text = f"a process of the target did not end within {_REAP_S:.0f} s of SIGKILL"
        raise HarnessError(text, hint="it hangs in the kernel, usually in a file system; see `ps` for state D")

    def descendants(self) -> tuple[str, ...]:
        """Return the command lines of the life's processes that still run (zombies left out)."""
        found = []
        try:
            for process in psutil.Process(self._keeper.pid).children(recursive=True):
                try:
                    if process.status() != psutil.STATUS_ZOMBIE:
                        found.append(spell(" ".join(process.cmdline()))[:200] or process.name())
                except psutil.Error:
                    continue
        except psutil.Error:
            return ()
        return tuple(sorted(found))

    def close(self) -> None:
        """End the life, and its guardian unless that is kept."""
        if not self._is_kept:
            self._keeper.close()
        elif not self._is_over:
            self.kill()

    def __enter__(self) -> Self:
        """Return the life itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the life."""
        self.close()


def keep_alive(pid: int) -> None:
    """Say that a child is one that we started ourselves, and none that was left to us."""
    _OURS.add(pid)


def end_adopted(since_s: float) -> None:
    """End what a process that died left to us: descendants younger than `since_s`, in sessions of their own."""
    limit = time.monotonic() + _REAP_S
    while (left := _adopted(since_s)) and time.monotonic() < limit:
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=_POLL_S)


def _adopted(since_s: float) -> list[psutil.Process]:
    """Return our children that were left to us, with all below them."""
    found = []
    ours = os.getsid(0)
    for child in psutil.Process().children():
        with suppress(psutil.Error, ProcessLookupError):
            is_younger = child.create_time() >= since_s - _CLOCK_SLACK_S
            if is_younger and child.pid not in _OURS and os.getsid(child.pid) != ours:
                found += [child, *child.children(recursive=True)]
    return found


def _decode(data: bytes) -> Message:
    """Decode one packet; an empty one means that the guardian is gone."""
    return msgspec.json.decode(data, type=Message) if data else Message(event="")


def adopt_orphans() -> None:
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
