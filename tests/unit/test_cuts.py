"""Where the power is cut: enough of what matters, the same for the same seed; and how the figures are told."""

from __future__ import annotations

import io
import os
from collections import Counter
from pathlib import Path

import pytest

from chaos.cli import main as shell
from chaos.errors import UsageError
from chaos.model import Address, FaultKind, Phase, PlannablePoint, Verdict
from chaos.planners.cuts import crash_points, draw_cuts
from chaos.powercut import read_kinds
from chaos.reports.powercut import ModelStates, OnFileSystem, PowerCuts, model_states, print_powercuts
from chaos.states.looking import contents_of_folder

CALLS = ("openat", *["write"] * 20, "fsync", "link", "rename", "write")


def make_points(saves: int = 3) -> tuple[PlannablePoint, ...]:
    """Return the points of a reference: a step, a save of 25 calls, and so on, and a last step."""
    points = []
    for save in range(1, saves + 1):
        points.append(make_point("tick", tick=save))
        points += [make_point(call, save=save, occurrence=number) for number, call in enumerate(CALLS)]
    return (*points, make_point("tick", tick=saves + 1))


def make_point(call: str, *, save: int = 0, tick: int = 0, occurrence: int = 1) -> PlannablePoint:
    """Return one point."""
    address = Address(save=save, tick=tick, file="ck.tmp", call=call, occurrence=occurrence)
    return PlannablePoint(address=address, phase=Phase.SAVE if save else Phase.STEP, position=0)


@pytest.mark.parametrize("seed", range(20))
def test_what_publishes_and_what_follows_it_is_always_cut(seed: int) -> None:
    """Among five cuts there is one before each publishing call and one right after an acknowledgement."""
    drawn = draw_cuts(make_points(), 5, seed)
    calls = Counter(point.address.call for point in drawn)
    assert calls["fsync"] >= 1
    assert calls["link"] >= 1
    assert calls["rename"] >= 1
    after = [point for point in drawn if point.address.tick > 1]  # before the first step nothing was saved
    assert after
    assert drawn == draw_cuts(make_points(), 5, seed)
    assert drawn != draw_cuts(make_points(), 5, seed + 1)


def test_most_are_in_saves_and_no_place_comes_twice_too_early() -> None:
    """No point comes again before all have come; as many as were asked for are drawn, from few points too."""
    drawn = draw_cuts(make_points(20), 60, 1)
    assert len({str(point.address) for point in drawn}) == len(drawn) == 60
    assert sum(point.phase is Phase.SAVE for point in drawn) > 30
    few = draw_cuts(make_points(1), 60, 1)
    counts = Counter(str(point.address) for point in few)
    assert (len(few), len(counts)) == (60, len(make_points(1)))
    assert set(counts.values()) == {2, 3}
    assert draw_cuts((), 5, 1) == ()
    assert len(draw_cuts((make_point("tick", tick=1),), 3, 1)) == 3  # a target that never saves


def test_every_second_cut_comes_after_a_commit() -> None:
    """The crash points are those of a real file system, half of them with its journal committed."""
    points = list(crash_points(draw_cuts(make_points(), 6, 3), "ext4:noauto_da_alloc"))
    assert [point.variant for point in points] == [0, 1, 0, 1, 0, 1]
    assert {(point.fault, point.is_real) for point in points} == {(FaultKind.POWER_LOSS, True)}
    assert str(points[0]).endswith(", on a real ext4:noauto_da_alloc")
    assert str(points[1]).endswith(", on a real ext4:noauto_da_alloc, right after a commit of its journal")


def test_kinds_are_read_once_each() -> None:
    """Commas part file systems, plus signs the options of one."""
    assert [str(kind) for kind in read_kinds("xfs,ext4:a+b=1,xfs")] == ["xfs", "ext4:a,b=1"]
    with pytest.raises(UsageError, match="xsf"):
        read_kinds("xfs,xsf")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fs", "xsf"], "did you mean `xfs`?"),
        (["--fs", "ext4:"], "is no mount option"),
        (["--fs", "xfs,"], "no image can be made with the file system ``"),
        (["--cuts", "0"], "Invalid value for '--cuts'"),
        (["--seed", "-1"], "`--seed`: expected a whole number >= 0"),
        (["--checkpoints", "{out}/c"], "describes a command of your own"),
    ],
)
def test_wrong_usage_is_a_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, before anything is tried."""
    assert shell.main(["powercut", *words]) == 2
    assert said in capsys.readouterr().err


def test_without_interception_nothing_is_cut(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A life that is only looked at cannot be held where the power is to go."""
    monkeypatch.setenv("CHAOS_NO_INTERCEPT", "1")
    assert shell.main(["powercut", "--runs", str(tmp_path / "runs")]) == 2
    assert "without interception" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_sizes_are_told_in_full_or_as_powers_of_ten() -> None:
    """A set may be larger than any number that a machine would read."""
    assert model_states([]) is None
    assert model_states([288.9, 0.0, 3.2787536]) == ModelStates(least="1", median="1900", most="10^288")


def test_the_report_has_a_line_for_each_file_system() -> None:
    """Cuts that landed of those asked for, what was left, and the verdicts; nothing that was not proven is left out."""
    one = OnFileSystem(
        file_system="ext4:noauto_da_alloc",
        verdict=Verdict.INCONCLUSIVE,
        cuts_requested=8,
        cuts=7,
        states_distinct=5,
        nothing_lost=2,
        model_states=ModelStates(least="1", median="3", most="10^963"),
        model_lacks=(),
        findings=(),
        inconclusive=("Only 7 of the 8 faults (power_loss) asked for have landed.",),
    )
    result = PowerCuts(
        verdict=Verdict.INCONCLUSIVE,
        as_expected=False,
        expected=Verdict.PASS,
        seed=5,
        scenario="",
        claim="",
        target="python train.py",
        file_systems=(one,),
        elapsed_s=1.5,
        run_dir=".chaos/x",
    )
    stream = io.StringIO()
    print_powercuts(result, stream)
    lines = stream.getvalue().splitlines()
    row = next(line for line in lines if "noauto_da_alloc" in line)
    assert " ".join(row.split()) == "ext4:noauto_da_alloc 7 of 8 2 5 1 / 3 / 10^963 0 inconclusive"
    assert max(map(len, lines)) <= 100
    assert "  - ext4:noauto_da_alloc: Only 7 of the 8 faults (power_loss) asked for have landed." in lines
    assert (lines[0], lines[-1]) == ("seed 5", "seed 5")


def test_a_folder_is_known_by_names_and_bytes(tmp_path: Path) -> None:
    """A hole is as good as zeros, a time does not matter, one other byte does; what is no file has no content."""
    for name, last in (("one", b"x"), ("two", b"x"), ("three", b"y")):
        folder = tmp_path / name
        (folder / "sub").mkdir(parents=True)
        (folder / "link").symlink_to("nowhere")
        with (folder / "sub" / "file").open("wb") as file:
            file.write(b"a" * 5000 + bytes(3000 if name == "one" else 0))
            file.seek(8000)
            file.write(last)
    os.utime(tmp_path / "two" / "sub" / "file", (1, 1))
    one, two, three = (contents_of_folder(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two != three
    assert one.keys() == {"link", "sub", "sub/file"}
    assert (one["link"], one["sub"]) == (None, None)
    with pytest.raises(FileNotFoundError):
        contents_of_folder(tmp_path / "gone")
