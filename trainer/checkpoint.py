"""How a file is published so that a whole one always survives, and read so that a damaged one is never believed.

A file is written under a temporary name, made durable, and renamed over the old one, to which `resume.prev.pt` was
linked before. Until that rename `resume.pt` is the old file, from then on the new one; at no instant is there none.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import torch

from trainer.options import FOLDER_SYNCED, KEEPING_PREVIOUS, SYNCED, SaveWay, TrainerError

# The content of a file: nested dicts and lists of tensors, numbers, strings, None: what `weights_only=True` restores.
Payload: TypeAlias = dict[str, Any]

RESUME, WEIGHTS = "resume.pt", "weights.pt"
RESUME_FORMAT, WEIGHTS_FORMAT = "resume 1", "weights 1"
BUFFER_BYTES = 1 << 18  # few large writes instead of three for each tensor
# What file systems without hard links, or containers that deny them, answer.
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class DamagedError(Exception):
    """A file is there but not whole; the message says what is wrong with it."""


def checksum(payload: Payload) -> str:
    """Return the SHA-256 over names, types, shapes and bytes of all content, whatever the order of keys."""
    total = hashlib.sha256()
    for name, leaf in sorted(_leaves("", payload), key=lambda pair: pair[0]):
        if isinstance(leaf, torch.Tensor):
            total.update(f"{name}\0{leaf.dtype}{tuple(leaf.shape)}\0".encode())
            total.update(leaf.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().data)
        else:
            total.update(f"{name}\0{type(leaf).__name__}\0{leaf!r}\0".encode())
    return total.hexdigest()


def _leaves(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield each leaf below `value` with its path; a container also yields itself, so that empty ones count."""
    if isinstance(value, dict):
        yield name, f"dict of {len(value)}"
        for key, below in value.items():
            yield from _leaves(f"{name}/{key!r}", below)
    elif isinstance(value, list | tuple):
        yield name, f"{type(value).__name__} of {len(value)}"
        for index, below in enumerate(value):
            yield from _leaves(f"{name}/{index}", below)
    else:
        yield name, value


def read(path: Path, expected_format: str) -> Payload:
    """Return the verified content of `path`; raise DamagedError if it is not whole, TrainerError if not for us."""
    try:
        payload = torch.load(path, map_location="cpu", weights_only=True)
    except PermissionError as error:
        raise TrainerError(f"cannot read {path}: {error.strerror}") from error
    except Exception as error:  # broad, because damaged bytes make torch.load raise nearly anything
        raise DamagedError(_first_sentence(error)) from error
    if not isinstance(payload, dict) or "checksum" not in payload:
        raise DamagedError("it holds no checksum")
    expected = payload.pop("checksum")
    if checksum(payload) != expected:
        raise DamagedError("its content does not agree with its checksum")
    if payload.get("format") != expected_format:
        raise TrainerError(f"{path} has the format `{payload.get('format')}`, expected is `{expected_format}`")
    return payload


def newest_whole(out: Path) -> tuple[str, Payload] | None:
    """Return name and content of the newest whole resume file in `out`, or None where no run was ever here.

    Falls back to the previous one with a warning; raises TrainerError where a run was here but no whole file is left.
    """
    reasons: list[str] = []
    for path in (out / RESUME, previous_name(out / RESUME)):
        try:
            if path.exists():
                payload = read(path, RESUME_FORMAT)
                for reason in reasons:
                    warn(f"{reason}; falling back to {path.name}")
                return path.name, payload
            reasons.append(f"{path.name} is missing")
        except DamagedError as error:
            reasons.append(f"{path.name} is damaged ({error})")
    left = sorted(path.name for path in (*out.glob("resume*.pt"), *out.glob("weights*.pt")))
    if left:
        raise TrainerError(
            f"nothing to resume from in {out}, though a run was here ({', '.join(left)}): {'; '.join(reasons)}."
            " Restore a copy, or choose an empty folder to start anew"
        )
    return None


def warn(sentence: str) -> None:
    """Tell the user on standard error what is not as it should be."""
    print(f"trainer: warning: {sentence}", file=sys.stderr, flush=True)


def previous_name(path: Path) -> Path:
    """Return the name under which the file before `path` is kept."""
    return path.with_name(f"{path.stem}.prev{path.suffix}")


def temporary_name(path: Path) -> Path:
    """Return the name under which `path` is written before it is whole."""
    return path.with_name(f"{path.name}.tmp")


def remove_stale(out: Path) -> None:
    """Remove what a life that was killed while saving has left behind under this trainer's own temporary names."""
    for path in (out / RESUME, out / WEIGHTS):
        temporary_name(path).unlink(missing_ok=True)
        temporary_name(previous_name(path)).unlink(missing_ok=True)


def publish(payload: Payload, path: Path, way: SaveWay) -> None:
    """Write `payload` with its checksum to `path`; raise TrainerError, the old files untouched, where that fails."""
    sealed = payload | {"checksum": checksum(payload)}
    try:
        if way is SaveWay.IN_PLACE:
            torch.save(sealed, path)
        else:
            _replace(sealed, path, way)
    except (OSError, RuntimeError) as error:
        temporary_name(path).unlink(missing_ok=True)
        temporary_name(previous_name(path)).unlink(missing_ok=True)
        raise TrainerError(f"saving {path} failed: {_first_cause(error)}") from error


def _replace(sealed: Payload, path: Path, way: SaveWay) -> None:
    """Write a temporary file, keep the old one under its second name, and rename the new one into place."""
    temporary = temporary_name(path)
    with temporary.open("wb", buffering=BUFFER_BYTES) as file:
        torch.save(sealed, file)
        file.flush()
        if way in SYNCED:
            os.fsync(file.fileno())
    if way in KEEPING_PREVIOUS and path.exists():
        _give_second_name(path, previous_name(path))
    temporary.replace(path)
    if way in FOLDER_SYNCED:
        sync_folder(path.parent)


def reinstate(path: Path) -> None:
    """Put the previous file, known to be whole, in the place of a damaged `path`.

    Otherwise the next save would keep the damaged one as previous, and for an instant no whole one would exist.
    """
    _give_second_name(previous_name(path), path)
    sync_folder(path.parent)


def _give_second_name(path: Path, name: Path) -> None:
    """Make `name` mean the same file as `path`, replacing what it meant; a copy where there are no hard links."""
    if name.exists() and name.samefile(path):
        return  # a life killed between the two renames left it so; rename(2) of two links to one file does nothing
    temporary = temporary_name(name)
    try:
        temporary.hardlink_to(path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        with path.open("rb") as source, temporary.open("wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fsync(copy.fileno())
    temporary.replace(name)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _first_cause(error: BaseException) -> str:
    """Return the system's own words: torch's writer hides them behind an error about its position in the file."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return _first_sentence(error)


def _first_sentence(error: BaseException) -> str:
    """Return the kind of an error and what it says first: torch adds paragraphs of advice."""
    return f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0].partition(". ")[0]
