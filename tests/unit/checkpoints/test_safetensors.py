"""Safetensors: read as the library reads it; a header that lies about the data is damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from chaos.checkpoints.examine import examine

NAMES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2"
)


def test_the_same_tensors_have_the_same_digests_as_in_a_torch_file(tmp_path: Path) -> None:
    """Each dtype and shape gives, leaf by leaf, what the same tensor gives in a torch file."""
    tensors = {
        f"{name}.{rank}": torch.arange(6).to(getattr(torch, name)).reshape(shape)
        for name in NAMES.split()
        for rank, shape in enumerate([(6,), (2, 3)])
    }
    tensors["empty"], tensors["scalar"] = torch.empty(0, 3), torch.tensor(1.5)
    save_file(tensors, tmp_path / "a.safetensors")
    torch.save(tensors, tmp_path / "a.pt")
    one, two = examine(tmp_path / "a.safetensors"), examine(tmp_path / "a.pt")
    assert one.is_whole
    assert one.format == "safetensors"
    assert one.leaves == two.leaves
    assert one.digest == two.digest


def test_metadata_counts(tmp_path: Path) -> None:
    """The texts beside the tensors are leaves."""
    save_file({"w": torch.ones(2)}, tmp_path / "a.safetensors", metadata={"step": "30"})
    assert [(leaf.name, leaf.shown) for leaf in examine(tmp_path / "a.safetensors").leaves] == [
        ("__metadata__.step", "'30'"),
        ("w", "float32[2]"),
    ]


def _write(path: Path, header: object, data: bytes, length: int | None = None) -> None:
    """Write a safetensors file from its parts."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)


def _entry(start: int, stop: int, shape: list[Any], dtype: Any = "F32") -> dict[str, Any]:
    """Return one entry of a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


GOOD = {"a": _entry(0, 8, [2]), "b": _entry(8, 12, [1])}


def test_the_made_file_is_a_true_one(tmp_path: Path) -> None:
    """The file that the next test bends is whole when nothing is bent."""
    _write(tmp_path / "a.safetensors", GOOD, bytes(range(12)))
    assert examine(tmp_path / "a.safetensors").is_whole


@pytest.mark.parametrize(
    "header",
    [
        {**GOOD, "b": _entry(8, 16, [2])},
        {**GOOD, "b": _entry(4, 8, [1])},
        {**GOOD, "b": _entry(9, 13, [1])},
        {"a": GOOD["a"]},
        {**GOOD, "b": _entry(12, 8, [1])},
        {**GOOD, "b": _entry(8, 12, [2])},
        {**GOOD, "b": _entry(8, 12, [1], "F33")},
        {**GOOD, "b": _entry(8, 12, [1], None)},
        {**GOOD, "b": _entry(8, 12, [-1])},
        {**GOOD, "b": _entry(8, 12, [True])},
        {**GOOD, "b": _entry(8, 12, [2**70])},
        {**GOOD, "b": {"dtype": "F32"}},
        {**GOOD, "b": 3},
        {**GOOD, "__metadata__": 3},
        [],
        b'{"a": %s, "a": %s}' % (2 * (json.dumps({"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}).encode(),)),
        b"{" * 100_000,
        b"{\xff}",
    ],
)
def test_a_header_that_does_not_fit_the_data_is_damage(header: object, tmp_path: Path) -> None:
    """Gaps, overlaps, wrong sizes, unknown dtypes, repeated names and what is no header at all are not whole."""
    _write(tmp_path / "a.safetensors", header, bytes(range(12)))
    assert examine(tmp_path / "a.safetensors").is_whole is False


@pytest.mark.parametrize("length", [2**63, 100_000_001, 10**6, 1])
def test_a_length_that_is_not_there_is_damage(length: int, tmp_path: Path) -> None:
    """A header's length beyond the file, or beyond what the format allows, is refused without reading."""
    _write(tmp_path / "a.safetensors", GOOD, bytes(range(12)), length)
    assert examine(tmp_path / "a.safetensors").is_whole is False
