"""The probe changes nothing: whatever the training, it ends with the same bits with and without it, and lets go of all.

Each run is a process of its own that trains many small networks, one kind after the other.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.lives.ticks import read_steps
from chaos.model import StepRecord

Run = Callable[..., dict[str, Any]]

TRAININGS = Path(__file__).with_name("targets") / "trainings.py"
PROBE = Path(sys.modules["chaos"].__path__[0]) / "probe" / "inject"
DEADLINE_S = 240.0
STEPS = 6
ALL_STEPS = "100"
ORDINARY = (
    "plain", "fused", "foreach", "tensor_rate", "scheduled", "accumulating", "closures", "scaled", "several",
    "channels_last", "narrow", "complex_numbers", "sparse", "on_meta", "per_sample", "exported", "hooked", "replaced",
    "saving", "halved", "loaded", "workers", "persistent", "released",
    "freed", "rehearsed", "wrapping", "other_bits", "forking",
)  # fmt: skip
COMPILED = ("compiled", "compiled_in_place", "compiled_step")


class Runner:
    """Runs the trainings in folders of their own."""

    def __init__(self, folder: Path) -> None:
        """Run below `folder`."""
        self.folder = folder
        self.complaints = ""
        self._number = 0

    def __call__(self, *kinds: str, budget: str | None, hash_seed: int = 0, path: str = "") -> dict[str, Any]:
        """Return what each kind came to; without a `budget` there is no probe."""
        self._number += 1
        out = self.folder / str(self._number)
        out.mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NINELIVES_P")}
        environment |= {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": path, "TORCHINDUCTOR_CACHE_DIR": str(out / "c")}
        if budget is not None:
            (out / "first").touch()
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(PROBE), path)))
            environment["NINELIVES_TICKS"] = str(out / "first")
            environment |= {"NINELIVES_BUDGET": budget, "NINELIVES_PROBE_ERRORS": "1"}
        command = [sys.executable, "-W", "ignore", str(TRAININGS), str(out), *kinds]
        status, output, errors = _bounded(command, environment, out)
        assert status == 0, errors[-3000:]
        self.complaints = "\n".join(line for line in errors.splitlines() if line.startswith("probe:"))
        results: dict[str, Any] = {}
        for line in output.splitlines():
            results |= json.loads(line)
        assert list(results) == list(kinds)
        return results

    def lines(self, kind: str) -> list[str]:
        """Return what the last run reported of a kind."""
        return (self.folder / str(self._number) / kind).read_text().splitlines()

    def records(self, kind: str) -> tuple[StepRecord, ...]:
        """Return the records that the last run made of a kind."""
        return read_steps(self.folder / str(self._number) / kind, has_all_details=True)


def _bounded(command: list[str], environment: dict[str, str], folder: Path) -> tuple[int, str, str]:
    """Return status, output and errors of a command, or end it and its ranks and workers at the deadline."""
    process = subprocess.Popen(
        command, env=environment, cwd=folder, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
    return process.returncode, output, errors


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """Give a runner of trainings."""
    return Runner(tmp_path)


# --- bits ---------------------------------------------------------------------------------------------


@pytest.mark.timeout(2 * DEADLINE_S)
def test_final_bits_are_the_same(run: Runner) -> None:
    """Losses, weights, optimizer state, generators, order of hooks and graphs are the same, digest by digest.

    Also where the probe digests each step, some, or none.
    """
    without = run(*ORDINARY, *COMPILED, budget=None)
    assert run(*ORDINARY, *COMPILED, budget=ALL_STEPS) == without
    assert run.complaints == ""
    some = ("plain", "saving", "loaded", "scaled")
    for budget in ("5", "0"):
        assert run(*some, budget=budget) == {kind: without[kind] for kind in some}
        assert run.complaints == ""
    assert without["released"] == {"alive": []}
    assert without["hooked"]["calls"].count("before any step") == STEPS


@pytest.mark.timeout(2 * DEADLINE_S)
# A compiler of the system, which no installation of this project brings.
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++, which inductor compiles with")
def test_bits_of_machine_code_are_the_same(run: Runner) -> None:
    """A network and a step that are compiled to machine code are compiled to the same."""
    without = run("inductor", budget=None)
    assert run("inductor", budget=ALL_STEPS) == without
    assert run.complaints == ""
    assert [record.is_digested for record in run.records("inductor")] == [True] * 2 * STEPS


def test_bits_of_two_ranks_are_the_same(run: Runner) -> None:
    """Two processes that average their gradients do so as before, and each reports as its rank."""
    without = run("ranks", budget=None)
    assert run("ranks", budget=ALL_STEPS) == without
    assert run.complaints == ""
    first, second = ([r for r in run.records("ranks") if r.rank == rank] for rank in (0, 1))
    assert [record.ordinal for record in first] == [record.ordinal for record in second] == [*range(1, STEPS + 1)]
    for one, other in zip(first, second, strict=True):
        assert one.batches != other.batches
        for name in ("weights", "gradients"):
            assert one.components[name] == other.components[name]


def test_trouble_in_a_digest_is_not_the_targets(run: Runner) -> None:
    """Where nothing can be looked at, steps go without a record, and with a tick."""
    results = run("plain", "sabotaged", budget=ALL_STEPS)
    assert results["sabotaged"] == results["plain"]
    assert run.complaints.count("cannot be looked at") >= STEPS
    assert run.lines("sabotaged") == ["interpreter", "torch", *["tick"] * STEPS]


def test_the_users_own_sitecustomize_runs(run: Runner, tmp_path: Path) -> None:
    """One that lies on the user's path is run as it would be, and what it does to torch stays."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(
        "import torch, random\n"
        "old = torch.optim.AdamW.step\n"
        "def step(self, *args, **kwargs):\n"
        "    random.random()\n"
        "    return old(self, *args, **kwargs)\n"
        "torch.optim.AdamW.step = step\n"
    )
    changed = run("plain", budget=None, path=str(own))
    assert run("plain", budget=ALL_STEPS, path=str(own)) == changed
    assert changed["plain"]["rng"] != run("plain", budget=None)["plain"]["rng"]


# --- records ------------------------------------------------------------------------------------------


def test_two_runs_have_the_same_records(run: Runner) -> None:
    """What the probe says depends on the training alone: not on the hash seed, addresses, or other processes."""
    kinds = (*ORDINARY[:-1], *COMPILED)
    run(*kinds, budget=ALL_STEPS, hash_seed=1)
    first = {kind: run.records(kind) for kind in kinds}
    run(*kinds, budget=ALL_STEPS, hash_seed=2)
    second = {kind: run.records(kind) for kind in kinds}
    assert [kind for kind in kinds if first[kind] != second[kind]] == []
    assert all(record.is_digested for records in first.values() for record in records)
    assert all(len(first[kind]) >= 2 for kind in kinds)


def test_what_a_record_holds(run: Runner) -> None:
    """Each field of the plainest training's records is what its description says."""
    run("plain", budget=ALL_STEPS)
    records = run.records("plain")
    assert [(record.ordinal, record.rank, record.optimizer, record.saves) for record in records] == [
        (number, 0, "AdamW", 0) for number in range(1, STEPS + 1)
    ]
    first, second, *_ = records
    everywhere = {"weights", "gradients", "data", "rng.torch", "rng.numpy", "rng.random", "group.lr", "group.betas"}
    state = {"state.step", "state.exp_avg", "state.exp_avg_sq"}
    assert everywhere <= first.components.keys()
    assert not state & first.components.keys()
    assert everywhere | state <= second.components.keys()
    for name in ("weights", "gradients", "data", "rng.torch"):
        assert len({record.components[name] for record in records}) == STEPS, name
    for name in ("rng.numpy", "rng.random", "group.lr"):
        assert len({record.components[name] for record in records}) == 1, name
    assert [record.values.get("state.step") for record in records] == [None, *((n, n) for n in range(1, STEPS))]
    assert {record.values["group.lr"] for record in records} == {(0.01,)}
    assert [len(record.batches) for record in records] == [1] * STEPS
    assert len({record.batches for record in records}) == STEPS
    assert {record.samples for record in records} == {((),)}
    assert first.details.keys() == {"weights"}
    assert first.details["weights"].keys() == {"0.weight", "0.bias", "3.weight", "3.bias"}
    assert {facts.dtype for facts in first.details["weights"].values()} == {"float32"}
    assert [bool(record.details) for record in records] == [True] + [False] * (STEPS - 1)
    assert len({record.sketch for record in records}) == STEPS
    assert {len(record.sketch) for record in records} == {16}


def test_what_is_near_a_save(run: Runner) -> None:
    """A save and a rename are counted in the step after them, which has details of the optimizer's state, too."""
    run("saving", budget="5")
    records = run.records("saving")
    assert [record.saves for record in records] == [0, 0, 0, 1, 0, 1]
    detailed = [record for record in records if record.details]
    assert [record.ordinal for record in detailed] == [1, 4, 6]
    assert all(record.is_digested for record in detailed)
    facts = detailed[1].details["state.step"]["0.weight"]
    assert (facts.value, facts.is_zero) == (3.0, False)
    assert detailed[0].details.keys() == {"weights"}
    state = {"weights", "state.step", "state.exp_avg", "state.exp_avg_sq"}
    # The gradients of the step before were still there when the first batch after the save came.
    assert detailed[1].details.keys() == {*state, "carried"}
    assert {record.ordinal for record in records if "carried" in record.components} == {4, 6}


def test_batches_of_odd_steps(run: Runner) -> None:
    """Accumulation, closures, skipped steps and two optimizers: each batch is in the record of the next step."""
    kinds = ("accumulating", "closures", "scaled", "several", "scheduled", "sparse", "channels_last")
    run(*kinds, budget=ALL_STEPS)
    accumulated = run.records("accumulating")
    assert [len(record.batches) for record in accumulated] == [3] * STEPS
    assert len({batch for record in accumulated for batch in record.batches}) == 3 * STEPS
    first, second, third = run.records("closures")
    assert first.batches == ()
    assert "data" not in first.components
    assert [len(set(record.batches)) for record in (second, third)] == [1, 1]  # one batch, in each call of the closure
    assert len(second.batches) > 1
    assert [len(record.batches) for record in run.records("scaled")] == [1, 1, 2, 1, 1]  # the third step was skipped
    several = run.records("several")
    assert [record.optimizer for record in several] == ["Adam", "Adam#2"] * STEPS
    assert [record.ordinal for record in several] == [number for n in range(1, STEPS + 1) for number in (n, n)]
    rates = [record.values["group.lr"][0] for record in run.records("scheduled")]
    assert len(set(rates)) == STEPS
    assert len({record.components["group.momentum"] for record in run.records("scheduled")}) > 1
    assert len({record.components["gradients"] for record in run.records("sparse")}) == STEPS
    buffers = run.records("channels_last")
    assert len({record.components["buffers"] for record in buffers}) == STEPS
    names = {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert buffers[0].details["buffers"].keys() == names


@pytest.mark.parametrize("kind", ["loaded", "workers", "persistent"])
def test_samples_are_shown(kind: str, run: Runner) -> None:
    """Whoever makes the batches, their samples are the positions that the sampler drew: each once in an epoch."""
    run(*dict.fromkeys(("loaded", kind)), budget=ALL_STEPS)
    records = run.records(kind)
    ids = [record.samples[0] for record in records]
    assert [len(samples) for samples in ids] == [8] * 10
    epochs = [[number for samples in part for number in samples] for part in (ids[:5], ids[5:])]
    assert [sorted(epoch) for epoch in epochs] == [[*range(40)]] * 2
    assert epochs[0] != epochs[1]
    plain = [record.samples[0] for record in run.records("loaded")]
    # A loader with persistent workers draws nothing for them at its second epoch, so shuffles that otherwise.
    assert (plain[:5], plain == ids) == (ids[:5], kind != "persistent")
    assert len({record.components["rng.loader"] for record in records}) >= 2


def test_a_rounded_tensor_is_found_again(run: Runner) -> None:
    """What a tensor would be in half precision is in its facts, and is that of the tensor that was kept so."""
    run("halved", budget=ALL_STEPS)
    wide, narrow = run.records("halved")
    (full,), (half,) = wide.details["weights"].values(), narrow.details["weights"].values()
    assert (full.dtype, half.dtype) == ("float32", "bfloat16")
    assert full.bfloat16 == half.digest
    assert full.float16 not in {"", full.bfloat16}
    assert full.digest != half.digest
    assert wide.components["weights"] != narrow.components["weights"]
