"""The resume file holds all that the next update depends on, in a form that is safe to read."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trainer import data, loop
from trainer.checkpoint import RESUME_FORMAT, checksum, publish, read
from trainer.options import Forget, Options, Order, SaveWay, TrainerError
from trainer.state import TrainState, restore, resume_payload, weights_payload

MakeOptions = Callable[..., Options]
MakeState = Callable[[Options], TrainState]


def advance(state: TrainState, steps: int) -> None:
    """Do some updates."""
    training, _ = data.split(data.load_text(state.options))
    for _ in range(steps):
        loop.update(state, training)


@pytest.mark.parametrize("order", Order)
def test_everything_returns_through_the_file(
    options: MakeOptions, make_state: MakeState, tmp_path: Path, order: Order
) -> None:
    """Written, read with weights_only=True and put into a fresh state, everything is as it was."""
    state = make_state(options(order=order))
    advance(state, 4)
    random.random()
    path = tmp_path / "resume.pt"
    publish(resume_payload(state), path, SaveWay.DURABLE)
    before, drawn = checksum(resume_payload(state)), (random.random(), torch.rand(3).tolist())
    other = make_state(options(order=order))
    restore(other, read(path, RESUME_FORMAT))
    assert other.step == 4
    assert checksum(resume_payload(other)) == before
    assert (random.random(), torch.rand(3).tolist()) == drawn


def test_precisions_and_sizes(options: MakeOptions, make_state: MakeState) -> None:
    """The resume file holds fp32 weights and twice their size of optimizer state; weights.pt holds half precision."""
    state = make_state(options())
    advance(state, 1)
    resume, weights = resume_payload(state), weights_payload(state)
    assert {value.dtype for value in resume["model"].values()} == {torch.float32}
    assert {value.dtype for value in weights["model"].values()} == {torch.float16}
    count = sum(value.numel() for value in resume["model"].values())
    moments = [part[name] for part in resume["optimizer"]["state"].values() for name in ("exp_avg", "exp_avg_sq")]
    assert sum(value.numel() for value in moments) == 2 * count
    half = make_state(options(save=SaveWay.HALF))
    assert {value.dtype for value in resume_payload(half)["model"].values()} == {torch.float16}


def test_decay_groups(options: MakeOptions, make_state: MakeState) -> None:
    """Matrices decay, the scales of the norms do not."""
    decaying, still = make_state(options()).optimizer.param_groups
    assert (decaying["weight_decay"], still["weight_decay"]) == (0.1, 0.0)
    assert {parameter.dim() for parameter in decaying["params"]} == {2}
    assert {parameter.dim() for parameter in still["params"]} == {1}


CHANGES = {
    "steps": 13,
    "seed": 1,
    "order": Order.EPOCH,
    "batch_size": 3,
    "sequence": 9,
    "accumulation": 2,
    "dropout": 0.2,
    "lr": 0.1,
    "warmup": 3,
    "weight_decay": 0.2,
    "clip": 2.0,
    "dim": 20,
    "layers": 2,
    "heads": 1,
    "kv_heads": 2,
    "dtype": "bfloat16",
    "threads": 2,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_option_is_refused_by_name(options: MakeOptions, make_state: MakeState, name: str) -> None:
    """An option that would change the bits is named, with both values, and nothing was restored."""
    saved = resume_payload(make_state(options()))
    other = make_state(options(**{name: CHANGES[name]}))
    before = checksum(resume_payload(other))
    flag = name.replace("_", "-")
    same_epoch = {"epoch-batches": 5} if name == "order" else {}  # or the missing length of an epoch is named first
    with pytest.raises(TrainerError, match=f"has --{flag} .*, this command .*: it would not end with the same bits"):
        restore(other, saved | {"options": saved["options"] | same_epoch})
    assert checksum(resume_payload(other)) == before


def test_every_option_that_must_match_is_tried() -> None:
    """The cases above are all of them, beside the device, the text and the length of epochs."""
    chosen = Options(out=Path("out"), order=Order.EPOCH).must_match("digest")
    assert chosen.keys() - {name.replace("_", "-") for name in CHANGES} == {"device", "data", "epoch-batches"}


def test_another_text_or_epoch_is_refused(options: MakeOptions, make_state: MakeState, text_file: Path) -> None:
    """The text's digest and the length of an epoch must match as well."""
    state = make_state(options(order=Order.EPOCH))
    saved = resume_payload(state)
    with pytest.raises(TrainerError, match="--epoch-batches 5, this command 6"):
        restore(make_state(options(order=Order.EPOCH, epoch_batches=6)), saved)
    text_file.write_bytes(text_file.read_bytes()[::-1])
    with pytest.raises(TrainerError, match="has --data "):
        restore(make_state(options(order=Order.EPOCH)), saved)


def test_run_id_is_kept_and_another_refused(options: MakeOptions, make_state: MakeState) -> None:
    """A named run goes on under its name without the flag; a different name is refused."""
    saved = resume_payload(make_state(options(named_run_id="mine")))
    other = make_state(options())
    restore(other, saved)
    assert other.run_id == "mine"
    with pytest.raises(TrainerError, match="--run-id mine"):
        restore(make_state(options(named_run_id="yours")), saved)


def test_other_process_count_is_refused_and_other_torch_is_told(
    options: MakeOptions, make_state: MakeState, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two processes would see other batches; another torch may compute other bits, which is only warned of."""
    state = make_state(options())
    saved = resume_payload(state)
    with pytest.raises(TrainerError, match="had 2 processes, this one 1"):
        restore(state, saved | {"world_size": 2})
    restore(state, saved | {"torch": "1.0"})
    assert "saved by torch 1.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("forget", "part"), [(Forget.OPTIMIZER, "optimizer"), (Forget.BATCH_ORDER, "order"), (Forget.RNG, "generators")]
)
def test_what_is_forgotten_is_not_in_the_file(
    options: MakeOptions, make_state: MakeState, forget: Forget, part: str
) -> None:
    """The part is left out, and a right trainer refuses such a file, naming the part and the flag."""
    state = make_state(options(forget=frozenset({forget})))
    saved = resume_payload(state)
    assert part not in saved
    assert saved.keys() >= {"optimizer", "order", "generators"} - {part}
    restore(state, saved)
    right = make_state(replace(state.options, forget=frozenset()))
    with pytest.raises(TrainerError, match=f"holds no {part}: .* --forget {forget}"):
        restore(right, saved)
