"""The time without slots for the tasks of a killed task manager: a distribution, as the phases of heartbeats are unknown.

Restart strategy, heartbeats and slots are asked in turn, as a run asks them, for each of a grid of their times.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from sim.model.faults import Restart
from sim.protocol.recovery.detection import Heartbeats
from sim.protocol.recovery.restart import restart_strategy
from sim.protocol.recovery.slots import LostSlots, Slots

_TIMES = 40
"""Times within an interval of heartbeats that are tried, for each of both senders."""
_MEDIAN_DRAW = 1 << 31


class Outage(NamedTuple):
    """The delays that follow the kill of a task manager."""

    ready_ns: int | None  # the tasks have slots; None: the job has failed before
    deployments: int
    missed_ns: int  # the JobMaster misses its heartbeats


def outages(restart: Restart, *, fail_ns: int, restart_ns: int) -> list[Outage]:
    """All outcomes, which are equally likely.  Restart delays are without jitter.

    `fail_ns`: a failure -> it is known; `restart_ns`: a delay is over -> deployment.
    """
    interval_ns = min(restart.heartbeat_interval_ns, restart.heartbeat_timeout_ns)
    phases = [interval_ns * (2 * k + 1) // (2 * _TIMES) for k in range(_TIMES)]
    return [_outage(restart, interval_ns, both, fail_ns, restart_ns) for both in product(phases, phases)]


def added_ns(restart: Restart, *, fail_ns: int, restart_ns: int) -> tuple[int, int] | None:
    """The least and the most that a lost task manager adds to the recovery from a failing task; None: the job may fail for good."""
    law = [outage.ready_ns for outage in outages(restart, fail_ns=fail_ns, restart_ns=restart_ns)]
    _, attempt = restart_strategy(restart).failed(fail_ns, _MEDIAN_DRAW)
    ready = [ready_ns for ready_ns in law if ready_ns is not None]
    if len(ready) < len(law) or attempt.delay_ns is None:
        return None
    own_ns = fail_ns + attempt.delay_ns + restart_ns
    more_ns = restart.fresh_start_ns - own_ns
    return max(min(ready) + more_ns, 0), max(max(ready) + more_ns, 0)


def _outage(restart: Restart, interval_ns: int, phases: tuple[int, int], fail_ns: int, restart_ns: int) -> Outage:
    """The outage for these phases of heartbeats.  The task manager is killed at time 0."""
    missed_ns, released_ns = (
        Heartbeats(interval_ns, restart.heartbeat_timeout_ns, restart.heartbeat_failures, phase).missed_ns(0, silent=False)
        for phase in phases
    )
    given_ns = released_ns if restart.provider == "standalone" else 0
    slots = Slots(restart.slot_check_ns).lose(0, LostSlots(missed_ns, given_ns, restart.replacement.mean))
    strategy, deployments = restart_strategy(restart), 0
    now = min(restart.connection_reset_ns, slots.lost[0].gone_ns) + fail_ns
    while True:
        strategy, attempt = strategy.failed(now, _MEDIAN_DRAW)
        if attempt.delay_ns is None:
            return Outage(None, deployments, slots.lost[0].gone_ns)
        now += attempt.delay_ns + restart_ns
        deployments += 1
        deployment = slots.deployment({0}, now)
        if not deployment.unreachable:
            return Outage(deployment.at_ns, deployments, slots.lost[0].gone_ns)
        now = deployment.at_ns + fail_ns
