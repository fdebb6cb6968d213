"""Subtasks that need longer for a record than the others of their vertex: the first thing to look at, as it slows every checkpoint.

Flink's answers have the busy time and the records of each subtask.  Busy time per record is the work of a record, whatever share of the
records a subtask gets.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from sim.analysis.number_texts import share_text
from sim.foreign import one_line
from sim.history.history import History, SubtaskId

_SLOWER = 1.5
"""A subtask that waits at times needs up to a third longer for the same work: it wakes up, and finds caches cold."""
_LEAST_BUSY = 0.3
"""A subtask that is busy for a smaller share of its time holds nothing up."""
_FEWEST_RECORDS = 1000
_NAMED = 4


class SlowSubtask(NamedTuple):
    """A subtask with its time per record, and the median of the others of its vertex."""

    subtask: SubtaskId
    us_per_record: float
    others_us_per_record: float

    @property
    def phrase(self) -> str:
        return f"{self.us_per_record:,.0f} us per record, the other subtasks {self.others_us_per_record:,.0f} us (median)"


def slow_subtasks(history: History) -> list[SlowSubtask]:
    """The slowest first.  Empty: none is, or the source has no busy times."""
    return sorted(_found(history), key=lambda slow: -slow.us_per_record / slow.others_us_per_record)


def _found(history: History) -> Iterator[SlowSubtask]:
    threads, served = history.threads, history.served
    us = {name: 1000 * threads[name].busy_ms / served[name] for name in threads if served.get(name, 0) >= _FEWEST_RECORDS}
    for name, own in us.items():
        others = [other for place, other in us.items() if place != name and place[0] == name[0]]
        if others and own > _SLOWER * median(others) > 0 and threads[name].busy >= _LEAST_BUSY:
            yield SlowSubtask(name, own, median(others))


def slow_subtasks_text(history: History) -> str:
    """A sentence about the subtasks that need longer for a record.  Empty: none does."""
    found = slow_subtasks(history)[:_NAMED]
    texts = "; ".join(
        f"{one_line(vertex, 24)}[{index}] (task manager {one_line(history.task_managers.get((vertex, index), 'not known'), 40)}) "
        f"needs {slow.phrase}, and is busy {share_text(history.threads[vertex, index].busy)} of its time"
        for slow in found for vertex, index in (slow.subtask,)
    )  # fmt: skip
    why = "How many records they get does not explain it: look at what these records and keys are, and at the process, disk and host."
    return f"Slow subtasks: {texts}. {why}" if found else ""
