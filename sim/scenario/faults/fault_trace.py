"""Times of faults from a CSV or Parquet file: when each happens, and how long it lasts if the file says so."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

from sim.scenario.faults.document import Fault
from sim.scenario.job.trace import TraceError, clocked, columns_and_rows, file_stamp, moment, must_have
from sim.units import SECOND, UnitError, parse_number


def read_faults(fault: Fault, folder: FilePath) -> list[tuple[int, int]]:
    """(ns in the run, duration in ns or 0) of each row, in the order of time.

    Times count from the earliest one, which happens `at` (default: at the start of the run).  With `from` they count from so long after
    the earliest one, and there may be none.  Times between faults count from the start.
    """
    file, unit_ns, between = folder / (fault.trace or ""), fault.unit, fault.between == "true"
    where = tuple((fault.where or {}).items())
    rows = _selected(file, file_stamp(file), fault.column or "", fault.lasts_column, where, unit_ns, between)
    begin_ns, earliest_ns = Fraction(fault.at or 0), Fraction(0) if between else rows[0][0]
    since_ns = [(round(at_ns - earliest_ns + begin_ns) - (fault.from_ or 0), round(lasts_ns)) for at_ns, lasts_ns in rows]
    return [(at_ns, lasts_ns) for at_ns, lasts_ns in since_ns if at_ns >= 0]


@lru_cache(maxsize=8)
def _selected(
    file: FilePath,
    stamp: tuple[int, int],  # noqa: ARG001
    column: str,
    lasts_column: str | None,
    where: tuple[tuple[str, Any], ...],
    unit_ns: int | None,
    between: bool,
) -> tuple[tuple[Fraction, Fraction], ...]:
    """(time, duration) [ns] of the rows that `where` selects, in order, read once for the many cells of a sweep.

    `stamp` is not used here: another one is another file.
    """
    rows, sum_ns = list[tuple[Fraction, Fraction]](), Fraction(0)
    given_s = None if unit_ns is None else Fraction(unit_ns, SECOND)
    columns, written = columns_and_rows(file)
    must_have(file, columns, [column, *([lasts_column] if lasts_column else []), *dict(where)])
    clock, read = clocked(column, written, given_s)
    unit_ns = unit_ns or SECOND
    for line, row in read:
        if any(not _same(row[name], value) for name, value in where) or _blank(row[column]):
            continue
        if between:
            sum_ns += _number(row[column], file, line) * unit_ns
        at_ns = sum_ns if between else moment(clock, row[column], file, line) * SECOND
        lasts = _number(row[lasts_column], file, line) if lasts_column else Fraction(0)
        rows.append((at_ns, lasts * unit_ns))
    if not rows:
        raise TraceError(f"{file} has no faults in column '{column}'{' with these values' if where else ''}")
    return tuple(sorted(rows))


def _blank(value: object) -> bool:
    return value is None or str(value).strip() == ""


def _same(value: object, required: object) -> bool:
    try:
        return parse_number(str(value).strip()) == parse_number(str(required))
    except UnitError:
        return str(value).strip() == str(required)


def _number(value: object, file: FilePath, line: int) -> Fraction:
    try:
        return parse_number(str(value).strip())
    except UnitError:
        raise TraceError(f"{file}:{line}: '{value}' is no number") from None
