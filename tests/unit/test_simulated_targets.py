"""Names, addresses, profiles and plans together, on simulated targets of many shapes: what is planned is reached.

A simulated target emits the operations of one life, as the real interception would; process ids, random names, and
the order of its threads differ from life to life, and a killed save leaves its folder behind.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.address import Located, Locator
from chaos.learning import learn, plannable_points
from chaos.model import Operation, OperationKind, Phase, PlannablePoint, Target, TargetProfile, Trial
from chaos.planners.drawing import draw_schedule
from chaos.planners.positions import is_reachable, relative
from chaos.planners.redraw import redraw

STEPS = 12
EVERY = 3
TARGET = Target(
    command=("python", "train.py", "{out}"),
    resume_command=("python", "train.py", "{out}"),
    checkpoints=("resume*.pt", "checkpoint-*", "shard-*.pt"),
    final=("weights.pt",),
    ignore=("*.log",),
    step=r"^step (\d+)",
    saved=r"^saved step (\d+)",
)
PHASES = {Phase.SAVE: 0.5, Phase.STEP: 0.3, Phase.RECOVERY: 0.1, Phase.STARTUP: 0.05, Phase.FINISH: 0.05}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a simulated target saves, and what it shows."""

    saver: str
    has_ticks: bool = True
    prints_steps: bool = True
    prints_saved: bool = True
    splits_lines: bool = False


SHAPES = {
    "atomic": Shape(saver="atomic"),
    "atomic, silent": Shape(saver="atomic", prints_steps=False, prints_saved=False),
    "in place, step lines": Shape(saver="in_place", has_ticks=False),
    "in place, no acknowledgement": Shape(saver="in_place", has_ticks=False, prints_saved=False),
    "rotating folders": Shape(saver="folders", prints_saved=False),
    "rotating folders, acknowledged": Shape(saver="folders", splits_lines=True),
    "process id in names": Shape(saver="pid_names"),
    "process id in names, step lines": Shape(saver="pid_names", has_ticks=False, splits_lines=True),
    "two threads": Shape(saver="two_threads"),
    "two threads, silent": Shape(saver="two_threads", prints_steps=False, prints_saved=False),
    "split lines": Shape(saver="atomic", has_ticks=False, splits_lines=True),
    "no clock": Shape(saver="in_place", has_ticks=False, prints_steps=False, prints_saved=False),
}
BEHIND = Shape(saver="behind")


@dataclass(kw_only=True)
class Life:
    """One simulated life: its operations so far, and at which of them each save was published."""

    shape: Shape
    rng: random.Random
    resumed: int = 0
    leftovers: frozenset[str] = frozenset()
    log: list[Operation] = field(default_factory=list)
    published: dict[int, int] = field(default_factory=dict)
    pid: int = 0
    pending: list[list[tuple[str, dict[str, object]]]] = field(default_factory=list)

    def emit(self, kind: OperationKind, call: str, **fields: object) -> None:
        """Append an operation, perhaps after noise of no stable order: a log file, a progress bar, a thread's turn."""
        noise = self.rng.random()
        if noise < 0.1:
            self.append(OperationKind.FILE, "write", path="train.log", thread=9, size_bytes=40)
        elif noise < 0.15:
            self.append(OperationKind.FILE, "write", path="events.txt", thread=9, size_bytes=40)
        elif noise < 0.2:
            self.append(OperationKind.OUTPUT, "write", stream="stderr", text="\r 50%", thread=9)
        while self.pending and self.rng.random() < 0.5:
            self.take_turn()
        self.append(kind, call, **fields)

    def append(self, kind: OperationKind, call: str, **fields: object) -> None:
        """Append exactly one operation."""
        self.log.append(Operation(index=len(self.log), kind=kind, call=call, **fields))  # type: ignore[arg-type]

    def take_turn(self) -> None:
        """Let one of the threads that have something to do carry out its next operation."""
        thread = self.rng.choice(self.pending)
        call, fields = thread.pop(0)
        publishes = fields.pop("publishes", None)
        if isinstance(publishes, int):
            self.published[publishes] = len(self.log)
        self.append(OperationKind.OUTPUT if "text" in fields else OperationKind.FILE, call, **fields)
        self.pending = [operations for operations in self.pending if operations]

    def file(self, call: str, path: str, new_path: str = "", *, creates: bool = False, publishes: int = 0) -> None:
        """Emit a file operation of the main thread."""
        self.emit(OperationKind.FILE, call, path=path, new_path=new_path, creates=creates)
        if publishes:
            self.published[publishes] = len(self.log) - 1

    def write_file(self, path: str, *, publishes: int = 0) -> None:
        """Emit the creation of a file, three writes, and its sync."""
        self.file("openat", path, creates=True)
        for part in range(3):
            self.emit(OperationKind.FILE, "writev", path=path, offset=part * 9000, size_bytes=9000)
        if publishes:
            self.published[publishes] = len(self.log) - 1
        self.file("fsync", path)

    def line(self, text: str) -> None:
        """Emit a line of output, perhaps with its newline in another write."""
        texts = (text, "\n") if self.shape.splits_lines else (f"{text}\n",)
        for part in texts:
            self.emit(OperationKind.OUTPUT, "write", stream="stdout", text=part)

    def run(self) -> "Life":
        """Emit the whole life."""
        self.pid = self.rng.randrange(2, 2**22)
        for name in ("interpreter", "torch"):
            self.emit(OperationKind.MARK, name)
        if self.shape.prints_steps:
            self.line(f"resuming after {self.resumed * EVERY}")
        for step in range(self.resumed * EVERY + 1, STEPS + 1):
            if self.shape.has_ticks:
                self.emit(OperationKind.TICK, "tick")
            if self.shape.prints_steps:
                self.line(f"step {step} loss 1.0")
            if step % EVERY == 0:
                self.save(step // EVERY)
        self.finish_pending()
        self.write_file("weights.pt")
        if self.shape.prints_steps:
            self.line("done")
        self.emit(OperationKind.MARK, "exit")
        return self

    def save(self, save: int) -> None:
        """Save in the shape's way, and say so if it does."""
        getattr(self, f"save_{self.shape.saver}")(save)
        if self.shape.saver != "behind":
            self.file("openat", "latest", creates=True)
            self.emit(OperationKind.FILE, "write", path="latest", size_bytes=9)
        if self.shape.prints_saved and self.shape.saver != "behind":
            self.line(f"saved step {save * EVERY}")

    def finish_pending(self) -> None:
        """Wait for the other threads."""
        while self.pending:
            self.take_turn()

    def save_atomic(self, save: int) -> None:
        """Save as the bundled trainer does: by temporary names, with the previous one kept, then the weights."""
        self.write_file("resume.pt.tmp")
        if save > 1:
            self.file("linkat", "resume.pt", "resume.prev.tmp", creates=True)
            self.file("rename", "resume.prev.tmp", "resume.prev.pt", creates=save == 2)
        self.file("rename", "resume.pt.tmp", "resume.pt", creates=save == 1, publishes=save)
        self.write_file("weights.pt.tmp")
        self.file("rename", "weights.pt.tmp", "weights.pt", creates=save == 1)

    def save_in_place(self, save: int) -> None:
        """Overwrite the only checkpoint."""
        self.write_file("resume.pt", publishes=save)

    def save_folders(self, save: int) -> None:
        """Make a folder named by the step, with a random temporary name in it, and remove the one before the last."""
        folder = f"checkpoint-{save * EVERY}"
        self.file("mkdir", folder, creates=folder not in self.leftovers)
        temporary = f"{folder}/.tmp{''.join(self.rng.choices('abcXYZ019', k=6))}"
        self.write_file(temporary)
        self.file("rename", temporary, f"{folder}/model.safetensors", creates=True)
        self.write_file(f"{folder}/optimizer.pt", publishes=save)
        if save > 2:
            old = f"checkpoint-{(save - 2) * EVERY}"
            for name in ("model.safetensors", "optimizer.pt"):
                self.file("unlink", f"{old}/{name}")
            self.file("rmdir", old)

    def save_pid_names(self, save: int) -> None:
        """Save through names that hold the process id and the time."""
        time = 1_700_000_000 + self.rng.randrange(10_000_000)
        for name, publishes in (("resume.pt", save), ("weights.pt", 0)):
            temporary = f"{name}.{self.pid}-{time}.tmp"
            self.write_file(temporary)
            self.file("rename", temporary, name, creates=save == 1, publishes=publishes)

    def save_two_threads(self, save: int) -> None:
        """Save two shards from two threads in any order, and wait for both."""
        self.start_writers(save, acknowledges=False)
        self.finish_pending()

    def save_behind(self, save: int) -> None:
        """Save from a thread while training goes on; that thread acknowledges. The save before is awaited."""
        self.finish_pending()
        self.start_writers(save, acknowledges=True)

    def start_writers(self, save: int, *, acknowledges: bool) -> None:
        """Give one thread, or two, the operations of a save to do."""
        for shard in range(1 if acknowledges else 2):
            name, thread = f"shard-{shard}.pt", {"thread": shard + 1}
            file = {"path": f"{name}.tmp", **thread}
            operations: list[tuple[str, dict[str, object]]] = [("openat", {**file, "creates": True})]
            operations += [("write", {**file, "offset": part * 5000, "size_bytes": 5000}) for part in range(4)]
            operations.append(("rename", {**file, "new_path": name, "creates": save == 1, "publishes": save}))
            if acknowledges:
                operations.append(("openat", {"path": "latest", "creates": True, **thread}))
                operations.append(("write", {"path": "latest", "size_bytes": 9, **thread}))
                operations.append(("write", {"stream": "stdout", "text": f"saved step {save * EVERY}\n", **thread}))
            self.pending.append(operations)


def locate_all(life: Life, profile: TargetProfile, *, is_first_life: bool = True) -> list[Located]:
    """Locate every operation of a life."""
    locator = Locator(TARGET, profile, is_first_life=is_first_life)
    return [locator.locate(operation) for operation in life.log]


def learnt(shape: Shape, seed: int) -> tuple[TargetProfile, tuple[PlannablePoint, ...]]:
    """Learn a shape from two lives."""
    life_a, life_b = (Life(shape=shape, rng=random.Random(f"{seed} {name}")).run() for name in "ab")
    profile = learn(TARGET, life_a.log, life_b.log)
    return profile, plannable_points(TARGET, profile, life_a.log, life_b.log)


def run_trial(shape: Shape, profile: TargetProfile, trial: Trial, seed: int) -> Counter[Phase]:
    """Carry a trial out in simulated lives, and return the phases of its kills; every kill must be reached."""
    resumed, phases = 0, Counter[Phase]()
    for number, crash_point in enumerate(trial.crash_points):
        leftovers = frozenset(f"checkpoint-{step}" for step in range(STEPS + 1)) if number else frozenset[str]()
        rng = random.Random(f"{seed} {trial.number} {number}")
        life = Life(shape=shape, rng=rng, resumed=resumed, leftovers=leftovers).run()
        located = locate_all(life, profile, is_first_life=number == 0)
        [struck] = [i for i, where in enumerate(located) if where.address == crash_point.address]
        assert located[struck].phase is crash_point.expected_phase
        if crash_point.tear_offset is not None:
            operation = life.log[struck]
            assert crash_point.tear_offset % 4096 == 0
            assert operation.offset < crash_point.tear_offset < operation.offset + operation.size_bytes
        resumed = max([resumed, *(save for save, index in life.published.items() if index < struck)])
        phases[crash_point.expected_phase] += 1
    return phases


@pytest.mark.parametrize("name", SHAPES)
def test_the_profile_tells_the_shape(name: str) -> None:
    """The clock, the acknowledgements and the number of saves are learnt."""
    shape = SHAPES[name]
    profile, points = learnt(shape, 1)
    assert profile.uses_ticks is shape.has_ticks
    assert profile.prints_acknowledgements is shape.prints_saved
    assert profile.has_steps is (shape.has_ticks or shape.prints_steps)
    assert profile.total_steps == (STEPS if profile.has_steps else 0)
    assert profile.last_step == (STEPS if shape.prints_steps else None)
    assert [save.ordinal for save in profile.saves] == [1, 2, 3, 4]
    assert [save.ticks_before for save in profile.saves] == ([3, 6, 9, 12] if profile.has_steps else [0] * 4)
    assert [save.step for save in profile.saves] == ([3, 6, 9, 12] if shape.prints_saved else [None] * 4)
    assert all(save.has_several_writers is (shape.saver == "two_threads") for save in profile.saves)
    assert {point.phase for point in points} >= {Phase.STARTUP, Phase.SAVE, Phase.FINISH}


@pytest.mark.parametrize("name", [*SHAPES, "behind"])
def test_the_pointer_is_struck_where_the_thread_that_saves_writes_it(name: str) -> None:
    """In each save, half written; not where another thread writes it, as one does the log."""
    shape = SHAPES.get(name, BEHIND)
    profile, points = learnt(shape, 1)
    found = [(point.address.save, point.address.call) for point in points if point.address.file == "latest"]
    wanted = [] if shape.saver == "two_threads" else [(n, "write") for n in (1, 2, 3, 4)]
    assert found == wanted
    assert all(point.is_published for point in points if point.address.file == "latest")
    life = Life(shape=shape, rng=random.Random(1)).run()
    keys = {where.key for where in locate_all(life, profile) if where.address is not None}
    assert "events.txt" in {operation.path for operation in life.log}
    assert not keys & {"events.txt", "train.log"}


@pytest.mark.parametrize("name", [*SHAPES, "behind"])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_every_point_is_reached_once_in_another_run(name: str, seed: int) -> None:
    """Other process ids, random names and interleavings leave each plannable address where it was, exactly once."""
    shape = SHAPES.get(name, BEHIND)
    profile, points = learnt(shape, seed)
    located = locate_all(Life(shape=shape, rng=random.Random(f"{seed} c")).run(), profile)
    counts = Counter(where.address for where in located)
    phases = {where.address: where.phase for where in located}
    assert points
    assert [point for point in points if counts[point.address] != 1] == []
    assert [point for point in points if phases[point.address] is not point.phase] == []


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), resumed=st.integers(0, 4))
def test_every_later_point_is_reached_after_a_resume(name: str, seed: int, resumed: int) -> None:
    """In a life that resumed from a save, the relative address of every later point is met exactly once."""
    shape = SHAPES[name]
    profile, points = learnt(shape, seed)
    life = Life(shape=shape, rng=random.Random(f"{seed} c"), resumed=resumed).run()
    located = locate_all(life, profile, is_first_life=False)
    counts = Counter((where.address, where.phase) for where in located)
    save = profile.saves[resumed - 1] if resumed else None
    later = [point for point in points if is_reachable(profile, point, save)]
    assert bool(later) is (resumed < 4 or not profile.has_steps)
    assert [point for point in later if counts[relative(point, save), point.phase] != 1] == []


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), kills=st.integers(1, 60))
def test_every_kill_of_a_schedule_is_reached(name: str, seed: int, kills: int) -> None:
    """Carried out life by life, a schedule lands exactly the kills asked for, each in its phase."""
    profile, points = learnt(SHAPES[name], seed)
    trials = draw_schedule(profile, points, kills=kills, phases=PHASES, seed=seed, first_number=1)
    landed = sum((run_trial(SHAPES[name], profile, trial, seed) for trial in trials), Counter[Phase]())
    assert landed.total() == kills
    missing = [crash_point for trial in trials for crash_point in trial.crash_points][:: 1 + kills // 3]
    again = redraw(profile, points, missing, seed=seed, attempt=1 + seed % 3, first_number=100)
    landed = sum((run_trial(SHAPES[name], profile, trial, seed) for trial in again), Counter[Phase]())
    assert landed.total() == len(missing)
