"""The journal keeps what was recorded whatever happens to its writer, and says so where it is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.errors import UsageError
from chaos.journal import FILE_NAME, CampaignEnded, Event, Journal, TrialDiscarded, TrialsPlanned, read_events
from chaos.model import Trial, TrialKind

EVENTS: tuple[Event, ...] = (
    TrialsPlanned(trials=(Trial(number=1, kind=TrialKind.CONTROL),)),
    TrialDiscarded(number=1, reason="the first\nsecond é \u2028 line"),
    CampaignEnded(elapsed_s=1.5, causes=("a cause",)),
)


def record(folder: Path, *events: Event) -> bytes:
    """Append events and return the file's bytes."""
    with Journal(folder) as journal:
        for event in events:
            journal.append(event)
    return (folder / FILE_NAME).read_bytes()


def test_events_are_read_back_as_they_were(tmp_path: Path) -> None:
    """One line an event, whatever its text holds, over several openings."""
    record(tmp_path, EVENTS[0])
    data = record(tmp_path, *EVENTS[1:])
    assert data.count(b"\n") == len(EVENTS)
    assert read_events(tmp_path) == EVENTS


@given(st.integers(min_value=0))
def test_a_torn_end_loses_at_most_the_event_that_it_tears(
    tmp_path_factory: pytest.TempPathFactory, length: int
) -> None:
    """Cut anywhere: the whole lines before are read, and what is appended next follows them."""
    folder = tmp_path_factory.mktemp("torn")
    data = record(folder, *EVENTS)
    cut = data[: length % (len(data) + 1)]
    (folder / FILE_NAME).write_bytes(cut)
    whole = EVENTS[: cut.count(b"\n")]
    assert read_events(folder) == whole
    record(folder, EVENTS[2])
    assert read_events(folder) == (*whole, EVENTS[2])


@pytest.mark.parametrize("line", [b"{}", b"not json", b'{"event":"trials_planned","trials":[],"more":1}', b"\xff"])
def test_a_line_that_is_no_event_is_named(tmp_path: Path, line: bytes) -> None:
    """A whole line of another version, or of nothing, is an error with its number: nothing is passed over."""
    record(tmp_path, EVENTS[0])
    with (tmp_path / FILE_NAME).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(UsageError, match="line 2"):
        read_events(tmp_path)


def test_a_folder_without_a_journal_is_no_campaign(tmp_path: Path) -> None:
    """Reading from a folder that no campaign made says what to give instead."""
    with pytest.raises(UsageError, match="no campaign"):
        read_events(tmp_path)
