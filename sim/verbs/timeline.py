"""`timeline`: a simulated run is run again and written as Trace Event JSON, which viewers of timelines open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sim.timeline.document import WindowError, document, samples_in
from sim.timeline.tracks import timeline
from sim.units import MS, format_duration, parse_duration
from sim.verbs.explain_runs import chosen_of, watched
from sim.verbs.listener import Listener
from sim.verbs.options import OptionError, parsed
from sim.whole_file import replace_text

if TYPE_CHECKING:
    from sim.explain.runs import Runs
    from sim.plane import Engine
    from sim.timeline.samples import Samples

MOST_EVENTS = 300_000
"""Viewers open about a million."""


@dataclass(frozen=True, slots=True, repr=False)
class WrittenTimeline:
    """A file for ui.perfetto.dev, and what it shows."""

    file: Path
    strategy: str
    others: tuple[str, ...]  # strategies that it does not show
    events: int
    left_out: int  # events behind `end`, beyond the limit
    end: str  # such as "3 s"

    def __repr__(self) -> str:
        rest = f", {self.left_out} events behind it are left out" if self.left_out else ""
        return f"{self.file}: {self.strategy} until {self.end}, {self.events} events{rest}; open it with ui.perfetto.dev"


def write_timeline(
    runs: Runs, file: Path, *, strategy: str | None = None, begin: str = "0 s", end: str | None = None, step: str | None = None,
    limit: int = MOST_EVENTS, engine: Engine = "compiled", listener: Listener | None = None,
) -> WrittenTimeline:  # fmt: skip
    """Draw the strategy, or the first, between `begin` and `end` with a look at threads and queues every `step` (a thousandth).

    OptionError: no such strategy, or a window that shows nothing.  NoCheckpointError: none takes checkpoints.
    """
    listener = listener or Listener()
    (name, scenario), *others = chosen_of(runs, strategy, listener).items()
    samples = _samples(scenario.run.duration_ns, begin, end, step)
    close_up = watched(name, scenario, engine, listener, samples.attach)
    drawn = timeline(close_up.instances, samples, limit)
    replace_text(file, document(name, scenario, samples, drawn))
    cut = format_duration(drawn.end_ns // MS * MS)
    written = WrittenTimeline(file, name, tuple(other for other, _ in others), len(drawn.events), drawn.left_out, cut)
    listener.result(written)
    return written


def _samples(run_ns: int, begin: str, end: str | None, step: str | None) -> Samples:
    begin_ns = parsed("begin", begin, parse_duration)
    end_ns = None if end is None else parsed("end", end, parse_duration)
    step_ns = None if step is None else parsed("step", step, parse_duration)
    try:
        return samples_in(run_ns, begin_ns, end_ns, step_ns)
    except WindowError as error:
        raise OptionError(error.part, f"{begin}: {error.reason}" if error.part == "begin" else error.reason) from None
