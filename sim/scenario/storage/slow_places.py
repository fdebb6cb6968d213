"""`slow:` of nodes, prefixes and disks, as it is written and as the model has it: episodes, or a measured series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Discriminator, Tag

from sim.model import storage as model
from sim.model.job import Distribution
from sim.scenario.grammar.distribution import law
from sim.scenario.grammar.fields import Axis, Positive, Share
from sim.scenario.grammar.options import Options
from sim.scenario.job.trace import TraceError
from sim.scenario.storage.slow_trace import SlowSeries, read_slowness
from sim.scenario.text.problems import DocumentPath, Reading
from sim.units import MS, format_duration


class SlowPlaces(Options, of=(model.SlowPlaces,)):
    """Each node, prefix or disk is slow for a share of its time, in episodes: bandwidth divided by the factor."""

    share: Axis[Share]
    factor: Axis[Positive]


def _slow_kind(value: object) -> str:
    return "trace" if isinstance(value, SlowSeries) or (isinstance(value, dict) and "trace" in value) else "episodes"


SlowPlacesField = Annotated[
    Annotated[SlowPlaces, Tag("episodes")] | Annotated[SlowSeries, Tag("trace")],
    Discriminator(_slow_kind),
]


def build_slow(given: SlowPlaces | SlowSeries | None, here: DocumentPath, reading: Reading, folder: Path) -> model.SlowPlaces | None:
    """Mistakes go to `reading`."""
    if given is None:
        return None
    if isinstance(given, SlowSeries):
        try:
            return model.SlowPlaces(trace=read_slowness(given, folder))
        except TraceError as error:
            reading.wrong((*here, "trace"), str(error))
            return None
    lasts = law(given.lasts, model.SlowPlaces().lasts, (*here, "lasts"), reading)
    if isinstance(given.lasts, int):
        lasts = Distribution(given.lasts, "exponential")
    if lasts.mean == 0:
        reading.wrong((*here, "lasts"), "must be more than 0")
    elif lasts.mean < MS:
        reading.wrong((*here, "lasts"), f"is {format_duration(int(lasts.mean))}: write an episode of 1 ms or more")
    return model.SlowPlaces(given.share, given.factor, lasts, given.first)
