"""The failure that recovery is judged by, and the other one beside it: a lost task manager, and a task that fails in its slot."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from sim.advice.trials import TASK, TASK_MANAGER
from sim.analysis.number_texts import ms_text
from sim.protocol.recovery.outage import added_ns

if TYPE_CHECKING:
    from sim.advice.judgement import Limits, Setting
    from sim.advice.race import Race
    from sim.model.scenario import Scenario

JUDGED = {TASK_MANAGER: "recovery, task manager lost", TASK: "recovery, a task failing"}
"""Failure -> what recovery is called where there is room for it."""
_GIVES_UP = "the restart strategy gives up before there are slots"


class OtherFailure(Protocol):
    """The failure that is not judged, as the screen mentions it."""

    @property
    def breaks(self) -> bool:
        """Whether the limit on recovery is broken by the other failure."""
        ...

    def short(self) -> str:
        """A line of the screen."""
        ...

    def sentence(self) -> str:
        """The same in full."""
        ...

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        ...


@dataclass(frozen=True, slots=True)
class FailingTask:
    """The failing task beside a lost task manager that is judged: its recovery [ms], and how long the lost one leaves tasks without slots.

    None: it did not run, and today's setting is the advised one or none; `slots_ms` None: the job may fail for good.
    """

    slots_ms: tuple[float, float] | None
    recovery_ms: float | None = None
    today_ms: float | None = None
    today_gives_up: bool = False  # today's restart strategy ends before there are slots
    breaks: bool = False  # it is the milder one

    def short(self) -> str:
        before = "" if self.today_ms is None else f"{ms_text(self.today_ms)} -> "
        also = "" if self.recovery_ms is None else f"; a failing task: {before}{ms_text(self.recovery_ms)}"
        return f"{self._slots()}{also}"

    def sentence(self) -> str:
        judged = f"Recovery is judged of a lost task manager: {self._slots()}"
        if self.slots_ms is not None:
            judged += ", as heartbeats happen to fall"
        today = "" if self.today_ms is None else f" (today {ms_text(self.today_ms)})"
        also = "" if self.recovery_ms is None else f" A failing task, whose slots stay, recovers in {ms_text(self.recovery_ms)}{today}."
        now = f" Today it fails the job: {_GIVES_UP}." if self.today_gives_up else ""
        return f"{judged}.{now}{also}"

    def plain(self) -> dict[str, Any]:
        kept = {"slots_ms": self.slots_ms, "recovery_ms": self.recovery_ms, "today_ms": self.today_ms}
        return kept | {"today_gives_up": self.today_gives_up}

    def _slots(self) -> str:
        if self.slots_ms is None:
            return _GIVES_UP
        least, most = map(ms_text, self.slots_ms)
        return f"{least if least == most else f'{least} to {most}'} until there are slots"


@dataclass(frozen=True, slots=True)
class LostTaskManager:
    """The lost task manager beside a failing task that is judged: the recovery of that, the range that it adds, the limit [ms].

    It adds the time without slots, and the time to catch up with what arrives by then.
    `added_ms` None: the job may fail for good.
    """

    recovery_ms: float  # from a failing task
    added_ms: tuple[float, float] | None  # None: the job may fail for good
    limit_ms: float

    @property
    def breaks(self) -> bool:
        return self.added_ms is None or self.recovery_ms + self.added_ms[1] > self.limit_ms

    def short(self) -> str:
        if self.added_ms is None:
            return "judged of a failing task; a lost task manager may fail the job"
        least, most = self.added_ms
        sums = f"{ms_text(self.recovery_ms + least)} to {ms_text(self.recovery_ms + most)}"
        where = "beyond" if self.breaks else "within"
        return f"lost task manager: +{ms_text(least)} to {ms_text(most)}: {sums}, {where} {ms_text(self.limit_ms)}"

    def sentence(self) -> str:
        judged = "Recovery is judged of a failing task, whose slots stay."
        if self.added_ms is None:
            return f"{judged} A lost task manager may fail the job for good: the restart strategy gives up."
        least, most = self.added_ms
        sums = f"{ms_text(self.recovery_ms)} would become {ms_text(self.recovery_ms + least)} to {ms_text(self.recovery_ms + most)}"
        where = "beyond" if self.breaks else "within"
        added = f"{ms_text(least)} to {ms_text(most)}, until there are slots and what arrives by then is caught up"
        return f"{judged} A lost task manager adds {added}: {sums}, {where} {ms_text(self.limit_ms)}."

    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"breaks_limit": self.breaks}


def other_failure(race: Race, chosen: Setting) -> OtherFailure | None:
    """The failure that trials of the advised setting do not judge; None: nothing is known of it, or recovery has no limit."""
    if race.bench.failure == TASK:
        return lost_task_manager(race.scenario, chosen, race.limits)
    lost = FailingTask(race.slots_ms(chosen.name), race.failing_task_ms.get(chosen.name))
    today = race.today
    if today is None or today.name == chosen.name:
        return lost
    return replace(lost, today_ms=race.failing_task_ms.get(today.name), today_gives_up=race.slots_ms(today.name) is None)


def lost_task_manager(scenario: Scenario, setting: Setting, limits: Limits) -> LostTaskManager | None:
    """The cost of a lost task manager.  None: recovery has no limit, or ends after no failure that was tried."""
    if limits.recovery_ms is None or not math.isfinite(setting.recovery_ms):
        return None
    overheads = scenario.overheads
    added = added_ns(scenario.restart, fail_ns=overheads.fail_ns, restart_ns=overheads.restart_ns)
    slower = max(setting.recovery_ms / setting.again_ms, 1.0) if setting.again_ms > 0 else 1.0  # than without records that arrive
    added_ms = None if added is None else (added[0] / 1e6 * slower, added[1] / 1e6 * slower)
    return LostTaskManager(setting.recovery_ms, added_ms, limits.recovery_ms)
