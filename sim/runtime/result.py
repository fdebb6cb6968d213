"""The result of a run, and of the segments between restarts."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import simpy

from sim.invariants.violation import Violation, time_text
from sim.model.files import replace_file
from sim.model.scenario import Action, Scenario
from sim.protocol.options import FailureReason
from sim.results.journal import Happening, Journal
from sim.runtime.host_loop import with_parallelism
from sim.runtime.manifest import manifest

if TYPE_CHECKING:
    import pandas as pd


# ---- How a job instance comes to its end: finished, failed for good, or rescaled by its scheduler.


class Outcome:
    """The end of a job instance: finished, failed for good, or rescaled by its scheduler."""

    def __init__(self, env: simpy.Environment) -> None:
        self.status = "RUNNING"
        self.failed = env.event()
        self.finished = env.event()
        self.caught_up = env.event()  # after a failure
        self.rescaled = env.event()
        # TaskManagers that the job is rescaled without, by their numbers in the scenario
        self.missing: frozenset[int] = frozenset()

    def fail(self, reason: str) -> None:
        """The job fails; nothing restarts it."""
        self.status = f"FAILED: {reason}"
        if not self.failed.triggered:
            self.failed.succeed()

    def finish(self) -> None:
        """All tasks have finished."""
        self.status = "FINISHED"
        if not self.finished.triggered:
            self.finished.succeed()

    def catch_up(self) -> None:
        """The job has recovered from a failure: all tasks run, and as much waits as usual."""
        if not self.caught_up.triggered:
            self.caught_up.succeed()

    def rescale(self, missing: frozenset[int]) -> None:
        """The job goes on as another instance, on all TaskManagers but these."""
        if not self.rescaled.triggered:
            self.missing = missing
            self.rescaled.succeed()


# ---- A run as segments: each is one job instance with one parallelism, from the end of the one before it to its own.
#
# Instances share the duration equally; rescaling ends a segment at its time, or as soon as the savepoint taken for it
# is complete.


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
        # each second belongs to one segment
        actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns < until_ns)
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


# ---- What a simulation gives back: tables, the journal, the manifest; and how they are kept in a folder.


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """One run.  Columns and units of the tables: `sim.results.schema`."""

    scenario: Scenario
    checkpoints: pd.DataFrame  # one row per checkpoint
    subtasks: pd.DataFrame  # one row per checkpoint and subtask
    tasks: pd.DataFrame  # one row per subtask, totals of the run
    series: pd.DataFrame  # one row per second and vertex
    commits: pd.DataFrame  # one row per commit of a transactional sink
    recoveries: pd.DataFrame  # one row per restart
    files: pd.DataFrame  # one row per file of a snapshot
    snapshots: pd.DataFrame  # one row per snapshot kept at the end: what it depends on, what breaks with it
    restores: pd.DataFrame  # one row per job instance that began from a snapshot
    path: pd.DataFrame  # one row per part of the critical path of each checkpoint that is over
    requests: pd.DataFrame  # one row per second in which an object store was asked for something
    journal: Journal
    job_status: str  # RUNNING, FINISHED, or FAILED or RESTARTING FOR EVER: and the reason
    ended_ns: int  # when the run was over: its duration, or when the job finished or failed for good
    violations: tuple[Violation, ...] = ()  # of what checkpoints promise; each tells its story
    manifest_read: dict[str, Any] | None = None  # of a run that was kept; None: this one's
    # what restarts did twice and were allowed to: at least once is what was asked for
    repetitions: tuple[Violation, ...] = ()

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run was, written down when it is asked for: the rates of a day are long."""
        return manifest(self.scenario) if self.manifest_read is None else self.manifest_read

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.type == "pd.DataFrame"}

    @property
    def refused(self) -> list[str]:
        """What users asked of the job in vain: savepoints and stops."""
        scenario = self.scenario
        if not scenario.actions and not any(rescale.savepoint for rescale in scenario.rescale):
            return []  # a journal is long
        rows = (row for row in self.journal if row.happening is Happening.REFUSED and row.number)
        return [
            f"a savepoint or stop at {time_text(row.time_ns)}: {FailureReason[row.detail].text.rstrip('.')}"
            for row in rows
        ]

    def __repr__(self) -> str:
        status = self.checkpoints["status"].value_counts()
        counts = ", ".join(f"{count} {name}" for name, count in status.items()) or "none"
        shape = ", ".join(f"{name} {len(table)}" for name, table in self.tables.items())
        broken = f"\n{len(self.violations)} violations of what checkpoints promise" if self.violations else ""
        return (
            f"Result({self.scenario.name}, {self.scenario.checkpoint.barriers}: job {self.job_status} at {self.ended_ns / 1e9:g} s)\n"
            f"checkpoints: {counts}\nrows: {shape}{broken}"
        )

    def write(self, folder: Path) -> None:
        """Keep tables as parquet, manifest and journal as JSON.  Every file appears whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in self.tables.items():
            replace_file(folder / f"{name}.parquet", partial(table.to_parquet, index=False), others_follow=True)
        text = json.dumps({**self.manifest, "job_status": self.job_status}, indent=1, sort_keys=True)
        replace_file(folder / "manifest.json", lambda path: path.write_text(text + "\n"), others_follow=True)
        stories = "\n\n".join(map(str, self.violations))
        if stories:
            replace_file(folder / "violations.txt", lambda path: path.write_text(stories + "\n"), others_follow=True)
        else:
            (folder / "violations.txt").unlink(missing_ok=True)  # of an earlier run
        rows = "".join(json.dumps(entry) + "\n" for entry in self.journal)
        replace_file(folder / "journal.jsonl", lambda path: path.write_text(rows))
