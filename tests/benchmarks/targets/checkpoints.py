"""Write checkpoints of three formats to compare: `a` and `b` equal, every element of `c` another number.

python checkpoints.py FOLDER BYTES
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

TENSORS: Final = 16
Arrays = dict[str, np.ndarray[Any, np.dtype[np.float32]]]


def save_safetensors(arrays: Arrays, path: Path) -> None:
    """Write the length of the header, the header, the bytes."""
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": (at, at + array.nbytes)}
        at += array.nbytes
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(array.data)


def save_torch(arrays: Arrays, path: Path) -> None:
    """Write as torch does."""
    torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, path)


def save_npz(arrays: Arrays, path: Path) -> None:
    """Write as numpy does."""
    np.savez(path, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for its own options


SAVERS: Final[dict[str, Callable[[Arrays, Path], None]]] = {
    "safetensors": save_safetensors,
    "pt": save_torch,
    "npz": save_npz,
}


def main(folder: Path, size_bytes: int) -> None:
    """Write `a`, `b` and `c` with each suffix."""
    draws = np.random.default_rng(1)
    count = size_bytes // TENSORS // 4
    arrays = {f"w{number}": draws.standard_normal(count, dtype=np.float32) for number in range(TENSORS)}
    for suffix, save in SAVERS.items():
        save(arrays, folder / f"a.{suffix}")
        shutil.copyfile(folder / f"a.{suffix}", folder / f"b.{suffix}")
    for array in arrays.values():
        np.multiply(array, np.float32(1.001), out=array)
    for suffix, save in SAVERS.items():
        save(arrays, folder / f"c.{suffix}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
