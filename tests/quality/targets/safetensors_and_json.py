"""Saves weights with safetensors and the rest as JSON, into one folder that is renamed when both are whole."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from training import Training, train, write

out = Path(sys.argv[1])
checkpoint = out / "ckpt"


def save(training: Training) -> None:
    """Write both files into a folder, and swap it with the current one, which stays until then."""
    making, old = out / "making", out / "ckpt_old"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    state = training.state()
    save_file({key: np.array(state.pop(key)) for key in ("weights", "momentum")}, making / "model.safetensors")
    write(making / "state.json", state)
    if checkpoint.exists():
        shutil.rmtree(old, ignore_errors=True)
        checkpoint.rename(old)
    making.rename(checkpoint)


training = Training()
found = next((folder for folder in (checkpoint, out / "ckpt_old") if folder.exists()), None)
if found:
    tensors = {key: value.tolist() for key, value in load_file(found / "model.safetensors").items()}
    training.restore({**json.loads((found / "state.json").read_text()), **tensors})
train(out, training, save)
save_file({"weights": np.array(training.weights)}, out / "final.safetensors")
