"""Rows and whole experiments made by hand, for the tests of what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.model import TensorDifference
from chaos.reports.ablation import Ablation, AblationReference, AblationRow, AblationSizes, Claim, StepMeasure

SAME = TensorDifference(tensors=2, elements=1000)
OTHER = TensorDifference(
    tensors=2, tensors_differing=2, elements=1000, elements_differing=900, largest_absolute=0.05, largest_ulp=2_000_000
)


def _steps(gap: float) -> tuple[StepMeasure, ...]:
    """Return three steps after a seam at 3, each `gap` off."""
    begin = StepMeasure(step=3, loss=None, reference_loss=None, weight_distance=0.0, elements_differing=0)
    return (
        begin,
        *(
            StepMeasure(
                step=step,
                loss=2.0 + gap,
                reference_loss=2.0,
                weight_distance=gap * step,
                elements_differing=900 if gap else 0,
                update_length=1.0 + gap,
                reference_update_length=1.0,
            )
            for step in (4, 5, 6)
        ),
    )


def _row(name: str, *, gap: float = 0.25, **changes: Any) -> AblationRow:
    """Return a row whose losses are all `gap` off; without a gap it has the reference's bits."""
    row = AblationRow(
        name=name,
        left_out=name.replace("_", " "),
        order="random",
        is_intact=not gap,
        difference=OTHER if gap else SAME,
        distance=gap * 6,
        loss_before=2.1,
        loss_after=2.0 + gap,
        loss_jump=gap,
        loss_change=gap - 0.1,
        mean_gap=gap,
        largest_gap=gap,
        update_ratio=1.0 + gap,
        first_different_step=4 if gap else None,
        updates=6,
        steps=_steps(gap),
    )
    return replace(row, **changes)


@pytest.fixture
def make_row() -> Callable[..., AblationRow]:
    """Return the maker of rows."""
    return _row


@pytest.fixture
def sizes() -> AblationSizes:
    """Return sizes as they should be."""
    return AblationSizes(
        weights_bytes=4000,
        optimizer_bytes=8000,
        resume_file_bytes=12_200,
        half_file_bytes=2100,
        logits=512,
        largest_logit_difference=0.0016,
        mean_logit_difference=0.0002,
        loss=3.0,
        half_loss=3.00002,
    )


@pytest.fixture
def reference() -> AblationReference:
    """Return a reference whose loss changes by up to 0.3 from step to step before the seam at 3."""
    return AblationReference(order="random", losses=(2.2, 2.4, 2.1, 2.0, 2.0, 2.0), update_lengths=(1.0,) * 5)


@pytest.fixture
def ablation(sizes: AblationSizes, reference: AblationReference) -> Ablation:
    """Return a whole experiment of an intact row, one that lost something, and one that counts its steps anew."""
    rows = (_row("intact", gap=0.0), _row("weights_alone"), _row("step", updates=9))
    return Ablation(
        steps=6,
        seam=3,
        seed=5,
        rows=rows,
        references=(reference,),
        sizes=sizes,
        optimizer_share=sizes.optimizer_share,
        half_share=sizes.half_share,
        claims=(
            Claim(text="This is so.", figures="1 of 1", holds=True),
            Claim(text="This is mostly so.", figures="0 of 1", holds=False, is_judged=False),
        ),
        came_out_as_told=True,
        elapsed_s=1.5,
        run_dir="runs/one",
    )
