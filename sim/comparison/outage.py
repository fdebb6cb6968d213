"""A sentence on the cost of a killed task manager before any state is read: a range, as the phases of heartbeats are unknown."""

from __future__ import annotations

from sim.model.scenario import Scenario
from sim.protocol.recovery.outage import outages
from sim.units import format_duration

_TENTH_NS = 100_000_000


def outage_sentence(scenario: Scenario) -> str:
    """The sentence, from the restart strategy, heartbeats and slots of a scenario."""
    overheads, restart = scenario.overheads, scenario.restart
    law = outages(restart, fail_ns=overheads.fail_ns, restart_ns=overheads.restart_ns)
    ready = sorted(outage.ready_ns for outage in law if outage.ready_ns is not None)
    given_up = f"the restart strategy gives up before the JobMaster misses it in {100 * (1 - len(ready) / len(law)):.0f} % of all cases"
    if not ready:
        return f"A killed task manager fails the job: {given_up}."
    deployments = sorted(outage.deployments for outage in law if outage.ready_ns is not None)
    by = "of its end" if restart.provider != "standalone" else "by its heartbeats (heartbeat-interval)"
    sentence = f"The JobMaster hears {by} after {_range(sorted(outage.missed_ns for outage in law))} that a task manager was killed"
    fewest, most = deployments[0] - 1, deployments[-1] - 1
    if most:
        sentence += f"; {most if fewest == most else f'{fewest} to {most}'} deployments onto it fail before"
    if restart.scheduler == "adaptive":
        sentence += "; the adaptive scheduler goes on with the others if their slots are enough"
    else:
        sentence += f"; its tasks have slots again after {_range(ready)}"
    return f"{sentence}{f'; {given_up}' if len(ready) < len(law) else ''}."


def _range(sorted_ns: list[int]) -> str:
    first, last = (format_duration(round(ns / _TENTH_NS) * _TENTH_NS) for ns in (sorted_ns[0], sorted_ns[-1]))
    return first if first == last else f"{first} to {last}"
