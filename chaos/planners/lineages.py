"""Kills chained into lineages, so that each is reached by the life after the kill before it.

In a lineage a startup kill comes first and a finish kill last, since there is one start of a first life and one end.
Kills in steps and saves lie between, in the order of the reference; a recovery kill follows directly upon another
kill. A kill that no lineage under way can still reach begins a new one, where everything can be reached.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from chaos.address import STDOUT, TICK
from chaos.model import CrashPoint, Phase, PlannablePoint, Record, SaveProfile, TargetProfile, Trial, TrialKind
from chaos.planners.kinds import KILL, Choice, FaultPlan
from chaos.planners.positions import does_steps, is_reachable, relative, saves_resumed_from

_LEAST_BESIDE_A_LONE_KILL = 3
OPENERS = (Phase.SAVE, Phase.STEP, Phase.STARTUP)


class Course(Record, kw_only=True):
    """A reference as a planner sees it: its points in the order of the run, and their places in it, by phase.

    A place is an index into `points`. `resumed_from` holds for each point the save that a life killed there should
    resume from. `places` are those that the kind of fault can strike at.
    """

    profile: TargetProfile
    points: tuple[PlannablePoint, ...]
    resumed_from: tuple[SaveProfile | None, ...]
    places: Mapping[Phase, tuple[int, ...]]

    def is_mark(self, place: int) -> bool:
        """Tell whether a later life comes to the point even if it has no step left to do."""
        address = self.points[place].address
        return not address.file and address.call != TICK


class Kill(Record, kw_only=True):
    """One drawn kill: its place in the course, the phase that it is drawn for, and what else was drawn of it."""

    place: int
    phase: Phase
    choice: Choice = Choice()


@dataclass(slots=True, kw_only=True)
class _Lineage:
    """A lineage being put together; `resumed_from` is where the life after its last kill resumes."""

    kills: list[Kill] = field(default_factory=list)
    resumed_from: SaveProfile | None = None
    is_closed: bool = False


def course_of(profile: TargetProfile, points: Sequence[PlannablePoint], plan: FaultPlan = KILL) -> Course:
    """Return the course of a reference, with the places of one kind of fault.

    A recovery is the start of a later life, so it is struck where the reference's start can be: at marks, at output,
    at the first tick. What the start did to files may have been for the first start only; what a later one does to
    them are points of a phase of their own.
    """
    places = {phase: tuple(i for i, p in enumerate(points) if p.phase is phase) for phase in Phase}
    places[Phase.RECOVERY] += tuple(
        i for i in places[Phase.STARTUP] if points[i].address.file in {"", STDOUT} and not points[i].address.tick
    )
    resumed_from = saves_resumed_from(profile, points)
    able = {
        phase: tuple(place for place in found if plan.can_strike(points[place], resumed_from[place]))
        for phase, found in places.items()
    }
    return Course(profile=profile, points=tuple(points), resumed_from=resumed_from, places=able)


def with_opener(course: Course, quotas: Mapping[Phase, int]) -> dict[Phase, int]:
    """Return `quotas`, but with one recovery kill made another, if there is no kill that a life could recover from."""
    counts = dict(quotas)
    if counts.get(Phase.RECOVERY, 0) and not any(counts.get(phase, 0) for phase in OPENERS):
        opener = next((phase for phase in OPENERS if course.places[phase]), None)
        if opener is None:  # there are recoveries to strike at, and nothing that a life could recover from
            return {phase: count for phase, count in counts.items() if phase is not Phase.RECOVERY}
        counts[Phase.RECOVERY] -= 1
        counts[opener] = 1
    return counts


def draw_kills(
    course: Course,
    quotas: Mapping[Phase, int],
    rng: random.Random,
    *,
    plan: FaultPlan = KILL,
    avoid: frozenset[int] = frozenset(),
) -> dict[Phase, list[Kill]]:
    """Draw so many kills of each phase; places in `avoid` are taken only where a phase has no others."""
    drawn: dict[Phase, list[Kill]] = {}
    ordinals = itertools.count()
    for phase in Phase:
        places = [place for place in course.places[phase] if place not in avoid] or list(course.places[phase])
        chosen = _spread(course, places, quotas.get(phase, 0), rng)
        drawn[phase] = [
            Kill(place=place, phase=phase, choice=plan.choose(course.points[place], rng, next(ordinals)))
            for place in chosen
        ]
    return drawn


def chain(
    course: Course,
    drawn: Mapping[Phase, Sequence[Kill]],
    rng: random.Random,
    *,
    plan: FaultPlan = KILL,
    kills_per_lineage: int,
) -> tuple[tuple[CrashPoint, ...], ...]:
    """Chain the drawn kills into lineages of about `kills_per_lineage`; none is left out.

    The first finish kill has a lineage to itself, if there are enough others: what litter grows with the number of
    kills shows only beside a lineage with a single one.
    """
    total = sum(len(kills) for kills in drawn.values())
    alone, finish = drawn[Phase.FINISH][:1], drawn[Phase.FINISH][1:]
    if total <= _LEAST_BESIDE_A_LONE_KILL:
        alone, finish = [], drawn[Phase.FINISH]
    total -= len(alone)
    ends = max(len(drawn[Phase.STARTUP]), len(finish))
    lineages = [_Lineage() for _ in range(max(-(-total // kills_per_lineage), ends))]
    for lineage, kill in zip(lineages, drawn[Phase.STARTUP], strict=False):
        lineage.kills.append(kill)
    for kill in sorted((*drawn[Phase.STEP], *drawn[Phase.SAVE]), key=lambda kill: kill.place):
        _append(course, lineages, kill)
    for kill in drawn[Phase.RECOVERY]:
        _insert_recovery(course, lineages, kill, rng)
    for kill in finish:
        _append(course, lineages, kill)
    lineages += [_Lineage(kills=[kill], is_closed=True) for kill in alone]
    return tuple(_crash_points(course, lineage, plan) for lineage in lineages if lineage.kills)


def faulted_trials(
    lineages: Sequence[tuple[CrashPoint, ...]], rng: random.Random, *, first_number: int, plan: FaultPlan = KILL
) -> tuple[Trial, ...]:
    """Return one trial a lineage, numbered from `first_number`, each with a hash seed of its own.

    The plan's profiles take turns: a lineage has one, since a machine does not change its file system at a restart.
    """
    trials = []
    for number, points in enumerate(lineages):
        profile = plan.profiles[number % len(plan.profiles)]
        placed = tuple(msgspec.structs.replace(point, profile=profile) for point in points)
        seed = rng.randrange(1, 2**32)
        trials.append(Trial(number=first_number + number, kind=TrialKind.FAULTED, crash_points=placed, hash_seed=seed))
    return tuple(trials)


# --- drawing points -----------------------------------------------------------------------------------


def _exposed(course: Course, places: Sequence[int], rng: random.Random) -> list[int]:
    """Draw the place that no campaign may leave out, if it is among `places`: where a save in place is half done.

    That is in a save after the first, after its first operation, and before it is published; of a recovery, after the
    first change of a checkpoint.
    """
    recovering = [place for place in places if course.points[place].phase is Phase.RECOVERY]
    if recovering:
        return [rng.choice(recovering[1:] or recovering)]
    opening = {save.addresses[0] for save in course.profile.saves if save.addresses}
    points = [(place, course.points[place]) for place in places]
    found = [
        place
        for place, point in points
        if point.address.save > 1 and not point.is_published and point.address not in opening
    ]
    return [rng.choice(found)] if found else []


def _spread(course: Course, places: Sequence[int], count: int, rng: random.Random) -> list[int]:
    """Draw `count` places, each once before any again, spread over saves and steps, and over files.

    The first is one where a save in place would be half done, if there is one.
    """
    chosen = _exposed(course, places, rng)[:count]
    used_files = Counter(course.points[place].address.file for place in chosen)
    begun = [_context(course, place) for place in chosen]
    left = [place for place in places if place not in chosen]
    while places and len(chosen) < count:
        chosen += _one_round(course, left, count - len(chosen), used_files, rng, begun)
        left, begun = list(places), []
    return chosen


def _context(course: Course, place: int) -> tuple[int, int]:
    """Return the save or the step that a place is in."""
    address = course.points[place].address
    return (address.save, address.tick)


def _one_round(
    course: Course,
    places: Sequence[int],
    count: int,
    used_files: Counter[str],
    rng: random.Random,
    begun: Sequence[tuple[int, int]],
) -> list[int]:
    """Draw up to `count` different places, in turn from each save or step, there from the file least used so far.

    Those in `begun` have had their first turn.
    """
    contexts: dict[tuple[int, int], list[int]] = {}
    for place in places:
        contexts.setdefault(_context(course, place), []).append(place)
    chosen: list[int] = []
    while contexts and len(chosen) < count:
        turn = [context for context in contexts if context not in begun] or list(contexts)
        begun = []
        for context in rng.sample(turn, min(len(turn), count - len(chosen))):
            files = [course.points[place].address.file for place in contexts[context]]
            least = min(used_files[file] for file in files)
            file = rng.choice([file for file in dict.fromkeys(files) if used_files[file] == least])
            place = rng.choice([p for p in contexts[context] if course.points[p].address.file == file])
            used_files[file] += 1
            chosen.append(place)
            contexts[context].remove(place)
            if not contexts[context]:
                del contexts[context]
    return chosen


# --- chaining -----------------------------------------------------------------------------------------


def _append(course: Course, lineages: list[_Lineage], kill: Kill) -> None:
    """Add a step, save or finish kill to the shortest lineage that still comes to it, or to a new one."""
    point = course.points[kill.place]
    able = [
        lineage
        for lineage in lineages
        if not lineage.is_closed and (not lineage.kills or is_reachable(course.profile, point, lineage.resumed_from))
    ]
    if not able:
        able = [_Lineage()]
        lineages += able
    lineage = min(able, key=lambda lineage: len(lineage.kills))
    lineage.kills.append(kill)
    lineage.resumed_from = _resumed_after(course, lineage.resumed_from, kill)
    lineage.is_closed = kill.phase is Phase.FINISH


def _insert_recovery(course: Course, lineages: Sequence[_Lineage], kill: Kill, rng: random.Random) -> None:
    """Put a recovery kill right after another one from which the next life has steps to do, in the shortest lineage."""
    slots = [(lineage, slot) for lineage in lineages for slot in _recovery_slots(course, lineage, kill)]
    if not slots:  # every life resumes at the last step: it still comes to its marks
        slots = [(lineage, len(lineage.kills)) for lineage in lineages if lineage.kills]
        marks = [place for place in course.places[Phase.RECOVERY] if course.is_mark(place)]
        kill = Kill(place=rng.choice(marks), phase=kill.phase) if marks else kill
    shortest = min(len(lineage.kills) for lineage, _ in slots)
    lineage, slot = rng.choice([(lineage, slot) for lineage, slot in slots if len(lineage.kills) == shortest])
    lineage.kills.insert(slot, kill)


def _recovery_slots(course: Course, lineage: _Lineage, kill: Kill) -> list[int]:
    """Return the positions after a kill at which the next life still has steps to do, and what `kill` strikes at."""
    needs_checkpoint = course.points[kill.place].phase is Phase.RECOVERY
    slots, resumed_from = [], None
    for slot, before in enumerate(lineage.kills, 1):
        resumed_from = _resumed_after(course, resumed_from, before)
        if does_steps(course.profile, resumed_from) and not (needs_checkpoint and resumed_from is None):
            slots.append(slot)
    return slots


def _resumed_after(course: Course, resumed_from: SaveProfile | None, kill: Kill) -> SaveProfile | None:
    """Return the save that the life after `kill` resumes from, when the killed one resumed from `resumed_from`."""
    if kill.phase in {Phase.STARTUP, Phase.RECOVERY}:
        return resumed_from
    return course.resumed_from[kill.place]


def _crash_points(course: Course, lineage: _Lineage, plan: FaultPlan) -> tuple[CrashPoint, ...]:
    """Return a lineage's crash points with the addresses that they have in its lives."""
    crash_points, resumed_from = [], None
    for kill in lineage.kills:
        point = course.points[kill.place]
        is_start = kill.phase in {Phase.STARTUP, Phase.RECOVERY}
        address = point.address if is_start else relative(point, resumed_from)
        choice = msgspec.structs.asdict(kill.choice)
        crash_points.append(CrashPoint(address=address, expected_phase=kill.phase, fault=plan.kind, **choice))
        resumed_from = _resumed_after(course, resumed_from, kill)
    return tuple(crash_points)
