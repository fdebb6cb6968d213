"""What can be asked of runs that take place again, to be watched closely: of a study before they are kept, and of its results."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.api.progress import Notebook

if TYPE_CHECKING:
    from sim.explain.runs import Runs
    from sim.verbs.explanation import Explanation
    from sim.verbs.timeline import WrittenTimeline


class RunAgain:
    """Combinations of a scenario; the first replication of each is run again."""

    def explain(self, checkpoint: int | None = None, *, strategy: str | None = None, verify: bool = False) -> Explanation:
        """Where the time of one checkpoint went, and why; by default of the median and the slowest, of every strategy.

        `verify` simulates what each part would save.  The first replication is run again, watched closely, and not kept.
        OptionError (a ValueError): no such strategy.  LookupError: no such checkpoint.
        """
        from sim.verbs.explain_runs import explain_runs

        return explain_runs(self._again, checkpoint, strategy=strategy, verify=verify, listener=Notebook())

    def timeline(self, file: str | PathLike[str], *, strategy: str | None = None, **window: Any) -> WrittenTimeline:
        """Write what every subtask, file and barrier did as Trace Event JSON, for ui.perfetto.dev.

        `strategy`: the first by default.  `begin` and `end` (such as "30 s") narrow the window, `step` is the time between two looks,
        `limit` the number of events at most.  OptionError (a ValueError): no such strategy, or a window that shows nothing.
        """
        from sim.verbs.timeline import write_timeline

        return write_timeline(self._again, Path(file), strategy=strategy, listener=Notebook(), **window)

    @property
    @abstractmethod
    def _again(self) -> Runs:
        """The combinations, to be run and watched."""
