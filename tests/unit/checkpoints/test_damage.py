"""Damage is noticed: every cut of a file, every bit of a tensor's data, emptiness, zeros and garbage."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from chaos.checkpoints.examine import examine


def _torch(path: Path) -> None:
    """Save two small tensors and a number with torch."""
    torch.save({"w": torch.arange(4.0), "b": torch.ones(3, dtype=torch.bfloat16), "step": 5}, path)


def _safetensors(path: Path) -> None:
    """Save two small tensors as safetensors."""
    save_file({"w": torch.arange(4.0), "b": torch.ones(3, dtype=torch.bfloat16)}, path, metadata={"step": "5"})


def _npz(path: Path) -> None:
    """Save two arrays as npz, stored."""
    np.savez(path, w=np.arange(4.0), b=np.ones(3, dtype=np.float16))


def _packed_npz(path: Path) -> None:
    """Save two arrays as npz, compressed."""
    np.savez_compressed(path, w=np.arange(4.0), b=np.ones(3, dtype=np.float16))


def _npy(path: Path) -> None:
    """Save one array as npy."""
    np.save(path, np.arange(4.0))


def _pickle(path: Path) -> None:
    """Pickle a dict with an array."""
    path.write_bytes(pickle.dumps({"w": np.arange(4.0), "step": 5}))


def _json(path: Path) -> None:
    """Write a JSON object."""
    path.write_text(json.dumps({"step": 5, "log": [1.5, None, "x"]}))


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.pt": _torch,
    "a.safetensors": _safetensors,
    "a.npz": _npz,
    "packed.npz": _packed_npz,
    "a.npy": _npy,
    "a.pkl": _pickle,
    "a.json": _json,
}


@pytest.mark.parametrize("name", WRITERS)
def test_no_proper_prefix_of_a_file_is_whole(name: str, tmp_path: Path) -> None:
    """A file cut at any length is not whole, with a reason, and its digest is over the bytes that are left."""
    path = tmp_path / name
    WRITERS[name](path)
    assert examine(path).is_whole is True
    size = path.stat().st_size
    digests = set()
    for length in reversed(range(size)):
        os.truncate(path, length)
        found = examine(path)
        assert found.is_whole is False, (length, found)
        assert found.reason
        assert found.leaves == ()
        digests.add(found.digest)
    assert len(digests) == size


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "a.json"])
def test_a_tail_of_zeros_in_place_of_the_data_is_not_whole(name: str, tmp_path: Path) -> None:
    """A file of full length whose second half never reached the disk is not whole, or does not have the content."""
    path = tmp_path / name
    WRITERS[name](path)
    good = examine(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))
    found = examine(path)
    assert found.is_whole is not True or found.digest != good.digest
    if name.endswith((".pt", ".npz", ".pkl")):
        assert found.is_whole is False


def _spans_of_data(path: Path) -> list[tuple[int, int]]:
    """Return where the tensors' bytes are in a file."""
    data = path.read_bytes()
    if path.suffix == ".safetensors":
        return [(8 + int.from_bytes(data[:8], "little"), len(data))]
    if path.suffix == ".npy":
        return [(len(data) - 32, len(data))]
    spans = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if "/data/" in info.filename or info.filename.endswith(".npy"):
                header = data[info.header_offset :]
                start = (
                    info.header_offset
                    + 30
                    + int.from_bytes(header[26:28], "little")
                    + int.from_bytes(header[28:30], "little")
                )
                spans.append((start, start + info.compress_size))
    return spans


@pytest.mark.parametrize("name", ["a.pt", "a.safetensors", "a.npz", "a.npy"])
def test_every_flipped_bit_in_the_data_is_noticed(name: str, tmp_path: Path) -> None:
    """Each single bit of each tensor's bytes, flipped: not whole, or another digest."""
    path = tmp_path / name
    WRITERS[name](path)
    good = examine(path).digest
    data = path.read_bytes()
    spans = _spans_of_data(path)
    assert sum(stop - start for start, stop in spans) > 20
    with path.open("r+b", buffering=0) as file:
        for position in (at for start, stop in spans for at in range(start, stop)):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([data[position] ^ 1 << bit]), position)
                found = examine(path)
                assert found.digest != good, (position, bit)
                if path.suffix in {".pt", ".npz"}:
                    assert found.is_whole is False, (position, bit)
            os.pwrite(file.fileno(), data[position : position + 1], position)
    assert examine(path).digest == good


def test_a_flipped_bit_in_compressed_data_is_damage_or_padding(tmp_path: Path) -> None:
    """Of all bits of compressed records only the padding of each one's last byte leaves the content what it was."""
    path = tmp_path / "packed.npz"
    _packed_npz(path)
    good = examine(path)
    data = path.read_bytes()
    harmless = 0
    spans = _spans_of_data(path)
    with path.open("r+b", buffering=0) as file:
        for position in (at for start, stop in spans for at in range(start, stop)):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([data[position] ^ 1 << bit]), position)
                found = examine(path)
                assert found.is_whole is False or found.digest == good.digest, (position, bit)
                harmless += found.is_whole is True
            os.pwrite(file.fileno(), data[position : position + 1], position)
    assert harmless < 8 * len(spans)


@pytest.mark.parametrize("name", [*WRITERS, "a.pth", "a.bin", "a.ckpt", "unknown", "a.pt.tmp"])
def test_empty_zeros_and_garbage_are_never_whole(name: str, tmp_path: Path) -> None:
    """An empty file and one of zeros are damaged whatever they are called; garbage is where the name says one format.

    The suffixes of torch's files are used for formats of one's own too: garbage under such a name cannot be judged.
    """
    path = tmp_path / name
    path.write_bytes(b"")
    assert (examine(path).is_whole, examine(path).reason) == (False, "it is empty")
    path.write_bytes(bytes(5000))
    assert examine(path).is_whole is False
    assert "zero" in examine(path).reason
    path.write_bytes(random.Random(1).randbytes(5000))
    found = examine(path)
    has_own_format = name == "unknown" or name.startswith(("a.pt", "a.bin", "a.ckpt"))
    assert found.is_whole is (None if has_own_format else False), found
    assert found.reason
    assert found.digest


@pytest.mark.parametrize("suffix", [".bin", ".pt", ".pth", ".ckpt"])
def test_a_format_of_one_s_own_under_torch_s_suffix_cannot_be_judged(suffix: str, tmp_path: Path) -> None:
    """Neither an array's bare bytes nor a magic of one's own is damage; a first page of zeros is."""
    path = tmp_path / f"ck{suffix}"
    np.arange(1.0, 2000.0).tofile(path)
    assert (examine(path).is_whole, examine(path).format) == (None, "unknown")
    path.write_bytes(b'GGML{"step": 3}')
    assert examine(path).is_whole is None
    for page in (bytes(4096), b"P", b"PK\x03", b"\x80\x02\x8a"):
        path.write_bytes(page + (b"data" if not any(page) else b""))
        assert examine(path).is_whole is False, page


def test_a_format_of_one_s_own_in_a_folder_leaves_the_folder_unjudged(tmp_path: Path) -> None:
    """A file with a torch file's name and unknown bytes may be anything, so its folder is neither whole nor damaged."""
    (tmp_path / "state.json").write_text("{}")
    (tmp_path / "optimizer.pt").write_bytes(b"GGML and more")
    assert examine(tmp_path).is_whole is None


def test_a_missing_path_is_missing(tmp_path: Path) -> None:
    """No file, a file where a folder should be and a dangling link are missing, not errors."""
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path / "no", tmp_path / "link", tmp_path / "file" / "below"):
        assert (examine(path).is_whole, examine(path).reason) == (False, "missing")


def test_a_torn_overwrite_is_not_whole(tmp_path: Path) -> None:
    """A longer old file whose beginning was overwritten by a newer one is not whole at any page."""
    old, new = tmp_path / "old.pt", tmp_path / "new.pt"
    torch.save({"w": torch.arange(5000.0), "n": 1}, old)
    torch.save({"w": torch.arange(5000.0) + 1, "n": 2}, new)
    before, after = old.read_bytes(), new.read_bytes()
    torn = tmp_path / "torn.pt"
    for at in range(4096, len(after), 4096):
        torn.write_bytes(after[:at] + before[at:])
        assert examine(torn).is_whole is False


def test_a_zip_with_records_of_other_sizes_or_names_is_damaged(tmp_path: Path) -> None:
    """Each byte of the central directory's sizes, offsets and checksums matters."""
    path = tmp_path / "a.pt"
    _torch(path)
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")
    for field in (16, 20, 24, 42, 46):
        data[entry + field] ^= 1
        path.write_bytes(data)
        assert examine(path).is_whole is False, field
        data[entry + field] ^= 1


def test_bytes_between_directory_and_end_are_damage_and_a_few_behind_the_end_are_not(tmp_path: Path) -> None:
    """The directory must end where the end record begins; what follows the end is ignored, as torch and zipfile do."""
    path = tmp_path / "a.npz"
    _npz(path)
    data, good = path.read_bytes(), examine(path).digest
    end = data.rindex(b"PK\x05\x06")
    path.write_bytes(data[:end] + b"12345678" + data[end:])
    assert examine(path).is_whole is False
    path.write_bytes(data + b"12345678")
    assert examine(path).digest == good


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe in place of a checkpoint is neither file nor folder, and nobody waits for a writer."""
    os.mkfifo(tmp_path / "a.pt")
    assert examine(tmp_path / "a.pt").is_whole is None
    (tmp_path / "b.json").write_text("{}")
    assert examine(tmp_path).is_whole is True
