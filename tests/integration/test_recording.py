"""What is recorded of a life gives, without running it again, exactly the folder that a real SIGKILL leaves."""

# ruff: noqa: PTH115, PTH116, PTH118, PTH123 - names in a folder are bytes

from __future__ import annotations

import json
import os
import random
import resource
import select
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chaos.errors import HarnessError
from chaos.intercept.filter import build_filter
from chaos.intercept.recorder import Recorder
from chaos.intercept.session import Session
from chaos.intercept.syscalls import this_machine
from chaos.lives.intercepted import launch_plan
from chaos.lives.request import LifeRequest, prepare_folder
from chaos.lives.starters import FreshStarter
from chaos.lives.temporary import temporary_folder
from chaos.model import Operation, OperationKind
from chaos.states.building import build
from chaos.states.changes import Durability, Synced, Wrote, to_text
from chaos.states.log import StateAt
from chaos.states.recorder import FolderRecorder
from chaos.states.recording import Recording

NUMBERS = json.dumps(this_machine().numbers)
SCRIPTS = (
    ("nameless",),
    ("replaced",),
    ("unlinked",),
    ("appended",),
    ("holes",),
    ("disordered",),
    ("interleaved",),
    ("exchanged",),
    ("folders",),
    ("transferred",),
    ("described",),
    ("across",),
    ("in_place", "in_place"),
)


def seen(out: Path) -> dict[bytes, object]:
    """Return all that can be seen in a folder: kinds, modes, contents, texts of links, and which names share a file."""
    found: dict[bytes, object] = {b".": oct(out.stat().st_mode)}
    names: dict[tuple[int, int], list[bytes]] = {}
    for base, folders, files in os.walk(os.fsencode(out)):
        for name in (*folders, *files):
            path = os.path.join(base, name)
            state = os.stat(path, follow_symlinks=False)
            content: object = None
            if stat.S_ISLNK(state.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(state.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            relative = os.path.relpath(path, os.fsencode(out))
            found[relative] = oct(state.st_mode), content
            names.setdefault((state.st_dev, state.st_ino), []).append(relative)
    found[b"links"] = sorted(sorted(group) for group in names.values() if len(group) > 1)
    return found


def times(out: Path) -> dict[bytes, int]:
    """Return the modification time of everything in a folder."""
    found = {b".": out.stat().st_mtime_ns}
    for base, folders, files in os.walk(os.fsencode(out)):
        for name in (*folders, *files):
            path = os.path.join(base, name)
            found[os.path.relpath(path, os.fsencode(out))] = os.stat(path, follow_symlinks=False).st_mtime_ns
    return found


@dataclass(kw_only=True)
class Calls:
    """Runs lives of a script with or without a recorder, struck at the operation of a number."""

    runner: Any

    def new_out(self) -> Path:
        """Make an output folder."""
        return self.runner.new_out()

    def run(
        self, out: Path, *, recorder: Recorder | None = None, strike: StateAt | None = None
    ) -> tuple[Operation, ...]:
        """Run one life and return its log."""
        request = LifeRequest(
            number=1,
            command=self.runner.target.command,
            target=self.runner.target,
            profile=self.runner.profile,
            folder=str(out.parent / f"life-{len(list(out.parent.glob('life-*')))}"),
            out=str(out),
            hash_seed=1,
            deadline_s=30,
        )
        sinks = prepare_folder(request)
        with temporary_folder() as temporary:
            plan = launch_plan(request, sinks, temporary, program=build_filter(this_machine()).hex())
            with FreshStarter().start(plan) as process:
                session = Session(
                    process.listener_fd,
                    root_pid=process.root_pid,
                    out=out,
                    sinks=sinks,
                    private=(Path(request.folder), temporary),
                    is_killable_only=process.is_killable_only,
                    recorder=recorder,
                )
                try:
                    serve(process, session, strike)
                finally:
                    session.close()
                error = sinks.stderr.read_text()
                assert strike or process.root_status == 0, error
        return tuple(session.log)


def serve(process: Any, session: Session, strike: StateAt | None) -> None:
    """Answer calls until the life ends, or to the one that it is struck at: then kill all of it."""
    poll = select.poll()
    poll.register(session.fd, select.POLLIN)
    poll.register(process.channel_fd, select.POLLIN)
    while not process.is_childless:
        for fd, event in poll.poll(30_000):
            if fd == process.channel_fd:
                process.read_event()
            elif not event & select.POLLIN:
                poll.unregister(fd)
            elif (pending := session.receive()) is not None:
                if strike is None or pending.operation.index != strike.index:
                    session.commit(pending)
                    continue
                if strike.tear_offset is not None:
                    session.tear(pending, strike.tear_offset)
                process.kill()
                return
    process.kill()


@pytest.fixture
def calls(lives: Callable[..., Any]) -> Callable[..., Calls]:
    """Give a maker of recorded lives of functions of the script."""

    def make(*how: str, script: str = "recorded.py") -> Calls:
        return Calls(runner=lives(script, NUMBERS, *how))

    return make


def record(
    life: Calls, out: Path, base: tuple[Path, StateAt] | None = None, strike: StateAt | None = None
) -> tuple[Path, tuple[Operation, ...]]:
    """Run a life recorded, check that the recording explains all of its folder, and return where it is."""
    folder = out.parent / f"recording-{len(list(out.parent.glob('recording-*')))}"
    with FolderRecorder(folder, out, base=base) as recorder:
        log = life.run(out, recorder=recorder, strike=strike)
        assert recorder.finish() == ()
    return folder, log


def told(log: tuple[Operation, ...]) -> list[tuple[object, ...]]:
    """Return what is the same in every run: not the number that stands for the name of a file without one."""
    return [
        (operation.kind, operation.call, operation.thread, operation.offset, operation.size_bytes, operation.creates)
        for operation in log
    ]


def states(recording: Recording, log: tuple[Operation, ...]) -> Iterator[StateAt]:
    """Yield the states before each operation on files, with all tears, and the one at the end."""
    for operation in log:
        if operation.kind is OperationKind.FILE:
            yield StateAt(index=operation.index)
            yield from (StateAt(index=operation.index, tear_offset=tear) for tear in few(recording, operation.index))


def end_of(folder: Path) -> StateAt:
    """Return the state after a recorded life."""
    with Recording(folder) as recording:
        return recording.end


def few(recording: Recording, index: int) -> set[int]:
    """Return the first, a middle and the last offset at which an operation can be torn."""
    tears = recording.tears(index)
    return {tears[0], tears[len(tears) // 2], tears[-1]} if tears else set()


def built(recording: Recording, state: StateAt, out: Path) -> dict[bytes, object]:
    """Build a state in a new folder and return what can be seen there."""
    out.mkdir(parents=True)
    tree = recording.tree_at(state)
    build(tree, out, recording.store)
    assert times(out) == {name: tree_time(recording, state, name) for name in times(out)}
    return seen(out)


def tree_time(recording: Recording, state: StateAt, name: bytes) -> int:
    """Return the modification time that a recording gives a name."""
    node = recording.tree_at(state).find(to_text(name))
    assert node is not None
    return node.modified_ns


@pytest.mark.parametrize("how", SCRIPTS, ids=lambda how: how[0])
def test_built_states_are_those_that_a_kill_leaves(calls: Callable[..., Calls], tmp_path: Path, how: str) -> None:
    """At every operation of a run, and torn within its writes: what is built is what a real SIGKILL there leaves."""
    life = calls(*how)
    folder, log = record(life, life.new_out())
    compared = 0
    with Recording(folder) as recording:
        digests = {walked.state: walked.digest for walked in recording.walk(has_all_tears=True)}
        for state in states(recording, log):
            out = life.new_out()
            assert told(life.run(out, strike=state)) == told(log[: state.index]), state
            assert built(recording, state, tmp_path / f"built-{compared}") == seen(out), state
            assert recording.tree_at(state).state_digest() == digests[state]
            compared += 1
    assert compared > 5


def test_a_recording_may_go_on_from_a_state_of_another(calls: Callable[..., Calls], tmp_path: Path) -> None:
    """Second lives in killed folders, torn ones too: at every operation the built state is what a kill leaves."""
    life, second = calls("replaced"), calls("replaced", "in_place")
    first_folder, log = record(life, life.new_out())
    with Recording(first_folder) as first:
        torn = next(state for state in states(first, log) if state.tear_offset is not None)
    for start, every in ((StateAt(index=9), 4), (torn, 1)):
        killed = life.new_out()
        life.run(killed, strike=start)
        folder, log = record(second, killed, base=(first_folder, start))
        with Recording(folder) as recording:
            digests = {walked.state: walked.digest for walked in recording.walk(has_all_tears=True)}
            for number, state in enumerate(list(states(recording, log))[::every]):
                out = life.new_out()
                life.run(out, strike=start)
                second.run(out, strike=state)
                assert built(recording, state, tmp_path / f"built-{start.index}-{number}") == seen(out), state
                assert recording.tree_at(state).state_digest() == digests[state]


def test_what_a_recovery_writes_again_is_not_stored_again(calls: Callable[..., Calls], tmp_path: Path) -> None:
    """A life on a built state, and one on a state of that, find their bytes in the recordings before."""
    life, out = calls("replaced"), tmp_path / "again" / "out"
    first, _ = record(life, life.new_out())
    assert (first / "content.bin").stat().st_size > 27000
    with Recording(first) as recording:
        out.mkdir(parents=True)
        build(recording.tree_at(StateAt(index=8)), out, recording.store)
    second, _ = record(life, out, base=(first, StateAt(index=8)))
    third, _ = record(life, out, base=(second, end_of(second)))
    assert [(folder / "content.bin").stat().st_size for folder in (second, third)] == [0, 0]
    with Recording(third) as recording:
        assert built(recording, recording.end, tmp_path / "built") == seen(out)


def test_a_life_that_is_struck_is_recorded_up_to_there(calls: Callable[..., Calls], tmp_path: Path) -> None:
    """The recording of a killed life ends where it was killed, a torn write included."""
    life = calls("disordered")
    folder, log = record(life, life.new_out())
    with Recording(folder) as recording:
        chosen = list(states(recording, log))
        for number, state in enumerate(chosen[:: max(len(chosen) // 6, 1)]):
            out = life.new_out()
            struck, _ = record(life, out, strike=state)
            with Recording(struck) as other:
                is_torn = state.tear_offset is not None
                assert other.num_operations == state.index + is_torn
                assert built(other, other.end, tmp_path / f"built-{number}") == seen(out)
                assert other.tree_at(other.end).digest() == recording.tree_at(state).digest()


def test_what_was_in_the_folder_is_part_of_the_recording(calls: Callable[..., Calls], tmp_path: Path) -> None:
    """Without a base all kinds of files that are there already are stored first."""
    life, out = calls("in_place"), calls("described").new_out()
    for how in (("described",), ("replaced",), ("holes",), ("folders",)):
        calls(*how).run(out)
    before = seen(out)
    folder, _ = record(life, out)
    with Recording(folder) as recording:
        assert built(recording, StateAt(index=0), tmp_path / "before") == before
        assert built(recording, recording.end, tmp_path / "after") == seen(out)


def test_a_change_without_a_call_is_named(calls: Callable[..., Calls], tmp_path: Path) -> None:
    """A file that was changed through a mapping is not explained, and is told by its name."""
    life = calls("mapped")
    out = life.new_out()
    with FolderRecorder(tmp_path / "recording", out) as recorder:
        life.run(out, recorder=recorder)
        assert recorder.finish() == ("mapped",)


@pytest.mark.parametrize("change", ["content", "time", "mode", "added", "removed", "relinked"])
def test_a_folder_that_is_not_as_recorded_is_found_out(
    calls: Callable[..., Calls], tmp_path: Path, change: str
) -> None:
    """Whatever is changed behind the recorder's back is named at the end."""
    life = calls("replaced")
    out = life.new_out()
    with FolderRecorder(tmp_path / "recording", out) as recorder:
        life.run(out, recorder=recorder)
        named = alter(out, change)
        assert set(named) <= set(recorder.finish())


def alter(out: Path, change: str) -> tuple[str, ...]:
    """Change one thing in the folder that a recording is of, and return the names that must be told."""
    state = (out / "twin").stat()
    if change == "content":
        with (out / "twin").open("r+b") as file:
            file.write(b"?")
        os.utime(out / "twin", ns=(state.st_mtime_ns, state.st_mtime_ns))
    elif change == "time":
        os.utime(out / "twin", ns=(1, 1))
    elif change == "mode":
        (out / "twin").chmod(0o600)
    elif change == "added":
        (out / "added").write_bytes(b"")
        return ("added",)
    elif change == "removed":
        (out / "twin").unlink()
    else:
        data, mode = (out / "twin").read_bytes(), state.st_mode
        (out / "twin").unlink()
        (out / "twin").write_bytes(data)
        (out / "twin").chmod(stat.S_IMODE(mode))
        os.utime(out / "twin", ns=(state.st_mtime_ns, state.st_mtime_ns))
    return ("twin",)


def test_a_folder_that_is_not_the_base_is_refused(calls: Callable[..., Calls], tmp_path: Path) -> None:
    """A recording does not go on from a state that the folder is not in."""
    life = calls("replaced")
    folder, _ = record(life, life.new_out())
    other = life.new_out()
    life.run(other)
    (other / "state.prev").write_bytes(b"not so")
    base = folder, end_of(folder)
    with pytest.raises(HarnessError, match=r"not the crash state that it should be: .*state\.prev"):
        FolderRecorder(tmp_path / "second", other, base=base)


def test_syncs_and_durable_writes_are_recorded(calls: Callable[..., Calls]) -> None:
    """What a kill does not ask for is kept for other faults: each sync with its file, and what O_DSYNC promises."""
    for how, expected in (("holes", ["fsync", "fdatasync"]), ("synced", ["sync"])):
        life = calls(how)
        folder, log = record(life, life.new_out())
        with Recording(folder) as recording:
            syncs = [change for change in recording.changes if isinstance(change, Synced)]
            tree = recording.tree_at(recording.end)
        assert [sync.call for sync in syncs] == expected
        files = [tree.paths(tree.node(sync.node)) for sync in syncs if sync.node is not None]
        assert files == [["holes"] for call in expected if call != "sync"]
        indices = [operation.index for operation in log if operation.call in expected]
        assert how == "synced" or [sync.index for sync in syncs] == indices
    life = calls("appended")
    folder, _ = record(life, life.new_out())
    with Recording(folder) as recording:
        writes = [change for change in recording.changes if isinstance(change, Wrote)]
    assert [write.durability for write in writes] == [Durability.NONE] * 5 + [Durability.DATA]


def test_a_child_that_is_killed_leaves_what_it_wrote(calls: Callable[..., Calls], tmp_path: Path) -> None:
    """Processes that end at any time, by themselves, are part of the recording like all others."""
    life = calls("killed")
    out = life.new_out()
    folder, _ = record(life, out)
    with Recording(folder) as recording:
        assert built(recording, recording.end, tmp_path / "built") == seen(out)


def test_a_disk_that_fills_up_ends_the_life_with_a_clear_sentence(calls: Callable[..., Calls], tmp_path: Path) -> None:
    """Where bytes, or a built state, find no room, that is our failure, told as such, and nothing is left running."""
    life, out = calls("replaced"), tmp_path / "built"
    folder, _ = record(life, life.new_out())
    out.mkdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Recording(folder) as recording:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))
        try:
            with pytest.raises(HarnessError, match="no more of a recording or crash state can be stored"):
                build(recording.tree_at(recording.end), out, recording.store)
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (20000, hard)
            )  # each file of the target fits, not all their bytes
            with pytest.raises(HarnessError, match=r"can be stored: .*content\.bin"):
                record(life, life.new_out())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def peak_bytes(field: str) -> int:
    """Return a figure of this process's memory."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) << 10


def test_memory_stays_bounded_for_a_checkpoint_of_2_gb(calls: Callable[..., Calls], tmp_path: Path) -> None:
    """Recording 2 GB, walking through all its states and asking for one takes this process less than 150 MB more."""
    state = os.statvfs(tmp_path)
    if state.f_bavail * state.f_frsize < 10 << 30:
        pytest.skip("2 GB are written twice here: that needs 10 GB of free disk, to be on the safe side")
    life = calls("gigabytes")
    out = life.new_out()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak counts from now
    before = peak_bytes("VmRSS")
    folder, _ = record(life, out)
    with Recording(folder) as recording:
        digests = {walked.digest for walked in recording.walk()}
        end = recording.tree_at(recording.end)
        assert end.find("large").extents.size == 2 << 30
    assert len(digests) > 3 * 256
    assert peak_bytes("VmHWM") - before < 150 << 20
    for path in (out / "large", folder / "content.bin"):
        path.unlink()  # the suite keeps the folders of its last runs


@pytest.mark.parametrize(
    ("script", "arguments"),
    [("calls.py", (NUMBERS,)), *(("saver.py", (how,)) for how in ("main", "native", "forked", "program", "threads"))],
    ids=lambda value: value if isinstance(value, str) else value[0][:8],
)
def test_every_kind_of_call_and_writer_is_explained(
    lives: Callable[..., Any], tmp_path: Path, script: str, arguments: tuple[str, ...]
) -> None:
    """All calls, right and wrong ones, whoever makes them: the recording gives the very folder they left."""
    life = Calls(runner=lives(script, *arguments))
    out = life.new_out()
    folder, _ = record(life, out)
    left = seen(out)
    (out / "socket").unlink(missing_ok=True)  # never built: it is of no use without the one who listens
    left.pop(b"socket", None)
    with Recording(folder) as recording:
        assert built(recording, recording.end, tmp_path / "built") == left
        assert len({walked.digest for walked in recording.walk()}) > 15


@pytest.mark.parametrize("seed", [29, 55, 72, 1, 2, 3])
def test_built_states_of_anything_are_those_that_a_kill_leaves(
    lives: Callable[..., Any], tmp_path: Path, seed: int
) -> None:
    """A hundred calls drawn at random, failing ones too: all explained, and alike at operations drawn from them."""
    life = Calls(runner=lives("anything.py", NUMBERS, str(seed)))
    folder, log = record(life, life.new_out())
    with Recording(folder) as recording:
        digests = {walked.state: walked.digest for walked in recording.walk(has_all_tears=True)}
        for number, state in enumerate(random.Random(seed).sample(list(states(recording, log)), 8)):
            out = life.new_out()
            life.run(out, strike=state)
            assert built(recording, state, tmp_path / f"built-{number}") == seen(out), state
            assert recording.tree_at(state).state_digest() == digests[state]
