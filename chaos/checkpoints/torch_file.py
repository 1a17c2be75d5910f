"""Reads what `torch.save` writes: a zip archive with `data.pkl`, which refers to the records `data/<key>`."""

from __future__ import annotations

from chaos.checkpoints.archive import Archive
from chaos.checkpoints.contents import Contents, structured
from chaos.checkpoints.damage import DamagedError, UnjudgeableError, UnreadablePickleError
from chaos.checkpoints.inert import DtypeName, StorageReference
from chaos.checkpoints.pickles import MAX_PICKLE_BYTES, load_pickle
from chaos.checkpoints.tensors import ITEM_BYTES
from chaos.checkpoints.window import Window

# The pickled number 0x1950a86a20f9469cfc6c, with which the format before torch 1.6 begins.
LEGACY_MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
PICKLE = "/data.pkl"


def torch_prefix(archive: Archive) -> str | None:
    """Return the folder inside the archive in which torch's records are, or None when it is not torch's."""
    return next((name[: -len(PICKLE) + 1] for name in archive.by_name if name.endswith(PICKLE)), None)


def read_torch(window: Window) -> Contents:
    """Return the contents of a torch file; raises DamagedError or UnjudgeableError."""
    if window.size >= len(LEGACY_MAGIC) and window.read(0, len(LEGACY_MAGIC)) == LEGACY_MAGIC:
        raise UnjudgeableError(
            "it is in torch's legacy format (before 1.6), which has no checksums and is not read here"
        )
    return read_torch_archive(Archive(window))


def read_torch_archive(archive: Archive) -> Contents:
    """Return the contents of a torch archive whose directory was read."""
    prefix = torch_prefix(archive)
    if prefix is None:
        raise DamagedError("its record data.pkl is missing")
    is_big = _byte_order(archive, prefix) == b"big"
    references: dict[tuple[str, str], StorageReference] = {}

    def storage(kind: DtypeName, key: str, count: int) -> StorageReference:
        """Find the record of a storage; raises DamagedError when it is missing or too short."""
        entry = archive.by_name.get(f"{prefix}data/{key}")
        if entry is None:
            raise DamagedError(f"its record data/{key} is missing")
        if entry.size_bytes < count * ITEM_BYTES[kind.name]:
            raise DamagedError(f"its record data/{key} is shorter than the tensor in it")
        # Swapped elements are other bytes for the same numbers: the name says so.
        name = f">{kind.name}" if is_big and ITEM_BYTES[kind.name] > 1 else kind.name
        return references.setdefault((key, name), StorageReference(name, entry))

    data = archive.by_name[f"{prefix}data.pkl"].read(MAX_PICKLE_BYTES)
    try:
        return structured("torch", load_pickle(data, storage), archive.entries)
    except UnreadablePickleError as error:
        # Its checksum was right, so this is what was written: this reader does not know it, which proves no damage.
        raise UnjudgeableError("its records are intact, but its pickle is of a kind that is not read here") from error


def _byte_order(archive: Archive, prefix: str) -> bytes:
    """Return the content of the record `byteorder`; files of older versions have none and are little-endian."""
    entry = archive.by_name.get(f"{prefix}byteorder")
    return b"little" if entry is None else entry.read(64)
