"""Where the replicas of a block go: distinct nodes, each set equally likely; the first one close by, if a node stands there.

HDFS places by racks as well (BlockPlacementPolicyDefault); racks are not modelled.
"""

from __future__ import annotations

from sim.model.randomness.streams import draw, stream
from sim.storage.ledger import Name


def replicas(nodes: int, count: int, seed: int, name: Name, block: int, attempt: int = 0, local: int | None = None) -> list[int]:
    """Nodes of the pipeline in order; another attempt at a block gets other ones."""
    key = stream(seed, "placement", *name, block, attempt)
    chosen = [] if local is None else [local]
    while len(chosen) < min(count, nodes):
        k = len(chosen)
        node = draw(key, k) * (nodes - k) >> 32  # among those not chosen yet
        for other in sorted(chosen):
            node += other <= node
        chosen.append(node)
    return chosen
