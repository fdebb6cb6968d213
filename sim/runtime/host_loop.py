"""The loop of a host: one event after the other.  An event that a command causes waits until all earlier commands are carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

M = TypeVar("M")
E = TypeVar("E")
C = TypeVar("C")


def _ignore(_: object) -> None:
    """What comes after the end has no effect."""


class HostLoop(Generic[M, E, C]):
    """Feeds events to a machine and its commands to a host.  `late` gets the events that come after the end."""

    __slots__ = ("_carry_out", "_events", "_late", "_on", "machine", "over")

    def __init__(
        self,
        machine: M,
        on: Callable[[M, E], tuple[M, Sequence[C]]],
        carry_out: Callable[[C], None],
        late: Callable[[E], None] = _ignore,
    ) -> None:
        self.machine = machine
        self.over = False  # set it, and nothing is carried out any more
        self._on = on
        self._carry_out = carry_out
        self._late = late
        self._events: list[E] = []  # the first one is being heard; few: an empty deque has room for 64, and every task has loops

    @property
    def busy(self) -> bool:
        """Commands are being carried out."""
        return bool(self._events)

    def tell(self, event: E) -> None:
        if self.over:
            self._late(event)
            return
        events = self._events
        events.append(event)
        if len(events) > 1:
            return
        while events and not self.over:
            self.machine, commands = self._on(self.machine, events[0])
            for command in commands:
                if self.over:
                    break
                self._carry_out(command)
            del events[0]
