"""What markers mean: the series of the plane, and the traits a barrier's marker has."""

from __future__ import annotations

from sim.plane.seam.interface import ANY_NUMBER, SINGLES, Trait
from sim.protocol.options import BarrierOptions

CANCELLATIONS = 1
"""The marker series of cancellation markers; a marker's number is its checkpoint."""
END_OF_DATA = SINGLES
"""The marker series of ends of data: no record follows on the channel."""
END_OF_PARTITION = SINGLES + 1
"""The marker series of ends of partitions: nothing follows on the channel."""
WATERMARKS = SINGLES + 2
"""The marker series of watermarks and of their status; a marker's number is its event time [ns], or IDLE, or ACTIVE."""
LAST_WATERMARK = ANY_NUMBER
"""Watermark.MAX_WATERMARK: no record follows it."""
IDLE = ANY_NUMBER - 1
ACTIVE = ANY_NUMBER - 2

_JOINED = {
    (priority, blocking, announced): Trait(Trait.PRIORITY * priority | Trait.BLOCKING * blocking | Trait.ANNOUNCED * announced)
    for priority in (False, True)
    for blocking in (False, True)
    for announced in (False, True)
}
"""Joined beforehand: a checkpoint asks for them once per task and edge."""


def traits(options: BarrierOptions) -> Trait:
    """How the marker of a barrier with these options moves."""
    how = options.traits
    return _JOINED[how.priority, how.blocking, how.announced]
