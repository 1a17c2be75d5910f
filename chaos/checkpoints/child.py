"""One child process of the examiner, seen from the supervisor: asked one thing at a time, each with a deadline."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from chaos.checkpoints.protocol import Reply, Request
from chaos.errors import HarnessError

COMMAND = (sys.executable, "-P", "-m", "chaos.checkpoints")
# A checkpoint with as many leaves as are read at all has a reply of about this size.
MAX_REPLY_BYTES = 1 << 30
READ_BYTES = 1 << 20
GRACE_S = 2.0
TAIL_BYTES = 400


class ChildLostError(Exception):
    """The child ended, or did not answer in time; the message says which, as the end of a sentence."""


class Child:
    """A running examiner's child and the pipes to it."""

    def __init__(self, memory_bytes: int) -> None:
        """Start it in a session of its own, where no key of the terminal reaches it; raises HarnessError."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child, closed in `close`
        try:
            self._process = subprocess.Popen(
                (*COMMAND, str(memory_bytes), str(os.getpid())),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=child_environment(),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self._errors.close()
            raise HarnessError(f"the process that examines checkpoints cannot be started: {error}") from error
        self._decoder = msgspec.json.Decoder(Reply)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def ask(self, request: Request, deadline_s: float) -> Reply:
        """Send a request and return the reply; raises ChildLostError, after which the child must be closed."""
        deadline = time.monotonic() + deadline_s
        try:
            self._send(msgspec.json.encode(request) + b"\n")
        except BrokenPipeError:
            raise ChildLostError(self._how_it_ended()) from None
        line = self._receive(deadline, deadline_s)
        try:
            return self._decoder.decode(line)
        except msgspec.DecodeError as error:
            raise ChildLostError("gave an answer that cannot be read") from error

    def _send(self, data: bytes) -> None:
        """Write all of `data`; the child is waiting for it, so this does not block for long."""
        pipe = self._process.stdin
        if pipe is None:
            raise BrokenPipeError
        rest = memoryview(data)
        while rest:
            rest = rest[pipe.write(rest) or 0 :]

    def _receive(self, deadline: float, deadline_s: float) -> bytes:
        """Return the next line; raises ChildLostError at the pipe's end, at the deadline and for an endless line."""
        pipe = self._process.stdout
        if pipe is None:
            raise ChildLostError("has no pipe to answer on")
        pieces: list[bytes] = []
        size = 0
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not pieces or not pieces[-1].endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise ChildLostError(f"took longer than {deadline_s:g} s")
                piece = os.read(pipe.fileno(), READ_BYTES)
                if not piece:
                    raise ChildLostError(self._how_it_ended())
                pieces.append(piece)
                size += len(piece)
                if size > MAX_REPLY_BYTES:
                    raise ChildLostError("gave an answer without an end")
        return b"".join(pieces)

    def _how_it_ended(self) -> str:
        """Return how the process ended, with the last line that it wrote to standard error."""
        try:
            status = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return "stopped answering"
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
        size = os.fstat(self._errors.fileno()).st_size
        tail = os.pread(self._errors.fileno(), TAIL_BYTES, max(0, size - TAIL_BYTES)).decode(errors="replace")
        last = tail.strip().rpartition("\n")[2]
        return f"{how}: {last}" if last else how

    def close(self) -> None:
        """End the process, whatever it is doing, and release everything."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        # It has no state worth a farewell, and a file may have made it deaf.
        self._process.kill()
        self._process.wait()
        self._errors.close()


def child_environment() -> dict[str, str]:
    """Return the environment in which `python -P -m chaos…` finds this very package, and numpy starts no threads."""
    environment = dict(os.environ)
    environment["OPENBLAS_NUM_THREADS"] = "1"
    root = Path(__file__).resolve().parents[2]
    # An installed package is found anyway, and its folder must not come before the standard library.
    if root.name not in {"site-packages", "dist-packages"}:
        inherited = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{inherited}{os.pathsep}{root}" if inherited else str(root)
    return environment
