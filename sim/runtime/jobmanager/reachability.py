"""Task managers that are cut off: what a message between the JobManager and a task waits for."""

from __future__ import annotations

from collections.abc import Sequence

import simpy


class Reachability:
    """The task managers that are cut off.  `hosts`: the task manager of each task."""

    def __init__(self, env: simpy.Environment, hosts: Sequence[int]) -> None:
        self.env = env
        self.hosts = hosts
        self._cut_off_until_ns: dict[int, int] = {}  # by task manager

    def cut_off(self, host: int, until_ns: int) -> None:
        self._cut_off_until_ns[host] = max(until_ns, self._cut_off_until_ns.get(host, 0))

    def delay_ns(self, task: int) -> int:
        """What a message between the JobManager and a task waits for its network now."""
        if not self._cut_off_until_ns:
            return 0
        return max(0, self._cut_off_until_ns.get(self.hosts[task], 0) - int(self.env.now))

    def go_on(self, before: Reachability) -> None:
        """A new job instance repairs no network."""
        self._cut_off_until_ns = {host: ns for host, ns in before._cut_off_until_ns.items() if ns > self.env.now}
