"""The examiner's child: limits, deadlines, recovery, the cache, and that nothing outlives it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest
import torch

import chaos.checkpoints.process as process_module
from chaos.checkpoints.child import COMMAND, Child, ChildLostError, child_environment
from chaos.checkpoints.examine import Examination, examine
from chaos.checkpoints.process import Examiner
from chaos.checkpoints.protocol import Request, Task
from chaos.errors import HarnessError, UsageError


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Give a small torch file whose times are long past."""
    path = tmp_path / "a.pt"
    torch.save({"w": torch.ones(3), "step": 1}, path)
    return path


def _pid(examiner: Examiner) -> int:
    """Return the id of the child that runs now."""
    assert examiner._child is not None
    return examiner._child.pid


def test_the_child_finds_what_is_found_here(examiner: Examiner, checkpoint: Path) -> None:
    """All fields come through the pipe unchanged, and one child answers everything."""
    assert examiner.examine(checkpoint) == examine(checkpoint)
    pid = _pid(examiner)
    assert examiner.examine(checkpoint, frozenset({"step"})) == examine(checkpoint, frozenset({"step"}))
    assert examiner.examine(checkpoint.parent) == examine(checkpoint.parent)
    assert examiner.compare(checkpoint, checkpoint).elements == 3
    assert examiner.flip_bit(checkpoint) == "w"
    assert _pid(examiner) == pid


def test_the_deadline_of_a_diff_grows_with_the_files(
    examiner: Examiner, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked of the child says how long it may take: the examiner's own time and that of reading slowly."""
    monkeypatch.setattr(process_module, "SLOWEST_BYTES_PER_S", checkpoint.stat().st_size)
    asked: list[Request] = []
    true_ask = examiner._ask
    monkeypatch.setattr(examiner, "_ask", lambda request: (asked.append(request), true_ask(request))[1])
    assert examiner.diff(checkpoint, checkpoint).equal
    assert [request.deadline_s for request in asked] == [30.0 + 2.0]


def test_names_that_are_no_text_are_examined(examiner: Examiner, tmp_path: Path) -> None:
    """A file's name may be any bytes."""
    path = tmp_path / os.fsdecode(b"\xff.json")
    path.write_text("{}")
    assert examiner.examine(path).is_whole
    assert examiner.examine(tmp_path).is_whole
    assert examiner.diff(path, path).a.endswith("\\udcff.json")


def test_the_child_limits_itself(examiner: Examiner, checkpoint: Path) -> None:
    """Its address space and its core files are bounded, and it is in a session of its own."""
    examiner.examine(checkpoint)
    limits = Path(f"/proc/{_pid(examiner)}/limits").read_text()
    rows = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()}
    assert rows["Max address space"] == str(8 << 30)
    assert rows["Max core file size"] == "0"
    assert os.getsid(_pid(examiner)) == _pid(examiner)


def test_a_file_larger_than_the_memory_limit_is_examined(tmp_path: Path) -> None:
    """Memory is bounded by the chunks, not by the file: 300 MB are read within 150 MB of address space."""
    torch.save({"w": torch.zeros(300_000_000, dtype=torch.uint8), "one": torch.ones(1)}, tmp_path / "a.pt")
    with Examiner(memory_bytes=150 << 20) as examiner:
        found = examiner.examine(tmp_path / "a.pt")
    assert found.is_whole, found.reason


def test_a_killed_child_costs_one_answer(examiner: Examiner, checkpoint: Path) -> None:
    """The request that finds its child dead is not judged and says so; the next has a new child."""
    examiner.examine(checkpoint)
    dead = psutil.Process(_pid(examiner))
    dead.kill()
    assert examiner._child is not None
    examiner._child._process.wait(10)
    found = examiner.examine(checkpoint, frozenset({"other"}))
    assert found.is_whole is None
    assert "signal 9" in found.reason
    assert examiner.examine(checkpoint, frozenset({"other"})).is_whole is True
    assert _pid(examiner) != dead.pid


def test_a_failure_in_the_other_tasks_is_an_error(checkpoint: Path) -> None:
    """A comparison and a flip have no unknown outcome: usage errors come back as such, a lost child is ours."""
    with Examiner(deadline_s=30) as examiner:
        with pytest.raises(UsageError, match="cannot be compared"):
            examiner.compare(checkpoint, checkpoint.with_name("missing.pt"))
        with pytest.raises(UsageError, match="can be flipped"):
            examiner.flip_bit(checkpoint.with_name("missing.pt"))
    with Examiner(deadline_s=0.0) as examiner, pytest.raises(HarnessError, match="longer than 0 s"):
        examiner.compare(checkpoint, checkpoint)


def test_a_python_that_cannot_start_is_told_with_its_last_words(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that ends at once leaves its last line in the reason; no child at all is our failure."""
    monkeypatch.setattr("chaos.checkpoints.child.COMMAND", (sys.executable, "-c", "raise SystemExit('no luck')"))
    with Examiner() as examiner:
        found = examiner.examine(checkpoint)
        assert found.is_whole is None
        assert "exit status 1: no luck" in found.reason
    monkeypatch.setattr("chaos.checkpoints.child.COMMAND", ("/nonexistent/python",))
    with Examiner() as examiner, pytest.raises(HarnessError, match="cannot be started"):
        examiner.examine(checkpoint)


def test_an_answer_that_is_none_is_not_believed(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is no reply ends the child and leaves the file unjudged."""
    code = "import sys; sys.stdin.readline(); print('hello', flush=True); sys.stdin.readline()"
    monkeypatch.setattr("chaos.checkpoints.child.COMMAND", (sys.executable, "-c", code))
    with Examiner() as examiner:
        assert "cannot be read" in examiner.examine(checkpoint).reason
        assert examiner._child is None


def test_unchanged_files_are_not_read_again(
    examiner: Examiner, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look comes from the cache; a change of content, length, times or of the excluded names does not."""
    monkeypatch.setattr(process_module, "SETTLED_NS", 0)
    asked: list[Request] = []
    true_ask = examiner._ask

    def ask(request: Request) -> object:
        """Note each request that reaches the child."""
        asked.append(request)
        return true_ask(request)

    monkeypatch.setattr(examiner, "_ask", ask)
    first = examiner.examine(checkpoint)
    assert examiner.examine(checkpoint) is first
    assert len(asked) == 1
    assert examiner.examine(checkpoint, frozenset({"step"})).digest != first.digest
    assert len(asked) == 2
    data = checkpoint.read_bytes()
    status = checkpoint.stat()
    checkpoint.write_bytes(data[:-1] + b"\xff")
    os.utime(checkpoint, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert examiner.examine(checkpoint) != first
    other = checkpoint.with_name("new.pt")
    torch.save({"w": torch.ones(3), "step": 2}, other)
    other.replace(checkpoint)
    assert examiner.examine(checkpoint).digest != first.digest
    checkpoint.unlink()
    assert examiner.examine(checkpoint).reason == "missing"
    assert len(asked) == 5


def test_a_file_that_changed_just_now_is_not_cached(examiner: Examiner, tmp_path: Path) -> None:
    """Within one tick of the file system's clock two contents of one length look alike: both are read."""
    path = tmp_path / "a.json"
    digests = set()
    for number in range(5):
        path.write_text(f"[{number}]")
        digests.add(examiner.examine(path).digest)
    assert len(digests) == 5


def test_the_cache_is_bounded(examiner: Examiner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest examination makes room."""
    monkeypatch.setattr(process_module, "SETTLED_NS", 0)
    monkeypatch.setattr(process_module, "CACHED_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.json").write_text("{}")
        examiner.examine(tmp_path / f"{number}.json")
    assert len(examiner._cache) == 3


def test_the_child_ends_with_its_input() -> None:
    """A child whose supervisor is gone reads the end of its standard input and exits with status 0."""
    done = subprocess.run(
        [*COMMAND, str(1 << 30), str(os.getpid())],
        input=b"",
        env=child_environment(),
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_child_that_computes_for_nobody_ends_by_itself(tmp_path: Path) -> None:
    """The deadline holds inside the child too, should the supervisor not be there to enforce it."""
    # The key is a tuple doubled 60 times: to hash it takes for ever.
    (tmp_path / "slow.pkl").write_bytes(b"\x80\x02}K\x01" + b"\x85q\x000h\x00h\x00\x86" * 60 + b"Ns.")
    child = Child(1 << 30)
    try:
        request = Request(task=Task.EXAMINE, path=os.fsencode(tmp_path / "slow.pkl"), deadline_s=0.1)
        with pytest.raises(ChildLostError, match="signal 14"):
            child.ask(request, 30.0)
    finally:
        child.close()


def _open_descriptors() -> int:
    """Count the descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def _die_inside(examiner: Examiner, checkpoint: Path) -> int:
    """Leave the examiner's `with` by an exception, and return the id of the child that it had."""
    pid = 0
    with suppress(RuntimeError), examiner:
        examiner.examine(checkpoint)
        pid = _pid(examiner)
        raise RuntimeError
    return pid


def test_nothing_is_left_behind(checkpoint: Path) -> None:
    """After the `with`, in good and in bad days, the child is gone and no descriptor is open."""
    before = _open_descriptors()
    with Examiner() as examiner:
        examiner.examine(checkpoint)
        pid = _pid(examiner)
    assert not psutil.pid_exists(pid)
    pid = _die_inside(Examiner(), checkpoint)
    assert pid
    assert not psutil.pid_exists(pid)
    assert _open_descriptors() == before


def test_an_interrupt_does_not_leave_the_child_out_of_step(
    examiner: Examiner, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control-C while waiting ends that child; the next answer belongs to the next question."""
    examiner.examine(checkpoint)

    def interrupt(*_: object) -> bytes:
        """Stand for Control-C."""
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Child, "_receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            examiner.examine(checkpoint, frozenset({"x"}))
    assert examiner.examine(checkpoint.parent / "none").reason == "missing"
    assert isinstance(examiner.examine(checkpoint), Examination)


def test_the_way_in_imports_neither_numpy_nor_torch() -> None:
    """The supervisor's own imports stay small."""
    code = "import sys, chaos.checkpoints.process; print(sorted({'numpy', 'torch'} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=child_environment(), capture_output=True, timeout=30, check=True
    )
    assert done.stdout == b"[]\n"


def test_a_busy_child_ends_with_its_parent(tmp_path: Path) -> None:
    """A parent that is killed takes a child along that is deep in a computation, long before the deadline of that."""
    (tmp_path / "slow.pkl").write_bytes(b"\x80\x02}K\x01" + b"\x85q\x000h\x00h\x00\x86" * 60 + b"Ns.")
    code = (
        "import sys; from pathlib import Path; from chaos.checkpoints.process import Examiner;"
        "examiner = Examiner(deadline_s=600); examiner.examine(Path('/nonexistent'));"
        "print(examiner._child.pid, flush=True); examiner.examine(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-P", "-c", code, str(tmp_path / "slow.pkl")]
    with subprocess.Popen(command, env=child_environment(), stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        descriptor = os.pidfd_open(child)
        try:
            _wait_until_busy(child)
            parent.kill()
            ended, _, _ = select.select([descriptor], [], [], 20)
        finally:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)
    assert ended


def _wait_until_busy(pid: int) -> None:
    """Wait until a process has computed for as long as a request for nothing does not take."""
    process = psutil.Process(pid)
    deadline = time.monotonic() + 30
    begin = process.cpu_times().user
    while process.cpu_times().user < begin + 0.5:
        assert time.monotonic() < deadline


def test_a_child_whose_parent_is_another_does_not_begin() -> None:
    """One that was started by a process which is gone before it looked ends at once."""
    request = msgspec.json.encode(Request(task=Task.EXAMINE, path=b"/nonexistent", deadline_s=5.0)) + b"\n"
    for parent, answers in ((os.getpid(), 1), (os.getpid() + 1, 0)):
        done = subprocess.run(
            [*COMMAND, str(1 << 30), str(parent)], input=request, env=child_environment(), capture_output=True,
            timeout=30, check=True,
        )  # fmt: skip
        assert done.stdout.count(b"\n") == answers
