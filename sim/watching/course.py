"""The course of a watch: all that is to be known to go on after a restart, as values that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sim.watching.forecast import Forecast
from sim.watching.look import Look
from sim.watching.memory import MemoryFileError
from sim.watching.surprise import Surprise

MOST_SEEN = 2000
"""Numbers of checkpoints that are known to be seen: more than Flink lists."""


@dataclass(slots=True)
class Course:
    """The course of a watch so far."""

    look: Look | None = None  # the last one
    counted: Look | None = None  # the last one with new counters
    seen: list[int] = field(default_factory=list)  # checkpoints of the job
    forecast: Forecast | None = None
    tail: Surprise = field(default_factory=Surprise)
    upper: Surprise = field(default_factory=Surprise)
    lower: Surprise = field(default_factory=Surprise)
    back: Surprise = field(default_factory=Surprise)
    left_ms: int | None = None  # since when checkpoints are outside of the forecast
    left_by: str = ""  # the line by which they left
    left_by_itself: bool = False  # neither load nor state had changed
    held_from_ms: int = 0  # checkpoints that were triggered earlier are of a job with other settings
    settling: int = 0  # checkpoints after a restart that are not held to the forecast
    away_ms: int | None = None  # since when the JobManager gives no answer
    sizes: dict[str, float] = field(default_factory=dict)  # vertex -> bytes when its growth was last told
    loads: dict[str, float] = field(default_factory=dict)  # source -> records per second when its load was last told
    passes_ms: float | None = None  # when checkpoints are expected to pass the limit, as it was told
    foreseen_ms: int = 0  # when that was last looked into
    is_over: bool = False  # whether checkpoints are longer than the limit, as it was told
    counts: dict[str, int] = field(default_factory=dict)  # "looks answered", "checkpoints within", ...
    strange: str = ""  # what is wrong with the answers, as it was told
    implausible: list[str] = field(default_factory=list)  # checkpoints that were left out, as they were told

    def count(self, what: str, by: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + by

    def see(self, numbers: list[int]) -> None:
        self.seen = [*self.seen, *numbers][-MOST_SEEN:]

    def judge_again(self) -> None:
        """Checkpoints are within the forecast again."""
        self.tail = self.upper = self.lower = self.back = Surprise()
        self.left_ms, self.left_by, self.left_by_itself = None, "", False

    def begin_again(self) -> None:
        """Judge from the beginning: the forecast is another one, or none."""
        self.judge_again()
        self.passes_ms, self.foreseen_ms, self.sizes, self.loads, self.is_over = None, 0, {}, {}, False


_ADAPTER = TypeAdapter(Course)


def plain(course: Course) -> dict[str, Any]:
    return dict(_ADAPTER.dump_python(course, mode="json"))


def course_of(state: Mapping[str, Any], place: object) -> Course:
    """MemoryFileError: it is no course."""
    try:
        return _ADAPTER.validate_python(state)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise MemoryFileError(f"{place}: '{where}' is not what watch wrote: remove the file to begin anew") from None
