"""Which event is next (E1): a tournament tree over one leaf per rank.

A leaf holds the packed key ``time << shift | rank``, so the smallest key is the next event and ties fall by rank.
"""

from sim.plane.kernel.rows import PlaneState
from sim.plane.kernel.text.names import NEVER


def set_leaf(w: PlaneState, rank: int, key: int) -> None:
    """Play the matches from one leaf to the root."""
    tree = w.tree
    i = w.g.leaf0 + rank
    tree[i] = key
    while i > 1:
        other = tree[i ^ 1]
        if other < key:
            key = other
        i >>= 1
        tree[i] = key


def schedule(w: PlaneState, rank: int, time: int) -> None:
    """The rank's only event happens at `time`."""
    g = w.g
    if time > g.horizon:
        time = g.horizon
    if g.stale == rank:
        g.stale = -1
    set_leaf(w, rank, (time << g.shift) | rank)


def cancel(w: PlaneState, rank: int) -> None:
    """The rank has no event."""
    set_leaf(w, rank, NEVER)
