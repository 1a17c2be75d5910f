"""Keeps its last two states; with `sum` a checksum of each is kept and looked at, with `bare` not: `OUT HOW [FORMAT]`.

FORMAT is safetensors where nothing else is said, or json, or pickle.
"""

import hashlib
import json
import pickle
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save
from training import State, Training, say, train, write

out, has_sum, kind = Path(sys.argv[1]), sys.argv[2] == "sum", (*sys.argv[3:], "safetensors")[0]
newest, before = out / f"ckpt.{kind}", out / f"ckpt_before.{kind}"


def packed(state: State) -> bytes:
    """Return a state as the bytes of a file."""
    if kind == "json":
        return json.dumps(state).encode()
    if kind == "pickle":
        return pickle.dumps(state)
    tensors = {key: np.array(state.pop(key)) for key in ("weights", "momentum")}
    return save(tensors, metadata={"rest": json.dumps(state)})


def unpacked(data: bytes) -> State:
    """Return the state in the bytes of a file."""
    if kind == "json":
        return json.loads(data)
    if kind == "pickle":
        return pickle.loads(data)  # noqa: S301 - its own
    length = int.from_bytes(data[:8], "little")
    rest = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["rest"])
    return {**rest, **{key: value.tolist() for key, value in load(data).items()}}


def keep(training: Training) -> None:
    """Write everything into one file, its checksum beside it, and keep the one before."""
    data = packed(training.state())
    making = out / "making"
    making.write_bytes(data)
    if newest.exists():
        newest.replace(before)
    if has_sum:
        write(out / f"sum-{training.step}", hashlib.sha256(data).hexdigest())
    making.replace(newest)


def is_whole(data: bytes) -> bool:
    """Look the checksum up, if there are any."""
    sums = [json.loads(path.read_text()) for path in out.glob("sum-*")]
    return not has_sum or hashlib.sha256(data).hexdigest() in sums


training = Training()
for path in (newest, before):
    if path.exists():
        data = path.read_bytes()
        if not is_whole(data):
            say(f"{path.name} is damaged")
            continue
        training.restore(unpacked(data))
        break
else:
    if newest.exists():
        sys.exit("no whole checkpoint is left")
train(out, training, keep)
