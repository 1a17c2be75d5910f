"""Mounts an image in a namespace of its own, writes to it, says so, and waits to be killed: FOLDER KIND STAGE."""

# ruff: noqa: T201 - it talks to the test that runs it

from __future__ import annotations

import os
import sys
from pathlib import Path

from chaos.images import Template, isolate, mount_image, mount_memory, parse_kind

FOLDER, KIND, STAGE = Path(sys.argv[1]), parse_kind(sys.argv[2]), sys.argv[3]


def reached(stage: str) -> None:
    """Stop here, where this is the stage to be killed in."""
    if stage == STAGE:
        print(stage, flush=True)
        sys.stdin.read()


isolate()
memory, live = FOLDER / "memory", FOLDER / "live"
for place in (memory, live):
    place.mkdir()
mount_memory(memory, 1 << 30)
Template(KIND, memory).make_image(memory / "image")
reached("made")
mount_image(KIND, memory / "image", live)
reached("mounted")
fd = os.open(live / "written", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(fd, bytes(1 << 20))
child = os.fork()
if not child:
    os.write(fd, b"more")
    sys.stdin.read()
    os._exit(0)
reached("written")
