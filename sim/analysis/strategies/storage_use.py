"""What a strategy asks of an object store: requests and bytes, per hour, after the warm-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
import pandas as pd

from sim.analysis.number_texts import NONE, bytes_text, count_text
from sim.analysis.section import TextTable
from sim.analysis.strategies.summary import Tables
from sim.quantities.populations import Population
from sim.quantities.prices import Prices

_QUICK_BYTES = 8_000_000
"""A stream of 80 MB/s, as of an object store, writes so much within the noise of durations (`sim.analysis.strategies.noise`)."""


def unlimited_text(unlimited_bytes: float) -> str:
    """A clause: which time durations of checkpoints leave out; empty: storage has a bandwidth, or little is written."""
    if unlimited_bytes < _QUICK_BYTES:
        return ""
    written = f"writing up to {bytes_text(unlimited_bytes)} per subtask takes no time here"
    return f"{written}, as storage has no limit: how long it takes is unknown until you write storage.bandwidth"


@dataclass(frozen=True, slots=True)
class StorageUse:
    """Requests and bytes of an object store.  NaN: checkpoints are kept elsewhere."""

    put_requests_per_hour: Annotated[
        float, "PUT and POST requests that the object store answered, parts of large files among them", Population.AFTER_WARMUP
    ]
    list_requests_per_hour: Annotated[float, "LIST requests, likewise", Population.AFTER_WARMUP]
    get_requests_per_hour: Annotated[float, "GET and HEAD requests, likewise", Population.AFTER_WARMUP]
    stored_bytes: Annotated[
        float, "held by the object store, mean over time: retained checkpoints and shared files", Population.AFTER_WARMUP
    ]
    moved_bytes_per_hour: Annotated[float, "written to the object store and read from it", Population.AFTER_WARMUP]

    @property
    def has_requests(self) -> bool:
        return not np.isnan(self.put_requests_per_hour)


def storage_use(runs: Sequence[Tables], ends_s: Sequence[float], *, warmup_s: float = 0.0) -> StorageUse:
    """The mean over runs, from the warm-up to their ends."""
    found = [_of_run(run["requests"], warmup_s, end_s) for run, end_s in zip(runs, ends_s, strict=True)]
    return StorageUse(*np.mean(found, axis=0).tolist())


def _of_run(requests: pd.DataFrame, begin_s: float, end_s: float) -> list[float]:
    if requests.empty or end_s <= begin_s:
        return [np.nan] * 5
    rows = requests[requests["time"] >= begin_s]
    puts, lists, gets = (rows[name].sum() for name in ("put", "list", "get"))
    per_hour = 3600 / (end_s - begin_s)
    moved = rows["written"].sum() + rows["read"].sum()
    return [puts * per_hour, lists * per_hour, gets * per_hour, _mean_stored(requests, begin_s, end_s), moved * per_hour]


def _mean_stored(requests: pd.DataFrame, begin_s: float, end_s: float) -> float:
    """A second without requests has what the second before had."""
    times = np.append(requests["time"].to_numpy(dtype=float), end_s)
    lasts = np.clip(times[1:], begin_s, end_s) - np.clip(times[:-1], begin_s, end_s)
    return float((requests["stored"].to_numpy(dtype=float) * lasts).sum() / (end_s - begin_s))


def storage_use_table(found: Mapping[str, StorageUse], prices: Prices) -> TextTable | None:
    """A row per strategy, with the cost of a month; None: none is kept in an object store."""
    known = {name: use for name, use in found.items() if use.has_requests}
    if not known:
        return None
    rows = [
        [
            name, *(count_text(value) for value in (use.put_requests_per_hour, use.list_requests_per_hour, use.get_requests_per_hour)),
            bytes_text(use.stored_bytes), bytes_text(use.moved_bytes_per_hour), prices.text(prices.cost_per_month(asdict(use))),
        ]
        if use.has_requests
        else [name, *[NONE] * 6]
        for name, use in found.items()
    ]  # fmt: skip
    header = ["strategy", "PUT per hour", "LIST per hour", "GET per hour", "stored", "moved per hour", "cost per month"]
    return TextTable(f"What the object store is asked for; prices: {prices.source}", header, rows)
