"""What a lost task manager adds to the recovery that trials judge: their failure is a failing task, whose slots stay."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sim.analysis.number_texts import ms_text
from sim.protocol.recovery.outage import added_ns

if TYPE_CHECKING:
    from sim.advice.judgement import Limits, Setting
    from sim.model.scenario import Scenario


@dataclass(frozen=True, slots=True)
class LostTaskManager:
    """The recovery from a failing task, the range that a lost task manager adds (None: the job may fail for good), the limit; in ms."""

    recovery_ms: float
    added_ms: tuple[float, float] | None
    limit_ms: float

    @property
    def breaks(self) -> bool:
        return self.added_ms is None or self.recovery_ms + self.added_ms[1] > self.limit_ms

    def short(self) -> str:
        """A line of the screen."""
        if self.added_ms is None:
            return "judged of a failing task; a lost task manager may fail the job"
        least, most = self.added_ms
        sums = f"{ms_text(self.recovery_ms + least)} to {ms_text(self.recovery_ms + most)}"
        return f"lost task manager: +{ms_text(least)} to {ms_text(most)}: {sums}, beyond {ms_text(self.limit_ms)}"

    def sentence(self) -> str:
        judged = "Recovery is judged of a failing task, whose slots stay."
        if self.added_ms is None:
            return f"{judged} A lost task manager may fail the job for good: the restart strategy gives up."
        least, most = self.added_ms
        sums = f"{ms_text(self.recovery_ms)} would become {ms_text(self.recovery_ms + least)} to {ms_text(self.recovery_ms + most)}"
        where = "beyond" if self.breaks else "within"
        return f"{judged} A lost task manager adds {ms_text(least)} to {ms_text(most)}: {sums}, {where} {ms_text(self.limit_ms)}."

    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"breaks_limit": self.breaks}


def lost_task_manager(scenario: Scenario, setting: Setting, limits: Limits) -> LostTaskManager | None:
    """None: recovery has no limit, or ends after no failure that was tried."""
    if limits.recovery_ms is None or not math.isfinite(setting.recovery_ms):
        return None
    overheads = scenario.overheads
    added = added_ns(scenario.restart, fail_ns=overheads.fail_ns, restart_ns=overheads.restart_ns)
    return LostTaskManager(setting.recovery_ms, None if added is None else (added[0] / 1e6, added[1] / 1e6), limits.recovery_ms)
