"""Finds single tensors of a checkpoint by their names."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from chaos.checkpoints.members import Member, members_of, open_member
from chaos.checkpoints.tensors import Tensor


class TensorSource:
    """Finds the tensors of a checkpoint by name, with one member open at a time."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """Look at `path`; what is open is closed with `stack`."""
        self._members = members_of(path)
        self._inner = ExitStack()
        stack.callback(self._close)
        self._current: Member | None = None
        self._tensors: dict[str, Tensor] = {}

    def _close(self) -> None:
        """Close the member that is open now, which need not be the one that was open at first."""
        self._inner.close()

    def tensor(self, name: str) -> Tensor:
        """Return the tensor called `name`; raises KeyError when no member has it."""
        if name not in self._tensors:
            self._open(self.member_of(name))
        return self._tensors[name]

    def member_of(self, name: str) -> Member:
        """Return the member that the name lies in: that with the longest prefix of it; raises KeyError."""
        fitting = [member for member in self._members if not member.prefix or name.startswith(f"{member.prefix}/")]
        if not fitting:
            raise KeyError(name)
        return max(fitting, key=lambda member: len(member.prefix))

    def _open(self, member: Member) -> None:
        """Open a member in place of the one that was open."""
        self._inner.close()
        self._inner = ExitStack()
        contents = open_member(member, self._inner)
        self._tensors = {member.leaf_name(name): tensor for name, tensor in contents.tensors.items()}
