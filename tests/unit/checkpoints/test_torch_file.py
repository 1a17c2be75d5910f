"""Torch files are read as `torch.load` reads them, tensor by tensor and bit by bit, without torch."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_128_hexdigest

from chaos.checkpoints.examine import Examination, examine
from chaos.checkpoints.leaves import encoded

DTYPES = [
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128",
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu",
]
NAMES = [name for line in DTYPES for name in line.split() if hasattr(torch, name)]


def bits_of(tensor: torch.Tensor) -> bytes:
    """Return a tensor's bytes in row-major order."""
    flat = tensor.detach().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


def tensor_digest(tensor: torch.Tensor) -> str:
    """Return the digest that a tensor must have, worked out by torch."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return xxh3_128_hexdigest(f"{dtype}{list(tensor.shape)}:".encode() + bits_of(tensor))


def expected(value: Any, name: str = "") -> dict[str, str]:
    """Return the digest of every leaf of a structure that `torch.load` made, by name."""
    if isinstance(value, torch.Tensor):
        return {name or "value": tensor_digest(value)}
    if isinstance(value, dict | list | tuple) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        leaves: dict[str, str] = {}
        for key, item in items:
            leaves |= expected(item, f"{name}.{key}" if name else str(key))
        return leaves
    return {name or "value": xxh3_128_hexdigest(encoded(value))}


def seen(found: Examination) -> dict[str, str]:
    """Return the digests of an examination by name, without a state dict's version numbers, which are no entries."""
    assert found.is_whole, found.reason
    return {leaf.name: leaf.digest for leaf in found.leaves if "__dict__" not in leaf.name}


def saved(value: Any, path: Path) -> Examination:
    """Save with torch, examine, and require what torch itself loads."""
    torch.save(value, path)
    found = examine(path)
    assert seen(found) == expected(torch.load(path, weights_only=False))
    assert found.format == "torch"
    assert found.size_bytes == path.stat().st_size
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 3), (2, 0, 3), (2, 1, 3)])
def test_every_dtype_and_shape_is_read_as_torch_reads_it(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    """Each element type and shape, 0 dimensions and 0 elements included, has the digest of its bytes."""
    count = int(np.prod(shape))
    width = torch.empty(0, dtype=getattr(torch, name)).element_size()
    data = torch.arange(count * width, dtype=torch.uint8) % (2 if name == "bool" else 251)
    tensor = data.view(getattr(torch, name)).reshape(shape)
    found = saved({"x": tensor}, tmp_path / "a.pt")
    (leaf,) = found.leaves
    assert (leaf.is_tensor, leaf.dtype, leaf.shape, leaf.shown) == (True, name, shape, f"{name}{list(shape)}")


def test_a_training_state_is_read_as_torch_reads_it(training_state: dict[str, Any], tmp_path: Path) -> None:
    """Module and optimizer state, generator state and plain values are all there under their paths."""
    found = saved(training_state, tmp_path / "resume.pt")
    names = [leaf.name for leaf in found.leaves]
    assert names == sorted(names)
    assert {"model.0.weight", "optimizer.state.0.exp_avg", "optimizer.param_groups.0.lr", "flags.1"} <= set(names)


def test_views_are_read_by_what_they_show(tmp_path: Path) -> None:
    """Transposed, sliced, stepped, expanded and offset views count by their own elements, in order."""
    base = torch.arange(24.0).reshape(4, 6)
    views = {
        "transposed": base.t(),
        "column": base[:, 2],
        "stepped": base[::2, ::3],
        "offset": base.reshape(-1)[5:11],
        "expanded": torch.arange(3.0).reshape(3, 1).expand(3, 5),
        "permuted": torch.arange(24).reshape(2, 3, 4).permute(2, 0, 1),
        "single": base[1:2, :].t(),
    }
    saved(views, tmp_path / "a.pt")


def test_a_large_strided_view_is_gathered_in_pieces(tmp_path: Path) -> None:
    """A view of more than one chunk in several shapes has the right bytes in the right order."""
    tall = torch.arange(1_200_000, dtype=torch.int32).reshape(600_000, 2)
    wide = torch.arange(1_200_000, dtype=torch.int32).reshape(2, 600_000)
    saved({"tall": tall.t(), "wide": wide.t(), "one": wide.reshape(2, 1, 600_000).transpose(0, 2)}, tmp_path / "a.pt")


def test_a_shared_storage_is_read_once_for_all_its_tensors(tmp_path: Path) -> None:
    """Overlapping parts of one storage and two names of one tensor each have their own digest."""
    base = torch.arange(1_000_000.0)
    saved({"all": base, "again": base, "head": base[:10], "middle": base[300_000:700_000]}, tmp_path / "a.pt")


def test_parameters_count_by_their_tensors(tmp_path: Path) -> None:
    """A Parameter equals its tensor; attributes set on it are leaves of their own."""
    parameter = torch.nn.Parameter(torch.ones(2, 3))
    assert saved({"p": parameter}, tmp_path / "a.pt").digest == saved({"p": torch.ones(2, 3)}, tmp_path / "b.pt").digest
    parameter.note = "kept"  # type: ignore[attr-defined]
    torch.save({"p": parameter}, tmp_path / "c.pt")
    found = {leaf.name: leaf.shown for leaf in examine(tmp_path / "c.pt").leaves}
    assert found["p"] == "float32[2, 3]"
    assert "'kept'" in found.values()


def test_the_digest_does_not_depend_on_the_files_name(training_state: dict[str, Any], tmp_path: Path) -> None:
    """torch.save writes other bytes and another length under another name; the content is the same."""
    torch.save(training_state, tmp_path / "a.pt")
    torch.save(training_state, tmp_path / "a-much-longer-name.pt.tmp")
    one, two = examine(tmp_path / "a.pt"), examine(tmp_path / "a-much-longer-name.pt.tmp")
    assert one.size_bytes != two.size_bytes
    assert one.digest == two.digest
    assert one.leaves == two.leaves


def test_order_of_entries_does_not_matter_but_excluded_names_do(tmp_path: Path) -> None:
    """The canonical order is by name; an excluded leaf is listed and does not count."""
    torch.save({"a": torch.ones(2), "b": 1, "time": 17.0}, tmp_path / "a.pt")
    torch.save({"time": 18.0, "b": 1, "a": torch.ones(2)}, tmp_path / "b.pt")
    without = frozenset({"time"})
    assert examine(tmp_path / "a.pt").digest != examine(tmp_path / "b.pt").digest
    assert examine(tmp_path / "a.pt", without).digest == examine(tmp_path / "b.pt", without).digest
    assert "time" in {leaf.name for leaf in examine(tmp_path / "a.pt", without).leaves}


@pytest.mark.parametrize(
    "pair",
    [
        (0.0, -0.0),
        (struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0], float("nan")),
        (1, True),
        (1, 1.0),
        (0, None),
        ("a", b"a"),
        ({0: 1}, {"0": 1}),
        ([], ()),
        ({}, []),
        (torch.tensor(0.0), torch.tensor(-0.0)),
        (torch.tensor([1, 2]), torch.tensor([1.0, 2.0])),
        (torch.ones(2, 3), torch.ones(3, 2)),
        (torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32), torch.tensor([float("nan")])),
    ],
)
def test_what_is_equal_in_value_only_is_told_apart(pair: tuple[Any, Any], tmp_path: Path) -> None:
    """Bits, types, dtypes and shapes count: zeros of both signs and NaNs of other payloads differ."""
    torch.save({"x": pair[0]}, tmp_path / "a.pt")
    torch.save({"x": pair[1]}, tmp_path / "b.pt")
    one, two = examine(tmp_path / "a.pt"), examine(tmp_path / "b.pt")
    assert one.is_whole
    assert two.is_whole
    assert one.digest != two.digest


def test_a_nan_equals_itself(tmp_path: Path) -> None:
    """The same bits are the same content, also where `==` says otherwise."""
    for name in ("a.pt", "b.pt"):
        torch.save({"x": torch.full((3,), float("nan")), "y": float("nan")}, tmp_path / name)
    assert examine(tmp_path / "a.pt").digest == examine(tmp_path / "b.pt").digest


def test_two_paths_that_look_alike_stay_two_leaves(tmp_path: Path) -> None:
    """A key with a dot and a nested key give the same path; both values count."""
    torch.save({"a.b": 1, "a": {"b": 2}}, tmp_path / "a.pt")
    assert [leaf.name for leaf in examine(tmp_path / "a.pt").leaves] == ["a.b", "a.b#2"]


def test_numpy_arrays_and_scalars_in_a_torch_file_are_leaves(tmp_path: Path) -> None:
    """Generator states of numpy, arrays of several orders and dtypes, and numpy's scalars are read."""
    value = {
        "state": np.random.RandomState(3).get_state(),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(3, dtype=">i4"),
        "objects": np.array([1, "x"], dtype=object),
        "best": np.float64(0.25),
    }
    torch.save(value, tmp_path / "a.pt")
    leaves = {leaf.name: leaf for leaf in examine(tmp_path / "a.pt").leaves}
    assert leaves["state.1"].shape == (624,)
    assert leaves["fortran"].digest == tensor_digest(torch.arange(6.0, dtype=torch.float64).reshape(2, 3))
    assert leaves["big"].dtype == ">int32"
    assert (leaves["objects.0"].shown, leaves["objects.1"].shown) == ("1", "'x'")
    assert (leaves["best"].is_tensor, leaves["best"].dtype) == (False, "numpy.float64")


def test_the_legacy_format_is_named(tmp_path: Path) -> None:
    """A file in the format before torch 1.6 is recognised and not judged."""
    path = tmp_path / "old.pt"
    torch.save({"x": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    found = examine(path)
    assert found.is_whole is None
    assert found.format == "torch"
    assert "legacy" in found.reason


KEYS = st.text(max_size=8) | st.integers()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=20)
STRUCTURES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


@given(STRUCTURES)
def test_any_plain_structure_is_whole_and_the_same_twice(
    tmp_path_factory: pytest.TempPathFactory, structure: object
) -> None:
    """Whatever is nested, saving it under two names gives one digest, and names are distinct."""
    folder = tmp_path_factory.mktemp("any")
    torch.save(structure, folder / "a.pt")
    torch.save(structure, folder / "other.pt")
    one, two = examine(folder / "a.pt"), examine(folder / "other.pt")
    assert one.is_whole, one.reason
    assert one.digest == two.digest
    assert len({leaf.name for leaf in one.leaves}) == len(one.leaves) > 0


def test_torch_is_never_imported(tmp_path: Path) -> None:
    """A process that examines a torch file has not imported torch afterwards."""
    torch.save({"x": torch.ones(2)}, tmp_path / "a.pt")
    code = (
        "import sys; from pathlib import Path; from chaos.checkpoints.examine import examine; "
        "assert examine(Path(sys.argv[1])).is_whole; assert not {'torch', 'numpy'} & sys.modules.keys()"
    )
    root = Path(sys.modules["chaos.checkpoints.examine"].__file__ or "").parents[2]
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.pt")], check=True, cwd=root, timeout=60)
