"""From two uninterrupted runs to the reference: what is expected, what varies, what the target's clock looks like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from chaos.address import Locator
from chaos.checkpoints.process import Examiner
from chaos.checkpoints.weights_only import refused_by_weights_only, torch_files
from chaos.errors import InconclusiveError
from chaos.learning import learn
from chaos.lives.process import signal_name
from chaos.lives.request import read_log
from chaos.model import (
    Acknowledgement,
    FileRole,
    FileState,
    LifeEnd,
    LifeRecord,
    Operation,
    Outcome,
    Reference,
    Target,
    TargetProfile,
)
from chaos.roles import FileNames
from chaos.steps import unsteady_components

FIRST_REFERENCE: Final = 1
SECOND_REFERENCE: Final = 2
# The largest share of a final file's leaves, or of a checkpoint's tensors, that may differ and be left out.
_MOST_VARYING: Final = 0.5
_TORCH_DEADLINE_S: Final = 300.0
_PICKLED: Final = frozenset({"torch", "pickle", "folder"})

Logs = tuple[tuple[Operation, ...], tuple[Operation, ...]]


def build_reference(
    target: Target, outcomes: tuple[Outcome, ...], folder_of: Callable[[int], Path], examiner: Examiner
) -> tuple[Reference, Logs]:
    """Learn from the two runs in `outcomes`, whose folders are `folder_of(number)`; return also their operation logs.

    Raises InconclusiveError where a run failed, hung, left no checkpoint or no final file.
    """
    for outcome in outcomes:
        _require_success(outcome.lives[-1])
    folders = [folder_of(outcome.trial.number) for outcome in outcomes]
    logs = (read_log(folders[0] / "life-01"), read_log(folders[1] / "life-01"))
    profile = learn(target, *logs)
    states = [{state.path: state for state in outcome.lives[-1].crash_state} for outcome in outcomes]
    _require_files(target, states[0])
    _require_whole(states[0])
    comparison = _Comparison(FileNames(target, profile), examiner)
    comparison.compare([(folder / "out", files) for folder, files in zip(folders, states, strict=True)])
    final = _final_states(folders[0] / "out", states[0], comparison, examiner)
    steps = [outcome.lives[-1].step_records for outcome in outcomes]
    labelled = tuple(
        _with_acknowledgements(outcome, target, profile, log) for outcome, log in zip(outcomes, logs, strict=True)
    )
    reference = Reference(
        outcomes=labelled,
        profile=profile,
        final=final,
        deterministic=not comparison.differing_tensors,
        differing_tensors=tuple(comparison.differing_tensors),
        varying_leaves={key: tuple(sorted(names)) for key, names in sorted(comparison.varying_leaves.items())},
        seconds=outcomes[0].lives[-1].elapsed_s,
        steps=steps[0],
        unsteady=unsteady_components(*steps),
    )
    return reference, logs


def _require_success(life: LifeRecord) -> None:
    """Stop where a reference did not run to its end by itself."""
    if life.end is LifeEnd.EXITED and life.exit_status == 0:
        return
    how = {
        LifeEnd.EXITED: f"ended with exit status {life.exit_status}",
        LifeEnd.SIGNALLED: f"was ended by {signal_name(life.signal or 0)}",
        LifeEnd.DEADLINE: f"did not end within its deadline ({life.elapsed_s:.0f} s; --deadline sets it)",
    }.get(life.end, f"ended as {life.end}")
    tail = "\n".join(life.output_tail.splitlines()[-8:])
    said = f" Its last output:\n{tail}" if tail else " It printed nothing."
    message = f"the target fails without any kill: an uninterrupted run {how}.{said}"
    raise InconclusiveError(message)


def _require_files(target: Target, states: dict[str, FileState]) -> None:
    """Stop where a reference left nothing to judge."""
    for role, globs, option in (
        (FileRole.CHECKPOINT, target.checkpoints, "--checkpoints"),
        (FileRole.FINAL, target.final, "--final"),
    ):
        if not any(state.role is role for state in states.values()):
            named = ", ".join("{out}/" + glob for glob in globs)
            there = ", ".join(sorted(states)) or "none that is watched"
            message = f"an uninterrupted run left no file that matches {option} {named} (files there: {there})"
            raise InconclusiveError(message, hint="does the target save into {out}? Correct the glob or the command.")


def _require_whole(states: dict[str, FileState]) -> None:
    """Stop where every checkpoint of an uninterrupted run is called damaged: then no kill could show anything."""
    checkpoints = [state for _, state in sorted(states.items()) if state.role is FileRole.CHECKPOINT]
    if checkpoints and all(state.is_whole is False for state in checkpoints):
        first = checkpoints[0]
        message = f"an uninterrupted run's own checkpoint is called damaged ({first.path}: {first.reason})"
        raise InconclusiveError(message, hint="correct the `verify` command, or give one for a format of your own")


def unsafe_checkpoints(reference: Reference, out: Path) -> tuple[str, ...] | None:
    """Return which files of the first run `torch.load(weights_only=True)` refuses (None: none is torch's)."""
    states = reference.outcomes[0].lives[-1].crash_state
    paths = [out / state.path for state in states if state.format in _PICKLED]
    if not torch_files(paths):
        return None
    refused = refused_by_weights_only(paths, deadline_s=_TORCH_DEADLINE_S)
    return tuple(sorted(str(Path(path).relative_to(out)) for path in refused))


class _Comparison:
    """Leaf by leaf, what differs between the two references: leaves that vary, tensors that should not."""

    def __init__(self, names: FileNames, examiner: Examiner) -> None:
        """Name files as `names` does."""
        self._names = names
        self._examiner = examiner
        self.varying_leaves: dict[str, set[str]] = {}
        self._varying_tensors: dict[str, set[str]] = {}
        self._other_checkpoints: set[str] = set()
        self.differing_tensors: list[str] = []

    def compare(self, runs: list[tuple[Path, dict[str, FileState]]]) -> None:
        """Compare the checkpoints and final files that both runs left, paired by key in order of their names."""
        (out_a, files_a), (out_b, files_b) = runs
        by_key_a, by_key_b = self._by_key(files_a), self._by_key(files_b)
        for key in sorted(by_key_a.keys() | by_key_b.keys()):
            paths_a, paths_b = by_key_a.get(key, []), by_key_b.get(key, [])
            for state_a, state_b in zip(paths_a, paths_b, strict=False):
                self._compare_pair(key, state_a, out_a / state_a.path, out_b / state_b.path)
            if len(paths_a) != len(paths_b) and any(s.role is FileRole.FINAL for s in paths_a + paths_b):
                self.differing_tensors.append(f"{key} (only one run left it)")
        if not self.differing_tensors:
            # What varies in a checkpoint although the final bits do not is no state: a time, a host's name.
            for key in self._varying_tensors.keys() - self._other_checkpoints:
                self.varying_leaves.setdefault(key, set()).update(self._varying_tensors[key])

    def key_of(self, path: str) -> str:
        """Return a file's key."""
        return self._names.name(path).key

    def _by_key(self, files: dict[str, FileState]) -> dict[str, list[FileState]]:
        """Group files by key."""
        grouped: dict[str, list[FileState]] = {}
        for path in sorted(files):
            grouped.setdefault(self.key_of(path), []).append(files[path])
        return grouped

    def _compare_pair(self, key: str, state: FileState, left: Path, right: Path) -> None:
        """Compare one file of both runs."""
        a, b = self._examiner.examine(left, frozenset()), self._examiner.examine(right, frozenset())
        if a.digest == b.digest:
            return
        is_final = state.role is FileRole.FINAL
        if not (a.is_whole and b.is_whole and a.leaves):
            if is_final:
                self.differing_tensors.append(key)
            return
        digests_b = {leaf.name: leaf.digest for leaf in b.leaves}
        different = [leaf for leaf in a.leaves if digests_b.pop(leaf.name, None) != leaf.digest]
        different += [leaf for leaf in b.leaves if leaf.name in digests_b]
        if is_final and len(different) > _MOST_VARYING * len(a.leaves):
            # What is left to compare once these are left out would say nothing: this is no time or host name.
            self.differing_tensors.append(f"{key} ({len(different)} of its {len(a.leaves)} values)")
            return
        num_tensors = sum(leaf.is_tensor for leaf in a.leaves)
        if not is_final and sum(leaf.is_tensor for leaf in different) > _MOST_VARYING * num_tensors:
            self._other_checkpoints.add(key)
        for leaf in different:
            self._note(key, leaf.name, is_tensor=leaf.is_tensor, is_final=is_final)

    def _note(self, key: str, name: str, *, is_tensor: bool, is_final: bool) -> None:
        """Remember one leaf that differs."""
        if not is_tensor:
            self.varying_leaves.setdefault(key, set()).add(name)
        elif is_final:
            self.differing_tensors.append(f"{key}: {name}")
        else:
            self._varying_tensors.setdefault(key, set()).add(name)


def _final_states(
    out: Path, states: dict[str, FileState], comparison: _Comparison, examiner: Examiner
) -> tuple[FileState, ...]:
    """Return the first reference's final files, their digests without the leaves that vary."""
    found = []
    for path, state in sorted(states.items()):
        if state.role is FileRole.FINAL:
            key = comparison.key_of(path)
            without = frozenset(comparison.varying_leaves.get(key, ()))
            found.append(msgspec.structs.replace(state, key=key, digest=examiner.examine(out / path, without).digest))
    return tuple(found)


def _with_acknowledgements(
    outcome: Outcome, target: Target, profile: TargetProfile, log: tuple[Operation, ...]
) -> Outcome:
    """Give a reference's looks at the checkpoints their meaning, now that it is known what acknowledges a save."""
    life = outcome.lives[-1]
    looks = {look.save: look.files for look in life.acknowledgements}
    names = FileNames(target, profile)
    locator = Locator(target, profile, is_first_life=True)
    found = []
    for operation in log:
        said = locator.locate(operation).acknowledges
        if said is not None and operation.index in looks:
            files = tuple(
                msgspec.structs.replace(state, key=names.name(state.path).key) for state in looks[operation.index]
            )
            found.append(Acknowledgement(save=said.save, step=said.step, is_printed=said.is_printed, files=files))
    life = msgspec.structs.replace(
        life,
        acknowledgements=tuple(found),
        steps=locator.steps,
        first_step=locator.first_step,
        last_step=locator.last_step,
        saves=locator.saves,
        step_records=(),
    )
    return msgspec.structs.replace(outcome, lives=(*outcome.lives[:-1], life))
