"""Counts of a task since its plane was built.  They only grow, also through restarts (rule P8)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Counted(NamedTuple):
    """Records over all attempts of a task; the channels stand in the order of its position."""

    served: int
    read: np.ndarray  # by input channel
    written: np.ndarray  # by output channel
