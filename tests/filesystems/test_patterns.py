"""Every image of a save cut on a real file system is in the durability model's set; and that set is no larger.

The thorough run of the same is `python tests/filesystems`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # its parts are no package of the suite

from cutting.bench import Bench, in_memory
from cutting.examining import LARGE_BYTES, SMALL_BYTES, Effort, examine
from cutting.looking import contents_of
from cutting.patterns import PATTERNS, Corner, Fate, Promise
from cutting.promises import hold_against
from cutting.saving import run_save
from cutting.schedules import QUICK
from cutting.warmth import torch_starter

from chaos.images import DEFAULT_KINDS, find_usable, mounted, parse_kind
from chaos.lives.starters import Starter
from chaos.model import FileSystem
from chaos.states.durability import admits
from chaos.states.recording import Recording

KINDS = [str(kind) for kind in DEFAULT_KINDS]
SIZES = dict(zip(KINDS, (SMALL_BYTES, LARGE_BYTES, SMALL_BYTES, LARGE_BYTES), strict=True))
NUM_STATES = 150
Benches = Callable[[str], Bench]


@pytest.fixture(scope="session")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    """Give the bench of a kind, made when it is first asked for; skip, with the reason, where it cannot be used."""
    reasons = {usable.kind: usable.reason for usable in find_usable()}
    made: dict[str, Bench] = {}
    folder = tmp_path_factory.mktemp("images")
    if all(reasons.values()):
        yield lambda kind: pytest.skip(f"{kind} cannot be used here: {reasons[kind]}")
        return
    with in_memory(folder / "memory") as memory:

        def bench(kind: str) -> Bench:
            if reasons[kind]:
                pytest.skip(f"{kind} cannot be used here: {reasons[kind]}")
            if kind not in made:
                (memory / kind).mkdir()
                made[kind] = Bench(memory / kind, parse_kind(kind))
            return made[kind]

        yield bench


@pytest.fixture(scope="session")
def warm() -> Iterator[Starter]:
    """Give a starter of lives that have torch."""
    with torch_starter() as starter:
        yield starter


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PATTERNS)
def test_every_image_is_one_that_the_model_has(
    name: str, kind: str, benches: Benches, request: pytest.FixtureRequest
) -> None:
    """Cut at every operation: what is left may be so; what must be possible is, and what must not be is not."""
    bench, pattern = benches(kind), PATTERNS[name]
    starter = request.getfixturevalue("warm") if pattern.has_torch else None
    effort = Effort(schedules=QUICK, sizes=(SIZES[kind],), states=NUM_STATES)
    examined = examine(bench, pattern, effort, starter)
    assert not examined.complaints, "\n".join(examined.complaints)
    assert examined.cuts >= 10
    assert examined.states >= 2  # the old one alone would be no test of anything


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_that_cannot_be_is_refused(kind: str, benches: Benches) -> None:
    """A whole new file before it was written, one of other bytes, a name too many, one too few: none is in the set."""
    bench = benches(kind)
    save = run_save(bench, PATTERNS["new_name_durable"], QUICK[0], SMALL_BYTES, None)
    cut = save.cuts[-1]
    with (
        Recording(save.recording) as recording,
        mounted(bench.kind, bench.path_of(cut.image), bench.look),
    ):
        out, profile = bench.look / "out", bench.kind.file_system
        assert admits(recording, cut.index, profile, out) == ""
        assert "step-2.pt" in admits(recording, save.start, profile, out)
        whole = (out / "step-2.pt").read_bytes()
        (out / "step-2.pt").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert "step-2.pt" in admits(recording, cut.index, profile, out)
        (out / "step-2.pt").write_bytes(whole)
        (out / "more").touch()
        assert "more" in admits(recording, cut.index, profile, out)
        (out / "more").rename(out / "step-1.pt")
        assert "step-1.pt" in admits(recording, cut.index, profile, out)


def test_what_is_known_can_be_contradicted(benches: Benches) -> None:
    """A promise that does not hold, a state that cannot be, more states than one: each is told."""
    bench = benches("ext4")
    save = run_save(bench, PATTERNS["rename"], QUICK[0], SMALL_BYTES, None)
    wrong = msgspec.structs.replace(
        PATTERNS["rename"],
        settles_on=(FileSystem.EXT4,),
        corners=(Corner(names={"model.pt": Fate.MISSING}),),
        promises=(Promise(name="model.pt", fates=(Fate.OLD, Fate.NEW)),),
    )
    with Recording(save.recording) as recording:
        assert set(contents_of(recording, save.start).old) == {"model.pt"}
        found = hold_against(recording, save.start, wrong, FileSystem.EXT4, NUM_STATES).wrong
    assert "ext4 lacks model.pt missing at the end" in found
    for complaint in ("ext4 has model.pt empty", "at the end, and not one"):
        assert any(complaint in one for one in found)
