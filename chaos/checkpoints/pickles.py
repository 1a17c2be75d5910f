"""A restricted unpickler: it reads the structure of any pickle and runs nothing of what the pickle asks for.

The few globals that carry tensors are mapped to inert rebuilders; every other one becomes a stub class that records its
name, its arguments and its state. So `os.system` in a pickle is a text in the result, and a tensor inside an unknown
object is still found.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import ClassVar

from chaos.checkpoints.damage import DamagedError, UnjudgeableError, UnreadablePickleError
from chaos.checkpoints.hostile import require_harmless
from chaos.checkpoints.inert import (
    DtypeName,
    NumpyArray,
    NumpyDtype,
    NumpyScalar,
    Opaque,
    PickledDict,
    Rebuilder,
    SealedType,
    SetValue,
    StorageReference,
    TensorValue,
    numpy_tensor,
    stub_class,
)
from chaos.checkpoints.tensors import ITEM_BYTES, Tensor

MAX_PICKLE_BYTES = 1 << 30
MAX_GLOBALS = 100_000
StorageLookup = Callable[[DtypeName, str, int], StorageReference]

STORAGE_DTYPES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32",
    "UntypedStorage": "uint8",
}


def _tensor(
    reference: StorageReference,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: str,
    metadata: object = None,
) -> TensorValue:
    """Return the tensor that views `reference` as `dtype`; offset and strides count elements."""
    width = ITEM_BYTES[dtype.removeprefix(">")]
    # A lazily conjugated or negated tensor has the bytes of its base: another value, so another dtype's name.
    bits = "".join(f":{name}" for name in ("conj", "neg") if isinstance(metadata, dict) and metadata.get(name))
    view = tuple(int(stride) * width for stride in strides)
    lengths = tuple(int(length) for length in shape)
    return TensorValue(Tensor(dtype + bits, width, lengths, view, int(offset) * width, reference.storage))


def _rebuild_tensor(
    reference: StorageReference,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    _requires_grad: object = None,
    _hooks: object = None,
    metadata: object = None,
) -> TensorValue:
    """Stand for `torch._utils._rebuild_tensor` and `_v2`, whose storage has the element type."""
    return _tensor(reference, offset, shape, strides, reference.dtype, metadata)


def _rebuild_tensor_v3(
    reference: StorageReference,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    _requires_grad: object,
    _hooks: object,
    dtype: DtypeName,
    metadata: object = None,
) -> TensorValue:
    """Stand for `torch._utils._rebuild_tensor_v3`, whose storage is untyped."""
    return _tensor(reference, offset, shape, strides, dtype.name, metadata)


def _rebuild_parameter(value: TensorValue, _requires_grad: object, _hooks: object, state: object = None) -> TensorValue:
    """Stand for `torch._utils._rebuild_parameter` and `_with_state`."""
    return TensorValue(value.tensor, state or value.attributes)


def _rebuild_from_type(build: Rebuilder, _kind: object, arguments: tuple[object, ...], state: object) -> object:
    """Stand for `torch._tensor._rebuild_from_type` and `_v2`."""
    value = build.build(*arguments)
    return TensorValue(value.tensor, state) if isinstance(value, TensorValue) and state else value


def _array_from_buffer(data: bytes, dtype: NumpyDtype, shape: tuple[int, ...], order: str, *_: object) -> NumpyArray:
    """Stand for `numpy._core.numeric._frombuffer`, of protocol 5."""
    array = NumpyArray()
    array.value = numpy_tensor(shape, dtype, data, is_fortran=order == "F")
    return array


def _text_as_bytes(text: str, encoding: str = "latin1") -> bytes:
    """Stand for `_codecs.encode`, by which protocols up to 2 store bytes."""
    if encoding.replace("-", "") not in {"latin1", "iso88591"}:
        raise ValueError
    return text.encode("latin-1")


def _bytes_of(data: bytes | bytearray | str = b"", _encoding: str = "") -> bytes:
    """Stand for `bytearray` and `bytes` of given bytes; raises TypeError for a number, which would take memory."""
    if isinstance(data, str):
        return data.encode("latin-1")
    if not isinstance(data, bytes | bytearray):
        raise TypeError
    return bytes(data)


def _dimensions(lengths: tuple[int, ...] = ()) -> tuple[object, ...]:
    """Stand for `torch.Size`."""
    return tuple(lengths)


def _attribute(owner: object, name: object, *rest: object) -> Opaque:
    """Stand for `getattr`, by which old protocols pickle methods, and some versions of Python members of an enum."""
    of = owner.__qualname__ if isinstance(owner, SealedType) else getattr(owner, "name", "")
    module, _, attribute = f"{of}.{name}".partition(".")
    require_harmless(module, attribute)
    return Opaque("builtins.getattr", (owner, name, *rest))


def _builders() -> dict[str, Callable[..., object]]:
    """Return what stands for each known global."""
    table: dict[str, Callable[..., object]] = {
        "torch._utils._rebuild_tensor": _rebuild_tensor,
        "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
        "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
        "torch._utils._rebuild_parameter": _rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
        "torch._tensor._rebuild_from_type": _rebuild_from_type,
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type,
        "torch.Size": _dimensions,
        "collections.OrderedDict": PickledDict,
        "collections.defaultdict": PickledDict,
        "collections.Counter": PickledDict,
        "numpy.dtype": NumpyDtype,
        "_codecs.encode": _text_as_bytes,
    }
    for builtins in ("builtins", "__builtin__"):
        table |= {f"{builtins}.{name}": _bytes_of for name in ("bytes", "bytearray")}
        table |= {f"{builtins}.{name}": SetValue for name in ("set", "frozenset")}
        table[f"{builtins}.complex"] = complex
        table[f"{builtins}.getattr"] = _attribute
    for core in ("numpy.core", "numpy._core"):
        table[f"{core}.multiarray._reconstruct"] = lambda *_: NumpyArray()
        table[f"{core}.multiarray.scalar"] = NumpyScalar
        table[f"{core}.numeric._frombuffer"] = _array_from_buffer
    return table


class InertUnpickler(pickle.Unpickler):
    """Loads one pickle without importing or calling anything outside this package."""

    builders: ClassVar[dict[str, Callable[..., object]]] = _builders()

    def __init__(self, stream: io.BytesIO, storages: StorageLookup | None = None) -> None:
        """Read from `stream`; `storages` finds what a persistent id of torch refers to."""
        super().__init__(stream, encoding="latin-1")
        self._storages = storages
        self._known: dict[str, object] = {}

    def find_class(self, module: str, name: str, /) -> object:
        """Return the inert stand-in for a global, never the global."""
        full = f"{module}.{name}"
        if full not in self._known:
            require_harmless(module, name)
            if len(self._known) >= MAX_GLOBALS:
                raise pickle.UnpicklingError("it names too many globals")
            self._known[full] = self._stand_in(full, module, name)
        return self._known[full]

    def _stand_in(self, full: str, module: str, name: str) -> Rebuilder | DtypeName | SealedType:
        """Make the stand-in for a global that is met for the first time."""
        builder = self.builders.get(full)
        if builder is not None:
            return Rebuilder(full, builder)
        if module in {"torch", "torch.storage"} and name in STORAGE_DTYPES:
            return DtypeName(STORAGE_DTYPES[name], is_storage=True)
        if module == "torch" and name in ITEM_BYTES:
            return DtypeName(name)
        return stub_class(full.encode("utf-8", "backslashreplace").decode())

    def persistent_load(self, pid: object) -> object:
        """Return the storage that a torch pickle refers to by ("storage", type, key, device, number of elements)."""
        if self._storages is None:
            raise pickle.UnpicklingError("it refers to data outside of it")
        match pid:
            case ("storage", DtypeName() as kind, str() as key, _, int() as count, *_):
                return self._storages(kind, key, count)
        raise pickle.UnpicklingError("it refers to data outside of it in an unknown way")


def load_pickle(data: bytes, storages: StorageLookup | None = None) -> object:
    """Return the inert structure of one pickle; raises DamagedError when it is none, or is cut short."""
    stream = io.BytesIO(data)
    return load_next(stream, storages)


def load_next(stream: io.BytesIO, storages: StorageLookup | None = None) -> object:
    """Return the inert structure of the next pickle in `stream`; raises DamagedError."""
    try:
        return InertUnpickler(stream, storages).load()
    except (DamagedError, UnjudgeableError):
        raise
    except MemoryError as error:  # a large one, or a damaged one that asks for a place far beyond its end
        raise UnjudgeableError("its pickle asks for more memory than there is here") from error
    except RecursionError as error:
        raise UnjudgeableError("its pickle is nested too deeply to be read here") from error
    except Exception as error:
        # Damaged opcodes raise whatever the objects on the stack raise.
        raise UnreadablePickleError(f"its pickle is damaged or cut short ({type(error).__name__})") from error
