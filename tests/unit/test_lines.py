"""Step lines and acknowledgements, however lines are worded, coloured and cut into writes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.lines import LINE_LIMIT_CHARACTERS, MAX_OPEN_LINES, LineReader
from chaos.model import TEXT_LIMIT_CHARACTERS, Target

TARGET = Target(command=("true",), resume_command=("true",), checkpoints=("c*.pt",), final=("w.pt",))


def test_lines_are_put_together_from_writes() -> None:
    """A number cut in two is corrected, a carriage return ends a line, and a line is a step once and never if saved."""
    reader = LineReader(TARGET)
    texts = ("st", "ep 1", "2\n", "a\rstep 13\rstep 14 step 15", " more\n", "saved step 15", " to c.pt\n", "step 9")
    readings = [reader.read("stdout", text) for text in texts]
    assert [reading.steps for reading in readings] == [0, 1, 0, 2, 0, 0, 0, 1]
    assert [reading.acknowledged for reading in readings] == [(), (), (), (), (), (15,), (), ()]
    assert (reader.first_step, reader.last_step) == (12, 14)


def test_streams_have_lines_of_their_own() -> None:
    """A progress bar on standard error does not cut a line of standard output."""
    reader = LineReader(TARGET)
    assert reader.read("stdout", "saved ").acknowledged == ()
    assert reader.read("stderr", "\r 50%\r").acknowledged == ()
    assert reader.read("stdout", "step 3").acknowledged == (3,)


def test_threads_have_lines_of_their_own() -> None:
    """A line of another thread between a line and its newline spoils neither."""
    reader = LineReader(TARGET)
    assert reader.read("stdout", "step 12 loss 1").steps == 1
    assert reader.read("stdout", "saved step 9", thread=1).acknowledged == (9,)
    assert reader.read("stdout", "\n").steps == 0
    assert reader.read("stdout", "step 13\n").steps == 1
    assert reader.read("stdout", "\n", thread=1).acknowledged == ()
    assert reader.last_step == 13


def test_threads_that_never_end_their_line_do_not_make_memory_grow() -> None:
    """Only so many lines are kept open."""
    reader = LineReader(TARGET)
    assert [reader.read("stdout", "step 1", thread=thread).steps for thread in range(200)] == [1] * 200
    assert len(reader._lines) == MAX_OPEN_LINES


@pytest.mark.parametrize(
    "texts",
    [("\x1b[32mstep 3\x1b[0m\n",), ("\x1b[1;3", "2mst", "ep \x1b", "[1m3\x1b[", "0m\n"), ("\r\x1b[2K\x1b[?25lstep 3",)],
)
def test_colours_are_no_part_of_a_line(texts: tuple[str, ...]) -> None:
    """Terminal sequences are left out, also when cut in two."""
    reader = LineReader(TARGET)
    assert sum(reader.read("stdout", text).steps for text in texts) == 1
    assert reader.last_step == 3
    assert reader.read("stderr", "\x1b[32msaved step 3\x1b[0m\n").acknowledged == (3,)


@pytest.mark.parametrize(
    "line",
    [
        "step 3",
        "[step 3/12]",
        "epoch 1 step=3",
        "INFO:root:global_step: 3",
        "iter 3",
        "Iteration: 3",
        '"step": 3',
        '{"iter": 3, "loss": 1}',
        '{"loss":1.,"step":3}',
        "{'loss': 1.0, 'global_step': 3}",
        '12:00 INFO {"loss": 1.0, "train/step": 3, "note": "fine"}',
    ],
)
def test_usual_wordings_are_step_lines(line: str) -> None:
    """Words, abbreviations and JSON, with no pattern given."""
    reader = LineReader(TARGET)
    assert (reader.read("stdout", f"{line}\n").steps, reader.last_step) == (1, 3)


@pytest.mark.parametrize(
    "line",
    [
        "resumed at step 30",
        "starting from step 0",
        "saved step 3",
        "item 3",
        "iterations 3",
        '{"num_iter": 3, "max_step": 9, "step_time": 1}',
        '{"event": "saved", "step": 3}',
        '{"step": 3, "event": "resume"}',
        'the "step": 3',
    ],
)
def test_other_lines_with_numbers_are_no_step_lines(line: str) -> None:
    """What tells of a start, a save or something else completes no step."""
    assert LineReader(TARGET).read("stdout", f"{line}\n").steps == 0


def test_text_that_was_cut_ends_its_line() -> None:
    """What followed the cut is unknown, so the next write begins a line."""
    reader = LineReader(Target(command=(), resume_command=(), checkpoints=(), final=(), step=r"^step (\d+)", saved=""))
    assert reader.read("stdout", "x" * TEXT_LIMIT_CHARACTERS).steps == 0
    assert reader.read("stdout", "step 3\n").steps == 1


@pytest.mark.parametrize(("pattern", "number"), [(r"step \d+", None), (r"step (\w+)", None), (r"(a)?step (\d+)", 8)])
def test_patterns_without_a_number_still_count(pattern: str, number: int | None) -> None:
    """A pattern without a group, or with words in it, counts steps without numbering them."""
    text = "step 8" if number else "step 99999999999999999999"
    reader = LineReader(Target(command=(), resume_command=(), checkpoints=(), final=(), step=pattern))
    assert reader.read("stdout", f"{text}\n").steps == 1
    assert reader.last_step == number


@given(st.lists(st.sampled_from("st ep123\n\rav"), max_size=60), st.data())
def test_how_output_is_cut_into_writes_does_not_matter(letters: list[str], data: st.DataObject) -> None:
    """Whole or in pieces, the same text has the same steps and numbers, and as many acknowledgements."""
    text = "".join(letters) + data.draw(st.sampled_from(["", "step 4\nsaved step 4\n", "step 40 step 41\rstep 42"]))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)) | {0, len(text)})
    pieces = [text[start:end] for start, end in itertools.pairwise(cuts)]
    target = Target(
        command=(), resume_command=(), checkpoints=(), final=(), step=r"^step (\d+)", saved=r"^saved step (\d+)"
    )
    whole, cut = LineReader(target), LineReader(target)
    in_one = whole.read("stdout", text)
    in_pieces = [cut.read("stdout", piece) for piece in pieces]
    assert sum(reading.steps for reading in in_pieces) == in_one.steps
    assert sum(len(reading.acknowledged) for reading in in_pieces) == len(in_one.acknowledged)
    assert (cut.first_step, cut.last_step) == (whole.first_step, whole.last_step)


def test_a_line_without_end_is_bounded() -> None:
    """A target that never ends its line does not make memory grow."""
    reader = LineReader(TARGET)
    for _ in range(100):
        reader.read("stdout", "." * 399)
    assert len(reader._lines["stdout", 0].text) <= LINE_LIMIT_CHARACTERS
