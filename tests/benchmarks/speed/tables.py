"""The report as tables and sentences for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from .records import Machine, Report, Row, Slowdown, Spread, Status

_NOTHING = "-"
_COLUMNS = (
    "counted", "number", "seconds", "an hour", "crash points", "one costs, s", "in floors", "rate to peer",
    "points to peer", "verdict",
)  # fmt: skip
_HOW = (
    "Workers side by side: {workers}. Seconds run from the start of each tool to its end, references included. One "
    "costs: seconds of one worker. Peer: ckpt-chaos in this run. What the tools count is not the same thing; each row "
    "says what."
)


def show(report: Report, console: Console, *, has_profile: bool) -> None:
    """Print the whole report; `has_profile` adds where the time of each campaign went."""
    _show_head(report.machine, report, console)
    if report.rows:
        _show_rows(report.rows, console)
    if has_profile:
        _show_shares(report.rows, console)
    _show_slowdown(report, console)
    _show_differences(report, console)
    _show_probing(report, console)
    console.print(f"\nAll of it took {report.elapsed_s:.0f} s.")


def _show_rows(rows: tuple[Row, ...], console: Console) -> None:
    """Print the table, and what each of its rows counts."""
    console.print(_table(rows))
    for row in rows:
        console.print(f"{row.measurement.tool}: {row.measurement.note}.", soft_wrap=True)
    workers = ", ".join(f"{row.measurement.tool} {row.measurement.workers}" for row in rows)
    console.print(_HOW.format(workers=workers), soft_wrap=True)


def _show_head(machine: Machine, report: Report, console: Console) -> None:
    """Say where and when, with what, and what the floor is."""
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    tiny, floor = report.sizes.tiny, report.floor
    console.print(f"{machine.date}; {machine.cores} cores, {machine.cpu}; {machine.kernel}; load {machine.load}")
    console.print(f"Python {machine.python}, {versions}; {report.sizes.jobs} workers, seed {report.sizes.seed}")
    console.print(
        f"script: {tiny.steps} steps, a save every {tiny.every}, layers of width {tiny.width}, batch {tiny.batch}"
    )
    console.print(
        f"floor: {floor.total_s:.4f} s to fork a warm process, redo {floor.redone_steps} steps and reap it (the fork "
        f"alone {floor.fork_s:.4f} s; medians of {floor.forks})\n",
        soft_wrap=True,
    )


def _table(rows: tuple[Row, ...]) -> Table:
    """Lay out the rows."""
    table = Table("tool", title_justify="left")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in {"counted", "verdict"} else "right")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> tuple[str, ...]:
    """Return the cells of one row."""
    one = row.measurement
    if one.status is not Status.MEASURED:
        return (one.tool, one.status.replace("_", " "), *[_NOTHING] * (len(_COLUMNS) - 1))
    return (
        one.tool,
        one.counted,
        f"{one.number:,}",
        f"{one.elapsed_s:.1f}",
        _figure(row.per_hour, ",.0f"),
        "not known" if one.points is None else f"{one.points:,}",
        _figure(row.cost_s, ".3f"),
        _figure(row.floors, ",.1f"),
        _figure(row.rate_ratio, ",.2f"),
        _figure(row.points_ratio, ",.2f"),
        one.verdict,
    )


def _figure(value: float | None, form: str) -> str:
    """Return a figure, or a dash where there is none."""
    return _NOTHING if value is None else format(value, form)


def _show_shares(rows: tuple[Row, ...], console: Console) -> None:
    """Say where the workers' time went, for the campaigns that tell."""
    for row in rows:
        shares = row.measurement.shares
        if shares is not None:
            console.print(
                f"\nwhere the time of {row.measurement.tool} went: {shares.target:.0%} lives of the killed lineages, "
                f"{shares.trials:.0%} the rest of their trials (looking at the folder, comparing), "
                f"{shares.references:.0%} references, control, canary, {shares.rest:.0%} starting processes, judging, "
                "waiting",
                soft_wrap=True,
            )


def _show_slowdown(report: Report, console: Console) -> None:
    """Say how much interception costs the target."""
    slowdown, large = report.slowdown, report.sizes.large
    if slowdown is None:
        console.print(f"\nslow-down: not measured: {report.no_slowdown}", soft_wrap=True)
        return
    console.print(
        f"\nslow-down by interception: {slowdown.pairs} pairs by turns of {large.steps} steps at width {large.width}, "
        f"batch {large.batch}, a save every {large.every}. Training takes {slowdown.plain_training_s:.2f} s, "
        f"{slowdown.saving_share:.1%} of it saving; {slowdown.calls} operations are held, the probe's ticks and the "
        "output among them. Ratios of the script's own time, median (quartiles; all):",
        soft_wrap=True,
    )
    for name, spread in _spreads(slowdown):
        console.print(
            f"  {name}: {_percent(spread.median)} ({_percent(spread.lower_quartile)} to "
            f"{_percent(spread.upper_quartile)}; {_percent(spread.lowest)} to {_percent(spread.highest)})",
            soft_wrap=True,
        )
    console.print(f"  two plain runs in a row differ by {slowdown.noise:.1%} (median)")


def _show_differences(report: Report, console: Console) -> None:
    """Say how fast two checkpoints are compared, beside `cmp`."""
    if not report.differences:
        console.print(f"\nchaos diff: not measured: {report.no_differences}", soft_wrap=True)
        return
    console.print("\nchaos diff, whole processes, files in the page cache, the best of four runs:")
    table = Table("format", title_justify="left")
    for name in ("bytes each", "cmp, s", "equal, s", "speed to cmp", "all different, s", "memory, MB"):
        table.add_column(name, justify="right")
    for one in report.differences:
        table.add_row(
            one.format, f"{one.size_bytes:,}", _figure(one.cmp_s, ".2f"), f"{one.equal_s:.2f}",
            _figure(one.cmp_s and one.cmp_s / one.equal_s, ".0%"), f"{one.different_s:.2f}",
            f"{one.peak_bytes / 1e6:.0f}",
        )  # fmt: skip
    console.print(table)


def _show_probing(report: Report, console: Console) -> None:
    """Say what the probe costs at each budget, without interception."""
    if not report.probing:
        console.print(f"\nthe probe: not measured: {report.no_probing}", soft_wrap=True)
        return
    rounds = report.probing[0].rounds
    console.print(
        "\nthe probe, without interception: the processor's time in all steps against that without it, "
        f"{rounds} rounds by turns, median (quartiles). A budget is a share of the step time; the first step and each "
        "after a save are digested whatever it is:",
        soft_wrap=True,
    )
    table = Table("parameters", title_justify="left")
    for name in ("steps", "a save every", "a step, ms", "budget", "steps slower by", "digested", "with data"):
        table.add_column(name, justify="right")
    for one in report.probing:
        for budget in one.budgets:
            table.add_row(
                f"{one.script.num_parameters:,}", str(one.script.steps), str(one.script.every),
                f"{one.plain_step_s * 1e3:.1f}", f"{budget.percent:.0f} %" if budget.percent else "ticks alone",
                f"{_percent(budget.slowdown.median)} ({_percent(budget.slowdown.lower_quartile)} to "
                f"{_percent(budget.slowdown.upper_quartile)})", f"{budget.digested:.0%}", f"{budget.recorded:.0%}",
            )  # fmt: skip
    console.print(table)


def _spreads(slowdown: Slowdown) -> tuple[tuple[str, Spread], ...]:
    """Return the comparisons with their names."""
    return (
        ("training, calls held and carried out", slowdown.training),
        ("  of that the steps alone", slowdown.steps),
        ("  of that the saves alone", slowdown.saving),
        ("the same, and the checkpoints looked at after each save", slowdown.training_with_looks),
        ("from the start of the process, calls held and carried out", slowdown.whole),
    )


def _percent(ratio: float) -> str:
    """Return a ratio as a change in per cent."""
    return f"{(ratio - 1) * 100:+.1f} %"
