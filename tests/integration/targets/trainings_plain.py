"""Small trainings as people write them: optimizers, precisions, ways to step and to load."""

# ruff: noqa: ANN001, ANN003, ANN201, ANN202, ANN204, D102, D107, NPY002 - written as a user writes

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from training_parts import STEPS, ended, network, trained


def plain():
    """Train as the tutorial does."""
    model = network()
    return trained(model, torch.optim.AdamW(model.parameters(), lr=0.01))


def fused():
    """Let one kernel do all of a step."""
    model = network()
    return trained(model, torch.optim.AdamW(model.parameters(), lr=0.01, fused=True))


def foreach():
    """Step all tensors at once."""
    model = network()
    return trained(model, torch.optim.AdamW(model.parameters(), lr=0.01, foreach=True))


def tensor_rate():
    """Keep the rate in a tensor."""
    model = network()
    return trained(model, torch.optim.SGD(model.parameters(), lr=torch.tensor(0.01)))


def scheduled():
    """Change rate and momentum at each step."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=STEPS + 1)
    return trained(model, optimizer, then=lambda _: schedule.step())


def accumulating():
    """Add up the gradients of three batches for each step, and leave one over."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for number in range(3 * STEPS + 1):
        loss = model(torch.randn(4, 8)).square().mean() / 3
        loss.backward()
        losses.append(loss.item())
        if number % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    return ended(losses, model, optimizer, [parameter.grad for parameter in model.parameters()])


def closures():
    """Let the optimizer call for losses as it likes."""
    model = network(dropout=0.0)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")
    losses = []
    for _ in range(3):
        batch = torch.randn(4, 8)

        def closure(batch=batch):
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            return loss

        losses.append(optimizer.step(closure))
    return ended(losses, model, optimizer)


def scaled():
    """Skip a step whose gradients are infinite, as a scaler of losses does."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    losses = []
    for step in range(STEPS):
        loss = model(torch.randn(4, 8)).square().mean() * (torch.inf if step == 2 else 1)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss)
    return ended(losses, model, optimizer, scaler)


def several():
    """Train two networks against each other, with an optimizer each."""
    judge, maker = nn.Sequential(nn.Linear(8, 1)), network()
    optimizers = [torch.optim.Adam(judge.parameters(), lr=0.01), torch.optim.Adam(maker.parameters(), lr=0.01)]
    losses = []
    for _ in range(STEPS):
        made = maker(torch.randn(4, 8))
        first = judge(torch.randn(4, 8)).mean() - judge(made.detach()).mean()
        optimizers[0].zero_grad()
        first.backward()
        optimizers[0].step()
        second = judge(made).mean()
        optimizers[1].zero_grad()
        second.backward()
        optimizers[1].step()
        losses += [first, second]
    return ended(losses, judge, maker, *optimizers)


def channels_last():
    """Train a convolution with batch statistics, whose weights are not contiguous."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
    model = model.to(memory_format=torch.channels_last)
    batch = lambda: torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last)  # noqa: E731 - short
    return trained(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True), batch)


def narrow():
    """Train in half precision, beside weights and buffers of other kinds."""
    model = network().bfloat16()
    model.register_buffer("eighth", torch.randn(4).to(torch.float8_e4m3fn))
    model.register_buffer("flags", torch.tensor([True, False]))
    model.register_buffer("nothing", torch.empty(0))
    model.register_parameter("frozen", nn.Parameter(torch.randn(3), requires_grad=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    return trained(model, optimizer, lambda: torch.randn(4, 8, dtype=torch.bfloat16))


class Wave(nn.Module):
    """A layer of complex numbers, with a view as a buffer that is a lazy conjugate."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8, dtype=torch.complex64))
        self.register_buffer("other", torch.randn(8, dtype=torch.complex64).conj())

    def forward(self, batch):
        return (batch.to(torch.complex64) @ self.weight + self.other).abs()


def complex_numbers():
    """Train complex weights."""
    model = Wave()
    return trained(model, torch.optim.Adam(model.parameters(), lr=0.01))


def sparse():
    """Train an embedding whose gradients are sparse."""
    model = nn.Embedding(32, 4, sparse=True)
    batch = lambda: torch.randint(32, (6,))  # noqa: E731 - short
    return trained(model, torch.optim.SparseAdam(model.parameters(), lr=0.01), batch)


class Noisy(Dataset):
    """Samples that are augmented by all three generators."""

    def __init__(self):
        self.samples = torch.arange(40 * 8, dtype=torch.float32).reshape(40, 8) / 320

    def __len__(self):  # noqa: D105 - its name says it
        return len(self.samples)

    def __getitem__(self, index):  # noqa: D105 - the same
        return self.samples[index] + random.random() + torch.rand(()) + float(np.random.rand())


def loaded(workers=0, **options):
    """Draw two epochs from a loader that shuffles."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    shuffler = torch.Generator().manual_seed(5)
    seed = lambda number: (random.seed(number), np.random.seed(number))  # noqa: E731 - short
    loader = DataLoader(
        Noisy(), batch_size=8, shuffle=True, generator=shuffler, num_workers=workers, worker_init_fn=seed, **options
    )
    losses = []
    for _ in range(2):
        for batch in loader:
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return ended(losses, model, optimizer, shuffler.get_state())


def workers():
    """Let two processes make the batches."""
    return loaded(2)


def persistent():
    """Let two processes make the batches of all epochs."""
    return loaded(2, persistent_workers=True, prefetch_factor=2)


def halved():
    """Train the same numbers in two precisions."""
    weight = torch.randn(5, 3)
    optimizers = [torch.optim.SGD([nn.Parameter(weight.to(kind))], lr=0.1) for kind in (torch.float32, torch.bfloat16)]
    for optimizer in optimizers:
        optimizer.step()
    return ended([], *optimizers)
