"""The lesson's claims are held against the figures, and told where they do not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from chaos.reports.ablation import AblationReference, AblationRow, AblationSizes, Claim
from chaos.reports.ablation_claims import claims_of, usual_change

Claims = Callable[..., dict[str, Claim]]


@pytest.fixture
def claims(reference: AblationReference, sizes: AblationSizes) -> Claims:
    """Return what gives the claims by the first words of their text."""

    def make(*rows: AblationRow, **changes: Any) -> dict[str, Claim]:
        found = claims_of(6, 3, rows, reference, replace(sizes, **changes))
        return {" ".join(claim.text.split()[:3]): claim for claim in found}

    return make


def test_all_that_holds(claims: Claims, make_row: Callable[..., AblationRow]) -> None:
    """With figures as they should be each claim holds and names them."""
    found = claims(make_row("intact", gap=0.0), make_row("weights_alone"), make_row("optimizer"))
    assert all(claim.holds for claim in found.values())
    assert found["3 + 3"].figures == "0 of 1,000 weights differ (random order)"
    assert found["Whatever is left"].figures == "2 of 2 rows differ"
    assert "from 2.1000 to 2.2500 (+0.1500)" in found["With the weights"].figures
    assert "up to 0.3000" in found["With the weights"].figures
    assert found["Yet no step"].figures.startswith("3 of 3 steps leave other weights; the loss is off by 0.2500")
    assert found["A fresh optimizer's"].figures == "update 4 is 1.25 times as long as the reference's"
    assert "8,000 of 12,200 bytes (65.6%)" in found["The optimizer's state"].figures
    assert "2,100 bytes against 4,000 (52.5%)" in found["Weights in half"].figures
    assert "0.00160 over 512 held-out logits" in found["Half precision moves"].figures


def test_an_intact_row_with_other_bits_is_told(claims: Claims, make_row: Callable[..., AblationRow]) -> None:
    """Then the main claim does not hold, and the exit status depends on it."""
    claim = claims(make_row("intact", is_intact=True))["3 + 3"]
    assert (claim.holds, claim.is_judged) == (False, True)


def test_an_omission_without_effect_is_named(claims: Claims, make_row: Callable[..., AblationRow]) -> None:
    """A row that has the reference's bits although something was left out is named."""
    claim = claims(make_row("rng", gap=0.0, is_intact=False), make_row("step"))["Whatever is left"]
    assert not claim.holds
    assert claim.figures == "1 of 2 rows differ; not: rng"


def test_a_loss_that_jumps_is_told_but_not_judged(claims: Claims, make_row: Callable[..., AblationRow]) -> None:
    """Whether the loss looks joined depends on the batches: what is unusual is said, and decides nothing."""
    claim = claims(make_row("weights_alone", loss_change=-0.4))["With the weights"]
    assert (claim.holds, claim.is_judged) == (False, False)


def test_a_step_as_long_as_the_references_is_told(claims: Claims, make_row: Callable[..., AblationRow]) -> None:
    """A first update of the same length is no evidence for the claim."""
    assert not claims(make_row("optimizer", update_ratio=1.01))["A fresh optimizer's"].holds


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"optimizer_bytes": 4000}, "The optimizer's state"),
        ({"half_file_bytes": 4000}, "Weights in half"),
        ({"largest_logit_difference": 0.009}, "Half precision moves"),
    ],
)
def test_sizes_that_are_not_as_told_fail(claims: Claims, changes: dict[str, Any], claim: str) -> None:
    """Each claim about sizes and logits can fail by itself."""
    found = claims(**changes)
    assert [name for name, one in found.items() if not one.holds] == [claim]
    assert found[claim].is_judged


def test_the_claim_about_logits_says_what_is_judged(claims: Claims) -> None:
    """The bound is in the text: a few thousandths more than the lesson's figure are still within it."""
    claim = claims(largest_logit_difference=0.00451)["Half precision moves"]
    assert claim.holds
    assert "by less than 0.009 (by 0.003 in the lesson's model)" in claim.text


def test_a_seam_after_one_step_says_nothing_of_the_loss(
    make_row: Callable[..., AblationRow], reference: AblationReference, sizes: AblationSizes
) -> None:
    """How the loss changes from step to step is not known then; that the steps differ is."""
    texts = [claim.text for claim in claims_of(6, 1, (make_row("weights_alone"),), reference, sizes)]
    assert not any("looks joined" in text for text in texts)
    assert any(text.startswith("Yet no step") for text in texts)


def test_claims_about_rows_that_were_not_run_are_left_out(claims: Claims) -> None:
    """Without rows only the sizes are left."""
    assert list(claims()) == ["The optimizer's state", "Weights in half", "Half precision moves"]


@pytest.mark.parametrize(("step", "change"), [(1, 0.0), (2, 1.0), (3, 2.0), (4, 2.0), (14, 0.5)])
def test_the_usual_change_is_that_of_the_last_ten(step: int, change: float) -> None:
    """Only changes before the seam count, and only the nearest: the loss falls fast at the beginning."""
    losses = [9.0, 8.0, 6.0, *(5.5, 6.0) * 6]
    assert usual_change(losses, step) == change
