"""What a simulation gives back: tables, the journal, the manifest; and how they are kept in a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.checkers.violation import Violation, at
from sim.metrics.journal import Happening, Journal
from sim.model.scenario import Scenario
from sim.protocol.reasons import FailureReason
from sim.runtime.run.manifest import manifest
from sim.whole_file import replace_file

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """One run.  Columns and units of the tables: `sim.metrics.schema`."""

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
    repetitions: tuple[Violation, ...] = ()  # what restarts did twice and were allowed to: at least once is what was asked for

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run was, written down when it is asked for: the rates of a day are long."""
        return manifest(self.scenario) if self.manifest_read is None else self.manifest_read

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        return {
            "checkpoints": self.checkpoints, "subtasks": self.subtasks, "tasks": self.tasks, "series": self.series, "commits": self.commits,
            "recoveries": self.recoveries, "files": self.files, "snapshots": self.snapshots, "restores": self.restores,
            "path": self.path, "requests": self.requests,
        }  # fmt: skip

    @property
    def refused(self) -> list[str]:
        """What users asked of the job in vain: savepoints and stops."""
        scenario = self.scenario
        if not scenario.actions and not any(rescale.savepoint for rescale in scenario.rescale):
            return []  # a journal is long
        rows = (row for row in self.journal if row.happening is Happening.REFUSED and row.number)
        return [f"a savepoint or stop at {at(row.time_ns)}: {FailureReason[row.detail].text.rstrip('.')}" for row in rows]

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
