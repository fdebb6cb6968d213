"""Sentences about jobs that finish, about checkpoints that end before their job does, and about jobs that do not keep up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sim.analysis.number_texts import count_text, ms_text, per_second_text, share_text
from sim.analysis.strategies.ending import Finish
from sim.analysis.strategies.noise import is_noise
from sim.analysis.strategies.side_by_side import StrategyRow
from sim.prose import capitalised, listed

_LESS = 0.99
"""Output of so small a share of the others' is less than theirs."""
MOST_NAMED = 4
"""So many strategies are named; of more the number is told."""


def finish_sentence(lines: Sequence[StrategyRow]) -> str:
    """When the job finishes under which strategy, what passes after its last record, and who commits less; empty: it does not finish."""
    found = [(line, line.finish) for line in lines if line.finish is not None]
    if not found:
        return ""
    early, late = min(found, key=lambda item: item[1].at_s), max(found, key=lambda item: item[1].at_s)
    soon = [line for line, end in found if not _later(end, early[1])]
    text = f"The job finishes at {_at(early[1])}" + (f" with {_names(soon)}" if len(soon) < len(lines) else "")
    if _later(late[1], early[1]):
        text += f", and at {_at(late[1])} with {late[0].called}"
    if len(found) < len(lines):
        text += f"; with {_names([line for line in lines if line.finish is None])} it does not"
    return f"{text}. {_waits(found)}{_final(found)}{_open(found)}{_less(found)}"


_Found = Sequence[tuple[StrategyRow, Finish]]


def _waits(found: _Found) -> str:
    """The strategy under which most time passes without a record, if it waits for more than one checkpoint."""
    line, end = max(found, key=lambda item: item[1].idle_s)
    if end.checkpoints <= 1:
        return ""
    return f"With {line.called} {ms_text(1e3 * end.idle_s)} and {count_text(end.checkpoints)} checkpoints pass after its last record. "


def _final(found: _Found) -> str:
    """The longest of those that one checkpoint is enough for."""
    once = [(line, end) for line, end in found if end.final is not None and end.checkpoints <= 1]
    if not once:
        return ""
    line, end = max(once, key=lambda item: item[1].final_ms)
    return f"Checkpoint {end.final}{end.of} ({line.called}) holds its end and takes {ms_text(end.final_ms)}. "


def _open(found: _Found) -> str:
    none = [line for line, end in found if end.final is None]
    return f"With {_names(none)} no checkpoint holds its end. " if none else ""


def _less(found: _Found) -> str:
    """Output that some strategies commit and another does not."""
    most = max(end.committed for _, end in found)
    line, end = min(found, key=lambda item: item[1].committed)
    if end.committed >= _LESS * most:
        return ""
    return f"{capitalised(line.called)} commits {count_text(end.committed)} records of {count_text(most)}. "


def off_sentence(lines: Sequence[StrategyRow]) -> str:
    """Under which strategies no checkpoint is due, and what that means for output and failures; empty: under none."""
    off = [line for line in lines if line.without_interval]
    if not off:
        return ""
    hidden = listed([f"'{vertex}'" for vertex in off[0].hidden])
    output = f"output of {hidden} never becomes visible, and " if hidden else ""
    return f"With {_names(off)} no checkpoint is due (checkpoint.interval): {output}a failure begins the job anew. "


def stopped_sentence(lines: Sequence[StrategyRow]) -> str:
    """Under which strategies checkpoints end although the job runs on; empty: under none."""
    stopped = [line for line in lines if not math.isnan(line.last_trigger_s)]
    if not stopped:
        return ""
    first = min(stopped, key=lambda line: line.last_trigger_s)
    if not first.last_trigger_s:
        return f"With {_names(stopped)} no checkpoint is triggered. "
    when = ms_text(1e3 * first.last_trigger_s)
    since = f"none is triggered after {when}, and a failure goes back to that one"
    return f"With {_names(stopped)} checkpoints end while the job runs on: {since}. "


def _later(late: Finish, early: Finish) -> bool:
    return not is_noise(1e3 * late.at_s, 1e3 * early.at_s)


def _at(found: Finish) -> str:
    return ms_text(1e3 * found.at_s)


def _names(lines: Sequence[StrategyRow]) -> str:
    return listed([line.called for line in lines]) if len(lines) <= MOST_NAMED else f"{len(lines)} strategies"


_MOST_LABELS = 3
"""So many strategies are named; of more the number is told."""


def overload_sentence(strategies: Sequence[StrategyRow]) -> str:
    """The strategy that falls short most, in numbers, and which others do; empty: all keep up."""
    found = [(line.overload.emitted_per_second / line.overload.due_per_second, line, line.overload) for line in strategies if line.overload]
    if not found:
        return ""
    _, worst, overload = min(found, key=lambda item: item[0])
    when = "" if math.isnan(overload.until_s) else f" before anything fails (until {ms_text(1e3 * overload.until_s)})"
    rates = f"{per_second_text(overload.emitted_per_second)} of {per_second_text(overload.due_per_second)} that are due{when}"
    name, share = worst.busiest
    others = [line.label for _, line, _ in found if line is not worst]
    also = f" So are {_few(others)}." if len(others) > 1 else f" So is {others[0]}." if others else ""
    load = f"'{name}' is busy {share_text(share)}"
    return f"Overloaded: {worst.label}: sources emit {rates}, and their backlog grows; {load} over the whole run.{also}"


def _few(labels: Sequence[str]) -> str:
    return " and ".join(labels) if len(labels) <= _MOST_LABELS else f"{len(labels)} others"
