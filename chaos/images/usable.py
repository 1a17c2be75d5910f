"""Which kinds of images can be used here: each tried for real, in a process of its own that leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from chaos.errors import ChaosError, HarnessError
from chaos.images.copying import copy_image
from chaos.images.cuts import shut_down
from chaos.images.isolation import isolate
from chaos.images.kinds import DEFAULT_KINDS, ImageKind, parse_kind
from chaos.images.mounting import mount_image, mounted, unmount
from chaos.images.templates import Template
from chaos.model import Record

_DEADLINE_S: Final = 120.0


class Usable(Record, kw_only=True):
    """Whether a kind of image (as `parse_kind` reads it) can be used; `reason` says why not, and what to do."""

    kind: str
    is_usable: bool
    reason: str = ""


def find_usable(kinds: Sequence[ImageKind] = DEFAULT_KINDS) -> tuple[Usable, ...]:
    """Make an image of each kind, mount it, cut it and mount it again; takes a fraction of a second each.

    It happens in another process, so that this one stays in its mount namespace. Raises HarnessError where that process
    itself fails.
    """
    command = [sys.executable, "-P", "-m", "chaos.images", *map(str, kinds)]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_DEADLINE_S, stdin=subprocess.DEVNULL)
        return msgspec.json.decode(done.stdout, type=tuple[Usable, ...])
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        message = f"which file systems can be used could not be found out: {error}"
        raise HarnessError(message, hint="try again; the machine may be overloaded") from error


def main(words: Sequence[str]) -> None:
    """Print as JSON what `find_usable` returns: the program that it runs."""
    found = tuple(_try(parse_kind(word)) for word in words)
    sys.stdout.buffer.write(msgspec.json.encode(found))


def _try(kind: ImageKind) -> Usable:
    """Use a kind of image once."""
    try:
        isolate()
        with tempfile.TemporaryDirectory(prefix="9l-") as folder:
            _use(kind, Path(folder))
    except ChaosError as error:
        return Usable(kind=str(kind), is_usable=False, reason=error.sentences)
    except OSError as error:
        return Usable(kind=str(kind), is_usable=False, reason=str(error))
    return Usable(kind=str(kind), is_usable=True)


def _use(kind: ImageKind, folder: Path) -> None:
    """Make an image, mount it, take the power away in each way that it has, and mount what is left."""
    image, copy, place, other = (folder / name for name in ("image", "copy", "mounted", "other"))
    place.mkdir()
    other.mkdir()
    Template(kind, folder).make_image(image)
    with mounted(kind, image, place):
        (place / "out").mkdir()
        copy_image(image, copy)
        mount_image(kind, copy, other)  # beside its original
        if kind.traits.has_shutdown:
            shut_down(kind, other)
        unmount(other)
    with mounted(kind, copy, other):
        pass
