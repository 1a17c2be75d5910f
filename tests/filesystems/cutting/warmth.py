"""Lives that have torch already: a start that imports it takes seconds, and there are many."""

from __future__ import annotations

from chaos.lives.starters import WarmPlan, WarmStarter


def torch_starter() -> WarmStarter:
    """Return a starter of lives that are forked from a process that has imported what the torch patterns import."""
    return WarmStarter(WarmPlan(modules=("numpy", "torch", "torch.distributed.checkpoint")))
