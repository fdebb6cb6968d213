"""Levers about the time between a lost task manager and slots in its place: heartbeats, and the restart strategy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sim.advice.failures import slots_ms
from sim.advice.levers.lever import OUTAGE, Change, Lever, Situation
from sim.model.catalogs.restarts import RESTARTS as KINDS
from sim.model.faults import Restart
from sim.sweeps.file.design import Point
from sim.units import SECOND, format_duration

if TYPE_CHECKING:
    from sim.model.scenario import Scenario

_CONFIG = "nightlies.apache.org/flink/flink-docs-stable/docs/deployment/config"
SOON_NS = 2 * SECOND
"""Heartbeats so often, and restarts after no longer."""
WITHOUT_END = 2**31 - 1
"""Attempts: Flink's largest integer."""
OFTEN = 100
"""Failures of a rate: more than deployments fail while a lost task manager is not missed."""
_PATIENT = {"attempts": ("restarts without end", WITHOUT_END), "rate": (f"{OFTEN} failures tolerated", OFTEN)}


def _heartbeats(situation: Situation) -> Iterator[Change]:
    restart, point, names = situation.scenario.restart, Point(), []
    if restart.heartbeat_interval_ns > SOON_NS:
        point["restart.heartbeat-interval"] = format_duration(SOON_NS)
        names.append(f"heartbeats every {format_duration(SOON_NS)}")
    if restart.heartbeat_failures is None:
        point["restart.heartbeat-failures"] = Restart().heartbeat_failures
        names.append("failing heartbeats count")
    if point:
        yield Change(HEARTBEATS, ", ".join(names), point)


def _restarts(situation: Situation) -> Iterator[Change]:
    """The strategy stays: it does not give up before there are slots, and does not wait for long once there are."""
    scenario, restart = situation.scenario, situation.scenario.restart
    kind = KINDS[restart.strategy]
    if slots_ms(scenario) is None:
        if not kind.limit:
            yield Change(RESTARTS, f"restart strategy {Restart().strategy}", {"restart.strategy": Restart().strategy})
        else:
            name, value = _PATIENT[kind.limit]
            yield Change(RESTARTS, name, {f"restart.{kind.limit}": value})
        return
    long = [name for name in kind.delays if getattr(restart, f"{name}_ns") > SOON_NS]
    shorter: dict[str, Any] = {f"{name}_ns": SOON_NS for name in long}
    if long and _lasts(scenario, replace(restart, **shorter)):
        soon = format_duration(SOON_NS)
        name = f"restart delays up to {soon}" if len(kind.delays) > 1 else f"restart delay {soon}"
        yield Change(RESTARTS, name, {f"restart.{name}": soon for name in long})


def _lasts(scenario: Scenario, restart: Restart) -> bool:
    """Whether a strategy goes on until there are slots."""
    return slots_ms(replace(scenario, restart=restart)) is not None


HEARTBEATS = Lever(
    "heartbeats", frozenset({OUTAGE}), _heartbeats,
    costs="more messages; a network that fails for two intervals loses healthy task managers",
    short_caution="heartbeat.interval is the cluster's: all its jobs get it",
    caution="heartbeat.interval is an option of the cluster, and all its jobs get it; two that fail in a row lose a task manager",
    source=f"{_CONFIG}/#heartbeat-interval, FLINK-23209",
)  # fmt: skip
RESTARTS = Lever(
    "restart strategy", frozenset({OUTAGE}), _restarts, costs="a job that fails again and again restarts more often",
    source="nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/task_failure_recovery",
)  # fmt: skip
