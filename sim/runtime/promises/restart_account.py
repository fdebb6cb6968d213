"""The account of restarts: which tasks were deployed together, and what each had done when it was cancelled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sim.checkers import restarts
from sim.checkers.restarts import Allowance, Deployed, LocalCopy
from sim.checkers.state import Brought
from sim.checkers.story import Teller
from sim.checkers.violation import Violation
from sim.metrics.journal import Entry
from sim.model.faults import StorageOutage
from sim.model.randomness.quantiles import quantile_table
from sim.runtime.context import Context
from sim.runtime.ports import Ends

_INTERVALS = 4
"""So many periods may go by until checkpoints have begun again: the first may be refused, and files be deleted meanwhile."""
_SLACK_NS = 100_000_000


class RestartAccount:
    """The account of one job instance."""

    def __init__(self, context: Context, ends: Ends, teller: Teller) -> None:
        self.context = context
        self.ends = ends
        self.teller = teller
        self.deployed: list[Deployed] = []
        self._cancelled: dict[int, list[int]] = {}  # restart -> records served by each task as it began
        self._copies: list[LocalCopy] = []
        self._found: list[Violation] = []

    def restarting(self, restart: int) -> None:
        """The tasks of a restart are cancelled."""
        self._cancelled[restart] = self._served()

    def restarted(self, restored: Entry, tasks: Iterable[int]) -> None:
        """These tasks are deployed; `restored`: the row of the journal that says so."""
        deployed = Deployed(int(self.context.env.now), restored.number, frozenset(tasks))
        self.deployed.append(deployed)
        served, before = self._served(), self._cancelled.pop(restored.number, None)
        moved = {task: served[task] - before[task] for task in deployed.tasks} if before is not None else {}
        at_work = [task for task in deployed.tasks if self.ends.at_work(task)]
        self._found.extend(restarts.still_there(deployed, at_work, moved, self.teller))

    def restored(self, checkpoint: int, task: int, brought: Sequence[Brought]) -> None:
        """A task has got its state."""
        if self.context.scenario.checkpoint.state.local_recovery:
            self._look_for_copy(checkpoint, task, brought)
        stats = self.context.stats.get(checkpoint)
        if stats is not None and any(piece.copied_from is not None for piece in brought):
            self._copies.append(LocalCopy(int(self.context.env.now), task, stats.trigger_ns))

    def _look_for_copy(self, checkpoint: int, task: int, brought: Sequence[Brought]) -> None:
        """A copy on the own disk is read rather than storage."""
        afar = [piece for piece in brought if piece.kind == "keyed" and piece.copied_from is None and piece.share == 1]
        host, files = self.context.hosts[task], self.context.storage.files
        for piece in afar if len(brought) == len(afar) == 1 else ():
            stamp = piece.stamp
            name = None if stamp is None else ("local", stamp.vertex, stamp.subtask, stamp.checkpoint)
            if any(row.name == name and row.host == host and row.complete and row.deleted_ns is None for row in files):
                self._found.append(restarts.from_afar(int(self.context.env.now), checkpoint, task, self.teller))

    def found(self, turns: Sequence[Entry]) -> Iterator[Violation]:
        """At the end of the run; `turns`: the rare rows of the journal."""
        yield from self._found[:1]
        context, teller, begun = self.context, self.teller, self.context.origin is not None
        yield from restarts.beyond_the_strategy(turns, self._strategy(), teller, begun=begun)
        if not self.deployed:
            return
        layout, options = context.layout, context.scenario.restart
        tasks = len(layout.vertex)
        region_of = [0] * tasks if options.restarts_all else restarts.joined(tasks, layout.writer, layout.reader)
        yield from restarts.misjoined(turns, self.deployed, region_of, context.hosts, teller, begun=begun)
        shortest_ns = int(min(quantile_table(options.replacement)))
        yield from restarts.homeless(turns, self.deployed, context.hosts, shortest_ns, teller)
        yield from restarts.too_soon(turns, self.deployed, teller)
        yield from restarts.from_lost_disks(self._copies, turns, context.hosts, teller)
        if (within_ns := self._resumes_within_ns()) is not None:
            yield from restarts.never_again(turns, within_ns, int(context.env.now), teller)

    def _served(self) -> list[int]:
        """Counts that no restart touches."""
        return [self.context.plane.counted(task).served for task in range(len(self.context.layout.vertex))]

    def _strategy(self) -> Allowance:
        options = self.context.scenario.restart
        match options.strategy:
            case "none":
                return Allowance(0)
            case "fixed-delay":
                return Allowance(options.attempts, None, options.delay_ns)
            case "failure-rate":
                return Allowance(options.rate, options.rate_interval_ns, options.delay_ns)
            case _:  # exponential-delay: failures before the restart that they would cause are merged into it; an added one: not known
                return Allowance()

    def _resumes_within_ns(self) -> int | None:
        """The time of law 105; None: storage, a stop or a backlog may keep checkpoints away."""
        scenario = self.context.scenario
        options = scenario.checkpoint
        if options.interval_ns is None or options.interval_during_backlog_ns is not None or any(row.stop for row in scenario.actions):
            return None
        if any(isinstance(fault.what, StorageOutage) for fault in scenario.faults):
            return None
        period_ns = max(options.interval_ns, options.min_pause_ns)
        return _INTERVALS * period_ns + scenario.overheads.first_trigger_ns + _SLACK_NS
