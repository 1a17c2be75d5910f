"""What the lesson says, held against the figures: what holds, and what does not; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from chaos.reports.ablation import AblationReference, AblationRow, AblationSizes, Claim

# What the lesson says of its own model, and what still is a few thousandths.
LOGITS_MOVE: Final = 0.003
_FEW_THOUSANDTHS: Final = 0.009
# About two thirds, about half: the rest of a file is generator states, names, the archive itself.
_OPTIMIZER_SHARE: Final = (0.6, 0.7)
_HALF_SHARE: Final = (0.45, 0.55)
# An update this near to the reference's in length is as long as it.
_SAME_LENGTH: Final = (0.95, 1.05)
_NEAREST_STEPS: Final = 10


def claims_of(
    steps: int, seam: int, rows: Sequence[AblationRow], reference: AblationReference, sizes: AblationSizes
) -> tuple[Claim, ...]:
    """Return each claim of the lesson that the rows can show; `reference` is that of the rows about weights alone."""
    by_name = {row.name: row for row in rows}
    claims = [*_bits(steps, seam, rows)]
    if "weights_alone" in by_name and reference.order == by_name["weights_alone"].order:
        claims += _weights_alone(by_name["weights_alone"], seam, reference)
    if "optimizer" in by_name:
        claims.append(_fresh_optimizer(by_name["optimizer"], seam))
    return (*claims, *_sizes(sizes))


def _bits(steps: int, seam: int, rows: Sequence[AblationRow]) -> Iterator[Claim]:
    """Yield the claims about bits: the intact resume has them all, and each omission loses some."""
    intact, others = [row for row in rows if row.is_intact], [row for row in rows if not row.is_intact]
    if intact:
        counts = ", ".join(
            f"{row.difference.elements_differing:,} of {row.difference.elements:,} weights differ ({row.order} order)"
            for row in intact
        )
        yield Claim(
            text=f"{seam} + {steps - seam} steps end with the same bits as {steps} at once, where nothing is left out.",
            figures=counts,
            holds=all(row.is_same_bits for row in intact),
        )
    if others:
        differing = [row for row in others if not row.is_same_bits]
        same = [row.left_out for row in others if row.is_same_bits]
        figures = f"{len(differing)} of {len(others)} rows differ"
        yield Claim(
            text="Whatever is left out, the run ends with other bits.",
            figures=f"{figures}; not: {', '.join(same)}" if same else figures,
            holds=not same,
        )


def usual_change(losses: Sequence[float], step: int) -> float:
    """Return the largest change of the loss from one step to the next among the `_NEAREST_STEPS` before `step`.

    `losses` begin with step 1.
    """
    near = losses[max(0, step - 1 - _NEAREST_STEPS) : step]
    return max((abs(after - before) for before, after in pairwise(near)), default=0.0)


def _weights_alone(row: AblationRow, seam: int, reference: AblationReference) -> Iterator[Claim]:
    """Yield the lesson's headline: the loss looks joined at the seam, and the steps after it are not."""
    if seam > 1:  # after a single step nobody knows how the loss changes
        yield _looks_joined(row, seam, usual_change(reference.losses, seam))
    after = row.steps[1:]
    differing = sum(1 for one in after if one.elements_differing)
    yield Claim(
        text="Yet no step after the seam is the reference's.",
        figures=(
            f"{differing} of {len(after)} steps leave other weights; the loss is off by {row.mean_gap:.4f} on average, "
            f"and the weights end {row.distance:.3g} away ({after[0].weight_distance:.3g} after the first step)"
        ),
        holds=differing == len(after),
    )


def _looks_joined(row: AblationRow, seam: int, usual: float) -> Claim:
    """Return the claim that nobody sees the seam in the loss, which changes by up to `usual` from step to step."""
    return Claim(
        text="With the weights alone nothing fails, and the loss curve looks joined.",
        figures=(
            f"from step {seam} to {seam + 1} the loss goes from {row.loss_before:.4f} to {row.loss_after:.4f} "
            f"({row.loss_change:+.4f}); in the steps before it changed by up to {usual:.4f} from one to the next"
        ),
        holds=abs(row.loss_change) <= usual,
        is_judged=False,
    )


def _fresh_optimizer(row: AblationRow, seam: int) -> Claim:
    """Return the claim that an optimizer without its state takes steps of other sizes."""
    low, high = _SAME_LENGTH
    return Claim(
        text="A fresh optimizer's next steps have other sizes.",
        figures=f"update {seam + 1} is {row.update_ratio:.2f} times as long as the reference's",
        holds=not low <= row.update_ratio <= high,
        is_judged=False,
    )


def _sizes(sizes: AblationSizes) -> Iterator[Claim]:
    """Yield the claims about sizes and about half precision."""
    low, high = _OPTIMIZER_SHARE
    yield Claim(
        text="The optimizer's state is twice the weights, about two thirds of the resume file.",
        figures=(
            f"{sizes.optimizer_bytes:,} of {sizes.resume_file_bytes:,} bytes ({sizes.optimizer_share:.1%}); "
            f"the weights are {sizes.weights_bytes:,}"
        ),
        holds=low <= sizes.optimizer_share <= high,
    )
    low, high = _HALF_SHARE
    yield Claim(
        text="Weights in half precision take half the space.",
        figures=f"{sizes.half_file_bytes:,} bytes against {sizes.weights_bytes:,} ({sizes.half_share:.1%})",
        holds=low <= sizes.half_share <= high,
    )
    yield Claim(
        text=(
            f"Half precision moves the logits by a few thousandths: by less than {_FEW_THOUSANDTHS} (by {LOGITS_MOVE} "
            "in the lesson's model)."
        ),
        figures=(
            f"by up to {sizes.largest_logit_difference:.5f} over {sizes.logits:,} held-out logits "
            f"(by {sizes.mean_logit_difference:.6f} on average); the loss there goes from {sizes.loss:.5f} "
            f"to {sizes.half_loss:.5f}"
        ),
        holds=sizes.largest_logit_difference < _FEW_THOUSANDTHS,
    )
