"""Whether long checkpoints come in a rhythm that the job has: the ends of its windows, or merges of RocksDB's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from sim.foreign import one_line
from sim.history.history import History
from sim.recordings.infer.windows.inferred import timers_of
from sim.recordings.infer.windows.rhythm import gathering
from sim.recordings.infer.windows.unknown_rhythm import UnknownRhythm, unknown_rhythm
from sim.recordings.source.recorded_job import RecordedCheckpoint
from sim.units import MS, format_duration

RARE = 0.05
"""A rhythm is told where chance explains it less often than this."""
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
    yield from _timers(history)
    if history.is_on_disk:
        text = f"is every {_MERGED}th: RocksDB merges files of level 0 then"
        yield Rhythm(f"RocksDB's merges (every {_MERGED}th)", text, _turn_of_merge)


def _timers(history: History) -> Iterator[Rhythm]:
    """No plan names timers of a keyed function: the sizes of its state rise and fall with them."""
    for vertex in history.vertices:
        tooth = None if vertex.name in history.windows or history.is_on_disk else timers_of(history, vertex)
        if tooth is not None:
            name, every = one_line(vertex.name, 40), format_duration(round(tooth.period_ms) * MS)
            text = f"begins at the same time within the {every} in which the state of {name} rises and falls"
            yield Rhythm(
                f"timers of {name} that fire together (its state falls every {every})", text, partial(_turn_of_window, tooth.period_ms)
            )


def _turn_of_window(every_ms: float, point: RecordedCheckpoint) -> float:
    return point.trigger_timestamp % every_ms / every_ms


def _turn_of_merge(point: RecordedCheckpoint) -> float:
    return point.id % _MERGED / _MERGED


@lru_cache(maxsize=1)
def chances(history: History) -> tuple[tuple[Rhythm, float], ...]:
    """The rhythms of a history and their `chance` over its usual checkpoints.  Each step of each path asks; the draws are made once."""
    return tuple((rhythm, chance(rhythm, history.usual)) for rhythm in rhythms(history))


@lru_cache(maxsize=1)
def unnamed(history: History) -> UnknownRhythm | None:
    """A rhythm that nothing Flink tells of the job has.  None: there is none, or one that the job has explains long checkpoints."""
    if any(p < RARE for _, p in chances(history)):
        return None
    found = unknown_rhythm(
        [point.trigger_timestamp for point in history.usual], [point.end_to_end_duration for point in history.usual]
    )  # fmt: skip
    return found if found is not None and found.p < RARE else None


def unnamed_text(rhythm: UnknownRhythm) -> str:
    """The rhythm as a clause: ``come every 9.1 s (2.6 s and 1.6 s would look the same ...``"""
    alike = " and ".join(_about_text(period_ms) for period_ms in rhythm.others_ms)
    return (
        f"come every {_about_text(rhythm.period_ms)} ({alike} would look the same at these checkpoints): timers, windows, "
        "or something beside the job that Flink does not tell of"
    )


def _about_text(period_ms: float) -> str:
    return f"{period_ms / 1000:.3g} s"


def chance(rhythm: Rhythm, points: Sequence[RecordedCheckpoint]) -> float:
    """The probability that durations dealt out at random would gather at one turn of the rhythm as much as these do."""
    return gathering([rhythm.turn(point) for point in points], [point.end_to_end_duration for point in points])
