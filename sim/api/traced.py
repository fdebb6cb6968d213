"""A run as Trace Event JSON, for viewers of timelines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sim.api.explanation import chosen_of

if TYPE_CHECKING:
    from sim.model.scenario import Scenario

__all__ = ["write_timeline"]

_LOOKS = 1000


def write_timeline(
    scenarios: Mapping[str, Scenario], file: Path, *, strategy: str | None = None, begin: str = "0 s", end: str | None = None,
    step: str | None = None, limit: int = 300_000,
) -> Path:  # fmt: skip
    """Draw the strategy, or the first.  KeyError: no such strategy.  ValueError: nothing lies in the window."""
    from sim.explain.close_up import look
    from sim.timeline.samples import Samples
    from sim.timeline.tracks import timeline
    from sim.units import parse_duration
    from sim.whole_file import replace_text

    chosen = chosen_of(scenarios, strategy)
    if not chosen:
        raise ValueError("no strategy takes checkpoints: there is nothing to draw")
    name, scenario = next(iter(chosen.items()))
    begin_ns = parse_duration(begin)
    end_ns = min(scenario.run.duration_ns, scenario.run.duration_ns if end is None else parse_duration(end))
    if begin_ns >= end_ns:
        raise ValueError(f"begin {begin}: the window is over before it begins")
    step_ns = max(10**6, (end_ns - begin_ns) // _LOOKS) if step is None else parse_duration(step)
    if step_ns < 1:
        raise ValueError("step: of 0 never comes to an end: write at least '1 ms'")
    samples = Samples(step_ns, begin_ns, end_ns)
    close_up = look(scenario, attach=samples.attach)
    drawn = timeline(close_up.instances, samples.by_instance, step_ns, begin_ns, end_ns, limit)
    about = {"run": f"{scenario.name}, {name}", "question": scenario.question, "step_ns": step_ns, "left_out": drawn.left_out}
    replace_text(file, json.dumps({"traceEvents": drawn.events, "displayTimeUnit": "ms", "otherData": about}) + "\n")
    return file
