"""What small trainings share: a network, steps, and a digest of all that they came to."""

# ruff: noqa: ANN001, ANN002, ANN201, ANN202, NPY002 - written as a user writes

import hashlib
import random

import numpy as np
import torch
from torch import nn

STEPS = 6


def digest(value):
    """Return a digest of tensors, numbers and structures of them, by their bits."""
    hasher = hashlib.sha256()

    def see(item):
        if isinstance(item, torch.Tensor):
            item = item.detach().resolve_conj()
            if item.device.type == "meta":
                hasher.update(b"meta")
                return
            item = item.to_dense() if item.is_sparse else item
            hasher.update(f"{item.dtype}{tuple(item.shape)}{item.stride()}".encode())
            hasher.update(item.contiguous().flatten().view(torch.uint8).numpy().tobytes())
        elif isinstance(item, dict):
            for key in item:
                hasher.update(str(key).encode())
                see(item[key])
        elif isinstance(item, list | tuple):
            for part in item:
                see(part)
        else:
            hasher.update(repr(item).encode())

    see(value)
    return hasher.hexdigest()


def network(dropout=0.1):
    """Return a small network with dropout, so that the generator matters."""
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 8))


def ended(losses, *parts):
    """Return what a training came to: its losses, and a digest of the state of all parts and generators."""
    states = [part.state_dict() if hasattr(part, "state_dict") else part for part in parts]
    generators = [torch.get_rng_state(), random.getstate(), np.random.get_state()]
    return {
        "losses": [torch.as_tensor(loss).item().hex() for loss in losses],
        "state": digest(states),
        "rng": digest(generators),
    }


def trained(model, optimizer, batch=lambda: torch.randn(4, 8), steps=STEPS, then=lambda _: None):
    """Do some steps of the plainest kind."""
    losses = []
    for step in range(steps):
        loss = model(batch()).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        then(step)
    return ended(losses, model, optimizer)
