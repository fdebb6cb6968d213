"""The kinds of checkpoints in the table `checkpoints`: savepoints, first uploads, and the periodic ones that a job is judged by.

The first upload of a job writes everything, where later checkpoints write what is new.  It writes nearly all that it refers to, and more
than twice what a later one usually writes; later ones usually refer to more than twice what they write.  State that is written in full
each time has no such checkpoint.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

EVERYTHING = 0.9
"""Share of what a checkpoint refers to that it writes, at least."""
TIMES = 2.0
"""So many times the median of what later ones write."""


def is_periodic(checkpoints: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """By row of the table `checkpoints`: whether it is a periodic or final checkpoint, and not a savepoint."""
    return (checkpoints["savepointFormat"] == "").to_numpy()


def first_uploads(checkpoints: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """By row of the table `checkpoints` of one run: whether it is the first upload of its job.

    A checkpoint that no other follows is none: nothing says that later ones would be smaller.
    """
    found = np.zeros(len(checkpoints), dtype=bool)
    job = checkpoints["x_job"].to_numpy() if "x_job" in checkpoints else np.zeros(len(checkpoints), dtype=int)
    candidates = (checkpoints["status"] == "COMPLETED").to_numpy() & is_periodic(checkpoints)
    trigger = checkpoints["trigger_timestamp"].to_numpy(dtype=float)
    in_flight = checkpoints["persisted_data"].to_numpy(dtype=float)
    written = checkpoints["checkpointed_size"].to_numpy(dtype=float) - in_flight
    referred = checkpoints["state_size"].to_numpy(dtype=float) - in_flight
    for number in np.unique(job[candidates]):
        rows = np.flatnonzero(candidates & (job == number))
        first, *later = rows[np.argsort(trigger[rows], kind="stable")]
        if not later or written[first] <= 0:
            continue
        usual, usually_referred = np.median(written[later]), np.median(referred[later])
        found[first] = written[first] >= EVERYTHING * referred[first] and min(written[first], usually_referred) > TIMES * usual
    return found
