"""The network has the shapes and the properties that its parts are known for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from trainer.model import Attention, LanguageModel, SwiGLU, next_byte_loss, rotary_table, rotate
from trainer.options import Options

MakeOptions = Callable[..., Options]


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2), (4, 1)])
def test_shapes(options: MakeOptions, heads: int, kv_heads: int) -> None:
    """Logits are (B, T, 256) however many query heads share keys and values."""
    model = LanguageModel(options(heads=heads, kv_heads=kv_heads))
    assert model(torch.zeros(3, 5, dtype=torch.long)).shape == (3, 5, 256)


def test_grouped_heads_make_keys_and_values_smaller(options: MakeOptions) -> None:
    """With 4 query heads and 2 of keys and values, the projections of the latter have half the rows."""
    attention = Attention(options(heads=4, kv_heads=2))
    assert attention.query.weight.shape == (16, 16)
    assert attention.key.weight.shape == attention.value.weight.shape == (8, 16)


def test_default_size_is_small_and_swiglu_is_rounded_up(options: MakeOptions) -> None:
    """The default model has about a third of a million parameters, the embedding counted once."""
    default = Options(out=options().out)
    model = LanguageModel(default)
    assert sum(parameter.numel() for parameter in model.parameters()) == 319_536
    assert SwiGLU(default).gate.weight.shape == (320, 112)
    assert not any("head" in name for name, _ in model.named_parameters())


def test_no_position_sees_a_later_one(options: MakeOptions) -> None:
    """Changing a byte leaves the logits of all earlier positions bit for bit as they were, and moves its own."""
    model = LanguageModel(options()).eval()
    tokens = torch.arange(8)[None]
    changed = tokens.clone()
    changed[0, 5] = 200
    before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.equal(before[:, 5], after[:, 5])


def test_rotation_depends_on_distance_alone() -> None:
    """The product of a turned query and key is the same for all pairs equally far apart, and not for others."""
    turn = rotary_table(6, 8, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    query = rotate(torch.randn(8, generator=generator).expand(1, 1, 6, 8), turn)[0, 0]
    key = rotate(torch.randn(8, generator=generator).expand(1, 1, 6, 8), turn)[0, 0]
    products = query @ key.T
    torch.testing.assert_close(products.diagonal(-2), products[2, 0].expand(4))
    assert abs(products[3, 0] - products[2, 0]) > 1e-3


def test_dropout_draws_from_torchs_generator_only_in_training(options: MakeOptions) -> None:
    """Training moves the global generator, so its state must be saved; evaluation does not."""
    model = LanguageModel(options())
    tokens = torch.zeros(2, 9, dtype=torch.long)
    start = torch.get_rng_state()
    next_byte_loss(model.eval(), tokens)
    assert torch.equal(torch.get_rng_state(), start)
    next_byte_loss(model.train(), tokens)
    assert not torch.equal(torch.get_rng_state(), start)


def test_untrained_loss_is_that_of_guessing(options: MakeOptions) -> None:
    """With small weights all 256 bytes are about equally likely: ln 256 nats."""
    loss = next_byte_loss(LanguageModel(options()).eval(), torch.arange(18).view(2, 9))
    assert loss.item() == pytest.approx(5.545, abs=0.02)
