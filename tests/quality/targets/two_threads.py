"""Writes each checkpoint's two halves from two threads at once, into a folder that is renamed when both are done."""

import shutil
import sys
import threading
from pathlib import Path

from training import Training, publish, read, train

out = Path(sys.argv[1])


def save(training: Training) -> None:
    """Write both halves side by side, then give the folder its name and remove the older ones."""
    half = out / "half.tmp"
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir()
    state = training.state()
    momentum = {"momentum": state.pop("momentum")}
    threads = [
        threading.Thread(target=publish, args=(half / "a.json", state)),
        threading.Thread(target=publish, args=(half / "b.json", momentum)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = out / f"ckpt-{training.step:03d}"
    shutil.rmtree(done, ignore_errors=True)
    half.rename(done)
    for older in sorted(out.glob("ckpt-*"))[:-1]:
        older.rename(out / "old.tmp")
        shutil.rmtree(out / "old.tmp")


shutil.rmtree(out / "old.tmp", ignore_errors=True)
training = Training()
found = sorted(out.glob("ckpt-*"))
if found:
    training.restore({**read(found[-1] / "a.json"), **read(found[-1] / "b.json")})
train(out, training, save)
