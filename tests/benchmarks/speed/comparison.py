"""Run everything that was asked for, one after the other, and put the figures side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from chaos.errors import ChaosError

from .arithmetic import multiple, per_hour, worker_seconds_each
from .campaigns import measure_explore, measure_run
from .differences import measure_differences
from .floor import measure_floor
from .machine import this_machine
from .peer import measure_peer
from .plain_loop import measure_plain_loop
from .probing import measure_probing
from .records import DiffSpeed, Floor, Measurement, ProbeCost, Report, Row, Sizes, Slowdown, Status, Tool
from .slowdown import measure_slowdown


def compare(
    sizes: Sizes, folder: Path, *, peer: str | None, skipped: frozenset[Tool], say: Callable[[str], None]
) -> Report:
    """Measure all tools but the skipped ones below `folder`; `say` gets a line before each.

    Raises `speed.floor.FloorError` where not even the script runs.
    """
    machine, started = this_machine(), time.perf_counter()
    say("measuring the floor")
    floor = measure_floor(sizes.tiny, folder, sizes.limit_s)
    measurements = []
    for tool, measure in _measures(sizes, peer).items():
        if tool not in skipped:
            say(f"measuring {tool}")
            measurements.append(_measured(tool, measure, folder / tool))
    slowdown, reason = None, "skipped"
    if Tool.SLOWDOWN not in skipped:
        say(f"measuring the {Tool.SLOWDOWN}: {sizes.pairs} rounds of three runs")
        slowdown, reason = _slowdown(sizes, folder / Tool.SLOWDOWN)
    differences: tuple[DiffSpeed, ...] = ()
    no_differences = "skipped"
    if Tool.DIFF not in skipped:
        say(f"measuring {Tool.DIFF}: files of {sizes.diff_bytes:,} bytes")
        differences, no_differences = _differences(sizes, folder / Tool.DIFF)
    probing: tuple[ProbeCost, ...] = ()
    no_probing = "skipped"
    if Tool.PROBE not in skipped:
        say(f"measuring the {Tool.PROBE}: {sizes.probe_rounds} rounds of four runs, of {len(sizes.probed)} sizes")
        probing, no_probing = _probing(sizes, folder / Tool.PROBE)
    return Report(
        machine=machine,
        sizes=sizes,
        floor=floor,
        rows=rows(tuple(measurements), floor),
        slowdown=slowdown,
        no_slowdown=reason,
        differences=differences,
        no_differences=no_differences,
        probing=probing,
        no_probing=no_probing,
        elapsed_s=time.perf_counter() - started,
    )


def _measured(tool: Tool, measure: Callable[[Path], Measurement], place: Path) -> Measurement:
    """Measure one tool in a new folder; what it left unreadable costs the others nothing."""
    place.mkdir()
    try:
        return measure(place)
    except (OSError, msgspec.MsgspecError) as error:
        return Measurement(tool=tool, status=Status.FAILED, note=f"what it left could not be read: {error}")


def rows(measurements: tuple[Measurement, ...], floor: Floor) -> tuple[Row, ...]:
    """Work out what follows from the measurements, and how each compares with ckpt-chaos's."""
    peer = next((one for one in measurements if one.tool is Tool.PEER and one.status is Status.MEASURED), None)
    return tuple(_row(one, peer, floor) for one in measurements)


def _row(one: Measurement, peer: Measurement | None, floor: Floor) -> Row:
    """Work out one row."""
    if one.status is not Status.MEASURED:
        return Row(measurement=one)
    rate = per_hour(one.number, one.elapsed_s)
    cost_s = worker_seconds_each(one.number, one.elapsed_s, one.workers)
    return Row(
        measurement=one,
        per_hour=rate,
        cost_s=cost_s,
        floors=multiple(cost_s, floor.total_s),
        rate_ratio=multiple(rate, per_hour(peer.number, peer.elapsed_s)) if peer else None,
        points_ratio=multiple(one.points, peer.points) if peer else None,
    )


def _measures(sizes: Sizes, peer: str | None) -> dict[Tool, Callable[[Path], Measurement]]:
    """Return what measures each tool, given a folder, in the order of the table."""
    tiny = sizes.tiny
    return {
        Tool.PLAIN: lambda place: measure_plain_loop(tiny, sizes, place),
        Tool.PEER: lambda place: measure_peer(peer, tiny, sizes, place),
        Tool.FRESH: lambda place: measure_run(Tool.FRESH, sizes.fresh_kills, tiny, sizes, place),
        Tool.WARM: lambda place: measure_run(Tool.WARM, sizes.warm_kills, tiny, sizes, place),
        Tool.EXPLORE: lambda place: measure_explore(Tool.EXPLORE, tiny, sizes, place),
        Tool.POWER: lambda place: measure_explore(Tool.POWER, tiny, sizes, place),
    }


def _slowdown(sizes: Sizes, place: Path) -> tuple[Slowdown | None, str]:
    """Measure the slow-down; None and the reason where this machine does not allow it."""
    place.mkdir()
    try:
        return measure_slowdown(sizes.large, sizes, place), ""
    except ChaosError as error:
        return None, str(error)


def _differences(sizes: Sizes, place: Path) -> tuple[tuple[DiffSpeed, ...], str]:
    """Measure `chaos diff`; nothing and the reason where that fails."""
    try:
        return measure_differences(sizes.diff_bytes, place, sizes.limit_s), ""
    except ChaosError as error:
        return (), str(error)


def _probing(sizes: Sizes, place: Path) -> tuple[tuple[ProbeCost, ...], str]:
    """Measure the probe; nothing and the reason where that fails."""
    place.mkdir()
    try:
        return measure_probing(sizes.probed, sizes.probe_rounds, place, sizes.limit_s), ""
    except (ChaosError, OSError) as error:
        return (), str(error)
