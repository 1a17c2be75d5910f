"""Which component a leaf's name stands for: the names that real savers give."""

from __future__ import annotations

import pytest

from chaos.checkpoints.components import component_of, is_of_optimizer, key_of, rank_of

FLOATS = {
    "weights": [
        "model.blocks.0.attention.key.weight", "model.safetensors/lm_head.weight", "fc1.bias", "value",
        "pytorch_model.bin/h.0.weight", "model-00001-of-00002.safetensors/w", "state_dict.net.scheduler_head.weight",
        "__0_0.distcp/model.norm.weight", "generator.conv.weight", "model.generator.conv.weight", "module.order.weight",
    ],
    "buffers": ["bn.running_mean", "model.layers.1.running_var"],
    "averaged weights": ["ema.fc.weight", "ema_model.fc.weight", "shadow_params.3"],
    "optimizer state: exp_avg": [
        "optimizer.state.0.exp_avg", "optimizer.pt/state.17.exp_avg", "optimizer_states.0.state.3.exp_avg",
        "__1_0.distcp/optim.state.model.norm.weight.exp_avg", "exp_avg.3", "optimizer.bin/state.0.exp_avg",
    ],
    "optimizer state: momentum_buffer": ["opt.state.0.momentum_buffer"],
    "optimizer state: m": ["optimizer.m.layer.weight"],
    "optimizer state: row_var": ["optimizer.state.4.row_var"],
    "optimizer state": ["optimizer.something"],
    "learning rate schedule": ["scheduler.lambdas"],
}  # fmt: skip
# A whole training's state, or another one than the name says, in files that are called after a part of it.
INSIDE = {
    "weights": ["model.pt/model.fc.weight", "optimizer.pt/model.fc.weight", "model.safetensors/opt_head.weight"],
    "averaged weights": ["ema.pt/model.fc.weight", "ema.pt/bn.running_mean", "model.pt/ema.fc.weight"],
    "optimizer state: exp_avg": [
        "model.pt/opt.state.0.exp_avg", "pytorch_model.bin/optimizer.state.0.exp_avg",
        "training.pt/opt.state.1.exp_avg", "optimizer.pt/state.model.fc.weight.exp_avg",
        "optimizer.pt/exp_avg.fc.weight",
    ],
    "optimizer state: m": ["optimizer.pt/m.layer.weight", "model.pt/optimizer.m.layer.weight"],
}  # fmt: skip
COUNTERS_INSIDE = {
    "step counter": ["model.pt/step", "optimizer.pt/global_step", "training.pt/step", "random_states_0.pkl/step"],
    "optimizer's step counter": ["model.pt/opt.state.0.step", "optimizer.pt/state.3.step"],
    "learning rate schedule": ["scheduler.pt/step"],
}  # fmt: skip
INTEGERS_INSIDE = {
    "generators": ["model.pt/rng.torch", "optimizer.pt/rng", "pytorch_model.bin/rng_state.cuda.0", "training.pt/rng"],
    "data order": ["sampler.pt/generator", "model.pt/sampler.state"],
    "weights": ["model.pt/indices"],
}
VALUES_INSIDE = {
    "optimizer's settings": ["model.pt/opt.param_groups.0.lr", "model.pt/param_groups.0.lr", "optimizer.pt/lr"],
    "step counter": ["model.pt/step", "optimizer.pt/step"],
    "generators": ["model.pt/rng.python.1.3", "optimizer.pt/rng.python.1.3"],
    "learning rate schedule": ["model.pt/scheduler.last_epoch", "optimizer.pt/scheduler.last_epoch"],
    "data order": ["sampler.pt/epoch"],
    "checksum": ["optimizer.pt/checksum"],
    "other values": ["model.pt/config.optimizer"],
}
COUNTERS = {
    "optimizer's step counter": ["optimizer.state.0.step", "optimizer.pt/state.9.step", "optim.state.w.step"],
    "step counter": ["step", "trainer_state.json/global_step", "epoch", "state.json/iter_num"],
}
OTHERS = {
    "generators": [
        "generators.torch", "rng_state.pth/cpu", "rng_state_1.pth/cuda", "random_states_0.pkl/torch_manual_seed",
        "torch_rng_state", "cuda_rng_states.0", "numpy_rng.state",
    ],
    "data order": ["order.generator", "sampler.state", "dl_state_dict.bin/position"],
    "weights": ["model.safetensors/embeddings.position_ids"],
    "buffers": ["bn.num_batches_tracked"],
    "other tensors": ["indices", "a.b"],
}  # fmt: skip
VALUES = {
    "optimizer's settings": ["optimizer.param_groups.0.lr", "optimizer.pt/param_groups.1.params.3", "optimizer.lr"],
    "learning rate schedule": ["scheduler.pt/last_epoch", "lr_schedulers.0.base_lrs.0", "lr_scheduler._step_count"],
    "generators": ["rng_state.pth/python.0", "generators.python.gauss", "random_state.1.3"],
    "gradient scaler": ["scaler.pt/scale", "grad_scaler.growth_factor"],
    "step counter": ["step", "trainer_state.json/global_step", "trainer_state.json/epoch"],
    "other values": [
        "run", "options.order", "options.step", "trainer_state.json/log_history.3.step", "model.config.dim",
        "model.safetensors/__metadata__.format", "config.json/model_type",
    ],
    "checksum": ["checksum", "meta.sha256"],
}  # fmt: skip


def _member(name: str) -> str:
    """Return the file of a folder that a name of these tables is in."""
    return name.rpartition("/")[0]


def _cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return the pairs of a name and its component."""
    return [(name, component) for component, names in table.items() for name in names]


@pytest.mark.parametrize(("name", "component"), [*_cases(FLOATS), *_cases(INSIDE)])
def test_tensors_of_floats(name: str, component: str) -> None:
    """A tensor of many floats is what the first telling word of its path says, then its file's name; else a weight."""
    assert component_of(name, is_tensor=True, is_float=True, elements=100, member=_member(name)) == component


@pytest.mark.parametrize(("name", "component"), [*_cases(COUNTERS), *_cases(COUNTERS_INSIDE)])
def test_counters(name: str, component: str) -> None:
    """A tensor of one element that is called a step is a counter."""
    assert component_of(name, is_tensor=True, is_float=True, elements=1, member=_member(name)) == component


@pytest.mark.parametrize(("name", "component"), [*_cases(OTHERS), *_cases(INTEGERS_INSIDE)])
def test_other_tensors(name: str, component: str) -> None:
    """A tensor of integers may be a generator's state, a position, a buffer."""
    assert component_of(name, is_tensor=True, is_float=False, elements=100, member=_member(name)) == component


@pytest.mark.parametrize(("name", "component"), [*_cases(VALUES), *_cases(VALUES_INSIDE)])
def test_values(name: str, component: str) -> None:
    """What is no tensor is a setting, a counter, a part of a generator; options are never more than values."""
    assert component_of(name, is_tensor=False, is_float=False, member=_member(name)) == component


def test_components_are_sorted_as_an_engineer_reads_them() -> None:
    """Weights come first, the optimizer's state by key, then its settings; every component has a place."""
    names = {component for table in (FLOATS, COUNTERS, OTHERS, VALUES) for component in table}
    ordered = sorted(names, key=rank_of)
    assert ordered[0] == "weights"
    assert ordered.index("optimizer state: exp_avg") < ordered.index("optimizer's step counter")
    assert ordered[-1] == "checksum"
    assert {key_of(name) for name in names} == {"", "exp_avg", "momentum_buffer", "m", "row_var"}
    assert [is_of_optimizer(name) for name in ("optimizer's settings", "generators")] == [True, False]
