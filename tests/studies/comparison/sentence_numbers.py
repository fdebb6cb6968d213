"""The numbers in a sentence, and the numbers of tables that it may speak of: each as text, with its unit.

A sentence may name checkpoints; of the tables of a run only the rows of these count.  Names and messages hold no numbers of it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

import pandas as pd

from sim.results.formats import bytes_text, change_text, count_text, ms_text, per_second_text, share_text
from sim.results.not_completed import PARTS

NUMBER = re.compile(
    r"(?<![\w.\[/-])(?P<number>[-+±]?\d+(?:\.\d+)?(?:[kMG](?![\w]))?)(?P<unit> (?:ms|min|s|h|TB|GB|MB|kB|B|%)(?:/s)?(?!\w)|[kMG]?/s(?!\w))?"
)
ID = re.compile(r"[Cc]heckpoint (?P<id>\d+)(?: of job (?P<job>\d+))?(?: of replication (?P<replication>\d+))?")


def numbers(sentence: str, names: Iterable[str] = ()) -> list[str]:
    """``numbers("takes 5.7 s of 'sink' (busy 99 %)") == ["5.7 s", "99 %"]``; ids of checkpoints and `names` are left out."""
    for name in sorted({name for name in names if name}, key=len, reverse=True):
        sentence = sentence.replace(name, "NAME")
    return [match["number"] + (match["unit"] or "") for match in NUMBER.finditer(ID.sub("CHECKPOINT", sentence))]


def named(sentence: str) -> set[tuple[int, int, int]]:
    """(replication, job, id) of the checkpoints that a sentence names."""
    return {
        (int(match["replication"] or 0), int(match["job"] or 0), int(match["id"])) for match in ID.finditer(sentence)
    }


def of_cells(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The numbers in the cells of a table, and parts of cells that a sentence may quote."""
    for row in rows:
        for cell in row:
            yield from numbers(cell)


def of_strategies(table: pd.DataFrame) -> Iterator[str]:
    """The numbers of `Comparison.table`; changes of throughput from one row to another; counts of checkpoints."""
    for row in table.to_dict("records"):
        for column, value in row.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if str(column).endswith("_ms"):
                yield ms_text(value)
            elif str(column).endswith("_bytes"):
                yield bytes_text(value)
            elif str(column).endswith("_share"):
                yield share_text(value)
            elif str(column).endswith("_s"):
                yield ms_text(1e3 * value)
            elif str(column).endswith("_per_second"):
                yield per_second_text(value)
            elif str(column) == "finish_checkpoints":
                yield count_text(value)
            elif str(column).endswith("_change"):
                yield from (change_text(value), change_text(value).lstrip("-"))
        own = row["failed"] - row["interrupted"]
        yield from map(str, (row["completed"], row["failed"], own, row["completed"] + own))
    rates = table["throughput_per_second"]
    yield from (change_text(fast / slow - 1 if slow else 0.0) for fast, slow in permutations(rates, 2))


def of_checkpoint(tables: dict[str, pd.DataFrame], job: int, number: int) -> Iterator[str]:
    """The row of a checkpoint, and the parts of its path: by kind of wait, and by kind and vertex."""
    rows, path = (_of(tables[name], job, number) for name in ("checkpoints", "path"))
    for row in rows.to_dict("records"):
        yield ms_text(row["end_to_end_duration"])
        yield bytes_text(row["checkpointed_size"])
        yield bytes_text(row["persisted_data"])
    path = path[~path["acknowledged"].astype(bool)]
    path = path.assign(kind=path["part"].map(PARTS), ms=path["duration"] / 1e6)
    for keys in (["kind"], ["kind", "vertex"], ["part", "vertex"]):
        yield from map(ms_text, path.groupby(keys)["ms"].sum())


def of_consequences(rows: Iterable[object]) -> Iterator[str]:
    for row in rows:
        yield from map(
            count_text, (row.replayed_records, row.planned_replayed_records, row.failures, row.planned_restarts)
        )
        yield count_text(row.committed_records)
        yield ms_text(1e3 * row.lag_s)
        yield share_text(row.disturbed_share)


def _of(rows: pd.DataFrame, job: int, number: int) -> pd.DataFrame:
    rows = rows[rows["id"] == number]
    return rows[rows["x_job"] == job] if "x_job" in rows else rows
