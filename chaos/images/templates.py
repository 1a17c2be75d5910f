"""Image files with a fresh file system: made once by mkfs, then copied."""

from __future__ import annotations

from pathlib import Path

from chaos.errors import HarnessError
from chaos.images.copying import copy_image
from chaos.images.kinds import ImageKind
from chaos.images.programs import run_program


class Template:
    """An empty file system of one kind, kept in a folder; what lies in it is sparse, some 100 KB."""

    def __init__(self, kind: ImageKind, folder: Path, size_bytes: int = 0) -> None:
        """Make nothing before it is needed; `size_bytes` where that is more than the least."""
        self._size_bytes = max(size_bytes, kind.traits.least_bytes)
        self.kind = kind
        self._path = folder / f"{kind.file_system}.template"

    def make_image(self, path: Path) -> None:
        """Make a new image file; HarnessError where mkfs is missing or fails, or there is no room."""
        if not self._path.exists():
            self._make(self._path.with_suffix(".fresh"))
        copy_image(self._path, path)

    def _make(self, fresh: Path) -> None:
        """Make the file system; the copy of it is without the zeros that mkfs wrote."""
        traits = self.kind.traits
        try:
            with fresh.open("wb") as file:
                file.truncate(self._size_bytes)
        except OSError as error:
            hint = "free some space, or choose another folder for the images"
            raise HarnessError(f"{fresh} cannot be made: {error.strerror}", hint=hint) from error
        run_program((*traits.maker, str(fresh)), package=traits.package)
        copy_image(fresh, self._path)
        fresh.unlink()
