"""Readings: what a difference looks like, in sentences; and nothing where it looks like nothing known."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.torch import save_file

from chaos.checkpoints.diff import diff
from chaos.checkpoints.rounding import Guess, Guesses

HALVES = ("float16", "bfloat16")


def _said(left: Any, right: Any, folder: Path) -> tuple[str, ...]:
    """Return the readings of two structures that are saved by torch."""
    torch.save(left, folder / "a.pt")
    torch.save(right, folder / "b.pt")
    return diff(folder / "a.pt", folder / "b.pt").readings


def _save(state: dict[str, torch.Tensor], path: Path) -> None:
    """Save tensors in the format that the suffix names."""
    if path.suffix == ".npz":
        np.savez(path, **{name: value.numpy() for name, value in state.items()})
    elif path.suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save(state, path)


@pytest.fixture
def state(training_state: dict[str, Any]) -> dict[str, Any]:
    """Give a training state without buffers that are all zero or one."""
    training_state["model"] = {name: torch.randn(40) for name in ("fc1.weight", "fc1.bias", "fc2.weight")}
    return training_state


def test_equal_ones_say_nothing(state: dict[str, Any], tmp_path: Path) -> None:
    """No difference, no reading."""
    assert _said(state, state, tmp_path) == ()


def test_another_number_says_only_where(state: dict[str, Any], tmp_path: Path) -> None:
    """A difference that looks like nothing known names the component alone."""
    other = copy.deepcopy(state)
    other["model"]["fc1.weight"] += 0.25
    assert _said(state, other, tmp_path) == ("only the weights differ",)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("is_swapped", [True, False])
def test_weights_in_half_precision(
    half: str,
    is_stored: bool,  # noqa: FBT001 - a parameter of the test
    is_swapped: bool,  # noqa: FBT001 - a parameter of the test
    state: dict[str, Any],
    tmp_path: Path,
) -> None:
    """Rounded weights are told on either side, stored as the half or widened again."""
    other = copy.deepcopy(state)
    for name, value in other["model"].items():
        rounded = value.to(getattr(torch, half))
        other["model"][name] = rounded if is_stored else rounded.float()
    said = _said(*((other, state) if is_swapped else (state, other)), tmp_path)
    stored = f" and stored as {half}" if is_stored else ""
    one, two = ("A", "B") if is_swapped else ("B", "A")
    assert said == (
        "only the weights differ", f"{one}'s weights equal {two}'s rounded to {half}{stored} (in 3 of 3 tensors)",
    )  # fmt: skip


def test_a_wider_dtype_with_the_same_numbers(tmp_path: Path) -> None:
    """No number differs where float32 is kept as float64; rounding to float32 is told where it was one."""
    single = torch.randn(50)
    said = _said({"w": single}, {"w": single.double()}, tmp_path)
    assert said == ("only the weights differ", "no number of the weights differs, only the dtype (in 1 of 1 tensor)")
    said = _said({"w": torch.randn(50, dtype=torch.float64)}, {"w": torch.ones(50).float()}, tmp_path)
    assert said == ("only the weights differ",)
    double = torch.randn(50, dtype=torch.float64)
    said = _said({"w": double}, {"w": double.float()}, tmp_path)
    assert said[1] == "B's weights equal A's rounded to float32 and stored as float32 (in 1 of 1 tensor)"


def test_an_optimizer_that_began_anew(state: dict[str, Any], tmp_path: Path) -> None:
    """Zero moments are told by key, with how many tensors; the counter by its values."""
    other = copy.deepcopy(state)
    for slot in other["optimizer"]["state"].values():
        slot["exp_avg"].zero_()
        slot["step"].zero_()
    other["optimizer"]["state"][0]["exp_avg_sq"].zero_()
    said = _said(state, other, tmp_path)
    num_nonzero = sum(bool(slot["exp_avg"].any()) for slot in state["optimizer"]["state"].values())
    num_slots = len(state["optimizer"]["state"])
    assert f"B's exp_avg is all zero (in {num_nonzero} of {num_slots} tensors)" in said
    assert f"B's exp_avg_sq is all zero (in 1 of {num_slots} tensors)" in said
    assert "the optimizer's step counter differs: 1 against 0" in said
    assert not any("rounded" in sentence for sentence in said)
    assert f"A's exp_avg is all zero (in {num_nonzero} of {num_slots} tensors)" in _said(other, state, tmp_path)


def test_a_zero_sign_is_no_zero(tmp_path: Path) -> None:
    """-0.0 against 0.0: no number differs, and neither side is told to be rounded."""
    said = _said({"w": torch.tensor([0.0, 1.5])}, {"w": torch.tensor([-0.0, 1.5])}, tmp_path)
    assert said[0] == "only the weights differ"
    assert "no number of the weights differs, only signs of zeros or payloads of NaNs (in 1 of 1 tensor)" in said


@pytest.mark.parametrize("kind", ["pt", "npz", "safetensors"])
def test_zeros_of_other_signs_are_no_missing_weights(kind: str, tmp_path: Path) -> None:
    """Where both sides are zero in all elements, of whichever sign, only signs are told, in every format."""
    state = {"bias": torch.zeros(300_000), "half": torch.zeros(3).half()}
    for name, sign in (("a", 1.0), ("b", -1.0)):
        _save({key: value * sign for key, value in state.items()}, tmp_path / f"{name}.{kind}")
    said = diff(tmp_path / f"a.{kind}", tmp_path / f"b.{kind}").readings
    assert said == (
        "only the weights differ",
        "no number of the weights differs, only signs of zeros or payloads of NaNs (in 2 of 2 tensors)",
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zeros_of_any_sign_against_numbers_are_told(dtype: torch.dtype, zero: float, tmp_path: Path) -> None:
    """A side is all zero where the other one is not, also if its zeros are negative."""
    numbers = torch.tensor([-0.0] * 50 + [1e-6]).to(dtype)
    said = _said({"w": numbers}, {"w": torch.full((51,), zero, dtype=dtype)}, tmp_path)
    what = "other tensors" if dtype.is_complex else "weights"
    assert said == (f"only the {what} differ", f"B's {what} are all zero (in 1 of 1 tensor)")


def test_zeros_in_another_dtype_differ_by_the_dtype_alone(tmp_path: Path) -> None:
    """Zeros that are kept as halves are as zero as before."""
    said = _said({"w": torch.zeros(5)}, {"w": torch.zeros(5).half()}, tmp_path)
    assert said == ("only the weights differ", "no number of the weights differs, only the dtype (in 1 of 1 tensor)")


def test_the_metadata_of_a_state_dict_is_no_reading(tmp_path: Path) -> None:
    """A state dict against a plain dict of the same tensors, rounded: the rounding is told, the versions are not."""
    module = torch.nn.Linear(40, 2)
    plain = {name: value.half().float() for name, value in module.state_dict().items()}
    rounded = "B's weights equal A's rounded to float16 (in 2 of 2 tensors)"
    assert _said({"model": module.state_dict()}, {"model": plain}, tmp_path) == (rounded,)
    assert _said(module.state_dict(), plain, tmp_path) == (rounded,)
    found = diff(tmp_path / "a.pt", tmp_path / "b.pt")
    assert any("_metadata" in leaf.name for component in found.components for leaf in component.shown)


def test_readings_of_weights_come_before_what_is_missing_elsewhere(state: dict[str, Any], tmp_path: Path) -> None:
    """The order is that of the table: weights, then the optimizer, generators, and other values last."""
    other = copy.deepcopy(state)
    other["model"] = {name: value.half().float() for name, value in other["model"].items()}
    del other["optimizer"], other["generator"]
    state["note"] = "x"
    said = [sentence.partition(":")[0] for sentence in _said(state, other, tmp_path)]
    assert said == [
        "B's weights equal A's rounded to float16 (in 3 of 3 tensors)",
        "B has no optimizer state",
        "B has no generators",
        *said[3:],
    ]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """Files that only one folder has are told by name, a few of them, and not those that were ignored."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        save_file({"w": torch.ones(2)}, tmp_path / name / "model.safetensors")
    torch.save({"cpu": torch.arange(4, dtype=torch.uint8)}, tmp_path / "a" / "rng_state.pth")
    assert diff(tmp_path / "a", tmp_path / "b").readings[-1] == "rng_state.pth is only in A"
    assert diff(tmp_path / "a", tmp_path / "b", ignored=("rng_state*",)).readings == ()
    for number in range(5):
        (tmp_path / "b" / f"{number}.json").write_text('{"x": 1}')
    last = diff(tmp_path / "a", tmp_path / "b").readings[-2:]
    assert last == ("rng_state.pth is only in A", "0.json, 1.json, 2.json and 2 more are only in B")


def test_a_whole_training_in_a_file_called_model(state: dict[str, Any], tmp_path: Path) -> None:
    """Folders whose only file is `model.pt`: what is lost of the optimizer is told as the optimizer's."""
    other = copy.deepcopy(state)
    for slot in other["optimizer"]["state"].values():
        slot["exp_avg"].fill_(3.0)
    for name, content in (("a", state), ("b", other)):
        (tmp_path / name).mkdir()
        torch.save(content, tmp_path / name / "model.pt")
    found = diff(tmp_path / "a", tmp_path / "b")
    assert found.readings == ("only the optimizer's exp_avg differs",)
    assert {"weights", "optimizer state: exp_avg_sq", "generators"} <= {one.name for one in found.components}


def test_counters_alone(state: dict[str, Any], tmp_path: Path) -> None:
    """Both counters and the file's own checksum, and nothing else: one sentence with the values."""
    other = copy.deepcopy(state)
    state["step"], state["checksum"] = 30, "aa"
    other["step"], other["checksum"] = 0, "bb"
    assert _said(state, other, tmp_path) == (
        "only the step counter differs (and the checksum that the file holds of itself): 30 against 0",
    )
    for slot in state["optimizer"]["state"].values():
        slot["step"].fill_(30.0)
    for slot in other["optimizer"]["state"].values():
        slot["step"].zero_()
    assert _said(state, other, tmp_path) == (
        "only the step counters differ (and the checksum that the file holds of itself): 30 against 0",
    )
    other["step"] = 1
    assert _said(state, other, tmp_path)[0].endswith(
        "only the step counters differ (and the checksum that the file holds of itself)"
    )


def test_what_is_on_one_side_only(state: dict[str, Any], tmp_path: Path) -> None:
    """A file without the optimizer has none, in one sentence; the same of generators."""
    other = {name: value for name, value in state.items() if name not in {"optimizer", "generator"}}
    said = _said(state, other, tmp_path)
    assert "B has no generators: 1 leaf is only in A" in said
    (sentence,) = (sentence for sentence in said if "optimizer" in sentence)
    assert sentence.startswith("B has no optimizer state: ")
    assert _said(other, state, tmp_path)[0].startswith("A has no optimizer state: ")


@pytest.mark.parametrize("head", ["", "model."])
def test_wrapped_models_have_other_names(head: str, tmp_path: Path) -> None:
    """The text that a wrapper puts into all names is found, at the front or behind what all share."""
    left = {f"{head}{name}": torch.ones(2) for name in ("fc.weight", "fc.bias", "norm.weight")}
    right = {f"{head}module.{name[len(head) :]}": value for name, value in left.items()}
    sentence = "with `module.` put in, what only {} has is called as what only {} has (3 names)"
    assert sentence.format("A", "B") in _said(left, right, tmp_path)
    assert sentence.format("B", "A") in _said(right, left, tmp_path)
    right[f"{head}module.norm.weight2"] = right.pop(f"{head}module.norm.weight")
    assert not any("put in" in sentence for sentence in _said(left, right, tmp_path))


def test_some_rounded_tensors_are_no_rounding(state: dict[str, Any], tmp_path: Path) -> None:
    """One tensor that is not the rounded one keeps the whole component from being told so."""
    other = copy.deepcopy(state)
    other["model"] = {name: value.half().float() for name, value in other["model"].items()}
    other["model"]["fc2.weight"][3] += 1
    assert _said(state, other, tmp_path) == ("only the weights differ",)


def test_zeros_in_front_of_the_difference_count(tmp_path: Path) -> None:
    """A tensor of several pieces is all zero only if the pieces that are equal are so, too."""
    base = torch.zeros(400_000)
    left = base.clone()
    left[-1] = 1.0
    save_file({"w": left}, tmp_path / "a.safetensors")
    save_file({"w": base}, tmp_path / "b.safetensors")
    assert (
        "B's weights are all zero (in 1 of 1 tensor)"
        in diff(tmp_path / "a.safetensors", tmp_path / "b.safetensors").readings
    )
    left[0] = base[0] = 2.0
    save_file({"w": left}, tmp_path / "a.safetensors")
    save_file({"w": base}, tmp_path / "b.safetensors")
    assert not any(
        "zero" in sentence for sentence in diff(tmp_path / "a.safetensors", tmp_path / "b.safetensors").readings
    )


@given(
    arrays.arrays(np.float32, st.integers(1, 3000), elements=st.floats(width=32)),
    st.sampled_from(HALVES),
    st.booleans(),
)
def test_rounding_is_that_of_torch(values: np.ndarray[Any, np.dtype[np.float32]], half: str, is_stored: bool) -> None:  # noqa: FBT001 - drawn
    """Whatever the numbers (infinite, subnormal, NaN), what torch rounds is recognised, and nothing near it is."""
    single = torch.from_numpy(values.copy())
    rounded = single.to(getattr(torch, half))
    other = rounded if is_stored else rounded.float()
    data = [bytearray(side.view(torch.uint8).numpy().tobytes()) for side in (single, other)]
    guesses = Guesses("float32", half if is_stored else "float32")
    guesses.see(*data)
    assert Guess(f"right rounded to {half}") in guesses.left_over
    finite = [at for at, value in enumerate(other.float().tolist()) if np.isfinite(value) and value != 0.0]
    if finite:
        other = other.clone()
        other[finite[-1]] *= -1
        guesses.see(data[0], bytearray(other.view(torch.uint8).numpy().tobytes()))
        assert Guess(f"right rounded to {half}") not in guesses.left_over


@pytest.mark.parametrize("is_swapped", [False, True])
def test_an_optimizer_made_anew_has_no_state(
    is_swapped: bool,  # noqa: FBT001 - a parameter of the test
    state: dict[str, Any],
    tmp_path: Path,
) -> None:
    """Settings and an empty dict are all that a fresh optimizer has: its state is missing on that side, not here."""
    other = copy.deepcopy(state)
    other["optimizer"]["state"] = {}
    leaves = 3 * len(state["optimizer"]["state"])
    has, lacks = ("B", "A") if is_swapped else ("A", "B")
    said = _said(*((other, state) if is_swapped else (state, other)), tmp_path)
    assert said == (f"{lacks} has no optimizer state: {leaves} leaves are only in {has}",)


def test_an_empty_container_is_no_state(state: dict[str, Any], tmp_path: Path) -> None:
    """A dict with nothing in it on one side does not make the other side lack it."""
    other = copy.deepcopy(state)
    other["ema"] = {}
    assert not any("has no" in reading for reading in _said(state, other, tmp_path))


@pytest.mark.parametrize(("one", "two", "is_bit"), [(["a", "b"], ["a", "c"], False), ([1, 2], [1, 3], True)])
def test_another_letter_is_no_bit_that_flipped(one: list[Any], two: list[Any], is_bit: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter of the test
    """`b` and `c` are one bit apart, and a text is still no number."""
    for name, values in (("a", one), ("b", two)):
        np.save(tmp_path / f"{name}.npy", np.array(values))
    readings = diff(tmp_path / "a.npy", tmp_path / "b.npy").readings
    assert any("a single bit differs" in reading for reading in readings) is is_bit
