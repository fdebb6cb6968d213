"""What a failure costs before any state is read: of a lost task manager a range, for heartbeats fall by chance.

Trials lose a task manager once per run.  A few runs do not show the whole range, so the law of the outage says how wide it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from sim.protocol.recovery.outage import outages

if TYPE_CHECKING:
    from sim.model.faults import Restart
    from sim.model.scenario import Scenario


def slots_ms(scenario: Scenario) -> tuple[float, float] | None:
    """A task manager is lost -> its tasks have slots again: the least and the most; None: the job may fail for good before."""
    return _slots_ms(scenario.restart, scenario.overheads.fail_ns, scenario.overheads.restart_ns)


@lru_cache(maxsize=256)
def _slots_ms(restart: Restart, fail_ns: int, restart_ns: int) -> tuple[float, float] | None:
    ready = [outage.ready_ns for outage in outages(restart, fail_ns=fail_ns, restart_ns=restart_ns)]
    known = [ready_ns for ready_ns in ready if ready_ns is not None]
    return (min(known) / 1e6, max(known) / 1e6) if len(known) == len(ready) else None
