"""What is printed and drawn of an experiment."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from chaos.ablation.conducting import leave
from chaos.errors import HarnessError, UsageError
from chaos.model import Component, Diagnosis, LostState, Manner
from chaos.reports.ablation import Ablation, AblationRow
from chaos.reports.ablation_plot import distances, draw, require_plot
from chaos.reports.ablation_table import diagnosis_in_short, print_ablation


def _printed(ablation: Ablation) -> list[str]:
    """Return the lines of a report for a stream that is no terminal."""
    stream = io.StringIO()
    print_ablation(ablation, stream)
    return stream.getvalue().splitlines()


def test_the_table_is_plain_and_fits(ablation: Ablation) -> None:
    """No colours, no line over 100 columns, one line a row with its figures; the table itself fits into 90."""
    lines = _printed(ablation)
    begin, end = (next(i for i, line in enumerate(lines) if word in line) for word in ("weights", "Of 1,000"))
    assert all(len(line) <= 90 for line in lines[begin:end])
    assert all(line == line.rstrip() for line in lines)
    assert all(len(line) <= 100 and "\x1b" not in line and "…" not in line for line in lines)
    row = next(line.split() for line in lines if line.startswith("   weights alone"))
    assert row == ["weights", "alone", "900", "0.05", "2.0e6", "+0.1500", "+0.2500", "0.2500", "4"]
    intact = next(line.split() for line in lines if line.startswith("   intact"))
    assert intact == ["intact", "0", "0", "0", "-0.1000", "+0.0000", "0.0000", "-"]


def test_a_row_that_ends_elsewhere_says_so(ablation: Ablation) -> None:
    """The row that counts its steps anew is marked, and the note says after how many updates it ends."""
    text = "\n".join(_printed(ablation))
    assert "   step *" in text
    assert "after 9 updates" in text


def test_claims_and_what_does_not_hold(ablation: Ablation) -> None:
    """Each claim is told as it came out, with its figures, and the seed comes last."""
    lines = _printed(ablation)
    assert "  holds       This is so." in lines
    assert "  NOT HERE    This is mostly so." in lines
    assert lines[-2:] == ["It came out as told. 2 s, runs/one", "seed 5"]
    assert "It did NOT come out" in "\n".join(_printed(replace(ablation, came_out_as_told=False)))


def test_the_probes_words_stand_below_the_table(ablation: Ablation, make_row: Callable[..., AblationRow]) -> None:
    """What was diagnosed is told by row, wrapped behind its name; of an intact row that nothing is lost."""
    lost = LostState(
        component=Component.OPTIMIZER, manner=Manner.MISSING, step=4, detail=f"exp_avg is missing{' so' * 20}."
    )
    diagnosis = Diagnosis(resumed_at=3, first_difference=4, lost=(lost,))
    rows = (make_row("intact", gap=0.0), make_row("optimizer", diagnosis=diagnosis))
    lines = _printed(replace(ablation, rows=rows))
    begin = lines.index("What the probe saw, without being told what was left out")
    first, second, third = lines[begin + 1 : begin + 4]
    assert first.split(maxsplit=1) == [
        "intact", "nothing is lost: every digest is the reference's, at every step"
    ]  # fmt: skip
    assert second.split(maxsplit=1)[1].startswith("step 4: optimizer state (missing): exp_avg is missing so")
    assert third.startswith(" " * 32 + "so")


@pytest.mark.parametrize(
    ("diagnosis", "told"),
    [
        (Diagnosis(resumed_at=3, first_difference=4), "step 4: nothing is named"),
        (Diagnosis(resumed_at=None, first_difference=None, doubts=("It is like nothing.",)), "It is like nothing"),
    ],
)
def test_a_diagnosis_without_a_name_says_so(diagnosis: Diagnosis, told: str) -> None:
    """Where nothing is named that is said, with the doubts where there are any."""
    assert diagnosis_in_short(diagnosis) == told


def test_the_result_goes_through_json(ablation: Ablation) -> None:
    """What `--json` prints is read back as it was."""
    assert msgspec.json.decode(msgspec.json.encode(ablation), type=Ablation) == ablation


def test_a_distance_of_nothing_leaves_a_gap_in_the_line(make_row: Callable[..., AblationRow]) -> None:
    """0 has no logarithm: the line begins where weights differ."""
    first, *others = distances(make_row("step"))
    assert math.isnan(first)
    assert others == [1.0, 1.25, 1.5]


def test_without_a_plot_it_is_said_how_to_get_one(ablation: Ablation, tmp_path: Path) -> None:
    """The result is left all the same, and one line says what draws the plot."""
    told: list[str] = []
    leave(replace(ablation, run_dir=str(tmp_path)), told.append)
    assert told == ["no plot: matplotlib draws it: python -m pip install 'ninelives[plot]'"]
    assert [path.name for path in tmp_path.iterdir()] == ["ablation.json"]


def test_a_result_that_cannot_be_written_is_a_sentence(ablation: Ablation, tmp_path: Path) -> None:
    """A folder that is gone is named, with what to do."""
    with pytest.raises(HarnessError, match="the result cannot be written: No such file or directory"):
        leave(replace(ablation, run_dir=str(tmp_path / "gone")), lambda _: None)


@pytest.mark.parametrize("name", ["plot.svg", "plot.PNG"])
def test_the_same_figures_are_the_same_file(ablation: Ablation, tmp_path: Path, name: str) -> None:
    """The plot is as deterministic as what it shows, and is what its suffix says."""
    paths = [require_plot(tmp_path / name), tmp_path / f"again-{name}"]
    for path in paths:
        draw(ablation, path)
    one, two = (path.read_bytes() for path in paths)
    assert one == two
    assert one.startswith(b"<?xml" if name.endswith("svg") else b"\x89PNG")


def test_a_plot_of_intact_rows_alone_can_be_drawn(
    ablation: Ablation, make_row: Callable[..., AblationRow], tmp_path: Path
) -> None:
    """Where no distance is above 0 there is no logarithmic axis, and no warning."""
    draw(replace(ablation, rows=(make_row("intact", gap=0.0),)), tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").stat().st_size > 0


def test_a_plot_that_cannot_be_written_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong suffix, a missing folder and a missing matplotlib are usage errors with a way out."""
    with pytest.raises(UsageError, match=r"an .svg or a .png file"):
        require_plot(tmp_path / "plot.pdf")
    with pytest.raises(UsageError, match="there is no folder"):
        require_plot(tmp_path / "nowhere" / "plot.svg")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="needs matplotlib") as caught:
        require_plot(tmp_path / "plot.svg")
    assert "ninelives[plot]" in caught.value.hint
