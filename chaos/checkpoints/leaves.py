"""Leaves: what a checkpoint is made of, each with a name and a digest over its bits."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable

from xxhash import xxh3_128, xxh3_128_hexdigest

from chaos.checkpoints.tensors import Tensor
from chaos.model import Record

DIGITS = re.compile(r"([0-9]{1,18})")
SHOWN_CHARACTERS = 60
NAME_CHARACTERS = 400


class Leaf(Record, kw_only=True):
    """One tensor or other value: `dtype` is a type's name, `digest` is over the bits, `shown` is for people."""

    name: str
    is_tensor: bool
    dtype: str
    shape: tuple[int, ...]
    digest: str
    shown: str


def clean_name(text: str) -> str:
    """Return `text` as valid Unicode; a very long one is cut and kept distinct by a digest."""
    clean = text.encode("utf-8", "backslashreplace").decode()
    if len(clean) > NAME_CHARACTERS:
        return f"{clean[:NAME_CHARACTERS]}…{xxh3_128_hexdigest(clean.encode())}"
    return clean


def child_name(parent: str, key: object) -> str:
    """Return the name of what `key` leads to: text as it is, a whole number as its digits, any other type marked."""
    if isinstance(key, str):
        # Text that looks like a number is quoted: {"0": x} and {0: x} are not the same checkpoint.
        part = repr(key) if not key or key.lstrip("-").isdigit() else key
    elif type(key) is int:
        part = str(key) if key.bit_length() < NAME_CHARACTERS else f"<int {xxh3_128_hexdigest(encoded(key))}>"
    else:
        part = f"<{type(key).__name__} {shown_scalar(key)}>"
    return f"{parent}.{part}" if parent else part


def encoded(value: object) -> bytes:
    """Return the canonical, type-tagged bytes of a value: floats by their bits, so that 0.0 is not -0.0."""
    match value:
        case None | bool():
            data = {None: b"N", True: b"T", False: b"F"}[value]
        case int():
            data = b"i" + value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        case float():
            data = b"f" + struct.pack("<d", value)
        case complex():
            data = b"c" + struct.pack("<2d", value.real, value.imag)
        case str():
            data = b"s" + value.encode("utf-8", "surrogatepass")
        case bytes() | bytearray():
            data = b"b" + value
        case tuple() | list():
            data = b"t" + b"".join(_framed(item) for item in value)
        case _:
            data = b"o" + str(value).encode("utf-8", "surrogatepass")
    return data


def _framed(value: object) -> bytes:
    """Return an encoded value behind its length, so that neighbours cannot run together."""
    data = encoded(value)
    return len(data).to_bytes(8, "little") + data


def shown_scalar(value: object) -> str:
    """Return a short text for people, always printable and valid Unicode."""
    if isinstance(value, int) and value.bit_length() > SHOWN_CHARACTERS * 3:
        return f"an integer of {value.bit_length()} bits"
    # Cut before `repr`, so that a huge text is not copied whole.
    text = repr(value[: SHOWN_CHARACTERS + 1] if isinstance(value, str | bytes | bytearray) else value)
    clean = text.encode("utf-8", "backslashreplace").decode()
    return clean if len(clean) <= SHOWN_CHARACTERS else clean[: SHOWN_CHARACTERS - 1] + "…"


def scalar_leaf(name: str, value: object, kind: str = "") -> Leaf:
    """Return the leaf of a number, a text, bytes, None or a named stand-in; `kind` replaces the type's name."""
    digest = xxh3_128_hexdigest(encoded(value))
    return Leaf(
        name=clean_name(name or "value"),
        is_tensor=False,
        dtype=clean_name(kind or type(value).__name__),
        shape=(),
        digest=digest,
        shown=shown_scalar(value),
    )


def tensor_hasher(tensor: Tensor) -> xxh3_128:
    """Return a hasher that has seen the dtype and the shape; feed it the bytes in row-major order."""
    return xxh3_128(f"{tensor.dtype}{list(tensor.shape)}:".encode("utf-8", "surrogatepass"))


def tensor_leaf(name: str, tensor: Tensor, digest: str) -> Leaf:
    """Return the leaf of a tensor whose digest is known; `name` is clean."""
    shown = clean_name(f"{tensor.dtype}{list(tensor.shape)}")
    return Leaf(
        name=name, is_tensor=True, dtype=clean_name(tensor.dtype), shape=tensor.shape, digest=digest, shown=shown
    )


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return by what names are sorted for people: `state.2` comes before `state.10`."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in DIGITS.split(name))


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return the names with `#2`, `#3`, … behind repeated ones: {"a.b": x, "a": {"b": y}} has two paths `a.b`."""
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return result


def canonical_digest(leaves: Iterable[Leaf], without: frozenset[str]) -> str:
    """Return the hexadecimal digest over sorted (name, digest) pairs, leaving out the names in `without`."""
    hasher = xxh3_128()
    for leaf in sorted(leaves, key=lambda leaf: leaf.name):
        if leaf.name not in without:
            hasher.update(_framed(leaf.name) + leaf.digest.encode())
    return hasher.hexdigest()
