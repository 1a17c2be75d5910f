"""What a restricted unpickler makes instead of the objects a pickle asks for: things that hold data and do nothing.

A pickle can call and alter whatever is on its stack. So everything here refuses to have its attributes set
(`__setstate__` comes before any other way in), and no module, builtin or function of Python's ever gets there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pickle import UnpicklingError
from typing import ClassVar, NoReturn

from chaos.checkpoints.tensors import MemoryStorage, Storage, Tensor, contiguous_strides


class Sealed:
    """Base of what a pickle may hold in its hands: no state can be set on it from inside the pickle."""

    __slots__ = ()

    def __setstate__(self, state: object) -> NoReturn:
        """Refuse: a pickle that sets state here is hostile or beyond this reader."""
        raise UnpicklingError(f"state was set on a {type(self).__name__}")

    def __repr__(self) -> str:
        """Return the kind alone: an address would differ from process to process."""
        return f"<{type(self).__name__}>"


class Rebuilder(Sealed):
    """Stands for one known callable; calling it runs `build`, or yields a stand-in for unexpected arguments."""

    __slots__ = ("build", "name")

    def __init__(self, name: str, build: Callable[..., object]) -> None:
        """Bind the inert `build` under the global's `name`."""
        self.name = name
        self.build = build

    def __call__(self, *arguments: object) -> object:
        """Rebuild from `arguments`; what does not fit is kept as it is, unjudged."""
        try:
            return self.build(*arguments)
        except (TypeError, ValueError, AttributeError, KeyError, IndexError, OverflowError):
            return Opaque(self.name, arguments)


class DtypeName(Sealed):
    """A torch dtype; with `is_storage` the storage class of that element type."""

    __slots__ = ("is_storage", "name")

    def __init__(self, name: str, *, is_storage: bool = False) -> None:
        """Keep the dtype's name, such as `bfloat16`."""
        self.name = name
        self.is_storage = is_storage


class StorageReference(Sealed):
    """A storage of a torch file that a pickle refers to, and the element type it is used with."""

    __slots__ = ("dtype", "storage")

    def __init__(self, dtype: str, storage: Storage) -> None:
        """Keep both."""
        self.dtype = dtype
        self.storage = storage


class TensorValue(Sealed):
    """A tensor in the unpickled structure, with the attributes that were pickled with it, if any."""

    __slots__ = ("attributes", "tensor")

    def __init__(self, tensor: Tensor, attributes: object = None) -> None:
        """Keep both."""
        self.tensor = tensor
        self.attributes = attributes


class PickledDict(dict[object, object]):
    """An OrderedDict, defaultdict or Counter; attributes set on it (a state_dict's `_metadata`) are kept."""

    __slots__ = ("attributes",)

    def __init__(self, *arguments: object) -> None:
        """Take the entries of the last argument that has some (a defaultdict's first one is its factory)."""
        entries: Iterable[object] = next((item for item in arguments if isinstance(item, dict | list | tuple)), ())
        super().__init__(entries)  # type: ignore[arg-type]  # what is no pair raises, which the caller expects
        self.attributes: object = None

    def __setstate__(self, state: object) -> None:
        """Keep the attributes."""
        self.attributes = state


class NumpyDtype(Sealed):
    """A numpy dtype by its code (`f4`, `U10`, `V8`) and byte order."""

    __slots__ = ("code", "fields", "order")

    def __init__(self, code: str, *_: object) -> None:
        """Keep the code; the state, if any, brings the byte order."""
        self.code = str(code)
        self.order = "|"
        self.fields = ""

    def __setstate__(self, state: object) -> None:  # type: ignore[override]  # this one has a state, and checks it
        """Take byte order and fields from numpy's own (version, order, subarray, names, fields, …)."""
        match state:
            case (_, str() as order, _, names, *_) if order in {"<", ">", "|", "="}:
                self.order = order
            case _:
                raise UnpicklingError("a numpy dtype has an unknown state")
        names = names if isinstance(names, tuple) else ()
        self.fields = f"{{{','.join(map(str, names))}}}" if names else ""

    @property
    def name(self) -> str:
        """The dtype's name: that of torch where it has one, numpy's code otherwise."""
        plain = NUMPY_NAMES.get(self.code)
        if plain is not None and self.order != ">":
            return plain
        return f"{'>' if self.order == '>' else ''}{plain or self.code}{self.fields}"


class NumpyArray(Sealed):
    """A numpy array of a pickle: empty when made, filled by its state."""

    __slots__ = ("items", "value")

    def __init__(self) -> None:
        """Wait for the state."""
        self.value: Tensor | None = None
        self.items: list[object] = []

    def __setstate__(self, state: object) -> None:  # type: ignore[override]  # this one has a state, and checks it
        """Take numpy's own (version, shape, dtype, is_fortran, bytes or list of objects)."""
        match state:
            case (_, _, NumpyDtype(), _, list() as items):
                self.items = items
            case (_, shape, NumpyDtype() as dtype, is_fortran, data):
                self.value = numpy_tensor(shape, dtype, data, is_fortran=bool(is_fortran))
            case _:
                raise UnpicklingError("a numpy array has an unknown state")


class NumpyScalar(Sealed):
    """A numpy scalar: a dtype's name and the bytes."""

    __slots__ = ("data", "dtype")

    def __init__(self, dtype: NumpyDtype, data: bytes = b"") -> None:
        """Keep both; raises TypeError for anything else than bytes."""
        if not isinstance(data, bytes):
            raise TypeError
        self.dtype = dtype.name
        self.data = data


class SetValue(Sealed):
    """A set or a frozenset, which may hold what cannot be hashed here."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[object] = ()) -> None:
        """Keep the members."""
        self.items = list(items) if isinstance(items, list | tuple | set | frozenset) else [items]


class Opaque(Sealed):
    """The result of calling something unknown: its name, and the arguments, which may hold tensors."""

    __slots__ = ("arguments", "name", "parts", "state")

    def __init__(self, name: str, arguments: tuple[object, ...]) -> None:
        """Keep what was asked for."""
        self.name = name
        self.arguments = arguments
        self.parts: list[object] = []
        self.state: object = None

    def __call__(self, *arguments: object, **_: object) -> Opaque:
        """Do nothing but note that it was called."""
        return Opaque(f"{self.name}()", arguments)

    def __setstate__(self, state: object) -> None:  # type: ignore[override]  # kept as data, never applied
        """Keep the state."""
        self.state = state

    def append(self, item: object) -> None:
        """Keep an item of what was a list's subclass or a deque."""
        self.parts.append(item)

    def extend(self, items: Iterable[object]) -> None:
        """Keep items."""
        self.parts.extend(items)

    def add(self, item: object) -> None:
        """Keep a member of what was a set's subclass."""
        self.parts.append(item)

    def __setitem__(self, key: object, item: object) -> None:
        """Keep an entry of what was a dict's subclass."""
        self.parts.append((key, item))

    def __repr__(self) -> str:
        """Return the name alone: it must not depend on this process."""
        return f"<{self.name}>"


class SealedType(type):
    """Metaclass of stub classes: nothing can be set on them from inside a pickle."""

    def __setattr__(cls, name: str, value: object) -> NoReturn:
        """Refuse."""
        raise UnpicklingError(f"{name} was set on a class")

    def __call__(cls, *arguments: object, **named: object) -> Opaque:
        """Note the call."""
        return Opaque(cls.__qualname__, (*arguments, named) if named else arguments)

    def __repr__(cls) -> str:
        """Return the name of the global."""
        return f"<class {cls.__qualname__}>"


class Stub(metaclass=SealedType):
    """Base of what stands for unknown globals: classes, since a pickle may make objects through `__new__`."""

    __slots__ = ()
    known: ClassVar[bool] = False

    def __new__(cls, *arguments: object, **named: object) -> Opaque:  # type: ignore[misc]  # never a Stub's instance
        """Note the call."""
        return Opaque(cls.__qualname__, (*arguments, named) if named else arguments)


def stub_class(name: str) -> SealedType:
    """Return a new class that stands for the global `module.name`."""
    return SealedType("Stub", (Stub,), {"__slots__": (), "__qualname__": name})


NUMPY_NAMES = {
    "b1": "bool",
    "u1": "uint8",
    "i1": "int8",
    "u2": "uint16",
    "i2": "int16",
    "u4": "uint32",
    "i4": "int32",
    "u8": "uint64",
    "i8": "int64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}


def numpy_tensor(shape: object, dtype: NumpyDtype, data: object, *, is_fortran: bool) -> Tensor:
    """Return the tensor of an array's pickled parts; raises UnpicklingError when they do not fit together."""
    if isinstance(data, str):
        # Python 2 pickled the bytes as text.
        data = data.encode("latin-1")
    if not isinstance(data, bytes | bytearray) or not isinstance(shape, tuple):
        raise UnpicklingError("a numpy array holds no bytes")
    lengths = tuple(int(length) for length in shape)
    count = 1
    for length in lengths:
        count *= length
    item_bytes = len(data) // count if count else 1
    if count < 0 or item_bytes * count != len(data):
        raise UnpicklingError("a numpy array's bytes do not fit its shape")
    if is_fortran:
        strides = tuple(reversed(contiguous_strides(lengths[::-1], item_bytes)))
    else:
        strides = contiguous_strides(lengths, item_bytes)
    return Tensor(dtype.name, item_bytes, lengths, strides, 0, MemoryStorage(bytes(data)))
