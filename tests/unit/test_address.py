"""Addresses, phases, saves and acknowledgements, on operation logs written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.address import Acknowledges, Located, Locator
from chaos.model import (
    FileRole,
    NameRule,
    Operation,
    OperationKind,
    Phase,
    SaveProfile,
    Target,
    TargetProfile,
)

TARGET = Target(
    command=("true",), resume_command=("true",), checkpoints=("c*.pt", "k-*"), final=("w.pt",), ignore=("*.log",)
)
TEMPORARIES = ("c.tmp", "w.tmp")
TICKING = TargetProfile(
    has_steps=True, uses_ticks=True, total_steps=3, temporaries=TEMPORARIES, final_temporaries=("w.tmp",)
)
PRINTING = TargetProfile(
    has_steps=True, prints_acknowledgements=True, total_steps=3, last_step=3, temporaries=TEMPORARIES
)


def file(call: str, path: str, new_path: str = "", *, creates: bool = False, thread: int = 0) -> Operation:
    """Return a file operation."""
    kind = OperationKind.FILE
    return Operation(index=0, kind=kind, call=call, path=path, new_path=new_path, creates=creates, thread=thread)


def out(text: str, *, stream: str = "stdout", thread: int = 0) -> Operation:
    """Return a write of output."""
    return Operation(index=0, kind=OperationKind.OUTPUT, call="write", stream=stream, text=text, thread=thread)


def tick(thread: int = 0) -> Operation:
    """Return an optimizer step."""
    return Operation(index=0, kind=OperationKind.TICK, call="tick", thread=thread)


def mark(name: str) -> Operation:
    """Return a mark."""
    return Operation(index=0, kind=OperationKind.MARK, call=name)


def locate(profile: TargetProfile, *operations: Operation, is_first_life: bool = True) -> list[Located]:
    """Locate operations in their order."""
    locator = Locator(TARGET, profile, is_first_life=is_first_life)
    return [locator.locate(operation) for operation in operations]


def shown(located: list[Located]) -> list[str]:
    """Return phases and addresses in words."""
    return [f"{where.phase} | {where.address or '-'}" for where in located]


def test_a_save_of_a_ticking_target_in_words() -> None:
    """A silent target: the save begins with the temporary's creation and is over at the next tick of its thread."""
    located = locate(
        TICKING,
        mark("interpreter"),
        tick(),
        file("openat", "c.tmp", creates=True),
        file("write", "c.tmp"),
        file("write", "c.tmp"),
        file("fsync", "c.tmp"),
        file("rename", "c.tmp", "c.pt"),
        file("fsync", ""),
        file("write", "train.log"),
        tick(),
        tick(),
        mark("exit"),
    )
    assert shown(located) == [
        "startup | after 0 steps: interpreter #1",
        "startup | after 0 steps: tick #1",
        "save | save 1: openat #1 of c.tmp",
        "save | save 1: write #1 of c.tmp",
        "save | save 1: write #2 of c.tmp",
        "save | save 1: fsync #1 of c.tmp",
        "save | save 1: rename #1 of c.pt",
        "save | -",
        "save | -",
        "step | after 1 steps: tick #1",
        "step | after 2 steps: tick #1",
        "finish | after 3 steps: exit #1",
    ]
    assert located[9].acknowledges == Acknowledges(save=1, step=None, is_printed=False)
    assert [where.acknowledges for where in located if where is not located[9]] == [None] * 11
    assert located[6].role is FileRole.CHECKPOINT
    assert located[6].address is not None
    assert located[6].address.incarnation == 1


def test_a_printed_acknowledgement_is_the_last_operation_of_its_save() -> None:
    """The line that acknowledges belongs to the save, and the newline after it no more."""
    located = locate(
        PRINTING,
        out("step 1"),
        out("\n"),
        file("openat", "c.pt", creates=True),
        out("writing\n"),
        out("saved step 1"),
        out("\n"),
        out("step 2\nstep 3\n"),
        file("openat", "w.pt", creates=True),
    )
    assert shown(located) == [
        "startup | after 0 steps: write #1 of stdout",
        "step | after 1 steps: write #1 of stdout",
        "save | save 1: openat #1 of c.pt",
        "save | save 1: write #1 of stdout",
        "save | save 1: write #2 of stdout",
        "step | after 1 steps: write #2 of stdout",
        "step | after 1 steps: write #3 of stdout",
        "finish | after 3 steps: openat #1 of w.pt",
    ]
    assert located[4].acknowledges == Acknowledges(save=1, step=1, is_printed=True)
    assert sum(where.acknowledges is not None for where in located) == 1


def test_before_the_first_step_nothing_is_a_save() -> None:
    """What a start does to checkpoints is startup or recovery; an acknowledgement there is of no save."""
    operations = (file("unlink", "c.tmp"), file("openat", "c.pt", creates=True), out("saved step 7\n"))
    for is_first_life, phase in ((True, Phase.STARTUP), (False, Phase.RECOVERY)):
        located = locate(PRINTING, *operations, is_first_life=is_first_life)
        assert {where.phase for where in located} == {phase}
        assert [where.address.save for where in located if where.address] == [0, 0, 0]
        assert located[-1].acknowledges == Acknowledges(save=0, step=7, is_printed=True)


def test_without_any_clock_the_first_operation_again_begins_the_next_save() -> None:
    """A target without ticks or lines has saves from its first change on, each begun by the same operation."""
    profile = TargetProfile(saves=(SaveProfile(ordinal=1, ticks_before=0), SaveProfile(ordinal=2, ticks_before=0)))
    save = (file("openat", "c.pt", creates=True), file("openat", "c.pt"), file("write", "c.pt"))
    located = locate(profile, mark("torch"), *save, *save, mark("exit"))
    assert [where.phase for where in located] == [Phase.STARTUP, *[Phase.SAVE] * 6, Phase.FINISH]
    assert [where.address.save for where in located if where.address] == [0, 1, 1, 1, 2, 2, 2, 0]
    assert [i for i, where in enumerate(located) if where.acknowledges] == [4, 7]
    assert located[4].acknowledges == Acknowledges(save=1, step=None, is_printed=False)


def test_a_tick_of_another_thread_ends_a_save_but_acknowledges_nothing() -> None:
    """That training goes on in one thread does not show that the save call of another has returned."""
    located = locate(TICKING, tick(), file("openat", "c.pt", creates=True, thread=1), tick(), tick(1))
    assert [where.acknowledges for where in located] == [None] * 4
    assert located[1].phase is Phase.SAVE


def test_output_of_a_thread_that_trains_on_is_not_part_of_the_save() -> None:
    """While one thread saves, the lines of another are counted by steps, and its own by the save."""
    located = locate(
        PRINTING,
        out("step 1\n"),
        file("openat", "c.pt", creates=True, thread=1),
        out("step 2\n"),
        out("half done\n", thread=1),
        out("lr 0.1\n"),
        file("write", "c.pt", thread=1),
        out("saved step 1\n", thread=0),
    )
    assert shown(located)[2:] == [
        "step | after 1 steps: write #1 of stdout",
        "save | save 1: write #1 of stdout",
        "step | after 2 steps: write #1 of stdout",
        "save | save 1: write #1 of c.pt",
        "save | save 1: write #2 of stdout",
    ]


@pytest.mark.parametrize(
    "operation",
    [
        file("openat", "w.tmp", creates=True),
        file("rename", "w.tmp", "w.pt"),
        file("fsync", "c.pt"),
        file("utimensat", "c.pt"),
        file("fchmod", "c.pt"),
        file("openat", "other.txt", creates=True),
        file("openat", "c.log", creates=True),
        file("openat", "/elsewhere/c.pt", creates=True),
    ],
)
def test_what_changes_no_checkpoint_begins_no_save(operation: Operation) -> None:
    """Final files and their temporaries, syncs, times and modes, and files elsewhere do not begin a save."""
    assert locate(TICKING, tick(), operation)[1].phase is Phase.STEP


@pytest.mark.parametrize(
    ("operation", "key", "role"),
    [
        (file("rename", "c.tmp", "c.pt"), "c.pt", FileRole.CHECKPOINT),
        (file("linkat", "c.pt", "c.tmp"), "c.pt", FileRole.CHECKPOINT),
        (file("rename", "c.pt", "c1.pt"), "c1.pt", FileRole.CHECKPOINT),
        (file("rename", "c.pt", "/trash/x"), "c.pt", FileRole.CHECKPOINT),
        (file("rename", "w.tmp", "w.pt"), "w.pt", FileRole.FINAL),
        (file("rename", "a", "b"), "b", FileRole.OTHER),
    ],
)
def test_a_rename_is_of_its_stronger_name(operation: Operation, key: str, role: FileRole) -> None:
    """The name with the stronger role decides, the new one if they are equal."""
    located = locate(TICKING, tick(), operation)[1]
    assert (located.key, located.role) == (key, role)
    assert (located.address is None) is (role is FileRole.OTHER)


def test_files_beside_belong_to_a_save_of_their_thread() -> None:
    """A pointer has addresses where the saving thread changes it in the save; ignored and distant files never have."""
    located = locate(
        TICKING,
        file("write", "latest"),
        tick(),
        file("write", "latest"),
        file("openat", "c.tmp", creates=True),
        file("openat", "latest", creates=True),
        file("write", "latest"),
        file("write", "events.txt", thread=1),
        file("write", "train.log"),
        file("write", "/elsewhere/latest"),
        file("write", "../latest"),
        file("fsync", ""),
        file("rename", "next", "latest"),
        file("rename", "latest", "/trash/latest"),
        file("rename", "train.log", "old.log"),
        file("openat", "latest", creates=True),
        tick(),
        file("write", "latest"),
    )
    assert [str(where.address) for where in located if where.address and where.role is FileRole.OTHER] == [
        "save 1: openat #1 of latest",
        "save 1: write #1 of latest",
        "save 1: rename #1 of latest (incarnation 2)",
        "save 1: rename #2 of latest (incarnation 2)",
        "save 1: openat #1 of latest (incarnation 3)",
    ]
    assert [i for i, where in enumerate(located) if where.acknowledges] == [15]


def test_incarnations_count_new_files_within_a_save() -> None:
    """A file made anew in the same save has a new incarnation; leftovers of a killed life change nothing."""
    open_new = file("openat", "k-{step}/a", creates=True)
    profile = TargetProfile(has_steps=True, uses_ticks=True, names=(NameRule(pattern=r"k-\d+/a", key="k-{step}/a"),))
    located = locate(
        profile,
        tick(),
        file("mkdir", "k-1"),
        open_new,
        file("write", "k-1/a"),
        file("unlink", "k-1/a"),
        open_new,
        file("write", "k-7/a"),
    )
    addresses = [where.address for where in located[1:] if where.address]
    assert [(a.file, a.incarnation, a.call, a.occurrence) for a in addresses] == [
        ("k-1", 1, "mkdir", 1),
        ("k-{step}/a", 1, "openat", 1),
        ("k-{step}/a", 1, "write", 1),
        ("k-{step}/a", 1, "unlink", 1),
        ("k-{step}/a", 2, "openat", 1),
        ("k-{step}/a", 2, "write", 1),
    ]


def test_standard_error_has_no_address_but_is_read() -> None:
    """Step lines and acknowledgements of a script that logs to standard error count like any other."""
    located = locate(
        PRINTING, out("INFO step 1\n", stream="stderr"), file("write", "c.pt"), out("saved step 1\n", stream="stderr")
    )
    assert [where.address is None for where in located] == [True, False, True]
    assert located[1].phase is Phase.SAVE
    assert located[2].acknowledges == Acknowledges(save=1, step=1, is_printed=True)


def test_the_end_of_a_later_life_is_known_by_step_numbers_or_by_the_exit() -> None:
    """A later life's finish begins after the last step number; without numbers only its exit is known to be the end."""
    numbered = locate(PRINTING, out("step 3\n"), out("done\n"), mark("exit"), is_first_life=False)
    assert [where.phase for where in numbered] == [Phase.RECOVERY, Phase.FINISH, Phase.FINISH]
    silent = locate(TICKING, tick(), out("done\n"), mark("exit"), is_first_life=False)
    assert [where.phase for where in silent] == [Phase.RECOVERY, Phase.STEP, Phase.FINISH]
    early = locate(PRINTING, out("step 2\n"), mark("exit"), is_first_life=False)
    assert early[1].phase is Phase.STEP
    assert locate(TICKING, tick(), mark("exit"))[1].phase is Phase.STEP


def test_the_locator_counts_as_it_goes() -> None:
    """Steps, saves and step numbers are those of the operations so far."""
    locator = Locator(TARGET, PRINTING, is_first_life=True)
    assert (locator.steps, locator.saves, locator.first_step, locator.last_step) == (0, 0, None, None)
    for operation in (out("step 5\n"), out("step 6\n"), file("write", "c.pt")):
        locator.locate(operation)
    assert (locator.steps, locator.saves, locator.first_step, locator.last_step) == (2, 1, 5, 6)
    assert locator.is_in_save
    locator.locate(out("saved step 6\n"))
    assert not locator.is_in_save


def test_a_line_of_another_thread_between_a_print_and_its_newline_is_seen_in_place() -> None:
    """The same in a life: the step counts, and the save is over."""
    located = locate(
        PRINTING,
        out("step 1\n"),
        file("openat", "c.pt", creates=True, thread=1),
        out("step 2 loss 1"),
        out("saved step 1", thread=1),
        out("\n"),
        out("\n", thread=1),
        out("step 3\n"),
        out("done\n"),
    )
    assert located[3].acknowledges == Acknowledges(save=1, step=1, is_printed=True)
    assert located[-1].phase is Phase.FINISH


OPERATIONS = st.builds(
    Operation,
    index=st.just(0),
    kind=st.sampled_from(OperationKind),
    call=st.sampled_from(["openat", "write", "rename", "mkdir", "tick", "exit", "fsync", ""]),
    thread=st.integers(0, 2),
    path=st.sampled_from(["c.pt", "c.tmp", "w.pt", "w.tmp", "x", "", "/", "k-1/a", "\x00\ud800"]),
    new_path=st.sampled_from(["", "", "c.pt", "w.tmp"]),
    creates=st.booleans(),
    stream=st.sampled_from(["stdout", "stderr", ""]),
    text=st.sampled_from(["", "\n", "step 1", "step 2\n", "saved step 2", "\r", "\ud800"]),
)
PROFILES = [TICKING, PRINTING, TargetProfile(), TargetProfile(prints_acknowledgements=True)]


@given(st.lists(OPERATIONS, max_size=40), st.sampled_from(PROFILES), st.booleans())
def test_addresses_are_unique_and_phases_follow_from_them(
    operations: list[Operation],
    profile: TargetProfile,
    is_first_life: bool,  # noqa: FBT001 drawn by hypothesis
) -> None:
    """Whatever happens, nothing raises, no address comes twice, and only addresses in a save are in phase `save`."""
    located = locate(profile, *operations, is_first_life=is_first_life)
    addresses = [where.address for where in located if where.address is not None]
    assert len(set(addresses)) == len(addresses)
    assert all((where.address.save > 0) is (where.phase is Phase.SAVE) for where in located if where.address)
    begun = [where.phase for where in located if where.phase in {Phase.STARTUP, Phase.RECOVERY}]
    assert set(begun) <= {Phase.STARTUP if is_first_life else Phase.RECOVERY}


def test_an_empty_temporary_file_is_part_of_its_save() -> None:
    """`mkstemp` makes the file and the writer opens it anew: one save; the same again after content is one more."""
    save = (
        file("openat", "c.tmp", creates=True),
        file("openat", "c.tmp", creates=True),
        file("write", "c.tmp"),
        file("rename", "c.tmp", "c.pt", creates=True),
    )
    located = locate(TICKING, tick(), *save, *save)
    assert [where.address.save for where in located[1:] if where.address] == [1, 1, 1, 1, 2, 2, 2, 2]
