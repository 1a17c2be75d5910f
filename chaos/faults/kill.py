"""`kill`: the whole process tree is ended by SIGKILL, right before an operation or inside a write.

Stands for: a spot instance that is reclaimed, the kernel's killer of processes that take too much memory, `kill -9`, a
scheduler's time limit, a crash of the job. What the processes had written is there: the page cache survives them. A
write is torn only at multiples of 4096 of the file's offset, as local file systems copy by whole pages.

Does not stand for: the loss of power or a crash of the kernel (`power_loss`), a write that is cut at any byte
(`torn_write`), SIGTERM and other signals that a target may handle.

It strikes by no longer answering the call at the crash point, and then killing everything (`chaos.lives.intercepted`).
Evidence: the root was there, held in that call, and ended by signal 9.
"""

from __future__ import annotations

from typing import Final

from chaos.planners.kinds import KILL, FaultPlan

PLAN: Final[FaultPlan] = KILL
