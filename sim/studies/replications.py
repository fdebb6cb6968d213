"""The runs of one setting, which differ in their seeds, and the results that are computed from all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sim.results.consequences import Consequences, consequences
from sim.results.rates import KeepingUp, Tables, falls_behind, keeping_up
from sim.results.stored import StorageUse, storage_use
from sim.results.summary import Summary, WarmUpEnd, cold_start, median_duration_ms, summarize, throughput, warm_up

if TYPE_CHECKING:
    from sim.model.scenario import Scenario
    from sim.runtime.result import Result


@dataclass(frozen=True)
class Replications:
    """The runs of one setting.  Values that several results need are computed once, at their first use."""

    results: Sequence[Result]

    @property
    def scenario(self) -> Scenario:
        """Return the scenario of the first run; the others differ in their seed only."""
        return self.results[0].scenario

    @cached_property
    def tables(self) -> list[Tables]:
        return [result.tables for result in self.results]

    @cached_property
    def ends_s(self) -> list[float]:
        return [result.ended_ns / 1e9 for result in self.results]

    @cached_property
    def warm_up(self) -> WarmUpEnd:
        """Return the warm-up that results leave out."""
        return warm_up(self.results)

    @property
    def warmup_s(self) -> float:
        return self.warm_up.ns / 1e9

    @cached_property
    def cold_start(self) -> WarmUpEnd:
        """Return the cold start, after which rates count."""
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
        return keeping_up(self.tables, self.scenario.job.edges, warmup_s=self.warmup_s, faults_s=faults_s)

    @property
    def throughput(self) -> float:
        job, from_ns = self.scenario.job, max(self.warm_up.ns, self.cold_start.ns)
        return throughput(self.tables, job.edges, warmup_s=from_ns / 1e9, without_records=job.committers)

    @cached_property
    def storage_use(self) -> StorageUse:
        return storage_use(self.tables, self.ends_s, warmup_s=self.warmup_s)

    def summary(self, *, of_first_uploads: bool = False) -> Summary:
        job = self.scenario.job
        return summarize(
            self.tables,
            job.edges,
            warmup_s=self.warmup_s,
            without_records=job.committers,
            of_first_uploads=of_first_uploads,
            rates_from_s=self.cold_start.ns / 1e9,
        )

    def consequences(self, *, committers: Collection[str] = (), died: bool = False) -> Consequences:
        return consequences(
            self.tables,
            [result.ended_ns / 1e6 for result in self.results],
            warmup_ms=self.warm_up.ns / 1e6,
            committers=committers,
            died=died,
            behind=self.falls_behind,
        )

    def median_duration_ms(self, end: WarmUpEnd) -> float:
        """Return the median duration of the checkpoints that are triggered after this warm-up or cold start."""
        return median_duration_ms(self.tables, warmup_s=end.ns / 1e9)
