"""How much longer threads take where more of them want to run than there are cores.

Every thread that can run gets the same share of the cores, and none more than one core (processor sharing, as an operating system does).
How many want to run is chance: each is busy for its share of the time.  With N of them the cores do the work of min(N, cores), so all
take E[N] / E[min(N, cores)] times as long as on idle cores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def slowdown(busy: Sequence[float], cores: int) -> float:
    """How many times as long work takes as on idle cores; `busy`: the share of the time that each thread wants to run, or does."""
    shares = [min(max(share, 0.0), 1.0) for share in busy]
    load = sum(shares)
    if len(shares) <= cores or load <= 0:
        return 1.0
    chances = np.zeros(len(shares) + 1)  # of so many threads at once
    chances[0] = 1.0
    for share in shares:
        chances[1:] = chances[1:] * (1 - share) + chances[:-1] * share
        chances[0] *= 1 - share
    done = float(chances @ np.minimum(np.arange(len(chances)), cores))
    return load / done
