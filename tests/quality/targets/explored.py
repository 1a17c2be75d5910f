"""Trainings to be explored, without any library: `python explored.py OUT WAY`; each saves or resumes its own way."""

# ruff: noqa: ANN001, C901, PLR0912, ANN201, T201 - written as a user writes

import json
import os
import shutil
import sys
import time
from pathlib import Path

out, way = Path(sys.argv[1]), sys.argv[2]
checkpoint = out / "ckpt.json"
STEPS, EVERY = 6, 2


def write(path, state):
    """Write straight onto a path, in three writes of which the middle one spans pages."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    text = json.dumps(state).encode()
    for piece in (text[:10], text[10:-10], text[-10:]):
        os.write(fd, piece)
    os.close(fd)


def newest(by):
    """Return the state in the file that is the newest by a time, passing over damaged ones."""
    for path in sorted(out.glob("ckpt*.json"), key=by, reverse=True):
        try:
            return json.loads(path.read_text())
        except ValueError:
            continue
    return None


def publish(path, state):
    """Write under a temporary name and rename."""
    temporary = path.with_name(path.name + ".tmp")
    write(temporary, state)
    temporary.replace(path)


def sync(path):
    """Make a file or a folder durable."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def publish_durably(path, state):
    """Write under a temporary name, make that durable, rename, make the name durable."""
    temporary = path.with_name(path.name + ".tmp")
    write(temporary, state)
    sync(temporary)
    temporary.replace(path)
    if way != "folder_not_synced":
        sync(path.parent)


def load():
    """Return the state to go on from."""
    if way == "reads_aside" and (out / "aside.json").exists():
        json.loads((out / "aside.json").read_text())
    if way == "touches_the_old_one":
        return newest(os.path.getmtime)
    if way == "slots_by_ctime":
        return newest(os.path.getctime)
    if way == "marked":
        marked = [p for p in out.glob("ckpt-*.json") if "user.whole" in os.listxattr(p)]
        return max((json.loads(p.read_text()) for p in marked), key=lambda state: state["step"], default=None)
    if way == "two_slots":
        states = []
        for slot in sorted(out.glob("ckpt-*.json")):
            try:
                states.append(json.loads(slot.read_text()))
            except ValueError:
                continue
        return max(states, key=lambda state: state["step"], default=None)
    if not checkpoint.exists():
        return None
    if way == "dates_it_last" and checkpoint.stat().st_mtime > STEPS:
        sys.exit("this checkpoint was never declared whole")
    state = json.loads(checkpoint.read_text())
    if way == "rewrites_on_resume":
        write(checkpoint, state)
    if way == "names_its_folder" and state["folder"] != str(out):
        sys.exit("this checkpoint belongs to another folder")
    return state


def save(state):
    """Save in the way that was asked for."""
    if way == "names_its_folder":
        state = {**state, "folder": str(out)}
    if way == "in_place":
        write(checkpoint, state)
    elif way in ("two_slots", "slots_by_ctime"):
        write(out / f"ckpt-{state['step'] // EVERY % 2}.json", state)
    elif way == "reads_aside":
        write(out / "aside.json", {"step": state["step"], "more": "x" * 40})
        publish(checkpoint, state)
    elif way == "touches_the_old_one":
        path, old = out / f"ckpt-{state['step']}.json", out / f"ckpt-{state['step'] - EVERY}.json"
        publish(path, state)
        if old.exists():
            os.utime(old)
            time.sleep(0.01)  # so that the times differ, as they do when more is done in between
            os.utime(path)
    elif way == "copied":
        source = Path(os.environ["TMPDIR"]) / "state.json"
        write(source, state)
        shutil.copyfile(source, checkpoint)
    elif way == "marked":
        path = out / f"ckpt-{state['step'] // EVERY % 3}.json"
        write(path.with_suffix(".tmp"), state)
        os.setxattr(path.with_suffix(".tmp"), "user.whole", b"1")
        path.with_suffix(".tmp").replace(path)
    elif way == "unlinks_first":
        if checkpoint.exists():
            checkpoint.unlink()
        publish(checkpoint, state)
    elif way in ("synced", "folder_not_synced"):
        publish_durably(checkpoint, state)
    elif way == "says_too_early":
        print(f"saved step {state['step']}", flush=True)
        publish(checkpoint, state)
        return
    else:
        publish(checkpoint, state)
    if way == "dates_it_last":
        os.utime(checkpoint, (state["step"], state["step"]))
    print(f"saved step {state['step']}", flush=True)


state = load() or {"step": 0, "weights": [float(number) for number in range(900)]}
state.pop("folder", None)
while state["step"] < STEPS:
    state["step"] += 1
    state["weights"] = [weight * 1.5 % 7 + state["step"] for weight in state["weights"]]
    print(f"step {state['step']} loss 1", flush=True)
    if state["step"] % EVERY == 0:
        save(state)
publish(out / "final.json", state["weights"])
