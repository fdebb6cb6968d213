"""A real job, imported while it runs; the other protocols predicted; the real job switched to each; both beside one another.

The prediction is made of what the job showed under its first protocol and of nothing else, before it is switched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from benchmarks.flink.cluster import Cluster
from benchmarks.flink.job import PacedJob
from benchmarks.flink.measured import measured, simulated
from benchmarks.flink.protocols import PROTOCOLS, Protocol
from sim.advice.configuration import diff_flink_keys
from sim.advice.horizon import horizon
from sim.advice.levers import LEVERS
from sim.advice.settings import Situation, todays_setting
from sim.jobs.evidence.prediction import join_observed_predicted
from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.fetching import fetch
from sim.jobs.source.rest_answers import RestSnapshot
from sim.jobs.source.rest_job import RestJob
from sim.model.scenario import Scenario
from sim.model.schema.study import key_of, loads
from sim.model.schema.text import Reading, compose, write
from sim.runtime.simulate import simulate
from sim.studies.sweeps.design import override

__all__ = ["Experiment", "Outcome", "imported", "predict", "switch"]

SETTLE_S = 8.0  # queues fill, caches warm up: not measured
SEEDS = tuple(range(1, 9))
"""How records fall on channels is chance, and keeps a run's queues uneven for minutes: one run tells little of the next."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What runs, where, and how long each protocol is watched."""

    name: str
    job: PacedJob
    options: dict[str, str]  # of Flink, for the job
    cluster: dict[str, str]  # ... for the cluster
    task_managers: int
    slots: int = 1
    watch_s: float = 35
    settle_s: float = SETTLE_S
    protocols: Sequence[Protocol] = PROTOCOLS
    answers: Mapping[str, Any] = field(
        default_factory=dict
    )  # vertex -> keys of a scenario that REST does not tell, as its author knows them


@dataclass(frozen=True, slots=True)
class Outcome:
    table: pd.DataFrame  # protocol, then the columns of sim.jobs.evidence.prediction
    scenario: str  # as imported: a YAML file
    snapshots: dict[str, RestSnapshot]  # by protocol


def switch(
    experiment: Experiment,
    protocols: Sequence[Protocol] | None = None,
    *,
    report: Report = print,
    seeds: Sequence[int] = SEEDS,
    nice: int = 0,
) -> Outcome:
    """Run the job under each protocol (default: those of the experiment), the first being the one it is imported under.

    FlinkError, MissingDependencyError: one line.
    """
    protocols = protocols or experiment.protocols
    snapshots: dict[str, RestSnapshot] = {}
    observed: dict[str, pd.DataFrame] = {}
    predictions: dict[str, pd.DataFrame] = {}
    levers: dict[str, Pulled] = {}
    text = ""
    with Cluster(
        task_managers=experiment.task_managers, slots=experiment.slots, options=experiment.cluster, nice=nice
    ) as flink:
        savepoint = None
        for number, protocol in enumerate(protocols):
            lever = {
                key: value
                for key, value in levers.get(protocol.name, _UNCHANGED).flink.items()
                if key not in protocol.options
            }
            job = flink.submit(experiment.job, experiment.options | protocol.options | lever, restore=savepoint)
            flink.await_running(job)
            report(f"{protocol.name}: the real job runs at {flink.url}")
            time.sleep(experiment.settle_s)
            begun_ms = time.time_ns() // 10**6
            snapshot = snapshots[protocol.name] = fetch(flink.url, job, sample_s=experiment.watch_s)
            observed[protocol.name] = measured(RestJob(snapshot), since_ms=begun_ms)
            if number == 0:
                report("imported; predicting")
                text, scenario = imported(snapshot, experiment.answers)
                times = {"settle_s": experiment.settle_s, "watch_s": experiment.watch_s}
                levers = {other.name: pulled(text, scenario, other.lever) for other in protocols if other.lever}
                for i, other in enumerate(protocols):
                    later_s = i * (experiment.settle_s + experiment.watch_s)
                    changed = changed_job(text, scenario, levers.get(other.name, _UNCHANGED), later_s)
                    predictions[other.name] = predict(changed, other, **times, seeds=seeds)
            if number + 1 < len(protocols):
                savepoint = flink.stop(job)
    tables = [
        join_observed_predicted(observed[protocol.name], predictions[protocol.name]).assign(protocol=protocol.name)
        for protocol in protocols
    ]
    return Outcome(pd.concat(tables, ignore_index=True), text, snapshots)


@dataclass(frozen=True, slots=True)
class Pulled:
    """A lever of advice on an imported job: the changes of its scenario, and the keys of Flink that advice prints."""

    point: Mapping[str, Any]
    flink: Mapping[str, str]


_UNCHANGED = Pulled({}, {})


def pulled(text: str, scenario: Scenario, lever: str) -> Pulled:
    """What advice proposes for this job under the lever of this name."""
    own = next(own for own in LEVERS if own.name == lever)
    _, now = todays_setting(scenario)
    where = Situation(scenario, compose(text, Reading("imported")), now, scenario.checkpoint.interval_ns or 0, {}, {})
    change = next(iter(own.proposes(where)))
    found = diff_flink_keys(scenario, _with(text, change.point), [change])
    return Pulled(change.point, {item.key: item.advised for item in found if item.advised is not None})


def changed_job(text: str, scenario: Scenario, lever: Pulled, later_s: float) -> Scenario:
    """The imported job with a lever, and with the state that it has so much later."""
    grown = {
        key_of(("job", state.vertex, "state", "size")): f"{state.after(later_s)} B"
        for state in horizon([scenario], None, 0).states
    }
    return _with(text, {**(grown if later_s else {}), **lever.point})


def _with(text: str, point: Mapping[str, Any]) -> Scenario:
    return loads(text, name="imported", overrides=[override(key, value) for key, value in point.items()]).scenarios[0]


def imported(snapshot: RestSnapshot, answers: Mapping[str, Any] | None = None) -> tuple[str, Scenario]:
    """The scenario of a live job: its file, and what it says."""
    inference = infer_scenario(snapshot)
    document = _answered(inference.document, {"job": dict(answers or {})})
    text = write(document, inference.question, inference.comments)
    return text, loads(text, name="imported").scenarios[0]


def _answered(document: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    """The document with these values, sections merged key by key."""
    return {**document} | {
        key: _answered(document.get(key, {}), value) if isinstance(value, Mapping) else value
        for key, value in answers.items()
    }


def predict(
    scenario: Scenario, protocol: Protocol, *, watch_s: float, settle_s: float = SETTLE_S, seeds: Iterable[int] = SEEDS
) -> pd.DataFrame:
    """What the job would show under a protocol if it were started afresh and watched as the real one is; all seeds together."""
    options = replace(
        scenario.checkpoint, barriers=protocol.barriers, interruptible_timers=protocol.interruptible_timers
    )
    run = replace(scenario.run, duration_ns=round((settle_s + watch_s) * 1e9))
    runs = [replace(scenario, checkpoint=options, run=replace(run, seed=seed)) for seed in seeds]
    return pd.concat(
        [simulated(simulate(scenario, check=False), since_ms=round(settle_s * 1000)) for scenario in runs],
        ignore_index=True,
    )
