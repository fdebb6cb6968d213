"""A task's thread as the control plane sees it: mails run between records, longer work holds the thread.

Flink: StreamTask's mailbox.  A mail runs at the next safe point of the data plane, never inside a record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sim.plane.interface import DataPlane

__all__ = ["TaskThread"]


class TaskThread:
    def __init__(self, plane: DataPlane, task: int) -> None:
        self.plane = plane
        self.task = task
        self.occupied = False
        self._mails: deque[Callable[[], None]] = deque()

    def post(self, mail: Callable[[], None]) -> None:
        """Have `mail` run by the task thread, between records, after the mails before it."""
        self._mails.append(mail)
        if not self.occupied:
            self.plane.interrupt(self.task)

    def at_safe_point(self) -> None:
        """The plane reports that the task is between records."""
        while self._mails and not self.occupied:
            self._mails.popleft()()

    def occupy(self) -> None:
        """Keep the thread for the control plane (no effect if it is kept already).  Call at a safe point only."""
        if not self.occupied:
            self.occupied = True
            self.plane.hold(self.task)

    def vacate(self) -> None:
        """Let the thread go back to mails and records."""
        if self.occupied:
            self.occupied = False
            self.plane.release(self.task)
            if self._mails:
                self.plane.interrupt(self.task)
