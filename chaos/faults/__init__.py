"""The kinds of fault, one a file: what each stands for and what not, where it can strike, what it does, its evidence.

Each file has a `PLAN` for the planners. Those of the faults that answer a call with an error have a rule, too
(`injection` applies it); those of the faults that change what a killed life left have the function that does it.
Nothing here judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.faults import bit_flip, disk_full, io_error, kill, power_loss, short_write, torn_write
from chaos.model import FaultKind
from chaos.planners.kinds import FaultPlan

PLANS: Mapping[FaultKind, FaultPlan] = MappingProxyType(
    {
        FaultKind.KILL: kill.PLAN,
        FaultKind.TORN_WRITE: torn_write.PLAN,
        FaultKind.POWER_LOSS: power_loss.PLAN,
        FaultKind.DISK_FULL: disk_full.PLAN,
        FaultKind.IO_ERROR: io_error.PLAN,
        FaultKind.SHORT_WRITE: short_write.PLAN,
        FaultKind.BIT_FLIP: bit_flip.PLAN,
    }
)
