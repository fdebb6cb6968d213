"""Made-up rows of a sweep: a row per window, seed and setting."""

from itertools import product

import numpy as np
import pandas as pd


def rows_of(scores, *, seeds=1, column="caught_up_ms", bounds=(), **others):
    """`scores`: setting -> a value per window, or per window and seed.  `bounds`: (setting, window) whose value is a bound."""
    found = []
    for setting, values in scores.items():
        table = np.asarray(values, dtype=float)
        table = table if table.ndim > 1 else np.repeat(table[:, None], seeds, axis=1)
        for window, seed in product(range(table.shape[0]), range(table.shape[1])):
            found.append(
                {
                    "cell": f"{setting} {window} {seed}",
                    "scenario": "s",
                    "replication": seed,
                    "seed": seed,
                    "window": f"w{window}",
                    "checkpoint.interval": setting,
                    "strategy": "aligned",
                    "status": "ok",
                    "error": "",
                    "job_status": "RUNNING",
                    "nothing": "",
                    "bottleneck": "count",
                    "busy_share": 1.0 if (setting, window) in bounds else 0.5,
                    column: table[window, seed],
                    "unfinished": column if (setting, window) in bounds else "",
                    **others,
                }
            )
    return pd.DataFrame(found)
