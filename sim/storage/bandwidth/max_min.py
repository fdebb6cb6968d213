"""Max-min fair shares of bandwidth: no flow can gain unless one that is not faster loses.

Progressive filling (Bertsekas and Gallager, Data Networks, 1992, 6.5.2): all flows grow together until a link is full, its flows
keep what they have, the others grow on.  Whole numbers throughout: a share is rounded down, so a full link may have less than one
unit per flow left over.
"""

from __future__ import annotations

from collections.abc import Sequence


def max_min(paths: Sequence[Sequence[int]], capacity: Sequence[int]) -> list[int]:
    """The rate of each flow; a path is the links it crosses, each once and at least one, and `capacity` is that of the links."""
    rates = [0] * len(paths)
    left = list(capacity)
    crossing: list[list[int]] = [[] for _ in capacity]
    for flow, path in enumerate(paths):
        for link in path:
            crossing[link].append(flow)
    growing = [len(flows) for flows in crossing]
    open_links = [link for link, count in enumerate(growing) if count]
    unsettled = [True] * len(paths)
    while open_links:
        share = min(left[link] // growing[link] for link in open_links)
        for full in [link for link in open_links if left[link] // growing[link] == share]:
            for flow in crossing[full]:
                if unsettled[flow]:
                    unsettled[flow] = False
                    rates[flow] = share
                    for link in paths[flow]:
                        left[link] -= share
                        growing[link] -= 1
        open_links = [link for link in open_links if growing[link]]
    return rates
