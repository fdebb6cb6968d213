"""How often checkpoints of a what-if are no longer than so many times the predicted ones: what recordings of such changes have shown.

A factor that holds for all recordings is too wide to act on: one change in ten came out twice as long as predicted.  A chance tells
how many of such changes keep a limit, and what to watch says when to go back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sim.evidence.what_ifs.changes import AS_IT_IS
from sim.evidence.what_ifs.factors import evidence

if TYPE_CHECKING:
    from sim.evidence.what_ifs.changes import Kind

LIKELY = 0.8
"""Four of five: a change with this chance is advised without a reservation."""


def chance(kinds: Sequence[Kind], spare: float) -> float:
    """The share of such changes whose p90 is at most `spare` times the predicted one; several changes are taken as independent."""
    return float((_ratios(tuple(kinds)) <= spare).mean()) * _known(kinds)


def within(kinds: Sequence[Kind], share: float = LIKELY) -> float:
    """Observed p90 is at most so many times the predicted one in this share of such changes."""
    ratios = np.sort(_ratios(tuple(kinds)))
    place = math.ceil(share / _known(kinds) * len(ratios) - 1e-9)
    return float(ratios[place - 1]) if place <= len(ratios) else math.inf


def _known(kinds: Sequence[Kind]) -> float:
    """The share of changes that the recordings speak of: how bad the last of them are is unknown."""
    levels = len(evidence()[AS_IT_IS].ratios)
    return float((levels / (levels + 1)) ** max(len(kinds), 1))


@cache
def _ratios(kinds: tuple[Kind, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Equally likely observed p90s as multiples of the predicted one."""
    changes: list[tuple[Kind, ...]] = [(kind,) for kind in kinds] or [AS_IT_IS]
    found = np.ones(1)
    for change in changes:
        found = np.multiply.outer(found, np.array(evidence()[change].ratios, dtype=np.float64)).ravel()
    return found
