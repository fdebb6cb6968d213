"""The job that runs on the real Flink: what can be said about it (java/ckptsim/flink/PacedJob.java does it)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

__all__ = ["PacedJob"]


@dataclass(frozen=True, slots=True)
class PacedJob:
    """Services are slept, not computed: two cores serve what is stated."""

    shape: Literal["shuffle", "join", "chain", "window"] = "shuffle"
    parallelism: int = 2
    record: int = 1000  # payload bytes; about 30 more on the wire
    rate: float = 0  # records/s of all subtasks of the source; 0: as many as there is room for
    then: float = 0  # records/s instead of `rate`, `at` seconds after the start; 0: never
    at: int = 0
    rate2: float = 0  # ... of a join's second source
    map: int = 100  # service per record [us]
    map2: int = 100  # ... of a join's second input
    sink: int = 1000
    state: int = 0  # bytes in all, of the map or join
    value: int = 1000  # bytes per key
    update: float = 1  # share of records that change their key's value
    hot: float = 0  # share of records that go to one subtask of the sink
    flush: int = 0  # before each of its barriers the sink waits [ms]
    window: int = 0  # event time [ms] after which all keys of a window fire
    keys: int = 1  # of windows
    fire: int = 0  # time of each key that fires [us]
    placement: Literal["shared", "isolated"] = "shared"  # one slot for a subtask of each vertex, or one each

    def arguments(self) -> dict[str, str | int | float]:
        """As PacedJob.java reads them."""
        return asdict(self)
