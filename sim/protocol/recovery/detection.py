"""The detection of a lost task manager by the senders of its heartbeats (HeartbeatManagerSenderImpl, HeartbeatMonitorImpl).

The JobMaster and the ResourceManager each send heartbeats to all task managers, at times of their own.  A process that is gone refuses the
connection: each heartbeat fails at once, and several failures in a row count as "no longer reachable" (FLINK-23209).  A machine that says
nothing, or a network that is cut, is missed when no answer has come for the timeout.
"""

from __future__ import annotations

from sim.protocol.value_class import value_class


@value_class
class Heartbeats:
    """The heartbeats of one sender.  They reach all task managers at the same times."""

    interval_ns: int
    timeout_ns: int
    failures: int | None  # in a row that count (heartbeat.rpc-failure-threshold); None: they do not count
    phase_ns: int = 0  # one of the times at which they are sent

    def missed_ns(self, lost_ns: int, *, silent: bool) -> int:
        """When a task manager that is lost at `lost_ns` counts as lost."""
        first_ns = lost_ns + (self.phase_ns - lost_ns) % self.interval_ns  # heartbeat that it does not answer
        timed_out_ns = max(lost_ns, first_ns - self.interval_ns + self.timeout_ns)
        if silent or self.failures is None:
            return timed_out_ns
        return min(timed_out_ns, first_ns + (self.failures - 1) * self.interval_ns)
