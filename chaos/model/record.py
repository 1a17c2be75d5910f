"""The base of all records, and the numbers that many parts share."""

from __future__ import annotations

from typing import dataclass_transform

import msgspec

SCHEMA = 1
PAGE_BYTES = 4096
SIGKILL = 9
TEXT_LIMIT_CHARACTERS = 16384


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all records: immutable, strict about unknown fields; `kw_only` has to be said again by each subclass."""
