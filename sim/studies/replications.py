"""The replications of one setting, and the results that are computed from all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sim.results.consequences import Consequences, consequences
from sim.results.rates import KeepingUp, Tables, falls_behind, keeping_up
from sim.results.stored import StorageUse, storage_use
from sim.results.summary import (
    Summary,
    WarmUpEnd,
    bottleneck,
    cold_start,
    median_duration_ms,
    summarize,
    throughput_per_second,
    warm_up,
)
from sim.results.tables import first_uploads, is_periodic, job_of

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.runtime.result import Result


@dataclass(frozen=True)
class Replications:
    """The runs of one setting, which differ only in their seed.  Values that several results need are computed once."""

    results: Sequence[Result]

    @property
    def scenario(self) -> Scenario:
        """Return the scenario of the first run; the others differ in their seed only."""
        return self.results[0].scenario

    @property
    def is_stopped(self) -> bool:
        """Return True if an action stops the job, which is not the end of its data."""
        return any(action.stop is not None for action in self.scenario.actions)

    @property
    def is_finished(self) -> bool:
        """Return True if the job reaches the end of its data in each run."""
        return {result.job_status for result in self.results} == {"FINISHED"} and not self.is_stopped

    @cached_property
    def tables(self) -> list[Tables]:
        """Return the tables of each run."""
        return [result.tables for result in self.results]

    @cached_property
    def ends_s(self) -> list[float]:
        """Return the simulated time at which each run ended [s]."""
        return [result.ended_ns / 1e9 for result in self.results]

    @cached_property
    def warm_up(self) -> WarmUpEnd:
        """Return the longest warm-up of the runs, which the results of all of them leave out."""
        return warm_up(self.results)

    @property
    def warmup_s(self) -> float:
        return self.warm_up.ns / 1e9

    @cached_property
    def cold_start(self) -> WarmUpEnd:
        """Return the longest cold start of the runs; rates are measured after it."""
        return cold_start(self.results)

    @cached_property
    def falls_behind(self) -> list[bool]:
        """Return whether the backlog of each run grows."""
        return [
            falls_behind(
                result.tables, self.scenario.job.edges, warmup_s=self.warmup_s, fault_s=result.scenario.first_fault_s
            )
            for result in self.results
        ]

    @property
    def overload(self) -> KeepingUp | None:
        """Return the rates before the first fault, or None if the job keeps up."""
        faults_s = [result.scenario.first_fault_s for result in self.results]
        rates = keeping_up(self.tables, self.scenario.job.edges, warmup_s=self.warmup_s, faults_s=faults_s)
        tasks = self.tables[0]["tasks"]
        jobs = job_of(tasks)
        if rates is None or math.isnan(rates.until_s) or jobs.nunique() < 2:
            return rates
        vertex, index, share = bottleneck(tasks[jobs == jobs.min()])
        return rates._replace(busiest=(f"{vertex}[{index}]", share))

    @cached_property
    def storage_use(self) -> StorageUse:
        """Return the use of checkpoint storage (requests and bytes) after the warm-up and the first upload."""
        return storage_use(self.tables, self.ends_s, warmup_s=self.warmup_s)

    @cached_property
    def summary(self) -> Summary:
        """Return the statistics of completed checkpoints, and the rates."""
        return self._summary(of_first_uploads=False)

    @cached_property
    def first_uploads(self) -> Summary | None:
        """Return the statistics of first uploads, or None if there are none."""
        return self._summary(of_first_uploads=True) if self.summary.first_uploads else None

    @property
    def throughput_per_second(self) -> float:
        """Return the throughput of the summary, without computing the rest of it."""
        return throughput_per_second(
            self.tables,
            self.scenario.job.edges,
            without_records=self.scenario.job.committers,
            rates_from_s=max(self.warmup_s, self.cold_start.ns / 1e9),
        )

    def _summary(self, *, of_first_uploads: bool) -> Summary:
        job = self.scenario.job
        return summarize(
            self.tables,
            job.edges,
            warmup_s=self.warmup_s,
            without_records=job.committers,
            of_first_uploads=of_first_uploads,
            rates_from_s=self.cold_start.ns / 1e9,
        )

    @cached_property
    def consequences(self) -> Consequences:
        """Return the cost of failures and the visibility of output."""
        return consequences(
            self.tables,
            [result.ended_ns / 1e6 for result in self.results],
            warmup_ms=self.warm_up.ns / 1e6,
            committers=self.scenario.job.committers,
            failed_jobs=[result.job_status.startswith("FAILED") for result in self.results],
            falls_behind=self.falls_behind,
            sources=[vertex.name for vertex in self.scenario.job.vertices if vertex.source is not None],
            interval_ms=self.interval_ms,
        )

    @property
    def checkpoint_times_ms(self) -> tuple[float, float]:
        """Return (trigger of the first checkpoint that counts, time from one to the next) of the run with the fewest [ms]."""
        begin_ms, gap_ms = 0.0, 0.0
        for run, end_s in zip(self.tables, self.ends_s, strict=True):
            rows = run["checkpoints"]
            is_counted = (rows["status"] == "COMPLETED").to_numpy() & is_periodic(rows) & ~first_uploads(rows)
            triggers_ms = rows.loc[is_counted & (rows["trigger_timestamp"] >= 1e3 * self.warmup_s), "trigger_timestamp"]
            first_ms = float(triggers_ms.min()) if len(triggers_ms) else 1e3 * end_s
            mean_ms = (1e3 * end_s - first_ms) / (len(triggers_ms) + 1)  # the last one may be under way
            between_ms = float(np.diff(np.sort(triggers_ms)).mean()) if len(triggers_ms) > 1 else self.interval_ms
            begin_ms, gap_ms = max(begin_ms, first_ms), max(gap_ms, mean_ms, between_ms)
        return begin_ms, gap_ms

    @property
    def interval_ms(self) -> float:
        return (self.scenario.checkpoint.interval_ns or 0) / 1e6

    def median_duration_ms(self, end: WarmUpEnd) -> float:
        """Return the median duration [ms] of checkpoints triggered after `end`, a warm-up or a cold start; NaN if there are none."""
        return median_duration_ms(self.tables, warmup_s=end.ns / 1e9)
