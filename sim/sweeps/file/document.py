"""The keys of a sweep file: a scenario, and its variations.  Mistakes are reported with file, line and column, as in scenarios."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Discriminator, Field, Tag

from sim.scenario.grammar.fields import Duration, Number, Percent, Positive, choice
from sim.scenario.grammar.section import Section, Texts
from sim.scenario.grammar.together import OneOf, OnlyWith

Values = Annotated[list[Any], Field(min_length=1)]
"""Values as a scenario file has them."""


class Range(Section):
    """A range between two values, of the same unit or without one."""

    HINTS: ClassVar[Texts] = {"log": "write scale: log"}

    from_: Any = Field(alias="from")
    to: Any
    scale: Annotated[str, choice("linear", "log")] | None = None
    """log: as many points between 1 s and 10 s as between 10 s and 100 s; default: linear."""


def _kind(value: object) -> str:
    return "range" if isinstance(value, (dict, BaseModel)) else "list"


class Sample(Section):
    """Points that fill a space evenly instead of all combinations."""

    points: Positive
    of: dict[str, Annotated[Annotated[Range, Tag("range")] | Annotated[Values, Tag("list")], Discriminator(_kind)]] = Field(min_length=1)
    """Keys of the scenario: a range {from, to} or a list to choose from."""
    method: Annotated[str, choice("sobol", "latin-hypercube")] | None = None
    """Default: sobol."""
    seed: Positive | None = None


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
    of each, relative to the table) and `length_s`.  Further columns are keys of the scenario, e.g. `faults.0.at` or `run.duration`.
    """
    most: Positive | None = None
    """Number of windows, evenly spread over all; default: all."""


class Precision(Section):
    """Replications until the mean of a column is precise enough, for every combination."""

    of: str
    """A column of the results."""
    within: Percent
    """Half the width of its 95 % confidence interval, as a share of the mean."""
    most: Positive
    """Greatest number of replications."""


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
    racing: Positive | None = None
    """So many windows x seeds run with all settings, e.g. 12; in the others only settings that may still be the best, and `against`.
    Default: all settings run everywhere."""


class SweepDocument(Section):
    """A sweep file."""

    HINTS: ClassVar[Texts] = {"axes": "write vary:", "job": "a sweep names its scenario: write scenario: FILE", "zip": "write together:"}

    version: Positive | None = None
    scenario: str = Field(min_length=1)
    """A scenario file, relative to this one."""
    set_: dict[str, Any] | None = None
    """Keys of the scenario with another value in all runs."""
    vary: dict[str, Values] | None = None
    """Keys of the scenario and their values: every combination of them."""
    together: Annotated[list[dict[str, Values]], Field(min_length=1)] | None = None
    """Keys that change together: first the first values of all, then the second ones, and so on."""
    sample: Sample | None = None
    windows: Windows | None = None
    replications: Positive | None = None
    """Replications with seeds of their own; all combinations use the same seeds."""
    most: Positive | None = None
    """So many runs are meant; default: at most 20,000 combinations, and 200,000 runs with their replications."""
    precision: Precision | None = None
    answer: Answer | None = None
