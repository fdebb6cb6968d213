"""Whether long checkpoints come in a rhythm that the job has: the ends of its windows, or merges of RocksDB's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from sim.foreign import one_line
from sim.history.history import MS, History
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.units import format_duration

_DRAWS = 20_000
_SEED = 1
_MERGED = 4
"""Files of level 0 that RocksDB merges at once (level0_file_num_compaction_trigger); each checkpoint flushes one."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A rhythm of a job, such as the ends of its windows."""

    of: str  # what has it
    text: str  # what a checkpoint in it does
    turn: Callable[[RecordedCheckpoint], float]  # where in the rhythm a checkpoint begins: a share of one round


def rhythms(history: History) -> Iterator[Rhythm]:
    """All that a job has.  Sessions end at any time."""
    for vertex, window in history.windows.items():
        if window.kind != "session" and not window.is_local:
            every = format_duration(window.every_ns)
            text = f"begins at the same time within the {every} between two ends of windows of {one_line(vertex, 40)}"
            yield Rhythm(f"the windows of {one_line(vertex, 40)} (every {every})", text, partial(_turn_of_window, window.every_ns / MS))
    backend = "" if history.checkpoint_config is None else history.checkpoint_config.state_backend or ""
    if "RocksDB" in backend:
        text = f"is every {_MERGED}th: RocksDB merges files of level 0 then"
        yield Rhythm(f"RocksDB's merges (every {_MERGED}th)", text, _turn_of_merge)


def _turn_of_window(every_ms: float, point: RecordedCheckpoint) -> float:
    return point.trigger_timestamp % every_ms / every_ms


def _turn_of_merge(point: RecordedCheckpoint) -> float:
    return point.id % _MERGED / _MERGED


@lru_cache(maxsize=1)
def chances(history: History) -> tuple[tuple[Rhythm, float], ...]:
    """The rhythms of a history and their `chance` over its usual checkpoints.  Each step of each path asks; the draws are made once."""
    return tuple((rhythm, chance(rhythm, history.usual)) for rhythm in rhythms(history))


def chance(rhythm: Rhythm, points: Sequence[RecordedCheckpoint]) -> float:
    """The probability that durations dealt out at random would gather at one turn of the rhythm as much as these do.

    They gather as the length of the mean of unit vectors at the turns, weighted by what each checkpoint took beyond the shortest
    (Rayleigh's test, by permutation).
    """
    took = np.array([point.end_to_end_duration for point in points], dtype=float)
    weights = took - took.min()
    vectors = np.exp(2j * np.pi * np.array([rhythm.turn(point) for point in points]))
    if not weights.any() or np.ptp(np.abs(vectors - vectors[0])) < 1e-9:
        return 1.0
    dealt = np.random.default_rng(_SEED).permuted(np.tile(weights, (_DRAWS, 1)), axis=1)
    as_much = np.abs(dealt @ vectors) >= abs(weights @ vectors) - 1e-9
    return float((1 + as_much.sum()) / (1 + _DRAWS))
