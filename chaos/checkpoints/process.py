"""The way in for all other parts: checkpoints are examined in a child process with limits, never in the supervisor."""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

from chaos.checkpoints.child import Child, ChildLostError
from chaos.checkpoints.examine import NOTHING, Examination, size_of
from chaos.checkpoints.leaves import clean_name
from chaos.checkpoints.protocol import Reply, Request, Task
from chaos.checkpoints.verify import run_verify
from chaos.errors import HarnessError, UsageError
from chaos.model import CheckpointDifference, TensorDifference

MEMORY_BYTES = 8 << 30
DEADLINE_S = 120.0
# A network's disk under load; a local one is ten times as fast, and a cached file a hundred times.
SLOWEST_BYTES_PER_S = 20 << 20
CACHED_FILES = 512
# Times of files advance in steps of some milliseconds: a file changed so recently may change again unnoticed.
SETTLED_NS = 100_000_000
CacheKey = tuple[str, int, int, int, int, int, frozenset[str]]


class Examiner(AbstractContextManager["Examiner"]):
    """Examines checkpoints in one child process, which is started when needed and again when a file was its end.

    To be used from one thread. `memory_bytes` bounds the child's address space, `deadline_s` each request.
    """

    def __init__(self, *, memory_bytes: int = MEMORY_BYTES, deadline_s: float = DEADLINE_S) -> None:
        """Keep the limits; nothing is started yet."""
        self._memory_bytes = memory_bytes
        self._deadline_s = deadline_s
        self._child: Child | None = None
        self._cache: OrderedDict[CacheKey, Examination] = OrderedDict()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """End the child."""
        self.close()

    def close(self) -> None:
        """End the child; another request would start a new one."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def examine(self, path: Path, without: frozenset[str] = NOTHING) -> Examination:
        """Examine a file or folder; a file that ends the child or takes too long is one that nobody can judge.

        Plain files that did not change since are not read again. Raises HarnessError when no child can be started.
        """
        key = _cache_key(path, without)
        if key is not None and key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        try:
            reply = self._ask(self._request(Task.EXAMINE, path, without=without))
        except ChildLostError as error:
            return Examination(is_whole=None, reason=f"its examination {error}", size_bytes=_size_of(path))
        if reply.examination is None:
            return Examination(
                is_whole=None, reason=f"its examination failed: {reply.failure}", size_bytes=_size_of(path)
            )
        if key is not None and key == _cache_key(path, without):
            self._cache[key] = reply.examination
            if len(self._cache) > CACHED_FILES:
                self._cache.popitem(last=False)
        return reply.examination

    def forget(self) -> None:
        """Read every file again, though it seems not to have changed: another disk may be there in its place."""
        self._cache.clear()

    def compare(self, left: Path, right: Path, without: frozenset[str] = NOTHING) -> TensorDifference:
        """Compare two whole checkpoints by bits; raises UsageError (one is not whole), HarnessError."""
        reply = self._answer(self._request(Task.COMPARE, left, right, without), left)
        if reply.difference is None:
            raise HarnessError(f"{left} and {right} could not be compared: {reply.failure}")
        return reply.difference

    def diff(self, left: Path, right: Path, ignored: Sequence[str] = (), limit: int = 5) -> CheckpointDifference:
        """Compare two whole checkpoints by component, without leaves that match a glob in `ignored`.

        At most `limit` leaves of a component are shown. The deadline grows with the sizes of both. Raises UsageError
        (one is not whole, or hostile), HarnessError.
        """
        request = replace(
            self._request(Task.DIFF, left, right),
            ignored=tuple(ignored),
            limit=limit,
            deadline_s=self._deadline_s + (size_of(left) + size_of(right)) / SLOWEST_BYTES_PER_S,
        )
        reply = self._answer(request, left)
        if reply.diff is None:
            raise HarnessError(f"{left} and {right} could not be compared: {reply.failure}")
        # The child is given absolute paths; a report is clearer with what was typed.
        return replace(reply.diff, a=clean_name(str(left)), b=clean_name(str(right)))

    def flip_bit(self, path: Path, variant: int | None = None) -> str:
        """Flip one bit on disk; raises UsageError, HarnessError.

        Without `variant` one of a weight is planted (the file still looks whole), and the tensor's name is returned;
        with one a bit or a digit of a number rots (checksums tell), and which it was is returned in words.
        """
        reply = self._answer(self._request(Task.FLIP_BIT, path, variant=variant), path)
        if reply.name is None:
            raise HarnessError(f"no bit of {path} could be flipped: {reply.failure}")
        return reply.name

    def parts(self, path: Path) -> tuple[str, ...]:
        """Return the parts of a whole checkpoint that could be reset by themselves; raises UsageError, HarnessError."""
        reply = self._answer(self._request(Task.PARTS, path), path)
        if reply.parts is None:
            raise HarnessError(f"the parts of {path} could not be found: {reply.failure}")
        return reply.parts

    def reset(self, path: Path, part: str) -> int:
        """Reset one part of a checkpoint on disk, and return how many of its values are others now (0: it was zero).

        Raises UsageError where that is not possible, HarnessError.
        """
        reply = self._answer(replace(self._request(Task.RESET, path), part=part), path)
        if reply.changed is None:
            raise HarnessError(f"{part} of {path} could not be reset: {reply.failure}")
        return reply.changed

    def verify(self, command: tuple[str, ...], path: Path, deadline_s: float) -> tuple[bool, str]:
        """Ask the user's command whether `path` is whole, and why not; raises UsageError if it cannot start."""
        return run_verify(command, path, deadline_s)

    def _request(
        self,
        task: Task,
        path: Path,
        other: Path | None = None,
        without: frozenset[str] = NOTHING,
        variant: int | None = None,
        part: str = "",
    ) -> Request:
        """Return a request under the examiner's own deadline."""
        return Request(
            task=task,
            path=os.fsencode(path.absolute()),
            other=b"" if other is None else os.fsencode(other.absolute()),
            without=tuple(sorted(without)),
            variant=variant,
            part=part,
            deadline_s=self._deadline_s,
        )

    def _answer(self, request: Request, path: Path) -> Reply:
        """Ask about `path`, where no answer is a failure of ours; raises UsageError, HarnessError."""
        try:
            reply = self._ask(request)
        except ChildLostError as error:
            raise HarnessError(
                f"the examination of {path} {error}", hint="Allow more memory or time, or look at the file by hand."
            ) from error
        if reply.usage_error is not None:
            raise UsageError(reply.usage_error, hint=reply.hint)
        return reply

    def _ask(self, request: Request) -> Reply:
        """Send one request and return the reply; raises ChildLostError when there is none in time."""
        if self._child is None:
            self._child = Child(self._memory_bytes)
        try:
            return self._child.ask(request, request.deadline_s)
        except BaseException:
            # Whatever happened (an interrupt too), this child is out of step.
            self.close()
            raise


def _cache_key(path: Path, without: frozenset[str]) -> CacheKey | None:
    """Return what identifies an unchanged plain file; None for anything else, and for one that changed just now."""
    try:
        status = path.stat()
    except OSError:
        return None
    is_settled = status.st_ctime_ns + SETTLED_NS < time.time_ns()
    if not stat.S_ISREG(status.st_mode) or not is_settled:
        return None
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (str(path.absolute()), status.st_dev, status.st_ino, status.st_size, *times, without)


def _size_of(path: Path) -> int:
    """Return the size of a plain file, 0 for anything else."""
    try:
        status = path.stat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
