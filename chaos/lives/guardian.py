"""The guardian of one life: a program of its own, run as `python -I -S guardian.py`, importing nothing of the project.

It becomes the reaper of all orphans among its descendants (PR_SET_CHILD_SUBREAPER), forks once, installs the seccomp
filter in that child, hands the listener to the supervisor and keeps a copy of it (so that calls stay blocked, instead
of failing, when the supervisor dies), and executes the target. It ends the whole tree when it is told to, or when its
standard input closes: the supervisor is gone then.

Standard input: one line of JSON (the configuration), then commands, a line each: `kill` ends all descendants. The
socket (inherited, number in the configuration) carries one JSON message a packet: `started` (with the listener, if
there is a filter), `root_ended`, `reaped`, `failed`.
"""

# ruff: noqa: PTH123, PTH208, S606 - a guardian must start fast: it loads no pathlib and executes the target itself

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import struct
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` is not loaded when this runs: a guardian must start fast
    from collections.abc import Sequence
    from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER = 1
FILTER_NEW_LISTENER = 1 << 3
FILTER_WAIT_KILLABLE = 1 << 5
EINVAL = 22

libc = ctypes.CDLL(None, use_errno=True)


def install_filter(program: bytes, number: int) -> tuple[int, bool]:
    """Install the seccomp program; return its listener, and whether the wait is killable (Linux 5.19)."""
    buffer = ctypes.create_string_buffer(program, len(program))
    description = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(description, len(description))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    for flags in (FILTER_NEW_LISTENER | FILTER_WAIT_KILLABLE, FILTER_NEW_LISTENER):
        fd = libc.syscall(ctypes.c_long(number), ctypes.c_long(SECCOMP_SET_MODE_FILTER), ctypes.c_long(flags), holder)
        if fd >= 0:
            return fd, bool(flags & FILTER_WAIT_KILLABLE)
        if ctypes.get_errno() != EINVAL:
            break
    error = ctypes.get_errno()
    raise OSError(error, f"seccomp: {os.strerror(error)}")


def send(channel: socket.socket, message: dict[str, object], fds: Sequence[int] = ()) -> None:
    """Send one message, with descriptors."""
    with suppress(OSError):
        socket.send_fds(channel, [json.dumps(message).encode()], list(fds))


def set_stage(config: dict[str, Any]) -> None:
    """In the child: a session, a working folder and streams of its own, and no signal handled or blocked."""
    os.setsid()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # if even the guardian dies, the root at least goes with it
    os.chdir(config["cwd"])
    null = os.open(os.devnull, os.O_RDONLY)
    stdout = os.open(config["stdout"], os.O_WRONLY | os.O_APPEND)
    stderr = os.open(config["stderr"], os.O_WRONLY | os.O_APPEND)
    for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target)
        os.close(source)
    for number in range(1, signal.NSIG):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(config["umask"])


def hand_over(config: dict[str, Any], channel: socket.socket, to_guardian: socket.socket) -> None:
    """In the child: install the filter and send its listener to the supervisor, and to the guardian that keeps it."""
    fds: list[int] = []
    is_killable_only = False
    if config["filter"]:
        fd, is_killable_only = install_filter(bytes.fromhex(config["filter"]), config["seccomp"])
        fds.append(fd)
    send(channel, {"event": "started", "pid": os.getpid(), "is_killable_only": is_killable_only}, fds)
    send(to_guardian, {"event": "started"}, fds)
    for fd in fds:
        os.close(fd)


def launch(config: dict[str, Any], channel: socket.socket, to_guardian: socket.socket) -> None:
    """In the child: set the stage, install the filter, hand the listener over, execute the target."""
    set_stage(config)
    # Every descriptor above 2 is closed by the execution itself, so that a failure of it can still be told.
    channel.set_inheritable(False)
    hand_over(config, channel, to_guardian)
    os.execve(config["executable"], config["command"], config["env"])


def children_of(root: int) -> dict[int, bool]:
    """Return all descendants of process `root` as /proc shows them now: {pid: whether it still lives}."""
    parents: dict[int, int] = {}
    living: set[int] = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as stat:
                state, parent = stat.read().rpartition(b")")[2].split()[:2]
                parents[int(name)] = int(parent)
                if state not in (b"Z", b"X"):
                    living.add(int(name))
    found: dict[int, bool] = {}
    front = {root}
    while front:
        front = {pid for pid, parent in parents.items() if parent in front}
        found.update({pid: pid in living for pid in front})
    return found


class Guardian:
    """The loop that waits for commands, for the end of the root, and for the supervisor's death."""

    def __init__(self, channel: socket.socket, root: int) -> None:
        """Guard the tree below this process; `root` is the target's first process."""
        self.channel = channel
        self.root = root
        self.killed: set[int] = set()
        self.wakeup_fds = (-1, -1)

    def listen(self) -> None:
        """Be woken, through the first of `wakeup_fds`, when a child ends."""
        self.wakeup_fds = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self.wakeup_fds[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def drain(self) -> None:
        """Take in that children ended."""
        with suppress(BlockingIOError):
            os.read(self.wakeup_fds[0], 4096)
        self.reap(os.WNOHANG)

    def reap(self, flags: int) -> bool:
        """Collect ended children; report the root's end, and when nobody is left (then False)."""
        while True:
            try:
                pid, status = os.waitpid(-1, flags)
            except ChildProcessError:
                send(self.channel, {"event": "none_left", "root": self.root})
                return False
            if pid == 0:
                return True
            if pid == self.root:
                send(self.channel, {"event": "root_ended", "root": pid, "status": status})
            if not flags:
                return True

    def kill_all(self) -> None:
        """End every descendant until none is left: what is reparented to us meanwhile too."""
        while True:
            for pid, is_living in children_of(os.getpid()).items():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    if is_living:
                        self.killed.add(pid)
            if not self.reap(0) or not self.reap(os.WNOHANG):
                return

    def end_life(self) -> None:
        """End every process of the life and say what was ended."""
        self.kill_all()
        is_root_killed = self.root in self.killed
        counts = {"killed": len(self.killed), "is_root_killed": is_root_killed}
        send(self.channel, {"event": "reaped", "root": self.root, **counts})

    def run(self) -> None:
        """Serve until the supervisor is gone."""
        self.listen()
        poll = select.poll()
        poll.register(0, select.POLLIN | select.POLLHUP)
        poll.register(self.wakeup_fds[0], select.POLLIN)
        self.reap(os.WNOHANG)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self.wakeup_fds[0] in ready:
                self.drain()
            if 0 in ready:
                if not os.read(0, 64):
                    self.kill_all()
                    return
                self.end_life()


def read_line() -> bytes:
    """Read one line from standard input, byte by byte, so that nothing behind it is taken; empty at its end."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            return b""
        line += piece
    return line


def refuse_signals() -> None:
    """Be ended by the supervisor alone, and become the reaper of all orphans below."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def remove(folder: str) -> None:
    """Remove a life's temporary folder."""
    if folder:
        import shutil  # only now: its import would delay every start

        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Start the target and guard it."""
    line = read_line()
    if not line:
        return
    config = json.loads(line)
    channel = socket.socket(fileno=config["channel"])
    refuse_signals()
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    root = os.fork()
    if root == 0:
        try:
            launch(config, channel, theirs)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the supervisor must hear of it
            send(channel, {"event": "failed", "error": str(error)})
        finally:
            os._exit(127)
    theirs.close()
    _listeners = socket.recv_fds(mine, 4096, 1)  # kept open until this process ends
    Guardian(channel, root).run()
    remove(config["temporary"])


if __name__ == "__main__":
    main()
