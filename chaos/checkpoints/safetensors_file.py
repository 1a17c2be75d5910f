"""Reads safetensors: a length, a JSON header with each tensor's place, the bytes without gaps; no checksum."""

from __future__ import annotations

import json
import math
from typing import TypeGuard

from chaos.checkpoints.contents import Contents
from chaos.checkpoints.damage import DamagedError
from chaos.checkpoints.leaves import scalar_leaf
from chaos.checkpoints.tensors import ITEM_BYTES, PlainStorage, Tensor, contiguous_strides
from chaos.checkpoints.window import Window

MAX_HEADER_BYTES = 100_000_000
LENGTH_BYTES = 8
DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
# Elements narrower than a byte: bits each; such a tensor is kept as its packed bytes.
PACKED_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


def read_safetensors(window: Window) -> Contents:
    """Return the contents of a safetensors file; raises DamagedError."""
    if window.size < LENGTH_BYTES:
        raise DamagedError("it is cut short: its header's length is missing")
    length = int.from_bytes(window.read(0, LENGTH_BYTES), "little")
    if length > min(MAX_HEADER_BYTES, window.size - LENGTH_BYTES):
        raise DamagedError(f"its header should have {length} bytes, which are not there")
    header = _header(window.read(LENGTH_BYTES, length))
    data = PlainStorage(window.part(LENGTH_BYTES + length, window.size - LENGTH_BYTES - length))
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise DamagedError("its header is damaged")
    leaves = [scalar_leaf(f"__metadata__.{key}", value) for key, value in metadata.items()]
    places = [_place(name, entry) for name, entry in header.items()]
    _require_no_gaps([(start, stop) for _, _, start, stop in places], data.size_bytes)
    tensors = [(name, _tensor(name, header[name], start, data)) for name, _, start, _ in places]
    return Contents("safetensors", leaves, tensors, [data])


def _header(text: bytes) -> dict[str, object]:
    """Return the decoded header; raises DamagedError when it is not a JSON object with distinct keys."""

    def distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
        """Build an object; raises ValueError on a repeated key."""
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError
        return result

    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        raise DamagedError("its header is damaged") from error
    if not isinstance(header, dict):
        raise DamagedError("its header is damaged")
    return header


def _place(name: str, entry: object) -> tuple[str, str, int, int]:
    """Return name, dtype, start and stop of a tensor; raises DamagedError when they do not fit its shape."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise DamagedError(f"its header is damaged at {name}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or not _is_numbers(shape) or not _is_numbers(offsets) or len(offsets) != len("se"):
        raise DamagedError(f"its header is damaged at {name}")
    bits = PACKED_BITS.get(dtype) or 8 * ITEM_BYTES.get(DTYPES.get(dtype, ""), 0)
    if not bits:
        raise DamagedError(f"its header names an unknown dtype at {name}")
    start, stop = offsets
    if start > stop or math.prod(shape) * bits != 8 * (stop - start):
        raise DamagedError(f"the bytes of {name} do not fit its shape")
    return name, dtype, start, stop


def _is_numbers(value: object) -> TypeGuard[list[int]]:
    """Tell whether this is a list of whole numbers from 0."""
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _require_no_gaps(spans: list[tuple[int, int]], size_bytes: int) -> None:
    """Raise DamagedError unless the spans cover all data exactly once, as the format demands."""
    at = 0
    for start, stop in sorted(spans):
        if start != at:
            raise DamagedError("its tensors overlap or leave gaps")
        at = stop
    if at != size_bytes:
        raise DamagedError(f"its tensors end at byte {at} of {size_bytes}")


def _tensor(name: str, entry: object, start: int, data: PlainStorage) -> Tensor:
    """Return the tensor of a checked header entry."""
    if not isinstance(entry, dict):
        raise DamagedError(f"its header is damaged at {name}")
    dtype, shape = str(entry["dtype"]), tuple(entry["shape"])
    if dtype in PACKED_BITS:
        size = math.prod(shape) * PACKED_BITS[dtype] // 8
        return Tensor(f"{dtype}{list(shape)}", 1, (size,), (1,), start, data)
    width = ITEM_BYTES[DTYPES[dtype]]
    return Tensor(DTYPES[dtype], width, shape, contiguous_strides(shape, width), start, data)
