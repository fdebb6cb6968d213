"""Slots of lost task managers: how long JobMaster and ResourceManager count them, and their replacement (DeclarativeSlotPool, SlotManager).

A restart deploys into the slots that the JobMaster has.  Those of a lost task manager are among them until its heartbeats are missed.  A
deployment into one fails at once (RecipientUnreachableException), and the restart strategy counts it.  Only then others are asked for.
Their heartbeats are missed by the JobMaster itself, or by the ResourceManager, which then tells it.  The ResourceManager gives others when
it has missed the task manager too, or its provider has told it so, and there are some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from sim.protocol.machine import changed
from sim.protocol.value_class import value_class


@value_class
class LostSlots:
    """The slots of one lost task manager."""

    missed_ns: int  # the JobMaster misses their heartbeats
    released_ns: int  # the ResourceManager does not count them any more
    replaced_ns: int  # there are others
    refusal_ns: int = 0  # a deployment into them fails after so long, if they are not missed before

    def known(self, now: int) -> LostSlots:
        """The slots as a new component sees them, which knows the live task managers."""
        return changed(self, missed_ns=min(self.missed_ns, now), released_ns=min(self.released_ns, now))

    @property
    def gone_ns(self) -> int:
        """The JobMaster does not deploy into them any more: a ResourceManager that closes its connection to them tells it so."""
        return min(self.missed_ns, self.released_ns)

    @property
    def given_ns(self) -> int:
        """When the ResourceManager gives others, once it is asked."""
        return max(self.released_ns, self.replaced_ns)


@value_class
class Deployment:
    """The outcome of a deployment: all slots are there, or task managers that are `unreachable` fail it."""

    unreachable: frozenset[int]
    at_ns: int  # either of both


@value_class
class Slots:
    """The slots that were lost, until tasks are deployed into others in their place."""

    check_ns: int = 0  # a request -> slots are looked for
    lost: Mapping[int, LostSlots] = field(default_factory=dict)  # by number of the task manager

    def lose(self, task_manager: int, slots: LostSlots) -> Slots:
        """A task manager is lost, perhaps one that has replaced another."""
        return changed(self, lost={**self.lost, task_manager: slots})

    def known(self, now: int) -> Slots:
        """The slots that another JobManager knows: only task managers that live report to it."""
        lost = self.lost.items()
        return changed(self, lost={number: slots.known(now) for number, slots in lost})

    def deployment(self, task_managers: Iterable[int], now: int) -> Deployment:
        """The outcome of deploying tasks whose slots are on these task managers."""
        concerned = {number: self.lost[number] for number in task_managers if number in self.lost}
        unreachable = frozenset(number for number, slots in concerned.items() if now < slots.gone_ns)
        if unreachable:
            lost = (concerned[number] for number in unreachable)
            return Deployment(unreachable, min(min(now + slots.refusal_ns, slots.gone_ns) for slots in lost))
        if not concerned:
            return Deployment(unreachable, now)
        return Deployment(frozenset(), max(now + self.check_ns, *(slots.given_ns for slots in concerned.values())))

    def replaced(self, task_managers: Iterable[int]) -> frozenset[int]:
        """The task managers, among these, that are new processes and ran nothing of the job yet."""
        return frozenset(number for number in task_managers if number in self.lost)

    def deployed(self, task_managers: Iterable[int]) -> Slots:
        """Tasks are deployed on these, or on what replaces them."""
        left = {number: slots for number, slots in self.lost.items() if number not in set(task_managers)}
        return self if len(left) == len(self.lost) else changed(self, lost=left)
