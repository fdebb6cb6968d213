"""What is tried to advise on a job: protocols x intervals, each once undisturbed, for what it costs, and once with a failure.

The failure comes late in an interval, when most has to be done again, and after the job has settled; the run then lasts long
enough to see whether it recovers within the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sim.model.checkpoint import Barriers
from sim.model.cluster import Debloat
from sim.model.faults import Fault, Kill, When
from sim.model.scenario import Scenario
from sim.units import format_duration

__all__ = ["AXES", "INTERVALS_NS", "PROTOCOLS", "Protocol", "todays", "trials"]

_S = 1_000_000_000
INTERVALS_NS = tuple(seconds * _S for seconds in (10, 30, 60, 180, 600))
SETTLED_NS = 60 * _S
"""Queues are full and the protocol is in its stride."""
CHECKPOINTS = 4
"""Periods an undisturbed run sees."""
LATE = (9, 10)
"""The failure comes after this part of an interval: what is done again is most of it."""

INTERVAL, PROTOCOL, TRIAL = AXES = ("interval", "protocol", "trial")
UNDISTURBED, FAILURE = "undisturbed", "failure"


@dataclass(frozen=True, slots=True)
class Protocol:
    name: str
    barriers: Barriers
    debloat: bool = False

    def on(self, scenario: Scenario) -> Scenario:
        network = scenario.cluster.network
        shrinking = (network.debloat or Debloat()) if self.debloat else None
        cluster = replace(scenario.cluster, network=replace(network, debloat=shrinking))
        return replace(scenario, cluster=cluster, checkpoint=replace(scenario.checkpoint, barriers=self.barriers))


PROTOCOLS = (  # from what changes least about a job to what changes most
    Protocol("aligned", Barriers("aligned")),
    Protocol("aligned, debloating", Barriers("aligned"), debloat=True),
    Protocol("aligned-timeout 1 s", Barriers("aligned-timeout", _S)),
    Protocol("aligned-timeout 1 s, debloating", Barriers("aligned-timeout", _S), debloat=True),
    Protocol("unaligned", Barriers("unaligned")),
)


def todays(scenario: Scenario) -> tuple[int | None, Protocol]:
    """How the job is set now: the interval [ns] (None: no checkpoints) and the protocol."""
    barriers, debloat = scenario.checkpoint.barriers, scenario.cluster.network.debloat is not None
    known = [protocol for protocol in PROTOCOLS if (protocol.barriers, protocol.debloat) == (barriers, debloat)]
    named = f"{barriers}, debloating" if debloat else str(barriers)
    return scenario.checkpoint.interval_ns, known[0] if known else Protocol(named, barriers, debloat)


def trials(scenario: Scenario, *, patience_ns: int, replications: int) -> tuple[list[Scenario], list[Scenario]]:
    """Undisturbed runs, and those with a failure; `patience_ns`: how long a recovery may take to be seen.

    Actions and faults of the scenario are left out: they are not how it is set.
    """
    now_ns, now = todays(scenario)
    intervals = sorted({*INTERVALS_NS, *([now_ns] if now_ns else [])})
    protocols = [*PROTOCOLS, *([now] if now not in PROTOCOLS else [])]
    run = replace(scenario.run, replications=replications)
    bare = replace(scenario, actions=(), faults=(), rescale=(), expect=(), run=run)
    pairs = [_pair(bare, interval_ns, protocol, patience_ns) for interval_ns in intervals for protocol in protocols]
    return [steady for steady, _ in pairs], [failed for _, failed in pairs]


def _pair(scenario: Scenario, interval_ns: int, protocol: Protocol, patience_ns: int) -> tuple[Scenario, Scenario]:
    set_up = protocol.on(replace(scenario, checkpoint=replace(scenario.checkpoint, interval_ns=interval_ns)))
    named = ((INTERVAL, format_duration(interval_ns)), (PROTOCOL, protocol.name))
    steady_ns = SETTLED_NS + CHECKPOINTS * interval_ns
    periods = -(-SETTLED_NS // interval_ns) + 1  # of them one at least completes before the failure
    failure_ns = periods * interval_ns + interval_ns * LATE[0] // LATE[1]
    fault = Fault(Kill(), When(at_ns=(failure_ns,)))
    return (
        replace(set_up, axes=(*named, (TRIAL, UNDISTURBED)), run=replace(set_up.run, duration_ns=steady_ns, warmup_ns=SETTLED_NS)),
        replace(set_up, axes=(*named, (TRIAL, FAILURE)), faults=(fault,),
                run=replace(set_up.run, duration_ns=failure_ns + patience_ns, warmup_ns=0)),
    )  # fmt: skip
