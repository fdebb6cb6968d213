"""A run as segments: each is one job instance with one parallelism, from the end of the one before it to its own.

Instances share the duration equally; rescaling ends a segment at its time, or as soon as the savepoint taken for it is complete.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

from sim.model.actions import Action
from sim.model.scenario import Scenario
from sim.runtime.parallelism import with_parallelism


class Segment(NamedTuple):
    """The part of a run in which a job has one parallelism."""

    scenario: Scenario  # its job, and what is asked of it
    until_ns: int  # at the latest: a job that stops with a savepoint is over earlier
    stop: Action | None = None  # with which it is to stop, so that the next segment begins from that savepoint
    start_from: Literal["checkpoint", "savepoint"] = "checkpoint"  # of the segment before it
    kind: Literal["instance", "rescale"] = "instance"


def segments(scenario: Scenario) -> list[Segment]:
    return _rescaled(scenario) if scenario.rescale else _instances(scenario)


def _instances(scenario: Scenario) -> list[Segment]:
    chain, begin_ns, several = scenario.instances, 0, []
    for number in range(chain.count):
        until_ns = scenario.run.duration_ns * (number + 1) // chain.count
        actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns < until_ns)  # each second belongs to one segment
        several.append(Segment(replace(scenario, actions=actions), until_ns, start_from=chain.start_from))
        begin_ns = until_ns
    return several


def _rescaled(scenario: Scenario) -> list[Segment]:
    several: list[Segment] = []
    job, begin_ns = scenario.job, 0
    start_from: Literal["checkpoint", "savepoint"] = "checkpoint"
    for rescale in (row for row in scenario.rescale if row.at_ns < scenario.run.duration_ns):
        actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns < rescale.at_ns)
        until_ns, stop = rescale.at_ns, None
        if rescale.savepoint:
            stop = Action(rescale.at_ns, "native", "no-drain")
            actions, until_ns = (*actions, stop), scenario.run.duration_ns
        several.append(Segment(replace(scenario, job=job, actions=actions), until_ns, stop, start_from, "rescale"))
        job, begin_ns = with_parallelism(job, dict(rescale.parallelism)), rescale.at_ns
        start_from = "savepoint" if rescale.savepoint else "checkpoint"
    actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns)
    end_ns = scenario.run.duration_ns
    return [*several, Segment(replace(scenario, job=job, actions=actions), end_ns, None, start_from, "rescale")]
