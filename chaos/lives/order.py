"""Keep the order of several writers as the reference had it: early arrivals are held until their predecessors are done.

Per file the order of operations is the same in every run; between the files of two threads it is not. Only saves in
which the reference saw more than one writing thread are ordered. A target whose threads wait for each other in another
way than the reference's (for a lock that another of them has today) would wait for ever: when an operation has been
held for `GRACE_S`, the order is given up for the rest of the life, and counted.
"""

from __future__ import annotations

import copy
from typing import Final

import msgspec

from chaos.address import Locator
from chaos.model import Address, Operation, TargetProfile

GRACE_S: Final = 1.0


class Order:
    """Tells whether an operation comes too early."""

    def __init__(self, profile: TargetProfile) -> None:
        """Take the order of each save that had several writers."""
        self._saves = [
            {_in_any_save(address): position for position, address in enumerate(save.addresses)}
            for save in profile.saves
            if save.has_several_writers
        ]
        self._save = 0
        self._done: set[Address] = set()
        self.is_given_up = False

    @property
    def is_needed(self) -> bool:
        """Tell whether there is anything to keep in order, still."""
        return bool(self._saves) and not self.is_given_up

    def rank(self, locator: Locator, operation: Operation) -> int | None:
        """Return the operation's position if it has to wait for others, None if it may go now."""
        address = copy.deepcopy(locator).locate(operation).address
        if address is None or address.save == 0:
            return None
        if address.save != self._save:
            self._save, self._done = address.save, set()
        plain = _in_any_save(address)
        order = self._order_with(plain, address.save)
        if order is None:
            return None
        position = order[plain]
        return position if any(rank < position and a not in self._done for a, rank in order.items()) else None

    def note(self, address: Address | None) -> None:
        """Remember an operation as done."""
        if address is not None and address.save:
            if address.save != self._save:
                self._save, self._done = address.save, set()
            self._done.add(_in_any_save(address))

    def _order_with(self, plain: Address, save: int) -> dict[Address, int] | None:
        """Return the order of the reference's save that has this operation, the one of the same ordinal first."""
        nearest = self._saves[save - 1 : save] + self._saves[::-1]
        return next((order for order in nearest if plain in order), None)


def _in_any_save(address: Address) -> Address:
    """Return the address without the ordinal of its save."""
    return msgspec.structs.replace(address, save=1)
