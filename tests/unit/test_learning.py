"""What two references teach, on small operation logs written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.learning import MAX_BESIDE_FILES, MAX_TEARS, learn, plannable_points
from chaos.model import Operation, OperationKind, Phase, PlannablePoint, Target, TargetProfile

TARGET = Target(command=("true",), resume_command=("true",), checkpoints=("c*.pt", "k-*"), final=("w.pt",))
TICK = Operation(index=0, kind=OperationKind.TICK, call="tick")


def file(call: str, path: str, new_path: str = "", *, creates: bool = False, thread: int = 0) -> Operation:
    """Return a file operation."""
    kind = OperationKind.FILE
    return Operation(index=0, kind=kind, call=call, path=path, new_path=new_path, creates=creates, thread=thread)


def write(path: str, offset: int, size_bytes: int) -> Operation:
    """Return a data write."""
    kind = OperationKind.FILE
    return Operation(index=0, kind=kind, call="write", path=path, offset=offset, size_bytes=size_bytes)


def out(text: str, stream: str = "stdout") -> Operation:
    """Return a write of output."""
    return Operation(index=0, kind=OperationKind.OUTPUT, call="write", stream=stream, text=text)


def learnt(log_a: list[Operation], log_b: list[Operation]) -> tuple[TargetProfile, tuple[PlannablePoint, ...]]:
    """Return profile and points."""
    profile = learn(TARGET, log_a, log_b)
    return profile, plannable_points(TARGET, profile, log_a, log_b)


def test_nothing_teaches_nothing() -> None:
    """Two empty logs give an empty profile and no points."""
    assert learnt([], []) == (TargetProfile(), ())


def test_a_habit_must_show_in_both_references() -> None:
    """Ticks or acknowledgements of only one run are not relied on."""
    profile, _ = learnt([TICK, out("step 1\n"), out("saved step 1\n")], [out("step 1\n")])
    assert not profile.uses_ticks
    assert not profile.prints_acknowledgements
    assert profile.has_steps
    assert (profile.total_steps, profile.last_step) == (1, 1)


def test_temporaries_are_followed_through_chains_of_renames() -> None:
    """What becomes a checkpoint by two renames is a temporary; what becomes only a final file begins no save."""
    log = [
        TICK,
        file("rename", "w.1", "w.2"),
        file("rename", "w.2", "w.pt"),
        file("rename", "both", "w.pt"),
        TICK,
        file("rename", "a.1", "a.2"),
        file("linkat", "a.2", "c.pt"),
        file("rename", "both", "c.pt"),
        file("rename", "/tmp/x", "c.pt"),  # noqa: S108 a name in a log
        file("rename", "x", "y"),
        file("symlink", "z", "c.pt"),
    ]
    profile, _ = learnt(log, log)
    assert profile.temporaries == ("a.1", "a.2", "both", "w.1", "w.2")
    assert profile.final_temporaries == ("w.1", "w.2")


def test_a_temporary_folder_takes_along_what_is_in_it() -> None:
    """Files in a folder that is renamed to a checkpoint are part of the save, which the rename publishes."""
    log = [TICK]
    for step in ("10", "20", "30"):
        log += [
            file("mkdir", f"tmp-{step}"),
            file("openat", f"tmp-{step}/model", creates=True),
            write(f"tmp-{step}/model", 0, 100),
            file("rename", f"tmp-{step}", f"k-{step}"),
            file("openat", "latest", creates=True),
            TICK,
        ]
    profile, points = learnt(log, log)
    assert profile.temporaries == ("tmp-{step}",)
    assert [str(address) for address in profile.saves[1].addresses] == [
        "save 2: mkdir #1 of tmp-{step}",
        "save 2: openat #1 of tmp-{step}/model",
        "save 2: write #1 of tmp-{step}/model",
        "save 2: rename #1 of k-{step}",
    ]
    assert [save.publish for save in profile.saves] == [3, 3, 3]
    assert sum(point.phase is Phase.SAVE for point in points) == 12


@pytest.mark.parametrize(
    ("operations", "publish"),
    [
        ([file("openat", "c.pt", creates=True), write("c.pt", 0, 9), write("c.pt", 9, 9), file("fsync", "c.pt")], 2),
        ([write("c.tmp", 0, 9), file("rename", "c.tmp", "c.pt"), file("openat", "w.pt", creates=True)], 1),
        ([file("linkat", "c.pt", "c1.pt"), write("c.tmp", 0, 9), file("rename", "c.tmp", "c.pt")], 2),
        ([file("rename", "k-1/x", "k-1/a"), write("k-1/b", 0, 9), file("unlink", "k-0/a")], 1),
        ([file("unlink", "c.pt"), file("unlink", "c1.pt")], 1),
    ],
)
def test_a_save_is_published_by_what_last_puts_a_checkpoint_in_place(operations: list[Operation], publish: int) -> None:
    """A rename, a link or a data write: the last one in the save; what follows it is published."""
    log = [TICK, *operations, TICK]
    profile, points = learnt([*log, file("rename", "c.tmp", "c.pt")], [*log, file("rename", "c.tmp", "c.pt")])
    assert profile.saves[0].publish == publish
    first = [point for point in points if point.address.save == 1]
    assert [point.is_published for point in first] == [i > publish for i in range(len(first))]


def test_files_beside_can_be_struck_and_torn_but_do_not_publish() -> None:
    """What follows the checkpoint's rename is published, though files beside are written before and after it."""
    save = [
        file("openat", "c.tmp", creates=True),
        write("rng.bin", 0, 10000),
        file("rename", "c.tmp", "c.pt"),
        file("openat", "latest", creates=True),
        write("latest", 0, 7),
    ]
    log = [write("latest", 0, 7), TICK, *save, TICK, write("latest", 0, 7), TICK]
    profile, points = learnt(log, log)
    assert (len(profile.saves[0].addresses), profile.saves[0].publish) == (2, 1)
    assert [(point.address.file, point.is_published, point.tears) for point in points if point.address.save] == [
        ("c.tmp", False, ()),
        ("rng.bin", False, (4096, 8192)),
        ("c.pt", False, ()),
        ("latest", True, ()),
    ]
    assert {point.address.save for point in points if point.address.file == "latest"} == {1}


@pytest.mark.parametrize(
    ("beside", "planned"),
    [
        ([file("openat", "latest", creates=True), write("latest", 0, 7)], ["write"]),
        ([file("openat", "latest"), write("latest", 0, 7), file("fsync", "latest")], ["fsync"]),
        ([file("openat", "new", creates=True), write("new", 0, 7), file("rename", "new", "latest")], []),
        ([file("unlink", "latest"), file("symlink", "latest")], ["symlink"]),
        ([write("rng-1", 0, 7), write("rng-1", 7, 7), file("openat", "latest", creates=True)], []),
    ],
)
def test_a_pointer_that_still_names_the_save_before_is_not_struck(beside: list[Operation], planned: list[str]) -> None:
    """To resume from there would be right, and nobody can tell: only where the last file beside is being changed."""
    log = [TICK, file("openat", "c.tmp", creates=True), file("rename", "c.tmp", "c.pt"), *beside, TICK]
    _, points = learnt(log, log)
    assert [point.address.call for point in points if point.is_published] == planned


def test_many_files_beside_do_not_crowd_out_the_checkpoints() -> None:
    """Of files that differ in numbers only one a save is struck, and of others no more than a few."""
    samples = [write(f"sample-{i}.txt", 0, 1) for i in range(50)]
    others = [write(f"{'x' * length}.txt", 0, 1) for length in range(1, 50)]
    log = [TICK, *[file("openat", "c.pt", creates=True), *samples, *others, write("c.pt", 0, 1), TICK] * 2]
    _, points = learnt(log, log)
    for save in (1, 2):
        files = [point.address.file for point in points if point.address.save == save]
        assert files == ["c.pt", "sample-0.txt", *(f"{'x' * n}.txt" for n in range(1, MAX_BESIDE_FILES)), "c.pt"]


def test_several_writers_are_noted() -> None:
    """A save that two threads wrote is marked, another is not."""
    log = [
        TICK,
        file("openat", "c.pt", creates=True),
        file("write", "c1.pt", thread=1),
        TICK,
        file("write", "c.pt"),
        TICK,
    ]
    profile, _ = learnt(log, log)
    assert [save.has_several_writers for save in profile.saves] == [True, False]


def test_only_what_both_references_did_once_and_alike_is_plannable() -> None:
    """An operation of one run only, or one in another phase there, is nothing to aim at."""
    log_a = [out("hi\n"), TICK, out("a\n"), out("only here\n"), TICK, out("end\n")]
    log_b = [out("hi\n"), TICK, out("a\n"), TICK, out("end\n")]
    _, points = learnt(log_a, log_b)
    assert [f"{point.phase} {point.address} {point.position}" for point in points] == [
        "startup after 0 steps: write #1 of stdout 0",
        "startup after 0 steps: tick #1 0",
        "step after 1 steps: write #1 of stdout 1",
        "step after 1 steps: tick #1 1",
        "finish after 2 steps: write #1 of stdout 2",
    ]


def test_what_was_in_another_phase_in_the_other_reference_is_not_plannable() -> None:
    """A mark that one run passed before its last step line, and the other after it, has no phase to be drawn for."""
    mark, last = Operation(index=0, kind=OperationKind.MARK, call="evaluation"), out("step 2\n")
    _, points = learnt([TICK, TICK, last, mark], [TICK, TICK, mark, last])
    assert [str(point.address) for point in points if point.position == 2] == ["after 2 steps: write #1 of stdout"]


@given(*[st.tuples(st.integers(0, 3 * 10**6), st.integers(0, 3 * 10**6))] * 2)
def test_tears_are_page_boundaries_strictly_inside_both_writes(first: tuple[int, int], second: tuple[int, int]) -> None:
    """A write is torn where it can be in both references: at all boundaries if few, at some from end to end if many."""
    logs = [[TICK, write("c.pt", offset, size), TICK] for offset, size in (first, second)]
    [point] = [point for point in learnt(*logs)[1] if point.phase is Phase.SAVE]
    tears, ends = point.tears, [offset + size for offset, size in (first, second)]
    assert range(point.start, point.end) == range(max(first[0], second[0]), min(ends))
    inside = [page for page in range(0, min(ends), 4096) if max(first[0], second[0]) < page]
    assert set(tears) <= set(inside)
    assert len(tears) == min(len(inside), MAX_TEARS)
    assert list(tears) == sorted(set(tears))
    assert tears[:1] == tuple(inside[:1])
    assert tears[-1:] == tuple(inside[-1:])


def test_output_and_sizes_of_other_calls_are_not_torn() -> None:
    """Only data writes to files have tears."""
    big = Operation(index=0, kind=OperationKind.OUTPUT, call="write", stream="stdout", text="x", size_bytes=10**6)
    allocate = Operation(index=0, kind=OperationKind.FILE, call="fallocate", path="c.pt", size_bytes=10**6)
    log = [TICK, big, allocate, TICK]
    assert all(not point.tears and point.start == point.end for point in learnt(log, log)[1])
