"""Sources that keep in step, judged once more: how far each may read, and that it reads no further.  Laws 121 and 122.

Flink: SourceCoordinator#announceCombinedWatermark, SourceOperator#checkWatermarkAlignment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.checkers.violation import seconds

LIMITED = "sources that keep in step are told the least watermark of their group, and the drift"
WITHIN_LIMIT = "a source whose watermark is beyond its limit begins no record"

UNLIMITED = 1 << 62
"""Above every watermark: what an idle source reports, and one whose data has ended."""
_UNDER_WAY = 1
"""The record that a source has begun when it is told to wait."""


def wrong_limit(limit_ns: int, reported: Mapping[int, int], drift_ns: int) -> str | None:
    """What is wrong with a limit; `reported`: the last watermark of each source that the JobManager has heard of."""
    expected_ns = min(UNLIMITED, min(reported.values(), default=UNLIMITED) + drift_ns)
    if limit_ns == expected_ns:
        return None
    return f"it announces a limit of {_time(limit_ns)}, the least watermark and the drift are {_time(expected_ns)}"


@dataclass(slots=True)
class LimitedReading:
    """What one attempt of a source has reported and heard.

    A limit judges the watermark of `delay` samples ago; 0: the latest one.
    """

    samples: deque[int]
    limit_ns: int = UNLIMITED
    stood: int | None = field(default=None)  # records served when it came beyond its limit, while it is

    @classmethod
    def of(cls, delay: int) -> LimitedReading:
        return cls(deque(maxlen=max(1, delay)))

    def sample(self, watermark_ns: int, served: int) -> str | None:
        """Once per interval."""
        fact = self._since(served)
        self.samples.append(watermark_ns)
        self._judge(served)
        return fact

    def limit(self, limit_ns: int, served: int) -> str | None:
        """The source hears how far it may read."""
        fact = self._since(served)
        self.limit_ns = limit_ns
        self._judge(served)
        return fact

    def _judge(self, served: int) -> None:
        beyond = len(self.samples) == self.samples.maxlen and self.samples[0] > self.limit_ns
        self.stood = (served if self.stood is None else self.stood) if beyond else None

    def _since(self, served: int) -> str | None:
        if self.stood is None or served <= self.stood + _UNDER_WAY:
            return None
        beyond = f"its watermark {_time(self.samples[0])} is beyond its limit {_time(self.limit_ns)}"
        return f"{beyond}, and it reads {served - self.stood} records"


def _time(ns: int) -> str:
    return "none" if ns >= UNLIMITED else seconds(ns)
