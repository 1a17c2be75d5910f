"""Comparison by bits: counts, distances and names."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from chaos.checkpoints.compare import compare
from chaos.checkpoints.elements import ElementDifference
from chaos.errors import UsageError
from chaos.model import TensorDifference


def _compared(left: Any, right: Any, folder: Path, without: frozenset[str] = frozenset()) -> TensorDifference:
    """Save two structures and compare the files."""
    torch.save(left, folder / "left.pt")
    torch.save(right, folder / "right.pt")
    return compare(folder / "left.pt", folder / "right.pt", without)


def test_equal_checkpoints_have_no_difference(tmp_path: Path) -> None:
    """Everything is counted and nothing differs, NaN included."""
    value = {"a": torch.full((2, 3), float("nan")), "b": torch.ones(4), "n": 1}
    assert _compared(value, value, tmp_path) == TensorDifference(tensors=2, elements=10)


def test_each_kind_of_difference_is_told_apart(tmp_path: Path) -> None:
    """Elements, values, names on one side only, shapes and dtypes; the first name is the first in order."""
    left = {"w": torch.ones(2, 3), "z": torch.zeros(2), "n": 1, "l": 0, "s": torch.ones(2), "d": torch.ones(2), "k": 1}
    right = {"w": torch.ones(2, 3), "z": torch.zeros(2), "n": 2, "r": 0, "s": torch.ones(3), "d": torch.ones(2).half()}
    right["k"] = torch.tensor(1)
    right["w"] = left["w"].clone()  # type: ignore[union-attr]
    right["w"][1, 2] = 1.5
    found = _compared(left, right, tmp_path)
    assert found == TensorDifference(
        tensors=4,
        tensors_differing=3,
        elements=8,
        elements_differing=1,
        largest_absolute=0.5,
        largest_ulp=2**22,
        first_name="d",
        leaves_differing=("n",),
        only_left=("l",),
        only_right=("r",),
        shape_or_dtype=("d", "k", "s"),
    )
    assert "n" not in _compared(left, right, tmp_path, frozenset({"n"})).leaves_differing


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_one_ulp_is_one(name: str, tmp_path: Path) -> None:
    """The next number up is 1 away, across an exponent's border too; the sum of both sides of zero counts."""
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    one = torch.tensor([1.0, 0.0, -2.0], dtype=getattr(torch, name))
    integers = one.view(bits[one.element_size()])
    next_up = (integers + torch.tensor([1, 0, 0], dtype=integers.dtype)).view(one.dtype)
    found = _compared(one, next_up, tmp_path)
    assert (found.elements_differing, found.largest_ulp) == (1, 1)
    assert found.largest_absolute == torch.finfo(one.dtype).eps
    signs = _compared(torch.tensor([0.0], dtype=one.dtype), torch.tensor([-0.0], dtype=one.dtype), tmp_path)
    assert (signs.elements_differing, signs.largest_ulp, signs.largest_absolute) == (1, 0, 0.0)
    tiny = torch.tensor([3], dtype=integers.dtype).view(one.dtype)
    assert _compared(tiny, -tiny, tmp_path).largest_ulp == 6


def test_infinity_and_nan_count_as_the_largest_number(tmp_path: Path) -> None:
    """A difference that is no finite number stays one that JSON can hold; two NaNs differ by their payload."""
    found = _compared(torch.tensor([1.0, 2.0]), torch.tensor([float("inf"), 2.0]), tmp_path)
    assert found.largest_absolute == sys.float_info.max
    found = _compared(torch.tensor([1.0, 2.0]), torch.tensor([1.0, float("nan")]), tmp_path)
    assert found.largest_absolute == sys.float_info.max
    payload = torch.tensor([0x7FC00005], dtype=torch.int32).view(torch.float32)
    found = _compared(torch.tensor([float("nan")]), payload, tmp_path)
    assert (found.elements_differing, found.largest_absolute, found.largest_ulp) == (1, 0.0, 5)


@pytest.mark.parametrize(
    ("dtype", "left", "right", "distance"),
    [
        (torch.int64, -(2**63), 2**63 - 1, 2**64 - 1),
        (torch.uint8, 3, 250, 247),
        (torch.int8, -128, 127, 255),
        (torch.bool, True, False, 1),
        (torch.complex64, 1 + 1j, 1 + 3j, 2),
    ],
)
def test_integers_and_others_have_true_distances(
    dtype: torch.dtype, left: Any, right: Any, distance: int, tmp_path: Path
) -> None:
    """No overflow between the ends of a type."""
    found = _compared(torch.tensor([left], dtype=dtype), torch.tensor([right], dtype=dtype), tmp_path)
    assert (found.elements_differing, found.largest_absolute) == (1, float(distance))


def test_narrow_floats_are_counted(tmp_path: Path) -> None:
    """Dtypes that numpy lacks are compared by their bytes."""
    data = torch.arange(8, dtype=torch.uint8)
    found = _compared(data.view(torch.float8_e5m2), (data + 1).view(torch.float8_e5m2), tmp_path)
    assert (found.elements_differing, found.largest_absolute) == (8, 0.0)


def test_layout_and_container_do_not_matter(tmp_path: Path) -> None:
    """A transposed view equals its contiguous copy, and a safetensors file a torch file."""
    base = torch.arange(600_000.0).reshape(300, 2000)
    torch.save({"w": base.t()}, tmp_path / "a.pt")
    changed = base.t().contiguous()
    changed[1999, 299] += 1
    save_file({"w": changed}, tmp_path / "b.safetensors")
    found = compare(tmp_path / "a.pt", tmp_path / "b.safetensors")
    assert (found.tensors, found.elements, found.elements_differing) == (1, 600_000, 1)


def test_folders_are_compared_file_by_file(tmp_path: Path) -> None:
    """The first name has the file in it."""
    for name, value in (("left", 1.0), ("right", 2.0)):
        (tmp_path / name).mkdir()
        for file in ("a.pt", "b.pt"):
            torch.save({"w": torch.tensor([value]), "same": torch.ones(2)}, tmp_path / name / file)
    found = compare(tmp_path / "left", tmp_path / "right")
    assert (found.tensors, found.tensors_differing, found.first_name) == (4, 2, "a.pt/w")
    assert found.elements_differing == 2


def test_what_is_not_whole_cannot_be_compared(tmp_path: Path) -> None:
    """A damaged side is the user's to mend, with its name and the reason."""
    torch.save(torch.ones(2), tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes(b"")
    with pytest.raises(UsageError, match=r"b\.pt cannot be compared: it is empty"):
        compare(tmp_path / "a.pt", tmp_path / "b.pt")


FLOATS = st.lists(st.floats(width=32), min_size=1, max_size=20)


@given(FLOATS, st.data())
def test_distances_agree_with_a_slow_count(left: list[float], data: st.DataObject) -> None:
    """Number, absolute and ulp distance equal those worked out one by one with Python's own numbers."""
    right = data.draw(st.lists(st.floats(width=32), min_size=len(left), max_size=len(left)))
    pair = [np.array(side, dtype=np.float32) for side in (left, right)]
    difference = ElementDifference()
    difference.add_piece("float32", 4, *(bytearray(side.tobytes()) for side in pair))
    bits = [[int(bits) for bits in side.view(np.uint32)] for side in pair]
    ordered = [[-(b & 0x7FFFFFFF) if b >> 31 else b for b in side] for side in bits]
    assert difference.differing == sum(one != two for one, two in zip(*bits, strict=True))
    assert difference.largest_ulp == max(abs(one - two) for one, two in zip(*ordered, strict=True))
    apart = [
        0.0 if (math.isnan(one) and math.isnan(two)) or one == two else abs(one - two)
        for one, two in zip(left, right, strict=True)
    ]
    assert difference.largest_absolute == max(x if math.isfinite(x) else sys.float_info.max for x in apart)
