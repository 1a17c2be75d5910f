"""The command line becomes one frozen record, or a sentence and exit status 2."""

from __future__ import annotations

import pytest

from trainer.options import Forget, Options, Order, SaveWay, parse


def test_defaults_are_those_of_the_record() -> None:
    """A bare command is the record with its defaults, of plain types that a checkpoint can hold."""
    options = parse(["--out", "somewhere"])
    assert options == Options(out=options.out)
    assert {type(value) for value in options.must_match("digest").values()} == {int, float, str}


def test_flags_reach_the_record() -> None:
    """Numbers, closed sets and repeated flags are read."""
    argv = ["--out=o", "--steps=7", "--lr=0.5", "--order=epoch", "--save=half", "--kv-heads=1"]
    options = parse([*argv, "--forget=rng", "--forget=step"])
    assert (options.steps, options.lr, options.order, options.kv_heads) == (7, 0.5, Order.EPOCH, 1)
    assert options.save is SaveWay.HALF
    assert options.forget == {Forget.RNG, Forget.STEP}


def test_preset_sets_the_choices_but_a_flag_wins() -> None:
    """`--preset minimind` is three choices, and one given beside it is kept."""
    preset = parse(["--out", "o", "--preset", "minimind"])
    assert (preset.save, preset.order, preset.forget) == (SaveWay.MINIMIND, Order.EPOCH, frozenset({Forget.RNG}))
    assert parse(["--out", "o", "--preset", "minimind", "--order", "random"]).order is Order.RANDOM


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("--steps 0", "--steps must be at least 1"),
        ("--save-every -1", "--save-every must be at least 0"),
        ("--lr 0", "--lr and --clip must be above 0"),
        ("--dropout 1", "--dropout must be at least 0 and below 1"),
        ("--dim 100 --heads 8", "--dim must be a multiple of twice --heads"),
        ("--kv-heads 3", "--heads must be a multiple of --kv-heads"),
        ("--forget epoch-skip", "--forget epoch-skip needs --order epoch"),
        ("--forget rng --dropout 0", "--forget rng needs --dropout above 0"),
        ("--save never", "invalid choice: 'never'"),
        ("--steps many", "invalid int value: 'many'"),
    ],
)
def test_wrong_usage_is_a_sentence(argv: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each wrong option ends with status 2 and says what is wrong."""
    with pytest.raises(SystemExit) as end:
        parse(["--out", "o", *argv.split()])
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err


def test_run_id_follows_the_options_alone() -> None:
    """The same options give the same id in any folder; another seed or text gives another; a name wins."""
    here, there = parse(["--out", "here"]), parse(["--out", "there", "--save-every", "5"])
    assert here.run_id("text") == there.run_id("text")
    assert len({here.run_id("text"), here.run_id("other"), parse(["--out", "here", "--seed", "1"]).run_id("text")}) == 3
    assert parse(["--out", "o", "--run-id", "mine"]).run_id("text") == "mine"
