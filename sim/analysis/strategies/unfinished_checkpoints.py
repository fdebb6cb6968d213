"""Durations of checkpoints, those that expired or were under way at the end of the run among them.

What `ckptsim run` prints is about completed checkpoints, with the failed ones in a column beside it.  Where settings are compared, one
under which slow checkpoints expire must not look quick.
"""

from __future__ import annotations

import pandas as pd

from sim.analysis.strategies.kinds_of_checkpoints import first_uploads, is_periodic
from sim.analysis.unfinished import Duration, quantiles

_SHARES = {"end_to_end_p50_ms": 0.5, "end_to_end_p90_ms": 0.9, "end_to_end_p99_ms": 0.99, "end_to_end_max_ms": 1.0}


def durations_of_checkpoints(checkpoints: pd.DataFrame, end_ms: float, warmup_ms: float) -> dict[str, Duration]:
    """Column -> quantile over the checkpoints that were triggered after the warm-up; those that did not complete took longer than seen.

    First uploads and savepoints do not count, as in summaries.
    """
    rows = checkpoints[(checkpoints["trigger_timestamp"] >= warmup_ms).to_numpy() & ~first_uploads(checkpoints) & is_periodic(checkpoints)]
    durations = rows["end_to_end_duration"].astype(float)
    seen = durations.where(rows["status"] != "IN_PROGRESS", end_ms - rows["trigger_timestamp"])
    completed = (rows["status"] == "COMPLETED").to_numpy()
    ended, late = seen.to_numpy(dtype=float)[completed], seen.to_numpy(dtype=float)[~completed]
    return dict(zip(_SHARES, quantiles(ended, late, *_SHARES.values()), strict=True))
