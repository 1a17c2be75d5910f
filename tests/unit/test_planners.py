"""Schedules: exactly the kills asked for, in the phases asked for, in an order in which each can be reached."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.model import Address, CrashPoint, Phase, PlannablePoint, SaveProfile, TargetProfile, Trial
from chaos.planners.drawing import apportion, draw_schedule
from chaos.planners.positions import does_steps, is_reachable, relative, saves_resumed_from
from chaos.planners.redraw import redraw

PHASES = {Phase.SAVE: 0.5, Phase.STEP: 0.3, Phase.RECOVERY: 0.1, Phase.STARTUP: 0.05, Phase.FINISH: 0.05}
STARTS = {Phase.STARTUP, Phase.RECOVERY}


class Reference(msgspec.Struct, frozen=True):
    """A made-up reference: its profile, and its points in order."""

    profile: TargetProfile
    points: tuple[PlannablePoint, ...]


@dataclass
class Maker:
    """Puts the points of a made-up reference together, one by one."""

    points: list[PlannablePoint] = field(default_factory=list)
    saves: list[SaveProfile] = field(default_factory=list)

    def add(self, phase: Phase, position: int, call: str, file: str = "", tears: tuple[int, ...] = ()) -> Address:
        """Add a point; one in a save is of the save that comes next."""
        save = len(self.saves) + 1 if phase is Phase.SAVE else 0
        address = Address(save=save, tick=0 if save else position, file=file, call=call)
        self.points.append(
            PlannablePoint(
                address=address,
                phase=phase,
                position=position,
                tears=tears,
                is_published=bool(save) and call == "fsync",
            )
        )
        return address

    def add_save(self, step: int) -> None:
        """Add a save by a temporary file and a rename, which publishes it."""
        addresses = (
            self.add(Phase.SAVE, step, "openat", "c.tmp"),
            self.add(Phase.SAVE, step, "write", "c.tmp", (4096, 8192)),
            self.add(Phase.SAVE, step, "rename", "c.pt"),
            self.add(Phase.SAVE, step, "fsync", "c.pt"),
        )
        ordinal = len(self.saves) + 1
        self.saves.append(SaveProfile(ordinal=ordinal, ticks_before=step, step=step, addresses=addresses, publish=2))


def made_up(
    *,
    saves: int = 4,
    every: int = 3,
    trailing: int = 0,
    prints: bool = True,
    keep: Callable[[PlannablePoint], bool] | None = None,
) -> Reference:
    """Return a reference with a save after `every` steps and `trailing` steps at last; `keep` thins its points out."""
    maker, total = Maker(), saves * every + trailing
    for call, file in (("interpreter", ""), ("write", "stdout"), ("mkdir", "c")):
        maker.add(Phase.STARTUP, 0, call, file)
    for step in range(1, total + 1):
        maker.add(Phase.STARTUP if step == 1 else Phase.STEP, step - 1, "tick")
        if step < total:
            maker.add(Phase.STEP, step, "write", "stdout")
        if every and step % every == 0 and step <= saves * every:
            maker.add_save(step)
    maker.add(Phase.FINISH, total, "writev", "stdout")
    maker.add(Phase.FINISH, total, "exit")
    profile = TargetProfile(
        has_steps=total > 0,
        uses_ticks=total > 0,
        total_steps=total,
        last_step=total if prints and total else None,
        saves=tuple(maker.saves),
    )
    return Reference(profile=profile, points=tuple(point for point in maker.points if keep is None or keep(point)))


@st.composite
def references(draw: st.DrawFn) -> Reference:
    """Draw a reference, sometimes without saves, steps, or points in some phases."""
    without = draw(st.sets(st.sampled_from(Phase), max_size=4))
    gaps = draw(st.sets(st.integers(0, 80), max_size=40))
    whole = made_up(
        saves=draw(st.integers(0, 5)),
        every=draw(st.integers(0, 4)),
        trailing=draw(st.integers(0, 3)),
        prints=draw(st.booleans()),
        keep=lambda point: point.phase not in without,
    )
    return msgspec.structs.replace(whole, points=tuple(p for i, p in enumerate(whole.points) if i not in gaps))


def walk(reference: Reference, trial: Trial) -> list[int]:
    """Follow a trial's lives through the reference and return the places of its kills; each must be reachable."""
    resumes = saves_resumed_from(reference.profile, reference.points)
    resumed: SaveProfile | None = None
    places: list[int] = []
    for number, crash_point in enumerate(trial.crash_points):
        assert crash_point.address.save >= 0
        assert crash_point.address.tick >= 0
        phase = crash_point.expected_phase
        if phase in STARTS:
            [place] = [i for i, point in enumerate(reference.points) if point.address == crash_point.address]
            point = reference.points[place]
            assert point.phase is Phase.STARTUP
            assert (phase is Phase.RECOVERY) is (number > 0)
            is_late = not does_steps(reference.profile, resumed)
            assert phase is Phase.STARTUP or point.address.file in {"", "stdout"}
            assert not is_late or point.address.call == "interpreter" or not has_marks(reference)
            continue
        able = [i for i, p in enumerate(reference.points) if not number or is_reachable(reference.profile, p, resumed)]
        [place] = [i for i in able if is_at(reference.points[i], crash_point, resumed)]
        assert crash_point.tear_offset is None or crash_point.tear_offset in reference.points[place].tears
        resumed = resumes[place] or resumed
        places.append(place)
    return places


def is_at(point: PlannablePoint, crash_point: CrashPoint, resumed: SaveProfile | None) -> bool:
    """Tell whether a point is the one that a crash point means in a life that resumed from a save."""
    return point.phase is crash_point.expected_phase and relative(point, resumed) == crash_point.address


def has_marks(reference: Reference) -> bool:
    """Tell whether the reference has a mark that each life comes to."""
    return any(point.address.call == "interpreter" for point in reference.points)


def phases_of(trials: tuple[Trial, ...]) -> Counter[Phase]:
    """Count the crash points by phase."""
    return Counter(crash_point.expected_phase for trial in trials for crash_point in trial.crash_points)


def points_in(reference: Reference, phase: Phase) -> int:
    """Count the points that a kill of `phase` can be drawn from."""
    if phase is Phase.RECOVERY:
        return sum(p.phase is Phase.STARTUP and p.address.file in {"", "stdout"} for p in reference.points)
    return sum(point.phase is phase for point in reference.points)


@given(references(), st.integers(0, 60), st.integers())
@settings(max_examples=150, deadline=None)
def test_a_schedule_has_the_kills_asked_for_in_a_possible_order(reference: Reference, kills: int, seed: int) -> None:
    """Exactly as many kills as asked, shared out over the phases with points, in each lineage one after the other."""
    trials = draw_schedule(reference.profile, reference.points, kills=kills, phases=PHASES, seed=seed, first_number=7)
    quotas = apportion(kills, {phase: weight for phase, weight in PHASES.items() if points_in(reference, phase)})
    drawn = phases_of(trials)
    assert drawn.total() == (kills if quotas else 0)
    if any(quotas.get(phase) for phase in (Phase.STARTUP, Phase.STEP, Phase.SAVE)) or not quotas.get(Phase.RECOVERY):
        assert drawn == Counter(quotas)
    assert [trial.number for trial in trials] == list(range(7, 7 + len(trials)))
    for trial in trials:
        phases = [crash_point.expected_phase for crash_point in trial.crash_points]
        places = walk(reference, trial)
        assert places == sorted(places)
        assert Phase.STARTUP not in phases[1:]
        assert Phase.FINISH not in phases[:-1]
        assert phases[0] is not Phase.RECOVERY
        assert 1 <= trial.hash_seed < 2**32


@given(references(), st.integers(1, 60), st.integers(), st.integers(1, 4), st.data())
@settings(max_examples=80, deadline=None)
def test_what_was_not_reached_is_drawn_anew(
    reference: Reference, kills: int, seed: int, attempt: int, data: st.DataObject
) -> None:
    """As many kills as were missing, in the same phases unless a recovery has nothing to recover from."""
    trials = draw_schedule(reference.profile, reference.points, kills=kills, phases=PHASES, seed=seed, first_number=1)
    everything = [crash_point for trial in trials for crash_point in trial.crash_points]
    missing = data.draw(st.lists(st.sampled_from(everything), max_size=8)) if everything else []
    again = redraw(reference.profile, reference.points, missing, seed=seed, attempt=attempt, first_number=50)
    drawn, wanted = phases_of(again), Counter(crash_point.expected_phase for crash_point in missing)
    assert drawn.total() == len(missing)
    assert drawn == wanted or (drawn - wanted).total() == (wanted - drawn)[Phase.RECOVERY] == 1
    for trial in again:
        walk(reference, trial)
    assert again == redraw(reference.profile, reference.points, missing, seed=seed, attempt=attempt, first_number=50)


def test_a_redraw_takes_other_points_and_shorter_lineages() -> None:
    """The points that were missed are avoided, and from the third attempt on each kill has a first life to itself."""
    reference = made_up()
    [trial] = draw_schedule(
        reference.profile, reference.points, kills=3, phases={Phase.SAVE: 1}, seed=1, first_number=1
    )
    missed = {crash_point.address for crash_point in trial.crash_points}
    for attempt, longest in ((1, 3), (2, 2), (3, 1), (9, 1)):
        trials = redraw(
            reference.profile, reference.points, trial.crash_points, seed=1, attempt=attempt, first_number=2
        )
        assert max(len(again.crash_points) for again in trials) == longest
        assert not missed & {again.crash_points[0].address for again in trials}


def test_twenty_kills_are_shared_out_as_documented() -> None:
    """The default weights give 10, 6, 2, 1 and 1 kills, in lineages of about five, the finish kill alone in one."""
    reference = made_up()
    trials = draw_schedule(reference.profile, reference.points, kills=20, phases=PHASES, seed=0, first_number=1)
    expected = {Phase.SAVE: 10, Phase.STEP: 6, Phase.RECOVERY: 2, Phase.STARTUP: 1, Phase.FINISH: 1}
    assert phases_of(trials) == expected
    assert len(trials) == 5
    assert all(3 <= len(trial.crash_points) <= 7 for trial in trials[:4])
    assert [crash.expected_phase for crash in trials[4].crash_points] == [Phase.FINISH]


@pytest.mark.parametrize(
    ("kills", "weights", "expected"),
    [
        (0, {Phase.SAVE: 1.0}, {Phase.SAVE: 0}),
        (1, PHASES, {Phase.SAVE: 1}),
        (4, PHASES, {Phase.SAVE: 2, Phase.STEP: 1, Phase.RECOVERY: 1}),
        (5, PHASES, dict.fromkeys(PHASES, 1)),
        (7, {Phase.SAVE: 2, Phase.STEP: 1, Phase.FINISH: 0}, {Phase.SAVE: 5, Phase.STEP: 2}),
        (3, {}, {}),
        (3, {Phase.SAVE: 0}, {}),
        (100, {Phase.SAVE: 0.999, Phase.STEP: 0.001}, {Phase.SAVE: 99, Phase.STEP: 1}),
    ],
)
def test_kills_are_apportioned_by_the_largest_remainder(
    kills: int, weights: dict[Phase, float], expected: dict[Phase, int]
) -> None:
    """Small shares round up last, but nobody goes without if there are enough."""
    assert +Counter(apportion(kills, weights)) == +Counter(expected)


@given(st.integers(0, 500), st.dictionaries(st.sampled_from(Phase), st.floats(0, 10)))
def test_apportioning_gives_out_all_and_leaves_nobody_out(kills: int, weights: dict[Phase, float]) -> None:
    """All kills are given out, each phase gets nearly its share, and at least one where there are enough."""
    counts = apportion(kills, weights)
    weighted = [phase for phase, weight in weights.items() if weight > 0]
    assert sum(counts.values()) == (kills if weighted else 0)
    assert set(counts) == set(weighted)
    assert kills < len(weighted) or all(counts.values())
    total = sum(weights.values())
    assert all(count <= 1 + kills * weights[phase] / total for phase, count in counts.items())


def test_points_are_spread_before_any_is_taken_again() -> None:
    """As many kills as a phase has points take each of them once; few kills go to different saves and files."""
    reference = made_up(saves=4)
    whole = draw_schedule(reference.profile, reference.points, kills=16, phases={Phase.SAVE: 1}, seed=3, first_number=1)
    places = [place for trial in whole for place in walk(reference, trial)]
    assert len(set(places)) == 16
    few = draw_schedule(reference.profile, reference.points, kills=4, phases={Phase.SAVE: 1}, seed=3, first_number=1)
    points = [reference.points[place] for trial in few for place in walk(reference, trial)]
    assert {point.address.save for point in points} == {1, 2, 3, 4}
    assert Counter(point.address.file for point in points) == {"c.tmp": 2, "c.pt": 2}


def test_writes_are_torn_half_of_the_time() -> None:
    """Of many kills in writes about half tear them, at every boundary that there is."""
    reference = made_up(keep=lambda point: bool(point.tears))
    trials = draw_schedule(reference.profile, reference.points, kills=400, phases=PHASES, seed=0, first_number=1)
    tears = Counter(crash_point.tear_offset for trial in trials for crash_point in trial.crash_points)
    assert 150 < tears[None] < 250
    assert set(tears) == {None, 4096, 8192}


def test_recovery_alone_gets_a_kill_to_recover_from() -> None:
    """Asked for recoveries only, one kill opens the lineage, in a save if there is one."""
    reference = made_up()
    for kills in (1, 6):
        trials = draw_schedule(
            reference.profile, reference.points, kills=kills, phases={Phase.RECOVERY: 1}, seed=0, first_number=1
        )
        assert phases_of(trials) == +Counter({Phase.SAVE: 1, Phase.RECOVERY: kills - 1})


def test_a_finish_without_step_numbers_is_struck_late_only_at_the_exit() -> None:
    """Where nobody can tell a later life's last step, output after it is struck in first lives only."""
    reference = made_up(prints=False)
    trials = draw_schedule(reference.profile, reference.points, kills=40, phases=PHASES, seed=2, first_number=1)
    finishes = [(trial, trial.crash_points[-1]) for trial in trials]
    late = [last for trial, last in finishes if last.expected_phase is Phase.FINISH and len(trial.crash_points) > 1]
    assert {crash_point.address.call for crash_point in late} <= {"exit"}


def test_the_save_resumed_from_is_the_newest_published() -> None:
    """A kill before the rename resumes from the save before, one after it, or in the next steps, from this save."""
    reference = made_up(saves=2, every=2)
    resumes = saves_resumed_from(reference.profile, reference.points)
    ordinals = [save.ordinal if save else 0 for save in resumes]
    by_address = {str(point.address): ordinal for point, ordinal in zip(reference.points, ordinals, strict=True)}
    assert by_address["save 1: rename #1 of c.pt"] == 0
    assert by_address["save 1: fsync #1 of c.pt"] == 1
    assert by_address["after 2 steps: write #1 of stdout"] == 0
    assert by_address["after 2 steps: tick #1"] == 1
    assert by_address["save 2: openat #1 of c.tmp"] == 1
    assert by_address["after 4 steps: exit #1"] == 2
    without_rename = made_up(saves=2, every=2, keep=lambda point: point.address.call != "rename")
    resumes = saves_resumed_from(without_rename.profile, without_rename.points)
    resumed = {str(point.address): save for point, save in zip(without_rename.points, resumes, strict=True)}
    assert resumed["save 1: fsync #1 of c.pt"] == reference.profile.saves[0]
    unplanned = msgspec.structs.replace(reference, points=tuple(p for p in reference.points if not p.address.save))
    resumes = saves_resumed_from(unplanned.profile, unplanned.points)
    ordinals = [save.ordinal if save else 0 for save in resumes]
    by_address = {str(point.address): ordinal for point, ordinal in zip(unplanned.points, ordinals, strict=True)}
    assert by_address["after 2 steps: tick #1"] == 0
    assert by_address["after 3 steps: write #1 of stdout"] == 1


def test_relative_addresses_count_from_the_save_resumed_from() -> None:
    """Saves and steps of a later life are counted from its own start."""
    save = SaveProfile(ordinal=2, ticks_before=6)
    inside = PlannablePoint(address=Address(save=3, file="c.pt", call="rename"), phase=Phase.SAVE, position=9)
    outside = PlannablePoint(address=Address(tick=8, call="tick"), phase=Phase.STEP, position=8)
    assert relative(inside, None) == inside.address
    assert relative(inside, save) == Address(save=1, file="c.pt", call="rename")
    assert relative(outside, save) == Address(tick=2, call="tick")


def test_a_seed_rebuilds_its_schedule_in_every_process() -> None:
    """The schedule of a seed is written down here, so neither the hash seed nor the process can have a part in it."""
    reference = made_up()
    trials = draw_schedule(reference.profile, reference.points, kills=8, phases=PHASES, seed=11, first_number=1)
    assert [trial.hash_seed for trial in trials] == [394666422, 1410750030, 2810464403]
    words = [[f"{crash.expected_phase}: {crash}" for crash in trial.crash_points] for trial in trials]
    assert words == [
        [
            "startup: after 0 steps, before write #1 of stdout",
            "step: after 7 steps, before write #1 of stdout",
            "step: after 5 steps, before tick #1",
        ],
        [
            "save: in save 2, before openat #1 of c.tmp",
            "save: in save 2, before write #1 of c.tmp",
            "recovery: after 0 steps, before write #1 of stdout",
            "save: in save 2, before rename #1 of c.pt",
        ],
        ["finish: after 12 steps, before exit #1"],
    ]
    assert trials == draw_schedule(reference.profile, reference.points, kills=8, phases=PHASES, seed=11, first_number=1)
    assert trials != draw_schedule(reference.profile, reference.points, kills=8, phases=PHASES, seed=12, first_number=1)
