"""The window of a timeline, and the text of its file."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sim.foreign import Readable
from sim.model.scenario import Scenario
from sim.timeline.drawing import Timeline
from sim.timeline.samples import Samples
from sim.units import MS, format_duration

_LOOKS = 1000


class WindowError(Readable, ValueError):
    """A window that shows nothing; `part` of it is wrong: begin or step."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part = part
        self.reason = reason


def samples_in(run_ns: int, begin_ns: int, end_ns: int | None, step_ns: int | None) -> Samples:
    """Samples of a window of a run.  None: to its end, and a thousand looks of 1 ms or more.  Raises WindowError."""
    end_ns = run_ns if end_ns is None else min(end_ns, run_ns)
    if begin_ns >= end_ns:
        raise WindowError("begin", f"the window ends at {format_duration(end_ns)}: nothing lies in it")
    step_ns = max(MS, (end_ns - begin_ns) // _LOOKS) if step_ns is None else step_ns
    if step_ns < 1:
        raise WindowError("step", "of 0 never comes to an end: write at least '1 ms'")
    return Samples(step_ns, begin_ns, end_ns)


def document(strategy: str, scenario: Scenario, samples: Samples, drawn: Timeline) -> str:
    """Trace Event JSON, a line."""
    about = {
        "run": f"{scenario.name}, {strategy}", "question": scenario.question, "step_ns": samples.step_ns, "left_out": drawn.left_out,
    }  # fmt: skip
    return trace_text(drawn, about)


def trace_text(drawn: Timeline, about: Mapping[str, object]) -> str:
    """`about`: what is said of the run."""
    return json.dumps({"traceEvents": drawn.events, "displayTimeUnit": "ms", "otherData": about}) + "\n"
