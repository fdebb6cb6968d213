"""Checkpoints of real jobs: recordings, saved REST answers, archives, JobManager logs, as `sim.recordings` reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from sim.recordings import RecordingError, read_any
from sim.traces.reading import batch, quarantined

__all__ = ["checkpoint_rows"]

MOST_BYTES = 512 << 20
"""Of a file of one job, as it lies there."""


def checkpoint_rows(trace: str, stream: Any) -> Iterator[pa.RecordBatch]:
    """The file is copied first: its readers want to look at it twice, and a bucket is far away."""
    with tempfile.TemporaryDirectory(prefix="ckptsim-") as folder:
        copy = Path(folder, "job")
        data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            yield quarantined(trace, f"is larger than {MOST_BYTES >> 20} MB")
            return
        copy.write_bytes(data)
        try:
            rows = read_any(copy).checkpoints_table()
        except RecordingError as error:
            yield quarantined(trace, str(error).replace(str(copy), "the file"))
            return
    yield batch("checkpoints", trace, pd.DataFrame({
        "line": range(1, len(rows) + 1),
        "t_s": rows["trigger_timestamp"].astype(float) / 1e3,
        "id": rows["id"],
        "status": rows["status"],
        "end_to_end_duration_ms": rows["end_to_end_duration"].astype(float),
        "checkpointed_size": rows["checkpointed_size"].astype(float),
    }))  # fmt: skip
