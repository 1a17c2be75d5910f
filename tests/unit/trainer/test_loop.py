"""Training begins where it must, saves when it must, and ends with the same bits however often it was interrupted."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from trainer import data, loop
from trainer.__main__ import main
from trainer.checkpoint import WEIGHTS_FORMAT, checksum, publish, read
from trainer.loop import get_lr
from trainer.options import Forget, Options, Order, SaveWay, TrainerError
from trainer.state import TrainState

MakeOptions = Callable[..., Options]
MakeState = Callable[[Options], TrainState]
Live = Callable[..., list[str]]


def final(out: Path) -> str:
    """Return the checksum of the final weights."""
    return checksum(read(out / "weights.pt", WEIGHTS_FORMAT))


def test_learning_rate_is_warm_up_then_cosine() -> None:
    """It rises in equal parts to the peak, falls through the middle, and ends near a tenth."""
    options = Options(out=Path("out"), steps=104, warmup=4, lr=1.0)
    rates = [get_lr(step, options) for step in range(104)]
    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert all(later < earlier for earlier, later in pairwise(rates[4:]))
    assert rates[54] == pytest.approx(0.55)
    assert rates[-1] == pytest.approx(0.1, abs=0.001)


def test_accumulation_is_the_mean_over_batches(options: MakeOptions, make_state: MakeState) -> None:
    """Two batches of 2 in one update move the weights as one batch of the same 4 sequences does."""
    training, _ = data.split(data.load_text(options()))
    twice = make_state(options(accumulation=2, dropout=0.0, order=Order.EPOCH))
    once = make_state(options(batch_size=4, dropout=0.0, order=Order.EPOCH))
    losses = [loop.update(state, training)[0] for state in (twice, once)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    for left, right in zip(twice.model.parameters(), once.model.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-3, atol=1e-5)


def test_training_learns(options: MakeOptions, make_state: MakeState) -> None:
    """The loss on held-out text falls well below that of guessing, and measuring it changes nothing."""
    state = make_state(options(steps=60, lr=0.02))
    training, held_out = data.split(data.load_text(state.options))
    generator = torch.get_rng_state()
    assert loop.evaluate(state, held_out) == pytest.approx(math.log(256), abs=0.05)
    assert torch.equal(torch.get_rng_state(), generator)
    for _ in range(60):
        loop.update(state, training)
    assert loop.evaluate(state, held_out) < 3.5


def test_lines_of_a_whole_run(options: MakeOptions, live: Live) -> None:
    """A step line after each update, an acknowledgement after each save; the last step is always saved."""
    lines = live(options(steps=7))
    assert [line.split(" lr")[0].split(" loss")[0] for line in lines] == [
        "starting from step 0",
        *("step 1", "step 2", "step 3", "saved step 3"),
        *("step 4", "step 5", "step 6", "saved step 6"),
        *("step 7", "saved step 7"),
    ]


@pytest.mark.parametrize("accumulation", [1, 2])
@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_interrupted_anywhere_ends_with_the_same_bits(
    options: MakeOptions, live: Live, tmp_path: Path, order: Order, dtype: str, accumulation: int
) -> None:
    """A run killed in every life, and one that never saves, end with the bits of the uninterrupted one."""
    chosen = {"order": order, "dtype": dtype, "accumulation": accumulation}
    live(options(**chosen))
    expected = final(tmp_path / "out")
    live(options(**chosen, out=tmp_path / "unsaved", save_every=0))
    assert [path.name for path in (tmp_path / "unsaved").iterdir()] == ["weights.pt"]
    assert final(tmp_path / "unsaved") == expected
    killed = options(**chosen, out=tmp_path / "killed")
    for step in (3, 6, 9, 12):
        assert live(killed, f"saved step {step}")[-1] == f"saved step {step}"
    assert live(killed) == ["resumed from resume.pt at step 12"]
    assert final(killed.out) == expected


@pytest.mark.parametrize("step", [3, 6, 9])
@pytest.mark.parametrize(
    "wrong",
    [
        {"save": SaveWay.HALF},
        {"save": SaveWay.MINIMIND, "forget": frozenset({Forget.RNG}), "order": Order.EPOCH},
        *({"forget": frozenset({part})} for part in Forget if part is not Forget.EPOCH_SKIP),
        {"forget": frozenset({Forget.BATCH_ORDER}), "order": Order.EPOCH},
        {"forget": frozenset({Forget.EPOCH_SKIP}), "order": Order.EPOCH},
    ],
)
def test_each_wrong_way_ends_with_other_bits(
    options: MakeOptions, live: Live, tmp_path: Path, wrong: dict[str, object], step: int
) -> None:
    """Uninterrupted it ends as the right way does; resumed from any save it does not."""
    live(options(order=wrong.get("order", Order.RANDOM)))
    live(options(**wrong, out=tmp_path / "wrong"))
    assert final(tmp_path / "wrong") == final(tmp_path / "out")
    killed = options(**wrong, out=tmp_path / "killed")
    live(killed, f"saved step {step}")
    live(killed)
    assert final(killed.out) != final(tmp_path / "out")


@pytest.mark.parametrize("way", [SaveWay.NO_FSYNC, SaveWay.IN_PLACE])
def test_unsafe_ways_are_exact_where_they_survive(
    options: MakeOptions, live: Live, tmp_path: Path, way: SaveWay
) -> None:
    """What is unsafe only while it writes resumes exactly from a save that was finished."""
    live(options())
    killed = options(save=way, out=tmp_path / "killed")
    live(killed, "saved step 6")
    live(killed)
    assert final(killed.out) == final(tmp_path / "out")


def test_damaged_newest_costs_one_save_and_no_bit(options: MakeOptions, live: Live, tmp_path: Path) -> None:
    """The run goes on from the previous file and ends with the same bits."""
    live(options())
    hurt = options(out=tmp_path / "hurt")
    live(hurt, "saved step 9")
    (hurt.out / "resume.pt").write_bytes(b"damaged")
    assert live(hurt, "step 7 ")[0] == "resumed from resume.prev.pt at step 6"
    assert final(hurt.out) == final(tmp_path / "out")


@pytest.mark.parametrize("state", ["missing", "damaged", "old", "of another run"])
def test_weights_are_brought_up_to_date(options: MakeOptions, live: Live, tmp_path: Path, state: str) -> None:
    """Resumed at the last step, a weights.pt that is not this run's newest is written again; nothing is trained."""
    live(options())
    expected, path = final(tmp_path / "out"), tmp_path / "out" / "weights.pt"
    whole = read(path, WEIGHTS_FORMAT)
    if state == "damaged":
        path.write_bytes(path.read_bytes()[:-1])
    elif state == "missing":
        path.unlink()
    else:
        publish(whole | ({"step": 9} if state == "old" else {"run_id": "other"}), path, SaveWay.DURABLE)
    lines = live(options())
    assert lines[0] == "resumed from resume.pt at step 12"
    assert lines[1].startswith("wrote weights.pt again: it was ")
    assert len(lines) == 2
    assert final(tmp_path / "out") == expected
    read(tmp_path / "out" / "weights.prev.pt", WEIGHTS_FORMAT)


def test_forgotten_step_restarts_the_schedule(options: MakeOptions, live: Live) -> None:
    """The counter begins again at 0, so the learning rate does."""
    forgetful = options(forget=frozenset({Forget.STEP}))
    first = live(forgetful, "saved step 6")
    second = live(forgetful, "saved step 3")
    assert second[0] == "resumed from resume.pt at step 0"
    assert [line.split("lr")[1] for line in first[1:4]] == [line.split("lr")[1] for line in second[1:4]]


def test_refusal_leaves_the_folder_alone(options: MakeOptions, live: Live, tmp_path: Path) -> None:
    """Without a whole checkpoint nothing is trained and nothing is written."""
    live(options(), "saved step 3")
    (tmp_path / "out" / "resume.pt").write_bytes(b"damaged")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(TrainerError, match="nothing to resume from"):
        live(options())
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--data", "missing.txt"], "No such file or directory: 'missing.txt'"),
        (["--device", "cuda"], "--device cuda was asked for, but torch sees no such device"),
    ],
)
def test_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, argv: list[str], sentence: str
) -> None:
    """What cannot work is exit status 1 and one sentence."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["--out", str(tmp_path / "out"), *argv]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert error.startswith("trainer: error: ")
    assert error.count("\n") == 1
