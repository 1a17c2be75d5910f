"""How `chaos ablate` is told to people: the table, what the probe says of each row, the claims, the sizes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from chaos.model import Diagnosis
from chaos.reports.ablation import Ablation, AblationRow, AblationSizes, Claim
from chaos.reports.parts import Line, console_on, labelled, print_lines, width_of

if TYPE_CHECKING:
    from rich.console import Console

_ORDERS: Final = {"random": "batches drawn at random", "epoch": "batches by epochs"}
_ALONE: Final = (
    "All but the weights: optimizer, batch order and generators begin anew. The step number is kept, and with it the "
    "learning rate, which is a function of the step and needs no state."
)
_MOST_DIGITS: Final = 1_000_000
_NONE: Final = "-"
_NAME: Final = 30
_WIDE: Final = 90


def print_ablation(ablation: Ablation, stream: TextIO) -> None:
    """Print everything to `stream`, in colours where that is a terminal."""
    console = console_on(stream)
    width = console.width = width_of(console)
    steps, seam = ablation.steps, ablation.seam
    head = f"{steps} steps at once against {seam} + {steps - seam}: killed when step {seam} was saved, and resumed."
    print_lines(console, iter([Line(text=""), Line(text=head, style="bold"), Line(text="")]))
    _print_rows(console, ablation)
    print_lines(console, _notes(ablation, width))
    print_lines(console, _diagnoses(ablation.rows, width))
    print_lines(console, _sizes(ablation.sizes))
    print_lines(console, _claims(ablation.claims, width))
    print_lines(console, _end(ablation))


def _print_rows(console: Console, ablation: Ablation) -> None:
    """Print one line a row, by the order of batches, without blanks at the ends of lines."""
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

    seam = ablation.seam
    table = Table(box=None, pad_edge=False, padding=(0, 2 if console.width >= _WIDE else 1, 0, 0))
    table.add_column("\n\n  left out on resume", no_wrap=True)
    for head in (
        "weights\nthat\ndiffer",
        "\nby up\nto",
        "\nin\nulp",
        f"loss at\n{seam + 1} less\n{seam}'s",
        "less\nrefer-\nence's",
        "mean\ngap\nafter",
        "first\nother\nstep",
    ):
        table.add_column(head, justify="right", no_wrap=True)
    for order in dict.fromkeys(row.order for row in ablation.rows):
        table.add_row(f"  {_ORDERS[order]}", style="bold")
        for row in ablation.rows:
            if row.order == order:
                table.add_row(*_cells(row), style="green" if row.is_same_bits else None)
    options = console.options.update(no_wrap=True, overflow="ignore")
    for segments in Segment.split_lines(console.render(table, options)):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        console.print(line)


def _cells(row: AblationRow) -> tuple[str, ...]:
    """Return one line of the table."""
    difference = row.difference
    mark = " *" if row.updates > row.steps[-1].step else ""
    return (
        f"   {row.left_out}{mark}",
        f"{difference.elements_differing:,}",
        f"{difference.largest_absolute:.2g}",
        shown_count(difference.largest_ulp),
        f"{row.loss_change:+.4f}",
        f"{row.loss_jump:+.4f}",
        f"{row.mean_gap:.4f}",
        _NONE if row.first_different_step is None else str(row.first_different_step),
    )


def shown_count(number: int) -> str:
    """Return a count in full, or in two digits and a power of ten where it is large."""
    return f"{number:,}" if number < _MOST_DIGITS else f"{number:.1e}".replace("e+0", "e").replace("e+", "e")


def _notes(ablation: Ablation, width: int) -> Iterator[Line]:
    """Yield how the table is to be read."""
    elements = ablation.rows[0].difference.elements
    how = (
        f"Of {elements:,} fp32 weights after step {ablation.steps}, compared by bits. Losses are in nats, of training "
        f"batches; the gap is the mean of |loss - reference's| over steps {ablation.seam + 1} to {ablation.steps}."
    )
    marked = (
        f"* It counts its steps from 0 again, and so ends elsewhere, after {row.updates} updates; here it is compared "
        f"after its update {ablation.steps}."
        for row in ablation.rows
        if row.updates > ablation.steps
    )
    yield Line(text="")
    alone = (_ALONE for row in ablation.rows if row.name == "weights_alone")
    for note in (how, *alone, *marked):
        yield from _indented(note, width, "  ")


def _diagnoses(rows: Sequence[AblationRow], width: int) -> Iterator[Line]:
    """Yield what the probe says of each row: which state was lost, and where that shows first."""
    yield Line(text="")
    yield Line(text="What the probe saw, without being told what was left out", style="bold")
    for row in rows:
        told = textwrap.fill(
            diagnosis_in_short(row.diagnosis),
            width,
            initial_indent=f"  {row.left_out:<{_NAME}}",
            subsequent_indent=" " * (_NAME + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield Line(text=told)


def diagnosis_in_short(diagnosis: Diagnosis | None) -> str:
    """Return the first step that differs and what was lost, or why nothing is named."""
    if diagnosis is None:
        return "nothing is lost: every digest is the reference's, at every step"
    lost = "; ".join(f"{one.component} ({one.manner}): {one.detail.rstrip('.')}" for one in diagnosis.lost)
    said = lost or " ".join(diagnosis.doubts).rstrip(".") or "nothing is named"
    return said if diagnosis.first_difference is None else f"step {diagnosis.first_difference}: {said}"


def _indented(text: str, width: int, indent: str) -> Iterator[Line]:
    """Yield `text` wrapped to `width`, each line behind `indent`."""
    for line in textwrap.wrap(text, width - len(indent), break_long_words=False, break_on_hyphens=False):
        yield Line(text=f"{indent}{line}")


def _sizes(sizes: AblationSizes) -> Iterator[Line]:
    """Yield what the files hold."""
    yield Line(text="")
    yield Line(text="Sizes in bytes", style="bold")
    for name, size, share in (
        ("weights in fp32", sizes.weights_bytes, ""),
        ("weights.pt, in half precision", sizes.half_file_bytes, f"{sizes.half_share:6.1%} of those"),
        ("resume.pt", sizes.resume_file_bytes, ""),
        ("of which the optimizer", sizes.optimizer_bytes, f"{sizes.optimizer_share:6.1%} of it"),
    ):
        yield Line(text=f"  {name:<32}{size:>12,}  {share}".rstrip())


def _claims(claims: Sequence[Claim], width: int) -> Iterator[Line]:
    """Yield each claim of the lesson, whether it holds here, and by which figures."""
    yield Line(text="")
    yield Line(text="What the lesson says, and what these figures say", style="bold")
    for claim in claims:
        label, style = ("holds", "green") if claim.holds else ("NOT HERE", "bold red" if claim.is_judged else "yellow")
        yield from labelled(label, claim.text, width, style)
        yield from labelled("", claim.figures, width)


def _end(ablation: Ablation) -> Iterator[Line]:
    """Yield what was kept, and the seed."""
    yield Line(text="")
    if ablation.plot:
        yield Line(text=f"Plot: {ablation.plot}")
    told = "came out as told" if ablation.came_out_as_told else "did NOT come out as told"
    yield Line(text=f"It {told}. {ablation.elapsed_s:.0f} s, {ablation.run_dir}", style="bold")
    yield Line(text=f"seed {ablation.seed}")
