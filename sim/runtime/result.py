"""The end of a job instance, the segments of a run, and the result of a run."""

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


# ---- How a job instance ends.


class Outcome:
    """How a job instance ends: finished, failed without a further restart, or rescaled by its scheduler.

    `status` is RUNNING, FINISHED, or FAILED with a reason.  Each event is triggered at most once.
    """

    def __init__(self, env: simpy.Environment) -> None:
        self.status = "RUNNING"
        self.failed = env.event()
        self.finished = env.event()
        self.caught_up = env.event()  # after a failure
        self.rescaled = env.event()
        # TaskManagers that the job is rescaled without, by their numbers in the scenario
        self.missing: frozenset[int] = frozenset()

    def fail(self, reason: str) -> None:
        """End the job as failed.  It is not restarted."""
        self.status = f"FAILED: {reason}"
        if not self.failed.triggered:
            self.failed.succeed()

    def finish(self) -> None:
        """End the job as finished, once all tasks have finished."""
        self.status = "FINISHED"
        if not self.finished.triggered:
            self.finished.succeed()

    def catch_up(self) -> None:
        """Report that the job has caught up after a failure: all tasks run, and its backlog is back to its usual level."""
        if not self.caught_up.triggered:
            self.caught_up.succeed()

    def rescale(self, missing: frozenset[int]) -> None:
        """End this instance.  The job is restored as another one without the `missing` TaskManagers (their numbers in the scenario)."""
        if not self.rescaled.triggered:
            self.missing = missing
            self.rescaled.succeed()


# ---- The segments of a run: in each, one job instance runs with one parallelism, until the next segment begins.
#
# Job instances (`instances:`) divide the duration equally.  A rescaling (`rescale:`) ends a segment at its time, or when
# the savepoint taken for it completes.


class Segment(NamedTuple):
    """A part of a run in which one job instance has one parallelism."""

    scenario: Scenario  # with the job of this segment and the actions requested in it
    until_ns: int  # latest end; a job that stops with a savepoint ends earlier
    stop: Action | None = None  # stop-with-savepoint that ends the segment; the next one is restored from it
    # what it is restored from, taken in the previous segment
    start_from: Literal["checkpoint", "savepoint"] = "checkpoint"
    kind: Literal["instance", "rescale"] = "instance"


def segments(scenario: Scenario) -> list[Segment]:
    """Return the segments of a run in order of time; without `instances:` and `rescale:` there is one."""
    return _segments_of_rescales(scenario) if scenario.rescale else _segments_of_instances(scenario)


def _segments_of_instances(scenario: Scenario) -> list[Segment]:
    """Return one segment of equal length for each job instance."""
    chain, begin_ns, parts = scenario.instances, 0, []
    for number in range(chain.count):
        until_ns = scenario.run.duration_ns * (number + 1) // chain.count
        # an action belongs to exactly one segment
        actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns < until_ns)
        parts.append(Segment(replace(scenario, actions=actions), until_ns, start_from=chain.start_from))
        begin_ns = until_ns
    return parts


def _segments_of_rescales(scenario: Scenario) -> list[Segment]:
    """Return the segments between the rescalings of a run."""
    parts: list[Segment] = []
    job, begin_ns = scenario.job, 0
    start_from: Literal["checkpoint", "savepoint"] = "checkpoint"
    for rescale in (row for row in scenario.rescale if row.at_ns < scenario.run.duration_ns):
        actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns < rescale.at_ns)
        until_ns, stop = rescale.at_ns, None
        if rescale.savepoint:
            stop = Action(rescale.at_ns, "native", "no-drain")
            actions, until_ns = (*actions, stop), scenario.run.duration_ns
        parts.append(Segment(replace(scenario, job=job, actions=actions), until_ns, stop, start_from, "rescale"))
        job, begin_ns = with_parallelism(job, dict(rescale.parallelism)), rescale.at_ns
        start_from = "savepoint" if rescale.savepoint else "checkpoint"
    actions = tuple(action for action in scenario.actions if begin_ns <= action.at_ns)
    end_ns = scenario.run.duration_ns
    return [*parts, Segment(replace(scenario, job=job, actions=actions), end_ns, None, start_from, "rescale")]


# ---- The result of a run: tables, journal and manifest, and how they are stored in a folder.


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The result of one run.  `sim.results.schema` defines the columns of the tables and their units."""

    scenario: Scenario
    checkpoints: pd.DataFrame  # one row per checkpoint
    subtasks: pd.DataFrame  # one row per checkpoint and subtask
    tasks: pd.DataFrame  # one row per subtask, totals of the run
    series: pd.DataFrame  # one row per second and vertex
    commits: pd.DataFrame  # one row per commit of a transactional sink
    recoveries: pd.DataFrame  # one row per restart
    files: pd.DataFrame  # one row per file of a snapshot
    snapshots: pd.DataFrame  # one row per snapshot retained at the end, with its dependencies
    restores: pd.DataFrame  # one row per job instance restored from a snapshot of another job
    path: pd.DataFrame  # one row per part of the critical path of each checkpoint
    requests: pd.DataFrame  # one row per second in which an object store received requests
    journal: Journal
    job_status: str  # RUNNING, FINISHED, or a reason after "FAILED: " or "RESTARTING FOR EVER: "
    ended_ns: int  # end of the run: its duration, or the time when the job finished or failed without a restart
    # violated guarantees of checkpoints, each with the journal entries that show it
    violations: tuple[Violation, ...] = ()
    manifest_read: dict[str, Any] | None = None  # of a stored run; None: `manifest` derives it from the scenario
    # duplicates after restarts, which at-least-once permits
    repetitions: tuple[Violation, ...] = ()

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the run.  It is computed on demand because the rates of a long run make it large."""
        return manifest(self.scenario) if self.manifest_read is None else self.manifest_read

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.type == "pd.DataFrame"}

    @property
    def refused(self) -> list[str]:
        """A phrase for each savepoint or stop that was requested and refused: its time and the reason."""
        scenario = self.scenario
        if not scenario.actions and not any(rescale.savepoint for rescale in scenario.rescale):
            return []  # saves a pass over a long journal
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
        """Write the tables as Parquet, the manifest as JSON and the journal as JSON lines to a folder.

        Violations, if there are any, are written as text.  Each file is replaced atomically.
        """
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
