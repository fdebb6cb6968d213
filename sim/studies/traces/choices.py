"""Options of `ckptsim traces read` for files of unknown format: the columns of time and value, and their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from zoneinfo import available_timezones

from sim.model.frozen import frozen
from sim.model.series.columns import GRAFANA_TIME_COLUMN, RATE_COLUMNS, TIME_COLUMNS, find_column
from sim.model.series.monitoring import TIME, Kind, classify_name
from sim.model.text import PrintableError
from sim.studies.traces.parsing import Format, events, rates, recognised

MEANINGS = ("rates", "arrivals", "failures")
"""Meanings of a table's values that a user can choose (--as)."""


class ChoiceError(PrintableError, ValueError):
    """Raised for invalid or conflicting options."""

    exit_code = 2


@frozen
class Choices:
    """Options for reading files.  An option that is None is detected from the file, unless its comment gives a default."""

    time: str | None = None  # time column
    unit_s: float | None = None  # unit of numeric times [s]; None: detected from their magnitude
    value: str | None = None  # value column
    meaning: str | None = None  # one of MEANINGS
    per_s: float | None = None  # period over which a value is counted [s]; None: values are per second
    zone: str | None = None  # time zone of timestamps without one; None: UTC

    def __post_init__(self) -> None:
        if self.zone is not None and self.zone not in available_timezones():
            raise ChoiceError(f"--zone: '{self.zone}' is not a time zone: write one such as Europe/Berlin or UTC")
        if self.meaning is not None and self.meaning not in MEANINGS:
            raise ChoiceError(f"--as: expected {', '.join(MEANINGS)}, not '{self.meaning}'")
        if self.value is None and (self.meaning == "rates" or (self.time is not None and self.meaning is None)):
            raise ChoiceError("--value: say which column has the value, or --as arrivals or failures")
        if self.value is not None and self.meaning in ("arrivals", "failures"):
            raise ChoiceError(f"--value: {self.meaning} have no value")

    def format_of(self, columns: Sequence[str]) -> Format | None:
        """Return the format of a table with these columns, or None if it is unknown."""
        is_chosen = self.time is not None or self.value is not None or self.meaning is not None
        time = self.time or find_column(TIME_COLUMNS, columns)
        if is_chosen and time in columns and (self.value is None or self.value in columns):
            return self._chosen_format(time or columns[0])
        if (known := recognised(columns)) is None and _is_one_series(columns):
            # Grafana exports a panel with one series, whose name is in the legend
            return replace(self, time=columns[0], value=columns[1]).format_of(columns)
        return known

    def value_column(self, columns: Sequence[str]) -> str | None:
        """Return the value column of a table of rates: the chosen column, else one with a known name, else the only series.

        Return None if there is none, or if the table has a known format of another kind.
        """
        if self.value is not None:
            return self.value if self.value in columns else None
        format_ = recognised(columns)
        if format_ is None:
            return columns[1] if _is_one_series(columns) else None
        return find_column(RATE_COLUMNS, columns) if format_.name == "rates" else None

    def of_source(self, column: str) -> Choices:
        """Return the options for a table with the rates of this source.  If the user chose a column, return self."""
        return self if self.value is not None else replace(self, time=TIME, value=column, meaning="rates")

    def names_columns_by_number(self, columns: int) -> bool:
        """Return True if the user names columns by number, from 0: the table has no header.  `columns`: number of columns."""
        return self.time is not None and self.time.isdigit() and int(self.time) < columns

    def _chosen_format(self, time: str) -> Format:
        """Return the format with the chosen columns and this time column."""
        if self.meaning in ("arrivals", "failures"):
            parse = partial(events, kind=self.meaning, time=time, unit_s=self.unit_s)
            return Format("own", lambda _: True, parse, ordered="arrivals" if self.meaning == "arrivals" else "")
        series = partial(rates, time=time, rate=self.value, unit_s=self.unit_s, per_s=self.per_s)
        return Format("own", lambda _: True, series, ordered="rates")


def _is_one_series(columns: Sequence[str]) -> bool:
    """Return True if a table has a time and a single metric, as exported by Grafana."""
    if len(columns) != 2 or find_column(TIME_COLUMNS, columns[:1]) is None:
        return False
    return columns[0] == GRAFANA_TIME_COLUMN or classify_name(columns[1]).kind is not Kind.UNKNOWN
