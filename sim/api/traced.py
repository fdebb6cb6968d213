"""A run as Trace Event JSON, for viewers of timelines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sim.api.explanation import chosen_of

if TYPE_CHECKING:
    from sim.model.scenario import Scenario

__all__ = ["write_timeline"]


def write_timeline(
    scenarios: Mapping[str, Scenario], file: Path, *, strategy: str | None = None, begin: str = "0 s", end: str | None = None,
    step: str | None = None, limit: int = 300_000,
) -> Path:  # fmt: skip
    """Draw the strategy, or the first.  KeyError: no such strategy.  LookupError: none takes checkpoints.  ValueError: an empty window."""
    from sim.explain.close_up import look
    from sim.timeline.document import document, samples_in
    from sim.timeline.tracks import timeline
    from sim.units import parse_duration
    from sim.whole_file import replace_text

    name, scenario = next(iter(chosen_of(scenarios, strategy).items()))
    end_ns, step_ns = (None if text is None else parse_duration(text) for text in (end, step))
    samples = samples_in(scenario.run.duration_ns, parse_duration(begin), end_ns, step_ns)
    close_up = look(scenario, attach=samples.attach)
    replace_text(file, document(name, scenario, samples, timeline(close_up.instances, samples, limit)))
    return file
