"""The order of several writers is the reference's, and no two writers wait for each other for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaos.address import Locator
from chaos.lives.order import Order
from chaos.model import Operation, OperationKind, SaveProfile, Target, TargetProfile

TARGET = Target(command=("x",), resume_command=("x",), checkpoints=("left", "right"), final=())


def operation(file: str, call: str, thread: int) -> Operation:
    """Return one file operation."""
    return Operation(index=0, kind=OperationKind.FILE, call=call, path=file, thread=thread, creates=call == "openat")


LEFT = [operation("left", call, 1) for call in ("openat", "write", "write", "fsync")]
RIGHT = [operation("right", call, 2) for call in ("openat", "write", "fsync")]
REFERENCE = [LEFT[0], RIGHT[0], RIGHT[1], LEFT[1], LEFT[2], RIGHT[2], LEFT[3]]


def profile(*, has_several_writers: bool = True) -> TargetProfile:
    """Return what the reference taught: one save, written by two threads in this order."""
    locator = Locator(TARGET, TargetProfile(), is_first_life=True)
    addresses = tuple(address for o in REFERENCE if (address := locator.locate(o).address) is not None)
    save = SaveProfile(ordinal=1, ticks_before=0, addresses=addresses, has_several_writers=has_several_writers)
    return TargetProfile(saves=(save,))


def served(picks: list[bool]) -> list[Operation]:
    """Serve both threads, each waiting for its own call; `picks` says whose comes first where both could."""
    taught = profile()
    order, locator = Order(taught), Locator(TARGET, taught, is_first_life=True)
    threads = [list(LEFT), list(RIGHT)]
    held: list[Operation] = []
    done: list[Operation] = []
    choices = iter(picks)
    while threads[0] or threads[1] or held:
        waiting = {o.thread for o in held}
        free = [thread for thread in threads if thread and thread[0].thread not in waiting]
        if free:
            held.append(free[-1 if next(choices, False) else 0].pop(0))
        ready = next((o for o in held if order.rank(locator, o) is None), None)
        if ready is not None:
            held.remove(ready)
            order.note(locator.locate(ready).address)
            done.append(ready)
        else:
            assert free, "all wait for each other"
    return done


@given(st.lists(st.booleans(), max_size=12))
def test_whoever_comes_first_the_order_is_the_references(picks: list[bool]) -> None:
    """For every race of two threads the calls happen in the recorded order, and all of them happen."""
    assert served(picks) == REFERENCE


def test_a_save_by_one_thread_is_not_ordered() -> None:
    """There is nothing to keep where only one thread wrote."""
    assert Order(profile()).is_needed
    assert not Order(profile(has_several_writers=False)).is_needed


def test_an_operation_that_the_reference_did_not_have_may_go() -> None:
    """Nobody can say what a new operation has to wait for."""
    taught = profile()
    order, locator = Order(taught), Locator(TARGET, taught, is_first_life=True)
    assert order.rank(locator, operation("left", "ftruncate", 1)) is None
