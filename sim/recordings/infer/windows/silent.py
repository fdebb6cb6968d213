"""Subtasks of a source that emit nothing while others do: their partitions are silent, or there are fewer partitions than subtasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from sim.recordings.infer.draft import Draft
from sim.recordings.infer.flows import Flows

ENOUGH = 20  # records of each of the others, on average: so many are no chance


def infer_silent(draft: Draft, vertex: str, flow: Flows) -> Flows:
    """Set how many there are; the flows of the others are what the source does."""
    emitted = [own.records_out for own in flow.subtasks]
    silent = [i for i, records in enumerate(emitted) if records == 0]
    others = len(emitted) - len(silent)
    if not silent or not others or any(map(math.isnan, emitted)) or math.fsum(emitted) < ENOUGH * others:
        return flow
    which = f"subtask{'s' if len(silent) > 1 else ''} {', '.join(map(str, silent))} emitted nothing while others did"
    draft.put("source.silent", len(silent), f"{which} (they are the last ones here): {flow.source}", job=vertex)
    return replace(flow, subtasks=tuple(own for own in flow.subtasks if own.records_out > 0))


def infer_idleness(draft: Draft, flows: Mapping[str, Flows]) -> None:
    """No request tells when a silent subtask is idle.  If windows end all the same it is."""
    windows = [name for name, vertex in draft.document["job"].items() if vertex.get("window", {}).get("time") == "event"]
    ends = any(flows[name].total("records_out") > 0 for name in windows)
    question = "After how long is a subtask without records idle (withIdleness, table.exec.source.idle-timeout)?"
    for name, vertex in draft.document["job"].items():
        if windows and "silent" in vertex.get("source", {}):
            why = "1 s, because windows end although some of its subtasks are silent." if ends else "never, because no window ends."
            draft.ask("source.watermark.idle-timeout", "1 s" if ends else "0 s", question, why, job=name)
