"""Reads a folder of torch.distributed.checkpoint: `.metadata` and `*.distcp`.

The first, a pickle, says which bytes of which of the others hold what. Each such span is a torch file of its own.
`.metadata` is written last, so a folder without it was not finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from chaos.checkpoints.contents import Contents
from chaos.checkpoints.damage import DamagedError, UnjudgeableError
from chaos.checkpoints.inert import Opaque
from chaos.checkpoints.leaves import Leaf
from chaos.checkpoints.pickles import MAX_PICKLE_BYTES, load_pickle
from chaos.checkpoints.tensors import Storage, Tensor
from chaos.checkpoints.torch_file import read_torch
from chaos.checkpoints.window import OpenFile, Window

METADATA = ".metadata"
SHARD_SUFFIX = ".distcp"


def read_distributed(files: Sequence[Path], stack: ExitStack) -> Contents:
    """Return the contents of one folder's shards; raises DamagedError, UnjudgeableError or OSError."""
    windows = {file.name: stack.enter_context(OpenFile(file)) for file in files}
    if METADATA not in windows:
        raise DamagedError(f"its {METADATA} is missing: the save was not finished")
    metadata = windows[METADATA]
    if not metadata.size:
        raise DamagedError(f"its {METADATA} is empty")
    if metadata.size > MAX_PICKLE_BYTES:
        raise UnjudgeableError(f"its {METADATA} is too large to be read at once")
    spans = _spans(load_pickle(metadata.read(0, metadata.size)))
    leaves: list[Leaf] = []
    tensors: list[tuple[str, Tensor]] = []
    storages: list[Storage] = []
    for name, file, start, size in spans:
        contents = _span_contents(windows, name, file, start, size)
        leaves += (replace(leaf, name=_full(file, name, leaf.name)) for leaf in contents.leaves)
        tensors += ((_full(file, name, inner), tensor) for inner, tensor in contents.tensors.items())
        storages += contents.storages
    return Contents("folder", leaves, tensors, storages)


def _full(file: str, name: str, inner: str) -> str:
    """Return a leaf's name: the file, what it holds there, and the path inside where that is a structure."""
    return f"{file}/{name}" if inner == "value" else f"{file}/{name}.{inner}"


def _span_contents(windows: dict[str, Window], name: str, file: str, start: int, size: int) -> Contents:
    """Return the contents of one span; raises DamagedError with the names of file and content."""
    window = windows.get(PurePosixPath(file).name)
    if window is None:
        raise DamagedError(f"its member {file} is missing")
    try:
        return read_torch(window.part(start, size))
    except DamagedError as error:
        raise DamagedError(f"{file} is damaged at {name}: {error}") from error
    except UnjudgeableError as error:
        raise UnjudgeableError(f"{name} in {file} cannot be read: {error}") from error


def _spans(metadata: object) -> list[tuple[str, str, int, int]]:
    """Return (name, file, start, size) of everything that was stored, sorted; raises UnjudgeableError."""
    storage_data = _field(metadata, "storage_data")
    if not isinstance(storage_data, dict):
        raise UnjudgeableError(f"its {METADATA} is in an unknown form")
    spans = []
    for index, place in storage_data.items():
        file, start, size = (_field(place, key) for key in ("relative_path", "offset", "length"))
        name = _index_name(index)
        if not isinstance(file, str) or type(start) is not int or type(size) is not int or name is None:
            raise UnjudgeableError(f"its {METADATA} is in an unknown form")
        spans.append((name, file, start, size))
    return sorted(spans)


def _index_name(index: object) -> str | None:
    """Return the name of a stored part: the key in the state dict, and the part's corner if there are several."""
    name, offset = _field(index, "fqn"), _field(index, "offset")
    if not isinstance(name, str):
        return None
    corner = list(offset) if isinstance(offset, tuple) else []
    return f"{name}{corner}" if any(corner) else name


def _field(value: object, name: str) -> object:
    """Return an attribute of an unpickled dataclass, None where there is none."""
    state = value.state if isinstance(value, Opaque) else None
    return state.get(name) if isinstance(state, dict) else None
