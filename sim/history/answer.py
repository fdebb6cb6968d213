"""What `ckptsim explain` answers about a real job: the checkpoint that was asked for, or the slow ones and what they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sim.explain.account import Account
from sim.history.account import account
from sim.history.choice import SplitHistory, asked_for, split
from sim.history.history import History
from sim.history.in_common import InCommon, in_common
from sim.history.profile import Row, profile
from sim.recordings.source.recorded_job import RecordedCheckpoint


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    """The answer about the checkpoints of a real job."""

    history: History
    split: SplitHistory
    asked_for: int | None
    accounts: tuple[Account, ...]  # told in full
    profile: tuple[Row, ...]  # where the time goes: what was asked for, or the slow ones, beside the others
    in_common: InCommon | None  # None: one checkpoint was asked for


def answer(history: History, checkpoint: int | None = None) -> HistoryAnswer:
    """MissingCheckpointError: there is nothing to explain, or not this one."""
    if checkpoint is not None:
        point = asked_for(history, checkpoint)
        known = split(history)
        others = [other for other in (*known.slow, *known.others) if other.id != checkpoint]
        rows = profile(history, [point], others) if point.tasks else []
        return HistoryAnswer(history, known, checkpoint, (account(history, point),), tuple(rows), None)
    known = split(history)
    accounts = tuple(account(history, point) for point in _in_full(known))
    rows = profile(history, known.slow, known.others)
    return HistoryAnswer(history, known, None, accounts, tuple(rows), in_common(history, known.slow, known.others))


def _in_full(known: SplitHistory) -> Iterator[RecordedCheckpoint]:
    """The checkpoints that are told in full: one under way, the last that failed, the slowest that Flink kept statistics of."""
    yield from [point for point in known.under_way if point.tasks][-1:]
    yield from known.failed[-1:]
    if known.completed:
        yield max((*known.slow, *known.others), key=lambda point: (bool(point.tasks), point.end_to_end_duration))
