"""Where images lie and are mounted: in memory, in the mount namespace of this process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from chaos.images import ImageKind, Template, copy_image, isolate, mount_memory, unmount

_MEMORY_BYTES: Final = 2 << 30


class Bench:
    """Folders for images of one kind; `live` is where the target works, `look` where a cut is looked at."""

    def __init__(self, folder: Path, kind: ImageKind) -> None:
        """Use a folder that `in_memory` gave."""
        self.kind = kind
        self.folder = folder
        self.image = folder / "image"
        self.live = folder / "live"
        self.look = folder / "look"
        self._cuts = folder / "cuts"
        self._template = Template(kind, folder)
        for place in (self.live, self.look):
            place.mkdir()

    @property
    def out(self) -> Path:
        """Return the target's output folder."""
        return self.live / "out"

    def renew(self) -> Path:
        """Make a new image, and forget all cuts; return an empty folder for what a life needs."""
        life = self.folder / "life"
        for place in (self._cuts, life):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        self._template.make_image(self.image)
        return life

    def cut(self) -> str:
        """Keep the image as it is now, unless it is kept already; return its digest."""
        fresh = self._cuts / "fresh"
        digest = copy_image(self.image, fresh)
        fresh.replace(self.path_of(digest))
        return digest

    def path_of(self, digest: str) -> Path:
        """Return where a cut is kept."""
        return self._cuts / digest


@contextmanager
def in_memory(folder: Path) -> Iterator[Path]:
    """Move to a mount namespace of our own, and have memory on the new folder; it goes with us, whatever ends us."""
    isolate()
    folder.mkdir()
    mount_memory(folder, _MEMORY_BYTES)
    yield folder
    unmount(folder)
