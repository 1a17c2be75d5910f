"""The examiner's child: sets its own limits, then answers a request a line until its input or its parent ends."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

import msgspec

from chaos.checkpoints.examine import examine
from chaos.checkpoints.leaves import clean_name
from chaos.checkpoints.protocol import Reply, Request, Task
from chaos.errors import UsageError

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def set_limits(memory_bytes: int) -> None:
    """Bound the address space and allow no core file, so that a hostile file can harm this process only."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_with(parent: int) -> None:
    """End this process when its parent ends, whatever this one is doing, and at once if the parent is gone already.

    The kernel counts the thread that started this process as the parent.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def answer(request: Request) -> Reply:
    """Do what is asked; everything that goes wrong is in the reply."""
    try:
        return _done(request)
    except UsageError as error:
        return Reply(usage_error=clean_name(error.message), hint=error.hint)
    except MemoryError:
        return Reply(failure="it took more memory than the limit")
    except Exception as error:  # noqa: BLE001 - the supervisor must hear of it, whatever it is
        return Reply(failure=clean_name(f"{type(error).__name__}: {error}"))


def _done(request: Request) -> Reply:
    """Do what is asked; parts are imported where they are used, since numpy is most of the start-up time."""
    path, other = Path(os.fsdecode(request.path)), Path(os.fsdecode(request.other))
    without = frozenset(request.without)
    match request.task:
        case Task.EXAMINE:
            return Reply(examination=examine(path, without))
        case Task.COMPARE:
            from chaos.checkpoints.compare import compare

            return Reply(difference=compare(path, other, without))
        case Task.DIFF:
            from chaos.checkpoints.diff import diff

            return Reply(diff=diff(path, other, request.ignored, request.limit))
        case Task.FLIP_BIT:
            from chaos.checkpoints.flip import flip_bit, rot_bit

            return Reply(name=flip_bit(path) if request.variant is None else rot_bit(path, request.variant))
        case Task.PARTS:
            from chaos.checkpoints.reset import parts_of

            return Reply(parts=parts_of(path))
        case Task.RESET:
            from chaos.checkpoints.reset import reset_part

            return Reply(changed=reset_part(path, request.part))


def main(arguments: list[str]) -> int:
    """Answer requests until standard input ends; the arguments are the limit on memory in bytes and the parent's id."""
    end_with(int(arguments[1]))
    set_limits(int(arguments[0]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    decoder = msgspec.json.Decoder(Request)
    for line in sys.stdin.buffer:
        request = decoder.decode(line)
        # Ends this process by SIGALRM should the supervisor be gone: nothing may go on computing for nobody.
        signal.setitimer(signal.ITIMER_REAL, request.deadline_s + 1.0)
        reply = msgspec.json.encode(answer(request)) + b"\n"
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        try:
            sys.stdout.buffer.write(reply)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            os._exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
