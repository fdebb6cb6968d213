"""Restart times that `advise --restart-times` predicts, beside recorded ones.

    python -m benchmarks.restart_times

The recorded restarts lost a TaskManager.  Compared is what a planned restart has, too: from the deployment that succeeded until
all tasks ran, on a process that had run nothing of the job ("redeployed").  The jobs of `lost-task-managers` were imported before
they were killed; the import of `heap-restores` knows the rate at which its restart read state, and nothing else of it.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.measure import print_table
from sim.advice.job import prepare_bench
from sim.advice.restart_times import restart_times_report
from sim.app.verbs.advise import job_of
from sim.model.schema.history_file import write_scenario_and_history
from sim.results.formats import ms_text

__all__ = ["JOBS", "Compared", "compared", "recorded_ms"]

DATA = Path(__file__).parents[1] / "tests" / "data"
JOBS = {
    **{name: DATA / "lost-task-managers" / name for name in ("L1-lost-calm-aligned", "L2-lost-pressed-aligned")},
    "A1-adaptive-aligned": DATA / "lost-task-managers" / "A1-adaptive-aligned",
    "K7-lost-pressed-aligned": DATA / "lost-task-managers" / "K7-lost-pressed-aligned",
    **{name: DATA / "heap-restores" / f"{name}.zip" for name in ("values-100", "values-1000", "values-10000")},
}


class Compared(NamedTuple):
    """A restart of a job with today's parallelism.  Times are in ms."""

    recorded_ms: float
    redeployed_ms: float
    min_ms: float
    max_ms: float


def recorded_ms(log: Path) -> float:
    """Return the time from the last restart or rescale in a JobManager's log until all tasks ran."""
    lines = log.read_text(encoding="utf-8").splitlines()
    begun = [
        line for line in lines if re.search("from state RESTARTING to RUNNING|from Stabilizing to Transitioning", line)
    ]
    ran = [line for line in lines if "from INITIALIZING to RUNNING" in line]
    first, last = (datetime.fromisoformat(line[:23].replace(",", ".")) for line in (begun[-1], ran[-1]))
    return (last - first).total_seconds() * 1e3


def compared(name: str, folder: Path) -> Compared:
    """Return the predicted restart beside the recorded one.  `folder`: for the imported scenario."""
    source = JOBS[name]
    file, seen_ms = source / "job.yaml", None
    if source.suffix == ".zip":
        job = job_of(source)
        file, seen_ms = folder / "job.yaml", job.restart_ms
        write_scenario_and_history(job.text or "", file)
    bench = prepare_bench(file, [], [], recovery_ms=None)
    (today,) = restart_times_report(bench, None, (1,)).data["restart_times"]
    if seen_ms is None:
        seen_ms = recorded_ms(source / "jobmanager.log")
    return Compared(seen_ms, today["redeployed_ms"], *today["range_ms"])


def main() -> None:
    """Print a row per job."""
    with TemporaryDirectory() as folder:
        rows = [[name, *(ms_text(ms) for ms in compared(name, Path(folder)))] for name in JOBS]
    print_table(["job", "recorded", "redeployed", "least", "most"], rows)


if __name__ == "__main__":
    main()
