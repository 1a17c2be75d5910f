"""The benchmark's own arithmetic: rates, multiples of the floor, medians of ratios."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that imports one of the benchmark's parts; its folder is no package of the suite."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"speed.{name}")

    return load


def measurement(part: Any, tool: str, **facts: Any) -> Any:
    """Make a measurement of a tool."""
    records = part("records")
    return records.Measurement(
        **{"tool": records.Tool(tool), "status": records.Status.MEASURED, "verdict": "pass", "note": "", **facts}
    )


def test_rates_are_an_hour_and_costs_are_of_one_worker(part: Any) -> None:
    """Twenty kills in half a minute by two workers are 2,400 an hour, and three seconds of a worker each."""
    arithmetic = part("arithmetic")
    assert arithmetic.per_hour(20, 30.0) == 2400.0
    assert arithmetic.worker_seconds_each(20, 30.0, 2) == 3.0
    assert arithmetic.worker_seconds_each(0, 30.0, 2) is None
    assert arithmetic.per_hour(20, 0.0) is None


def test_a_multiple_of_the_unknown_is_unknown(part: Any) -> None:
    """A multiple needs both its value and a positive unit."""
    arithmetic = part("arithmetic")
    assert arithmetic.multiple(3.0, 0.5) == 6.0
    assert [arithmetic.multiple(None, 0.5), arithmetic.multiple(3.0, None), arithmetic.multiple(3.0, 0.0)] == [None] * 3


def test_ratios_are_of_pairs(part: Any) -> None:
    """Each ratio belongs to two runs of one round; rounds that are not whole are refused."""
    arithmetic = part("arithmetic")
    assert arithmetic.ratios([2.0, 3.0], [1.0, 2.0]) == (2.0, 1.5)
    with pytest.raises(ValueError, match="zip"):
        arithmetic.ratios([2.0], [1.0, 2.0])


def test_one_slow_run_does_not_move_the_median(part: Any) -> None:
    """The median of ratios stays where most of them are, and the quartiles around it."""
    arithmetic = part("arithmetic")
    assert arithmetic.quartiles([1.01, 9.0, 1.03, 1.02, 1.0]) == (1.01, 1.02, 1.03)
    assert arithmetic.quartiles([1.5]) == (1.5, 1.5, 1.5)
    assert arithmetic.neighbours([2.0, 1.0, 1.5]) == (0.5, 0.5)


def test_rows_compare_with_the_floor_and_the_peer(part: Any) -> None:
    """Thirty times the peer's rate, five times its points, and the cost of a kill in floors."""
    floor = part("records").Floor(forks=1, redone_steps=5, fork_s=0.1, total_s=0.2)
    peer = measurement(part, "ckpt-chaos", number=10, elapsed_s=60.0, points=10, workers=2)
    warm = measurement(part, "chaos-run-warm", number=300, elapsed_s=60.0, points=50, workers=2)
    first, second = part("comparison").rows((peer, warm), floor)
    assert (first.per_hour, first.cost_s, first.rate_ratio, first.points_ratio) == (600.0, 12.0, 1.0, 1.0)
    assert first.floors == pytest.approx(60.0)
    assert (second.rate_ratio, second.points_ratio, second.cost_s) == (30.0, 5.0, 0.4)
    assert second.floors == pytest.approx(2.0)


def test_without_the_peer_nothing_is_compared_with_it(part: Any) -> None:
    """A tool that is not there gives no figures, and nobody a ratio."""
    records = part("records")
    floor = records.Floor(forks=1, redone_steps=5, fork_s=0.1, total_s=0.2)
    peer = measurement(part, "ckpt-chaos", status=records.Status.NOT_AVAILABLE, verdict="")
    plain = measurement(part, "plain-loop", number=20, elapsed_s=60.0)
    rows = part("comparison").rows((peer, plain), floor)
    assert (rows[0].per_hour, rows[0].cost_s) == (None, None)
    assert (rows[1].per_hour, rows[1].rate_ratio, rows[1].points_ratio) == (1200.0, None, None)


@pytest.mark.parametrize(
    ("facts", "has_failed"),
    [
        ({}, False),
        ({"verdict": "fail"}, True),
        ({"verdict": "inconclusive"}, True),
        ({"verdict": "inconclusive", "is_partial": True}, False),
        ({"verdict": "fail", "is_partial": True}, True),
        ({"status": "failed"}, True),
        ({"status": "not_available"}, False),
    ],
)
def test_what_counts_as_a_failure(part: Any, facts: dict[str, Any], *, has_failed: bool) -> None:
    """A tool that breaks or finds fault with the script is a failure; one that is missing or out of budget is none."""
    records = part("records")
    status = records.Status(facts.get("status", "measured"))
    one = measurement(part, "chaos-explore", **{**facts, "status": status})
    script = records.Script(steps=60, every=10, width=32, batch=32)
    report = records.Report(
        machine=records.Machine(date="", cores=1, cpu="", kernel="", python="", versions={}, load=0.0),
        sizes=records.Sizes(
            jobs=1, peer_jobs=1, plain_kills=1, fresh_kills=1, warm_kills=1, budget_s=1, pairs=1, limit_s=1.0, seed=1,
            tiny=script, large=script,
        ),
        floor=records.Floor(forks=1, redone_steps=5, fork_s=0.1, total_s=0.2),
        rows=(records.Row(measurement=one),),
        elapsed_s=1.0,
    )  # fmt: skip
    assert report.has_failed is has_failed


def test_a_slow_down_is_the_median_of_the_rounds(part: Any) -> None:
    """Each round's runs are compared with each other, not with those of another round."""
    slowdown = part("slowdown")

    def times(training_s: float) -> Any:
        return slowdown._Times(whole_s=training_s + 2.0, training_s=training_s, saving_s=0.1 * training_s, calls=100)

    rounds = [
        slowdown._Round(plain=times(base), intercepted=times(base * 1.02), looked_at=times(base * ratio))
        for base, ratio in ((3.0, 1.05), (6.0, 1.04), (4.0, 1.06))
    ]
    found = slowdown.summary(rounds)
    assert found.training.median == pytest.approx(1.02)
    assert (found.training_with_looks.lowest, found.training_with_looks.highest) == pytest.approx((1.04, 1.06))
    assert found.training_with_looks.median == pytest.approx(1.05)
    assert (found.steps.median, found.saving.median) == pytest.approx((1.02, 1.02))
    assert found.saving_share == pytest.approx(0.1)
    assert (found.pairs, found.calls) == (3, 100)


def test_the_cost_of_the_probe_is_that_of_each_round(part: Any) -> None:
    """Each budget's run is compared with the plain run of its own round; shares are medians."""
    probing, records = part("probing"), part("records")
    script = records.Script(steps=100, every=50, width=272, batch=32)

    def run(steps_s: float, digested: float = 0.0) -> Any:
        return probing.ProbedRun(steps_s=steps_s, digested=digested, recorded=2 * digested)

    rounds = [
        {None: run(base), 0.0: run(base * 1.01), 5.0: run(base * ratio, share), 100.0: run(base * 1.5, 0.5)}
        for base, ratio, share in ((2.0, 1.04, 0.1), (4.0, 1.06, 0.2), (3.0, 1.05, 0.3))
    ]
    found = probing.cost(script, rounds)
    assert (found.rounds, found.script.num_parameters) == (3, 296_752)
    assert found.plain_step_s == pytest.approx(0.03)
    assert [budget.percent for budget in found.budgets] == [0.0, 5.0, 100.0]
    assert [budget.slowdown.median for budget in found.budgets] == pytest.approx([1.01, 1.05, 1.5])
    assert (found.budgets[1].digested, found.budgets[1].recorded) == pytest.approx((0.2, 0.4))
    assert (found.budgets[1].slowdown.lowest, found.budgets[1].slowdown.highest) == pytest.approx((1.04, 1.06))
