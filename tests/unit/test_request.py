"""What a life leaves in its folder is read back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.errors import HarnessError
from chaos.intercept.spelling import spell
from chaos.lives.request import LifeRequest, output_tail, prepare_folder, read_log, write_log
from chaos.model import Operation, OperationKind, Target, TargetProfile

TARGET = Target(command=("x",), resume_command=("x",), checkpoints=("ck",), final=())


def request(folder: Path) -> LifeRequest:
    """Ask for a life in a folder."""
    return LifeRequest(
        number=1,
        command=("x",),
        target=TARGET,
        profile=TargetProfile(),
        folder=str(folder),
        out=str(folder / "out"),
        hash_seed=0,
        deadline_s=1.0,
    )


@given(st.binary(max_size=20), st.text(max_size=20))
def test_any_name_and_any_text_survive_the_log(
    tmp_path_factory: pytest.TempPathFactory, name: bytes, text: str
) -> None:
    """File names that are no UTF-8, and whatever a target prints, are stored and read back."""
    folder = tmp_path_factory.mktemp("log")
    path = spell(name.decode("utf-8", "surrogateescape"))
    text = text.encode("utf-8", "replace").decode()
    log = (Operation(index=0, kind=OperationKind.OUTPUT, call="write", path=path, text=text),)
    write_log(folder, log)
    assert read_log(folder) == log


@given(st.text(max_size=20).filter(lambda text: text.isprintable()))
def test_an_ordinary_name_is_spelt_as_it_is(name: str) -> None:
    """Only bytes that are no UTF-8 are written in another way."""
    assert spell(name) == name


def test_the_tail_shows_errors_last(tmp_path: Path) -> None:
    """The end of the standard output, then that of the standard error, each cut to its last bytes."""
    sinks = prepare_folder(request(tmp_path / "life"))
    sinks.stdout.write_bytes(b"a" * 50 + b"\n")
    sinks.stderr.write_bytes(b"b" * 50 + b"\xff\n")
    assert output_tail(sinks, limit_bytes=10) == "a" * 9 + "\n" + "b" * 8 + "\ufffd"


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file in the place of the run folder is an error of the harness with a hint, not a traceback."""
    (tmp_path / "life").write_bytes(b"")
    with pytest.raises(HarnessError, match="cannot be written"):
        prepare_folder(request(tmp_path / "life"))
