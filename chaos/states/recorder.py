"""Keeps what the calls of a life change in the output folder, as they are carried out: the operation log with data."""

# ruff: noqa: PTH116 - names are bytes

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from chaos.errors import HarnessError
from chaos.intercept.decode import Call, Effect
from chaos.intercept.pending import Pending
from chaos.intercept.syscalls import is_appending
from chaos.model import OperationKind
from chaos.states.changes import (
    BEFORE_ALL,
    ROOT,
    Allocated,
    Change,
    Durability,
    Linked,
    Made,
    NodeKind,
    Piece,
    Renamed,
    Resized,
    Stamp,
    Synced,
    Unlinked,
    Wrote,
    Zeroed,
    to_bytes,
    to_text,
)
