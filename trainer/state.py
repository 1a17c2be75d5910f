"""All that must be saved so that a resumed run ends with the same bits, and how it is put back.

Weights, optimizer, step, place in the data, every random generator. The learning rate is a function of the step, and
saves happen only between updates, so neither it nor half-summed gradients are state.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trainer.checkpoint import RESUME_FORMAT, WEIGHTS_FORMAT, Payload, warn
from trainer.data import EpochOrder, RandomOrder, digest, make_order
from trainer.model import LanguageModel
from trainer.options import HALF_RESUME, Forget, Options, TrainerError

WORLD_SIZE = 1  # processes; another number would mean other batches per step


@dataclass(slots=True)
class TrainState:
    """A run between two updates; `step` counts the updates done, `must_match` is what a resumed run may not change."""

    options: Options
    must_match: dict[str, int | float | str]
    run_id: str
    model: LanguageModel
    optimizer: torch.optim.AdamW
    order: RandomOrder | EpochOrder
    step: int = 0


def fresh_state(options: Options, text: bytes, training_size: int) -> TrainState:
    """Return the state before the first update, everything random drawn from `--seed`."""
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    model = LanguageModel(options).to(options.device)
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    scales = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    groups = [{"params": matrices, "weight_decay": options.weight_decay}, {"params": scales, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=options.lr, betas=(0.9, 0.95), fused=True)
    order = make_order(training_size, options)
    text_digest = digest(text)
    return TrainState(options, options.must_match(text_digest), options.run_id(text_digest), model, optimizer, order)


def resume_payload(state: TrainState) -> Payload:
    """Return the content of resume.pt: everything, except what `--forget` leaves out and `--save half` rounds."""
    options = state.options
    payload: Payload = {
        "format": RESUME_FORMAT,
        "run_id": state.run_id,
        "options": dict(state.must_match),
        "world_size": WORLD_SIZE,
        "torch": str(torch.__version__),
        "step": state.step,
        "model": _weights(state.model, is_half=options.save in HALF_RESUME),
    }
    if Forget.OPTIMIZER not in options.forget:
        payload["optimizer"] = state.optimizer.state_dict()
    if Forget.BATCH_ORDER not in options.forget:
        payload["order"] = state.order.capture()
    if Forget.RNG not in options.forget:
        payload["generators"] = _capture_generators(options.device)
    return payload


def weights_payload(state: TrainState) -> Payload:
    """Return the content of weights.pt: half precision is enough to use the model, and half the space."""
    config = {name: state.must_match[name] for name in ("dim", "layers", "heads", "kv-heads", "sequence")}
    weights = _weights(state.model, is_half=True)
    return {"format": WEIGHTS_FORMAT, "run_id": state.run_id, "step": state.step, "config": config, "model": weights}


def restore(state: TrainState, payload: Payload) -> None:
    """Put the content of resume.pt into `state`; raise TrainerError, naming the option, where it is another run's."""
    _refuse_other_run(state, payload)
    forget = state.options.forget
    state.run_id = payload["run_id"]
    state.model.load_state_dict(payload["model"])  # copies into fp32 parameters, whatever precision was saved
    if Forget.OPTIMIZER not in forget:
        state.optimizer.load_state_dict(_part(payload, "optimizer", Forget.OPTIMIZER))
    if Forget.BATCH_ORDER not in forget:
        state.order.restore(_part(payload, "order", Forget.BATCH_ORDER))
    if Forget.EPOCH_SKIP in forget and isinstance(state.order, EpochOrder):
        state.order.skipped_again = state.order.position % state.order.num_batches
    if Forget.RNG not in forget:
        _restore_generators(_part(payload, "generators", Forget.RNG), state.options.device)
    if Forget.STEP not in forget:
        state.step = payload["step"]


def _refuse_other_run(state: TrainState, payload: Payload) -> None:
    """Raise TrainerError where an option or the number of processes is not that of the run that saved `payload`."""
    saved, wanted = payload["options"], state.must_match
    for name in sorted(saved.keys() | wanted.keys()):
        if saved.get(name) != wanted.get(name):
            raise TrainerError(
                f"the run in {state.options.out} has --{name} {saved.get(name)}, this command {wanted.get(name)}:"
                " it would not end with the same bits; give the same options, or choose an empty folder"
            )
    if state.options.named_run_id not in {"", payload["run_id"]}:
        raise TrainerError(f"the run in {state.options.out} has --run-id {payload['run_id']}: give that one or none")
    if payload["world_size"] != WORLD_SIZE:
        raise TrainerError(
            f"the run in {state.options.out} had {payload['world_size']} processes, this one {WORLD_SIZE}"
        )
    if payload["torch"] != torch.__version__:
        warn(f"saved by torch {payload['torch']}, resumed by {torch.__version__}: the bits may differ")


def _part(payload: Payload, name: str, forgotten: Forget) -> dict[str, Any]:
    """Return one part of `payload`; raise TrainerError where a run with `--forget` left it out."""
    if name not in payload:
        raise TrainerError(f"the resume file holds no {name}: the run that saved it had --forget {forgotten}")
    part: dict[str, Any] = payload[name]
    return part


def _weights(model: nn.Module, *, is_half: bool) -> dict[str, Tensor]:
    """Return the weights by name, in half precision if asked for."""
    return {name: value.half() if is_half else value for name, value in model.state_dict().items()}


def _capture_generators(device: str) -> dict[str, Any]:
    """Return the states of the process-wide generators, as tensors and numbers only."""
    version, words, gauss = random.getstate()
    python = {"version": version, "words": torch.tensor(words), "gauss": gauss}
    generators: dict[str, Any] = {"torch": torch.get_rng_state(), "python": python}
    if device == "cuda":
        generators["cuda"] = torch.cuda.get_rng_state()
    return generators


def _restore_generators(saved: dict[str, Any], device: str) -> None:
    """Set the process-wide generators to what `_capture_generators` returned."""
    torch.set_rng_state(saved["torch"])
    python = saved["python"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    if device == "cuda":
        torch.cuda.set_rng_state(saved["cuda"])
