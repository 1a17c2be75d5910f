"""The plot of `chaos ablate`: gap of the loss, and distance of the weights, against the step. Needs matplotlib.

The same figures give the same file, byte for byte, with the same version of matplotlib: no date, no random ids, and no
setting of the user's.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from chaos.errors import UsageError
from chaos.reports.ablation import Ablation, AblationRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS: Final = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
HOW_TO_GET: Final = "matplotlib draws it: python -m pip install 'ninelives[plot]'"
_SIZE_INCHES: Final = (9.0, 8.0)
_DOTS_PER_INCH: Final = 120


def can_draw() -> bool:
    """Tell whether matplotlib is there."""
    return importlib.util.find_spec("matplotlib") is not None


def require_plot(path: Path) -> Path:
    """Return `path`; UsageError, before anything is run, where no plot can be written there."""
    if path.suffix.lower() not in KINDS:
        raise UsageError(f"--plot {path}: a plot is an .svg or a .png file", hint=f"such as {path.with_suffix('.svg')}")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--plot {path}: there is no folder {path.absolute().parent}")
    if not can_draw():
        raise UsageError("--plot needs matplotlib, which is not installed", hint=HOW_TO_GET)
    return path


def draw(ablation: Ablation, path: Path) -> None:
    """Write the plot to `path`, as its suffix says; raises OSError."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams["svg.hashsalt"] = "ninelives"
        figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True)
        styles = _styles(ablation.rows)
        for row in ablation.rows:
            color, line = styles[row.name]
            steps = [one.step for one in row.steps]
            gaps = [one.loss_gap for one in row.steps]
            upper.plot(steps, gaps, label=_label(row), color=color, linestyle=line, linewidth=1.2)
            lower.plot(steps, distances(row), color=color, linestyle=line, linewidth=1.2)
        _dress(upper, lower, ablation)
        figure.legend(loc="outside lower center", fontsize="small", ncols=2)
        kind = path.suffix.lower()
        figure.savefig(path, format=kind[1:], dpi=_DOTS_PER_INCH, metadata=KINDS[kind])


def distances(row: AblationRow) -> list[float]:
    """Return the distance of the weights at each step, a gap in the line where it is 0: that has no logarithm."""
    return [one.weight_distance or math.nan for one in row.steps]


def _label(row: AblationRow) -> str:
    """Return what a row is called in the legend."""
    return f"{row.left_out} ({row.order}{'; distance 0' if row.is_same_bits else ''})"


def _styles(rows: Sequence[AblationRow]) -> dict[str, tuple[str, str]]:
    """Return colour and line of each row: intact ones black, dashed where batches come by epochs."""
    styles: dict[str, tuple[str, str]] = {}
    for position, row in enumerate(rows):
        color = "black" if row.is_intact else f"C{position % 10}"
        styles[row.name] = (color, "-" if row.order == "random" else "--")
    return styles


def _dress(upper: Axes, lower: Axes, ablation: Ablation) -> None:
    """Name the axes, and mark the seam."""
    upper.set_title(f"Killed after step {ablation.seam} of {ablation.steps}, and resumed without …")
    upper.set_ylabel("loss less the reference's (nats)")
    lower.set_ylabel("distance of the weights (L2 norm)")
    lower.set_xlabel("step")
    if any(one.weight_distance > 0 for row in ablation.rows for one in row.steps):
        lower.set_yscale("log")
    for axes in (upper, lower):
        axes.axvline(ablation.seam, color="grey", linewidth=0.8, linestyle=":")
        axes.grid(visible=True, alpha=0.3)
