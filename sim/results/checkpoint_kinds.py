"""Distinguish the kinds of checkpoints in result tables: periodic checkpoints, first uploads, and savepoints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from sim.results.rates import Tables

# ---- Kinds of checkpoints in the table `checkpoints`: savepoints, first uploads, and periodic checkpoints.
#
# With incremental checkpoints, the first checkpoint of a run uploads all state, which only a simulation begins with, and is
# much larger than later ones. So are those that are triggered before the first one completes, because there are no files that
# they could reuse. A checkpoint counts as a first upload if it is one of these, and
#
# 1. it writes nearly all the state that it references,
# 2. this is more than twice what later checkpoints write (median), and
# 3. later checkpoints reference more than twice what they write (medians).
#
# Jobs that write full state each time have no first upload. If the first job (of a chain, or before a rescale) has no later
# checkpoints, its checkpoints are compared with those of the others. What a job uploads that begins from a snapshot, or after
# a rescale, is no first upload: real jobs upload it, too.

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
    """Return, for each row of the table `checkpoints` of one run, whether it is a first upload.

    The only checkpoint of a run does not count, because it is unknown whether later ones would be smaller.
    """
    candidates = (checkpoints["status"] == "COMPLETED").to_numpy() & is_periodic(checkpoints)
    is_first = np.zeros(len(checkpoints), dtype=bool)
    if not candidates.any():
        return is_first
    columns = ["trigger_timestamp", "end_to_end_duration", "persisted_data", "checkpointed_size", "state_size"]
    trigger, duration, in_flight, written, referenced = checkpoints[columns].to_numpy(dtype=float).T
    ended, written, referenced = trigger + duration, written - in_flight, referenced - in_flight
    job = job_of(checkpoints).to_numpy()
    of_first_job = candidates & (job == job[candidates].min())
    first_end = ended[of_first_job][trigger[of_first_job].argmin()]
    # rule 1: it writes nearly all the state that it references
    writes_all = (written > 0) & (written >= MIN_WRITTEN_SHARE * referenced)
    uploads_all = of_first_job & writes_all & (trigger < first_end)
    later = candidates & ~uploads_all
    compared = of_first_job & later if (of_first_job & later).any() else later
    if compared.any():
        # rule 2: it writes much more than later ones; rule 3: they reference much more than they write
        limit = FIRST_UPLOAD_FACTOR * np.median(written[compared])
        is_first |= uploads_all & (written > limit) & (np.median(referenced[compared]) > limit)
    return is_first


def pool_rows(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all tables.

    Empty tables are skipped, because their columns have other types and pandas would warn about it.
    """
    filled = [table for table in tables if len(table)] or [tables[0]]
    return filled[0] if len(tables) == 1 else pd.concat(filled, ignore_index=True)
