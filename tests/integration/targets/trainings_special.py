"""Small trainings that do something that a look at a tensor may upset: compiled, traced, in several processes."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202, NPY002 - written as a user writes

import gc
import json
import os
import random
import sys
import weakref
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch._dynamo.testing
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader
from training_parts import STEPS, ended, network, trained
from trainings_plain import Noisy, plain


def on_meta():
    """Give the optimizer a parameter that has no numbers, and the network a buffer that has none."""
    model = network()
    nothing = nn.Parameter(torch.empty(5, device="meta"))
    model.register_buffer("unmade", torch.empty(5, device="meta"))
    optimizer = torch.optim.AdamW([*model.parameters(), nothing], lr=0.01)
    return trained(model, optimizer)


def per_sample():
    """Take gradients sample by sample, through transformed calls of the network."""
    model = network(dropout=0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    parameters = dict(model.named_parameters())

    def loss_of(values, sample):
        return torch.func.functional_call(model, values, (sample[None],)).square().mean()

    for _ in range(STEPS):
        found = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0))(
            {name: value.detach() for name, value in parameters.items()}, torch.randn(4, 8)
        )
        for name, value in parameters.items():
            value.grad = found[name].mean(0)
        optimizer.step()
    return ended([], model, optimizer)


def exported():
    """Trace the network in training, with tensors that are not there, before it is trained."""
    model = network(dropout=0.0)
    program = torch.export.export(model, (torch.randn(4, 8),), strict=False)
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        model(mode.from_tensor(torch.zeros(4, 8)))
    return {"nodes": len(program.graph.nodes), **trained(model, torch.optim.AdamW(model.parameters(), lr=0.01))}


def compiled(backend="aot_eager"):
    """Compile the network; count how often, and into how many graphs."""
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
    model = network(dropout=0.0)
    return {
        **trained(torch.compile(model, backend=counter), torch.optim.AdamW(model.parameters(), lr=0.01)),
        "frames": counter.frame_count,
    }


def compiled_in_place():
    """Compile the network's own call."""
    torch._dynamo.reset()
    model = network(dropout=0.0)
    model.compile(backend="aot_eager")
    return trained(model, torch.optim.AdamW(model.parameters(), lr=0.01))


def compiled_step(backend="aot_eager"):
    """Compile the optimizer's step, too."""
    torch._dynamo.reset()
    model = network(dropout=0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=True)
    step = torch.compile(optimizer.step, backend=backend, fullgraph=False)
    losses = []
    for _ in range(STEPS):
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        step()
        losses.append(loss.item())
    return ended(losses, model, optimizer)


def inductor():
    """Compile network and step to machine code."""
    return {"model": compiled("inductor"), "step": compiled_step("inductor")}


def hooked():
    """Note the order in which the user's own hooks are called."""
    calls = []
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    note = lambda name: lambda *_: calls.append(name)  # noqa: E731 - short
    handles = [
        register_optimizer_step_pre_hook(note("before any step")),
        register_optimizer_step_post_hook(note("after any step")),
        nn.modules.module.register_module_forward_pre_hook(note("before any call")),
        optimizer.register_step_pre_hook(note("before a step")),
        optimizer.register_step_post_hook(note("after a step")),
        model.register_forward_pre_hook(note("before a call")),
        model.register_forward_hook(note("after a call")),
        model[0].weight.register_hook(note("gradient")),
    ]
    result = trained(model, optimizer)
    for handle in handles:
        handle.remove()
    return {**result, "calls": calls}


def released():
    """Let go of everything, and see that it is gone."""
    model, batch = network(), torch.randn(4, 8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = DataLoader(Noisy(), batch_size=8, shuffle=True)
    iterator = iter(loader)
    trained(model, optimizer, lambda batch=batch: batch)
    trained(model, optimizer, lambda iterator=iterator: next(iterator), steps=2)
    state = optimizer.state[model[0].weight]["exp_avg"]
    parts = [model, batch, optimizer, model[0].weight, model[0].weight.grad, state, loader, iterator]
    left = [weakref.ref(part) for part in parts]
    del model, batch, optimizer, state, loader, iterator, parts
    gc.collect()
    return {"alive": [type(reference()).__name__ for reference in left if reference() is not None]}


def replaced():
    """Put new parameters in the place of old ones, and more of them, while the optimizer goes on."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    more = nn.Linear(8, 8)

    def change(step):
        if step == 1:
            optimizer.add_param_group({"params": more.parameters(), "lr": 0.05})
        if step == 3:
            model[0].weight.data = model[0].weight.data.double().float() + 0.5
        if step == 4:
            optimizer.load_state_dict(optimizer.state_dict())

    return trained(model, optimizer, then=change)


def saving():
    """Save in the middle, in two ways."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    path = Path(sys.argv[1]) / "saved.pt"

    def save(step):
        if step == 2:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        if step == 4:
            path.replace(path.with_suffix(".old"))

    return trained(model, optimizer, then=save)


def _rank(number, path):
    """Be one of two ranks, whose gradients are averaged."""
    torch.manual_seed(1)
    random.seed(2)
    np.random.seed(3)
    store = torch.distributed.FileStore(path, 2)
    torch.distributed.init_process_group("gloo", rank=number, world_size=2, store=store, timeout=timedelta(seconds=60))
    model = network(dropout=0.0)
    parallel = nn.parallel.DistributedDataParallel(model)
    own = torch.Generator().manual_seed(number)
    batch = lambda: torch.randn(4, 8, generator=own)  # noqa: E731 - short
    result = trained(parallel, torch.optim.AdamW(model.parameters(), lr=0.01), batch)
    Path(f"{path}.{number}").write_text(json.dumps(result))
    torch.distributed.barrier()
    os._exit(0)  # to take the group down may hang, in torch itself: once in some dozen runs on a busy machine


def ranks():
    """Train in two processes."""
    path = str(Path(sys.argv[1]) / "store")
    torch.multiprocessing.spawn(_rank, (path,), nprocs=2)
    return {number: json.loads(Path(f"{path}.{number}").read_text()) for number in (0, 1)}


def sabotaged():
    """Do what `plain` does while nothing in the probe can look at a tensor."""
    names = [name for name in sys.modules if name.startswith("ninelives_probe.")]

    def fail(*_, **__):
        raise RuntimeError("this tensor cannot be looked at")

    kept = [(sys.modules[name], sys.modules[name].feed) for name in names if hasattr(sys.modules[name], "feed")]
    for module, _ in kept:
        module.feed = fail
    try:
        return plain()
    finally:
        for module, feed in kept:
            module.feed = feed
