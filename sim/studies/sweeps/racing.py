"""Adaptive sweeps: replications until a precision is reached, and racing; and the files of stored rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sim.model.scenario import Scenario
from sim.results.estimates import half_width
from sim.results.formats import TextTable
from sim.results.sweep_answers import Rule, losers_of
from sim.results.sweep_effects import SEEDS, planned, scored
from sim.studies.cells import OUTCOME, PROVENANCE, Row, table
from sim.studies.plan import Cell, CellPlan, planned_of
from sim.studies.sweeps.design import Precision
from sim.studies.sweeps.sweep_file import Question

# ---- `precision:` of a sweep file: replications are added until the half width of the mean's 95 % confidence interval (Student's
# t) is below a share of the mean. It decreases with the square root of their number (Law, Simulation Modeling and Analysis,
# 9.4).

FASTEST = 2
"""Maximum growth of the number of replications per round, since first estimates of a spread are rough."""


def more_replications(scenarios: Sequence[Scenario], results: pd.DataFrame, precision: Precision) -> list[Scenario]:
    """The scenarios with the replications they seem to need; unchanged ones if all means are precise enough.

    What had not ended when its run did counts with the time it had taken.  A combination without a value in some run
    gets no further replications: a job that failed, or that completed no checkpoint, has no mean.
    """
    axes = [axis for axis, _ in scenarios[0].axes]
    values: dict[tuple[str, ...], list[float]] = {}
    rows = planned(results)
    seen = scored(results, precision.of)
    for key, value, lost in zip(
        rows[axes].itertuples(index=False, name=None), seen["value"], seen["lost"], strict=True
    ):
        if lost or not pd.isna(value):
            values.setdefault(key, []).append(float(value))
    return [
        _with_more(scenario, values.get(tuple(value for _, value in scenario.axes), []), precision)
        for scenario in scenarios
    ]


def _with_more(scenario: Scenario, values: Sequence[float], precision: Precision) -> Scenario:
    now = scenario.run.replications
    if not values or np.isnan(values).any():
        return scenario
    goal, width = precision.within / 100 * abs(float(np.mean(values))), half_width(values)
    if width <= goal:
        return scenario
    needed = min(
        ceil(now * (width / goal) ** 2) if goal and np.isfinite(width) else now * FASTEST, now * FASTEST, precision.most
    )
    return replace(scenario, run=replace(scenario.run, replications=max(now, needed)))


# ---- Files of rows. The name of a file is the checksum of its bytes, which is verified before the file is parsed: a damaged file
# may make a parser allocate any amount of memory. Files of other versions, with other columns, are rejected.

_SUFFIX = ".parquet"
_DIGEST_BYTES = 16
# 20: of versions before the checksum
_NAME = re.compile(rf"[0-9a-f]{{20}}(?:[0-9a-f]{{{2 * _DIGEST_BYTES - 20}}})?{re.escape(_SUFFIX)}")
_COLUMNS = pa.schema(list((OUTCOME | PROVENANCE).items()))
GROUP = 20_000
"""Rows per row group, which are read together."""
KEY = ("cell", "status")
"""Columns that tell which cells have a row; a sweep keeps only these in memory."""


class BatchError(ValueError):
    """Raised for a file whose rows must not be used.  The message is a short reason."""


class GoneError(RuntimeError):
    """Raised if a file no longer exists, because another command has joined it with others."""


def is_batch_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def packed(rows: Sequence[Row]) -> tuple[str, bytes]:
    """(file name, content)."""
    return packed_table(table(rows, OUTCOME | PROVENANCE))


def packed_table(rows: pa.Table) -> tuple[str, bytes]:
    """(file name, content)."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=GROUP)
    content = sink.getvalue().to_pybytes()
    return _digest(content) + _SUFFIX, content


def checked(path: Path) -> pa.Table:
    """Verify a file, and return its columns KEY.  BatchError: it is damaged.  OSError: it cannot be read."""
    content = path.read_bytes()
    if _digest(content) + _SUFFIX != path.name:
        raise BatchError("its content does not match the checksum in its name")
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        if not file.schema_arrow.equals(_COLUMNS):
            raise BatchError("has columns of another version")
        found = file.read(columns=list(KEY))
    except (pa.ArrowException, OSError):
        raise BatchError("is no table") from None
    named = pc.and_(
        pc.greater(pc.binary_length(found["cell"]), 0), pc.is_in(found["status"], pa.array(["ok", "error"]))
    )
    if not pc.all(pc.fill_null(named, fill_value=False), min_count=0).as_py():
        raise BatchError("has rows of no cell or without a status")
    return found


def read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return columns (None: all) of a verified file.  GoneError: it no longer exists."""
    try:
        return pq.read_table(path, columns=None if columns is None else list(columns), partitioning=None)
    except FileNotFoundError:
        raise GoneError(path.name) from None


def groups(path: Path) -> list[int]:
    """Return the number of rows of each row group.  GoneError: the file no longer exists."""
    try:
        found = pq.read_metadata(path)
    except FileNotFoundError:
        raise GoneError(path.name) from None
    return [found.row_group(i).num_rows for i in range(found.num_row_groups)]


def read_group(path: Path, group: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Return columns (None: all) of a row group in a verified file.  GoneError: it no longer exists."""
    try:
        with pq.ParquetFile(path) as file:
            return file.read_row_group(group, columns=None if columns is None else list(columns))
    except FileNotFoundError:
        raise GoneError(path.name) from None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


# ---- Racing (`answer.racing`): all settings run in some worlds, then only those that may still be the best run in the others.
#
# A world is a window, a seed, and the values of all axes that are not settings. Windows are the sample, so each window runs
# once before any window runs with a second seed. The reference setting (`answer.against`) runs in all worlds.

GROWTH = 4
"""Growth of the number of worlds per round."""

Setting = tuple[str, ...]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Left:
    """A setting that was eliminated."""

    group: str  # value of `by`
    setting: Setting
    column: str  # result column because of which it was eliminated
    worlds: int  # number of worlds in which it ran
    of: int


class SweepRace:
    """The state of racing: the cells of each round, and the eliminated settings."""

    def __init__(self, question: Question, planned: Sequence[Cell]) -> None:
        self.left: list[Left] = []
        self._question, self._planned = question, planned_of(planned)
        self._places = [_Place(cell, question) for cell in planned]
        self._worlds = {
            group: _spread(list(dict.fromkeys(place.world for place in places)))
            for group, places in _grouped(self._places)
        }
        self._racing = {
            group: dict.fromkeys(place.setting for place in places) for group, places in _grouped(self._places)
        }
        self._reference = tuple(value for _, value in question.against)
        first = question.racing
        most = max(len(worlds) for worlds in self._worlds.values())
        self._sizes = [first]
        while self._sizes[-1] < most:
            self._sizes.append(GROWTH * self._sizes[-1])
        self._round = 0
        self._run: dict[str, dict[Setting, int]] = {
            group: dict.fromkeys(racing, 0) for group, racing in self._racing.items()
        }
        self._begin_round()

    @property
    def cells(self) -> CellPlan:
        """Return all cells up to the current round, in the order of the plan."""
        counts = [self._run[place.group][place.setting] for place in self._places]
        return self._within(counts)

    @property
    def first(self) -> CellPlan:
        """Return the cells of the first round, in which all settings run."""
        return self._within([self._question.racing] * len(self._places))

    def begin_next_round(self, results: pd.DataFrame) -> bool:
        """Eliminate settings and begin the next round.  Return False after the last round."""
        if self._round + 1 == len(self._sizes):
            return False
        for group, racing in self._racing.items():
            rows = results[results[self._question.by] == group] if self._question.by else results
            comparisons = len(self._run[group]) * (len(self._sizes) - 1)
            rule = Rule(self._question.settings, self._question.least, self._question.limits, comparisons)
            for setting, column in losers_of(rows, rule, racing).items():
                met, of = self._run[group][setting], len(self._worlds[group])
                if setting != self._reference and met < of:
                    del racing[setting]
                    self.left.append(Left(group, setting, column, met, of))
        self._round += 1
        self._begin_round()
        return True

    @property
    def out(self) -> dict[str, list[Setting]]:
        """Return the eliminated settings by value of `by`."""
        return {group: [left.setting for left in self.left if left.group == group] for group in self._racing}

    def sections(self) -> list[TextTable]:
        """Return a table of eliminated settings, or [] if there are none."""
        if not self.left:
            return []
        by = [self._question.by] if self._question.by else []
        rows = [
            [*([out.group] if by else []), *out.setting, out.column, f"{out.worlds} of {out.of}"] for out in self.left
        ]
        header = [*by, *self._question.settings, "shown by", "windows x seeds"]
        return [TextTable("Not run in all windows x seeds: surely not the best", header, rows)]

    def sentence(self) -> str:
        """Return a sentence on the number of cells that were not run, or ""."""
        count = len(self._planned) - len(self.cells)
        return (
            f"Racing left out {count:,} of {len(self._planned):,} runs: those settings cannot be the best."
            if self.left
            else ""
        )

    def _begin_round(self) -> None:
        for group, racing in self._racing.items():
            alive = [*racing, *([self._reference] if self._reference in self._run[group] else [])]
            self._run[group] |= dict.fromkeys(alive, min(self._sizes[self._round], len(self._worlds[group])))

    def _within(self, counts: Sequence[int]) -> CellPlan:
        """Return the cells whose world is among the first ones, up to a number given for each cell."""
        cells = enumerate(zip(self._places, counts, strict=True))
        return self._planned.take(
            np.array(
                [i for i, (place, count) in cells if self._worlds[place.group][place.world] < count], dtype=np.int64
            )
        )


class _Place:
    """The setting, world and group (value of `by`) of a cell."""

    def __init__(self, cell: Cell, question: Question) -> None:
        axes = dict(cell.scenario.axes)
        self.setting: Setting = tuple(axes.get(key, "") for key in question.settings)
        self.group = axes.get(question.by, "") if question.by else ""
        others = ((key, value) for key, value in axes.items() if key not in question.settings)
        self.world = (*others, ("replication", str(cell.replication)))


def _grouped(places: Sequence[_Place]) -> Iterator[tuple[str, list[_Place]]]:
    ordered = sorted(places, key=lambda place: place.group)  # stable, so that worlds keep the order of the plan
    return ((group, list(same)) for group, same in groupby(ordered, key=lambda place: place.group))


Conditions = tuple[tuple[str, str], ...]
"""(key, value) of all axes that are not settings."""


def _spread(worlds: Sequence[Conditions]) -> dict[Conditions, int]:
    """Return {world: position}: first worlds of all windows, evenly spread, then their second worlds, and so on."""
    windows: dict[Conditions, list[Conditions]] = {}
    for world in worlds:
        windows.setdefault(_window(world), []).append(world)
    spread = [_evenly(window) for window in _evenly(list(windows.values()))]
    order = [window[i] for i in range(max(map(len, spread))) for window in spread if i < len(window)]
    return {world: turn for turn, world in enumerate(order)}


def _window(world: Conditions) -> Conditions:
    """Return what identifies a window: the axis "window", or else all axes except seeds."""
    return tuple(pair for pair in world if pair[0] == "window") or tuple(pair for pair in world if pair[0] not in SEEDS)


def _evenly(items: Sequence[Item]) -> list[Item]:
    """Return an order in which every prefix is evenly spread (van der Corput sequence)."""
    digits = max(len(items) - 1, 1).bit_length()
    return [items[i] for i in sorted(range(len(items)), key=lambda i: int(f"{i:0{digits}b}"[::-1], 2))]
