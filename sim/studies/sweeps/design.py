"""Keys of a sweep file, its combinations of values, and the axes of the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field

from sim.model.schema.sections import OneOf, OnlyWith, Section, Texts
from sim.model.schema.text import DocumentPath, Reading
from sim.model.value_types import Duration, Number, Positive, choice

# ---- Keys of a sweep file. Errors are reported with file, line and column, as in scenario files.

Values = Annotated[list[Any], Field(min_length=1)]
"""Values of a key, as written in a scenario file; null: as the scenario has it."""


class Windows(Section):
    """Pieces of a trace that drive a source of the job, each in a run of its own.  Choose between every, at and file."""

    ONE_OF: ClassVar = (OneOf({"every": "", "at": "", "file": ""}),)
    ONLY_WITH: ClassVar = (OnlyWith(("trace", "column", "time", "time-unit", "zone", "step", "scale"), ("source",)),)

    source: str | None = None
    """The vertex whose rate the trace gives; default: none, if a table of windows has all changes."""
    trace: Annotated[str, Field(min_length=1)] | None = None
    """CSV file or table of rates, relative to the sweep file; default: the one in the table of windows."""
    column: str | None = None
    """Default: the column with a name of rates, as `rate`."""
    time: str | None = None
    """Column of the time stamps; default: the column with a name of times, as `t_s`, else the first."""
    time_unit: Annotated[str, choice("s", "ms", "us", "ns")] | None = None
    """Unit of numbers in that column; default: as its name ends, else by their size."""
    zone: str | None = None
    """Time zone of dates that name none, such as Europe/Berlin; default: UTC."""
    step: Duration | None = None
    """Rows at a fixed distance instead of time stamps."""
    scale: Number | None = None
    length: Duration | None = None
    """Length of each run; default: that in the table of windows."""
    every: Duration | None = None
    """Distance of the windows from each other, beginning at the first row."""
    at: Annotated[list[Duration], Field(min_length=1)] | None = None
    """Beginnings of the windows, counted from the first row."""
    file: str | None = None
    """A table of windows (CSV or Parquet) with the columns `window` (a name) and `from_s`.  `ckptsim traces windows` adds `file` (the trace
    of each, relative to the table) and `length_s`.  Further columns are keys of the scenario, e.g.  `faults.0.at` or
    `run.duration`.
    """
    most: Positive | None = None
    """Number of windows, evenly spread over all; default: all."""


class Answer(Section):
    """The question of the sweep; its answer is printed at the end."""

    settings: Annotated[list[str], Field(min_length=1)] | None = None
    """Keys that a user decides on; default: all that vary.  Settings are compared across all other keys, windows and replications."""
    by: str | None = None
    """Gives an answer for each value of this: another key that varies, or a column of the table of windows, e.g. `load` (low, high)."""
    show: Annotated[list[str], Field(min_length=1)]
    """Columns of the results."""
    least: str | None = None
    """Recommend the setting with the smallest mean of this column ..."""
    limits: dict[str, str] | None = None
    """... among those that keep these limits, e.g. `end_to_end_p99_ms: < 60 s`."""
    against: dict[str, Any] | None = None
    """The setting that others are compared with, run by run."""


class SweepDocument(Section):
    """A sweep file."""

    HINTS: ClassVar[Texts] = {
        "axes": "write vary:",
        "job": "a sweep names its scenario: write scenario: FILE",
        "zip": "write together:",
    }

    version: Positive | None = None
    scenario: str = Field(min_length=1)
    """A scenario file, relative to this one."""
    set_: dict[str, Any] | None = None
    """Keys of the scenario with another value in all runs."""
    vary: dict[str, Values] | None = None
    """Keys of the scenario and their values: every combination of them."""
    together: Annotated[list[dict[str, Values]], Field(min_length=1)] | None = None
    """Keys that change together: first the first values of all, then the second ones, and so on."""
    windows: Windows | None = None
    replications: Positive | None = None
    """Replications with seeds of their own; all combinations use the same seeds."""
    most: Positive | None = None
    """So many runs are meant; default: at most 20,000 combinations, and 200,000 runs with their replications."""
    answer: Answer | None = None


# ---- Points: combinations of the values in a sweep file. Each point is a set of overrides of the scenario. This code does not
# depend on the names of keys.

Point = dict[str, Any]
"""Key of the scenario -> value, as written in a scenario file."""
T = TypeVar("T")


def combinations(vary: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Return every combination of the values; the last key varies fastest."""
    return [dict(zip(vary, values, strict=True)) for values in product(*vary.values())]


def together(group: Mapping[str, Sequence[Any]], path: DocumentPath, reading: Reading) -> list[Point]:
    """Return the points of keys that change together: the first value of each key, then the second, and so on.

    If the keys have different numbers of values, add an error at `path` to `reading`, and return no points.
    """
    lengths = {key: len(values) for key, values in group.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        reading.wrong(path, f"keys that change together have equally many values: {counts}")
        return []
    return [dict(zip(group, values, strict=True)) for values in zip(*group.values(), strict=True)]


def override(key: str, value: Any) -> str:
    """Return the override ``key=value`` of a scenario.  The value is JSON, which is valid YAML."""
    return f"{key}={json.dumps(value, default=_plain)}"


def text_of(value: Any) -> str:
    """Return a value as shown in tables: ``{aligned-timeout: 1 s}`` -> ``aligned-timeout 1 s``."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {text_of(item)}" for key, item in value.items())
    return value if isinstance(value, str) else json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    """Return a value that JSON can represent."""
    return float(value) if isinstance(value, Fraction) else str(value)
