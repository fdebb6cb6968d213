"""Logs of JobManagers of a real Flink of which a TaskManager was killed, and the same jobs simulated."""

import re
from datetime import datetime
from functools import cache

from sim.protocol.recovery import Heartbeats
from sim.runtime.jobmanager.task_managers import TaskManagers
from sim.runtime.simulate import simulate

SECOND = 1_000_000_000


@cache
def seconds_after(killed, log, pattern):
    """When such lines were written, in seconds since the kill."""
    stamps = [
        datetime.fromisoformat(line[:23].replace(",", "."))
        for line in log.read_text().splitlines()
        if re.search(pattern, line)
    ]
    return [at for stamp in stamps if (at := (stamp - datetime.fromisoformat(killed)).total_seconds()) > 0]


def at_recorded_heartbeats(monkeypatch, scenario, missed_s):
    """Heartbeats come when the recorded ones came; `missed_s`: sender -> when one was missed, in seconds since the kill."""
    killed_ns = scenario.faults[0].when.at_ns[0]
    phase_ns = {sender: (killed_ns + round(at_s * SECOND)) % (10 * SECOND) for sender, at_s in missed_s.items()}
    beats = lambda _, sender: Heartbeats(10 * SECOND, 50 * SECOND, 2, phase_ns[sender])  # noqa: E731
    monkeypatch.setattr(TaskManagers, "_heartbeats", beats)


def recoveries(scenario):
    """The recoveries of a simulated job; times in seconds since the first failure."""
    rows = simulate(scenario, check=False).recoveries.to_dict("records")
    times = ("failed", "detected", "running", "caught_up")
    return [row | {name: (row[name] - rows[0]["failed"]) / 1e3 for name in times} for row in rows]
