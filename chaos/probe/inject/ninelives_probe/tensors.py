"""Digests of tensors by their bits, of whatever kind and wherever they lie, without a copy where that is possible."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import torch


def _best_hash() -> Callable[[], Any]:
    """Return the hash of memory speed; the target's Python need not have it: then one that is slower and as exact."""
    try:
        from xxhash import xxh3_128
    except ImportError:
        return hashlib.blake2b
    return xxh3_128


new_hash: Final = _best_hash()

_PLAIN = {torch.Tensor, torch.nn.Parameter}
_NARROW = {torch.float16, torch.bfloat16}
_ROUNDABLE = {torch.float32, torch.float64}
_DIGITS = 16
_HEAD_ELEMENTS = 4096


def hexadecimal(hasher: Any) -> str:  # noqa: ANN401 - one of two libraries' hashers
    """Return the digest's first 64 bits: enough to tell one step from another, in a file of many."""
    return str(hasher.hexdigest())[:_DIGITS]


def feed(hasher: Any, tensor: torch.Tensor) -> None:  # noqa: ANN401 - one of two libraries' hashers
    """Let a hasher see dtype, shape and the elements' bytes in row-major order, as far as they are there."""
    hasher.update(_form(tensor.dtype, tensor.shape))
    if not has_elements(tensor):
        return
    plain = on_cpu(tensor)
    if (size_bytes := plain.nbytes) and (address := plain.data_ptr()):
        hasher.update((ctypes.c_char * size_bytes).from_address(address))


@lru_cache(maxsize=4096)
def _form(dtype: torch.dtype, shape: torch.Size) -> bytes:
    """Return what tells a tensor's form."""
    return f"{dtype}{list(shape)}".encode()


def has_elements(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor has memory of its own.

    One on the meta device has none, nor one that only shows what would be, that wraps others, or whose memory was given
    back: their address is 0, or there is none.
    """
    if tensor.is_meta:
        return False
    if tensor.layout is not torch.strided or not tensor.numel():
        return True
    fakes = sys.modules.get("torch._subclasses.fake_tensor")
    if fakes is not None and (isinstance(tensor, fakes.FakeTensor) or hasattr(tensor, "fake_device")):
        return False
    try:
        return hasattr(tensor, "to_local") or tensor.data_ptr() != 0
    except RuntimeError:
        return False


def on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor as contiguous memory of this machine: itself where it is that already.

    Of a distributed tensor that is this rank's part, of a sparse one its values after its indices, as bytes.
    """
    is_here = type(tensor) in _PLAIN and tensor.is_cpu and tensor.layout is torch.strided
    if is_here and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    with torch.no_grad():
        found = tensor.detach()
        if hasattr(found, "to_local"):
            found = found.to_local()
        if found.layout is not torch.strided:
            return _flattened(found)
        if found.is_quantized:
            found = found.int_repr()
        return found.resolve_conj().resolve_neg().cpu().contiguous()


def _flattened(tensor: torch.Tensor) -> torch.Tensor:
    """Return the parts of a sparse tensor, one behind the other, as bytes."""
    if tensor.layout is torch.sparse_coo:
        whole = tensor.coalesce()
        parts = [whole.indices(), whole.values()]
    else:
        rows = tensor.crow_indices() if hasattr(tensor, "crow_indices") else tensor.ccol_indices()
        columns = (
            tensor.col_indices() if tensor.layout in (torch.sparse_csr, torch.sparse_bsr) else tensor.row_indices()
        )
        parts = [rows, columns, tensor.values()]
    return torch.cat([part.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for part in parts])


def digest_of(tensors: Iterable[tuple[str, object]]) -> str:
    """Return one digest over named tensors and other values, in their order."""
    hasher = new_hash()
    for name, value in tensors:
        hasher.update(name.encode("utf-8", "backslashreplace"))
        feed_any(hasher, value)
    return hexadecimal(hasher)


def feed_any(hasher: Any, value: object) -> None:  # noqa: ANN401 - one of two libraries' hashers
    """Let a hasher see a tensor, a number, or a structure of them."""
    if isinstance(value, torch.Tensor):
        feed(hasher, value)
    elif isinstance(value, bytes):
        hasher.update(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            hasher.update(f"{key!r}:".encode("utf-8", "backslashreplace"))
            feed_any(hasher, item)
    elif isinstance(value, list | tuple):
        hasher.update(f"{type(value).__name__}{len(value)}".encode())
        for item in value:
            feed_any(hasher, item)
    else:
        hasher.update(repr(value).encode("utf-8", "backslashreplace"))


def facts(tensor: torch.Tensor) -> dict[str, Any]:
    """Return what a record with details says of one tensor: see `TensorFacts`."""
    found: dict[str, Any] = {"dtype": str(tensor.dtype).removeprefix("torch.")}
    if not has_elements(tensor):
        return found | {"digest": _digest(tensor)}
    plain = on_cpu(tensor).detach()
    with torch.no_grad():
        wide = plain.float() if plain.dtype in _NARROW else plain
        found["digest"] = _digest(wide)
        found["is_zero"] = not bool(plain.count_nonzero()) if plain.element_size() > 1 else False
        start = wide
        if wide.numel() > _HEAD_ELEMENTS:
            start = wide.reshape(-1)[:_HEAD_ELEMENTS]
            found["head"] = _digest(start)
        if plain.dtype in _ROUNDABLE:
            for name, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
                rounded = _digest(start.to(dtype).to(plain.dtype))
                if rounded != found.get("head", found["digest"]):
                    found[name] = rounded
        if plain.numel() == 1 and not plain.is_complex() and plain.element_size() > 1:
            value = float(plain.item())
            if value - value == 0:  # JSON has no infinity
                found["value"] = value
    return found


def _digest(tensor: torch.Tensor) -> str:
    hasher = new_hash()
    feed(hasher, tensor)
    return hexadecimal(hasher)
