"""Small trainings that do something that a look at a tensor may upset: compiled, traced, in several processes."""

# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202, ANN204, ANN205, ANN206, NPY002 - written as a user writes

import gc
import json
import os
import random
import signal
import sys
import tempfile
import threading
import weakref
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch._dynamo.testing
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._pytree import tree_map
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


def freed():
    """Have a buffer whose memory was given back, as those do that shard or offload."""
    model = network()
    model.register_buffer("full", torch.ones(1000), persistent=False)
    model.full.untyped_storage().resize_(0)
    return trained(model, torch.optim.AdamW(model.parameters(), lr=0.01))


def rehearsed():
    """Do a whole step with tensors that are not there, to see what it would need, and then train."""
    with torch._subclasses.FakeTensorMode():
        rehearsal = nn.Linear(4, 4)
        optimizer = torch.optim.Adam(rehearsal.parameters())
        rehearsal(torch.zeros(1, 4)).sum().backward()
        optimizer.step()
    model = network()
    return trained(model, torch.optim.AdamW(model.parameters(), lr=0.01))


class _Wrapping(torch.Tensor):
    """A tensor without memory of its own that wraps another, as quantized parameters do."""

    @staticmethod
    def __new__(cls, inner):
        """Show the inner one's form."""
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        """Keep the inner one."""
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        """Do everything on the inner ones."""
        inner = tree_map(lambda item: item.inner if isinstance(item, cls) else item, (args, kwargs or {}))
        found = function(*inner[0], **inner[1])
        return tree_map(lambda item: cls(item) if isinstance(item, torch.Tensor) else item, found)


def wrapping():
    """Train a parameter that wraps another tensor."""
    inner = torch.randn(4, 4)
    layer = nn.Linear(4, 4)
    layer.weight = nn.Parameter(_Wrapping(inner))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        layer(torch.randn(2, 4)).square().sum().backward()
        optimizer.step()
    return ended([], inner, layer.bias)


def other_bits():
    """Draw from numpy's process-wide generator, which is of another kind than it usually is."""
    np.random.set_bit_generator(np.random.PCG64(1))
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    try:
        return trained(model, optimizer, lambda: torch.from_numpy(np.random.randn(4, 8)).float())
    finally:
        np.random.set_bit_generator(np.random.MT19937(1))


def forking():
    """Fork children that rename a file while another thread trains: none of them may wait for that thread."""
    model = nn.Linear(800, 800)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    is_over, has_begun = threading.Event(), threading.Event()

    def train():
        while not is_over.is_set():
            optimizer.zero_grad()
            model(torch.ones(2, 800)).sum().backward()
            optimizer.step()
            has_begun.set()

    trainer = threading.Thread(target=train)
    trainer.start()
    has_begun.wait()
    statuses = [_renaming_child() for _ in range(12)]
    is_over.set()
    trainer.join()
    return {"statuses": statuses}


def _renaming_child():
    """Fork a child that renames a file, and return how it ended: an alarm is the end of one that waits for ever."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "new"
            path.touch()
            path.rename(Path(folder) / "old")
        os._exit(0)
    return os.waitpid(child, 0)[1]


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
