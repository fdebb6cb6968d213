"""Distinguish the kinds of checkpoints in result tables: periodic checkpoints, first uploads, and savepoints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from sim.results.rates import Tables

# ---- Kinds of checkpoints in the table `checkpoints`: savepoints, first uploads, and periodic checkpoints.
#
# With incremental checkpoints, the first checkpoint of a job uploads all state and is much larger than later ones. So are
# those that are triggered before the first one completes, because there are no files that they could reuse. A checkpoint
# counts as a first upload if
#
# 1. it writes nearly all the state that it references,
# 2. this is more than twice what later checkpoints write (median), and
# 3. later checkpoints reference more than twice what they write (medians).
#
# Jobs that write full state each time have no first upload. If a job instance (in a chain of jobs, or after a rescale) has no
# later checkpoints, its checkpoints are compared with the later checkpoints of the other instances.

MIN_WRITTEN_SHARE = 0.9
"""Minimum share of its referenced state that a first upload writes."""
FIRST_UPLOAD_FACTOR = 2.0
"""Minimum ratio of a first upload's written bytes to the median of later checkpoints."""


def is_periodic(checkpoints: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return, for each row of the table `checkpoints`, whether it is a periodic or final checkpoint, not a savepoint."""
    return (checkpoints["savepointFormat"] == "").to_numpy()


def job_of(table: pd.DataFrame) -> pd.Series[int]:
    """Return the number of the job instance of each row, which is 0 if the run has only one."""
    return table["x_job"] if "x_job" in table else pd.Series(0, table.index)


def has_savepoints(run: Tables) -> bool:
    """Return whether a savepoint of the run completed or failed."""
    rows = run["checkpoints"]
    return bool((rows["status"] != "IN_PROGRESS")[~is_periodic(rows)].any())


def first_uploads(checkpoints: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return, for each row of the table `checkpoints` of one run, whether it is a first upload of its job.

    The only checkpoint of a run does not count, because it is unknown whether later ones would be smaller.
    """
    is_first, job = np.zeros(len(checkpoints), dtype=bool), job_of(checkpoints).to_numpy()
    candidates = (checkpoints["status"] == "COMPLETED").to_numpy() & is_periodic(checkpoints)
    columns = ["trigger_timestamp", "end_to_end_duration", "persisted_data", "checkpointed_size", "state_size"]
    trigger, duration, in_flight, written, referenced = checkpoints[columns].to_numpy(dtype=float).T
    ended, written, referenced = trigger + duration, written - in_flight, referenced - in_flight
    in_jobs = [candidates & (job == number) for number in np.unique(job[candidates])]
    # rule 1: it writes nearly all the state that it references
    writes_all = (written > 0) & (written >= MIN_WRITTEN_SHARE * referenced)
    # later checkpoints: those that do not write all state, or that are triggered after the first one of their job has completed
    is_later = candidates.copy()
    for in_job in in_jobs:
        first_end = ended[in_job][trigger[in_job].argmin()]
        is_later &= ~(in_job & writes_all & (trigger < first_end))
    for in_job in in_jobs:
        compared = in_job & is_later if (in_job & is_later).any() else is_later
        if compared.any():
            limit = FIRST_UPLOAD_FACTOR * np.median(written[compared])
            # rule 2: it writes much more than later ones; rule 3: they reference much more than they write
            is_first |= in_job & ~is_later & (written > limit) & (np.median(referenced[compared]) > limit)
    return is_first


def pool_rows(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all tables.

    Empty tables are skipped, because their columns have other types and pandas would warn about it.
    """
    filled = [table for table in tables if len(table)] or [tables[0]]
    return filled[0] if len(tables) == 1 else pd.concat(filled, ignore_index=True)
