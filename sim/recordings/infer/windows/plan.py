"""What Flink's plan says of a window: its assigner with all its sizes stands in the description of the operator.

DataStream: `Window(TumblingEventTimeWindows(7000), EventTimeTrigger, ...)`, in ms.
SQL: `window=[HOP(time_col=[t], size=[10 s], slide=[2 s])]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sim.units import MS, UnitError, parse_flink_duration


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """A window, as the plan describes it.  `size_ns`: of a session its gap; `every_ns`: from one end to the next one."""

    kind: Literal["tumbling", "sliding", "session"]
    size_ns: int
    every_ns: int
    time: Literal["event", "processing", ""]  # empty: the plan does not say
    api: Literal["sql", "datastream"]
    is_local: bool  # the first stage of two: it keeps no state, and its rows leave before each barrier
    phrase: str  # of the plan


_DATASTREAM = re.compile(
    r"(?P<name>(?P<kind>Tumbling|Sliding)(?P<time>Event|Processing)TimeWindows|(?P<time2>Event|Processing)TimeSessionWindows)"
    r"\((?P<first>\d+)(?:, *(?P<second>\d+))?\)"
)
_SQL = re.compile(
    r"(?P<stage>Local|Global|)WindowAggregate\(.*?window=\[(?P<kind>TUMBLE|HOP|CUMULATE|SESSION)\((?P<what>.*?\])\)", re.DOTALL
)
_SIZES = re.compile(r"\b(max_size|size|slide|step|gap)=\[([^\]]*)\]")


def planned_window(description: str) -> PlannedWindow | None:
    """The first window of a chain; None: its description names none."""
    if found := _DATASTREAM.search(description):
        return _of_datastream(found)
    if found := _SQL.search(description):
        return _of_sql(found)
    return None


def uses_event_time(descriptions: Iterable[str]) -> bool:
    """Whether any operator of a job of SQL makes watermarks."""
    return any("WatermarkAssigner(" in text or "watermark=[" in text for text in descriptions)


def _of_datastream(found: re.Match[str]) -> PlannedWindow | None:
    first = int(found["first"]) * MS
    second = int(found["second"] or 0) * MS
    time: Literal["event", "processing"] = "event" if (found["time"] or found["time2"]) == "Event" else "processing"
    if first == 0:
        return None
    if found["kind"] == "Sliding":
        return PlannedWindow("sliding", first, second or first, time, "datastream", is_local=False, phrase=found[0])
    return PlannedWindow("tumbling" if found["kind"] else "session", first, first, time, "datastream", is_local=False, phrase=found[0])


def _of_sql(found: re.Match[str]) -> PlannedWindow | None:
    sizes: dict[str, int] = {}
    for name, text in _SIZES.findall(found["what"]):
        try:
            sizes[name] = parse_flink_duration(text)
        except UnitError:
            return None
    size = sizes.get("size") or sizes.get("max_size") or sizes.get("gap") or 0
    every = sizes.get("slide") or sizes.get("step") or size
    if size == 0:
        return None
    kinds: dict[str, Literal["tumbling", "sliding", "session"]] = {"TUMBLE": "tumbling", "SESSION": "session"}
    kind = kinds.get(found["kind"], "sliding" if every < size else "tumbling")
    phrase = (
        f"{found['stage']}WindowAggregate, {found['kind']}({', '.join(f'{name} {text}' for name, text in _SIZES.findall(found['what']))})"
    )
    return PlannedWindow(kind, size, every, "", "sql", found["stage"] == "Local", phrase)
