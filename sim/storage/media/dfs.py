"""A distributed file system of the HDFS family: NameNode, DataNodes, placement of replicas."""

from __future__ import annotations

from sim.model.job import Distribution
from sim.model.randomness import draw, stream
from sim.model.storage import Dfs
from sim.model.units import SECOND
from sim.storage.ledger import Name
from sim.storage.media.slow_nodes import node_link, sample_distribution, uniform
from sim.storage.medium import MediumPlugin
from sim.storage.network import ConstantRateLink, Link, NetworkInterfaces, SharedNetwork
from sim.storage.requests import Attempts, Work

# ---- Placement of the replicas of a block: random distinct nodes, the first one local if the writer runs on a node.
#
# HDFS places by racks as well (BlockPlacementPolicyDefault); racks are not modelled.


def replicas(
    nodes: int, count: int, seed: int, name: Name, block: int, attempt: int = 0, local: int | None = None
) -> list[int]:
    """Return the nodes of the replication pipeline of a block, in order.  Each attempt of a block draws new ones.

    `local`: node on which the writer runs, which gets the first replica; None: it runs on none.
    """
    key = stream(seed, "placement", *name, block, attempt)
    chosen = [] if local is None else [local]
    while len(chosen) < min(count, nodes):
        k = len(chosen)
        node = draw(key, k) * (nodes - k) >> 32  # among those not chosen yet
        for other in sorted(chosen):
            node += other <= node
        chosen.append(node)
    return chosen


# ---- The metadata server (HDFS: NameNode). Its requests queue, so many small files slow down all clients.


class MetadataServer:
    """The metadata server, which serves one request at a time, first in, first out.

    Network latency is added to the service time, and does not occupy the server.
    """

    def __init__(self, attempts: Attempts, latency: Distribution, service: Distribution | None, seed: int) -> None:
        self.attempts = attempts
        self.latency = latency
        self.service = service
        self.seed = seed
        self._free_ns = 0  # when all requests so far are served

    def request(self, what: str, name: Name, number: int = 0) -> Work[None]:
        """Process: send a request about a file.  `number`: index of the request among those of the file.  Raises StorageFailed."""
        yield from self.attempts.run_with_retries(lambda attempt: self._once((what, *name, number, attempt)))

    def _once(self, key: Name) -> Work[None]:
        now = self.attempts.now
        if self.service is not None:
            self._free_ns = max(now, self._free_ns) + sample_distribution(self.service, self.seed, "service", *key)
        spent_ns = max(0, self._free_ns - now) + sample_distribution(self.latency, self.seed, "latency", *key)
        if spent_ns:
            yield self.attempts.wait(spent_ns)


# ---- A distributed file system of the HDFS family: blocks, replication pipelines, one metadata server.
#
# A file takes one request to create it, one per block, and one to close it.  The bytes of a block cross the network interface
# of the writer, and the interface and the disk of each replica, at the same time, so the slowest of these limits the rate.
# Links are shared fairly with other transfers.  Source: HDFS architecture guide; hdfs-default.xml for the defaults.


class DistributedFileSystem:
    """The distributed file system of one run."""

    def __init__(
        self, attempts: Attempts, network: SharedNetwork, cards: NetworkInterfaces, options: Dfs, seed: int
    ) -> None:
        self.attempts = attempts
        self.network = network
        self.cards = cards
        self.options = options
        self.seed = seed
        rate = options.requests_per_second
        service = None if rate is None else Distribution(SECOND // rate, options.service)
        self.metadata = MetadataServer(attempts, options.latency, service, seed)
        self._nodes = [_Node(options, seed, node) for node in range(options.nodes)]

    def open(self, name: Name, host: int) -> _DfsFile:
        return _DfsFile(self, name, host)

    def read(self, size_bytes: int, name: Name, host: int) -> Work[None]:
        """Process: read a file block by block, from the local replica or else from a random one."""
        yield from self.metadata.request("locate", name)
        block = 0
        while size_bytes > 0:
            piece = min(size_bytes, self.options.block_bytes)
            yield from self.attempts.run_with_retries(
                lambda attempt, piece=piece, block=block: self._fetch(piece, name, host, block, attempt)  # type: ignore[misc]
            )
            size_bytes -= piece
            block += 1

    def remove(self, name: Name, size_bytes: int, host: int) -> Work[None]:
        """Process: delete a file by one request.  Nodes free its blocks later, in the background."""
        yield from self.metadata.request("delete", name)

    def replicas(self, name: Name, host: int, block: int, attempt: int = 0) -> list[int]:
        """Return the nodes that a block of a file is written to."""
        return replicas(
            self.options.nodes, self.options.replication, self.seed, name, block, attempt, self._local_node(host)
        )

    def send(self, piece_bytes: int, name: Name, host: int, block: int, attempt: int) -> Work[None]:
        """Process: make one attempt to write a piece of a block through its replication pipeline."""
        local = self._local_node(host)
        nodes = self.replicas(name, host, block, attempt)
        links: list[Link | None] = [None if nodes[0] == local else self.cards.out(host), *self._limit()]
        for i, node in enumerate(nodes):
            arriving = self._nodes[node].arriving if i or node != local else None
            links += [arriving, self._nodes[node].disk, self._nodes[node].leaving if i + 1 < len(nodes) else None]
        yield from self.network.transfer(piece_bytes, [link for link in links if link is not None])

    def _fetch(self, piece_bytes: int, name: Name, host: int, block: int, attempt: int) -> Work[None]:
        """Process: make one attempt to read a piece of a block from one of its replicas."""
        nodes, local = self.replicas(name, host, block), self._local_node(host)
        node = (
            nodes[0]
            if nodes[0] == local
            else nodes[uniform(len(nodes), self.seed, "reads", *name, block, number=attempt)]
        )
        ways = [self._nodes[node].disk, *self._limit()]
        if node != local:
            ways += [self._nodes[node].leaving, self.cards.into(host)]
        yield from self.network.transfer(piece_bytes, [link for link in ways if link is not None])

    def _local_node(self, host: int) -> int | None:
        """Return the node on which a TaskManager runs, or None if it runs on none."""
        return host % self.options.nodes if self.options.local_first and host >= 0 else None

    def _limit(self) -> list[Link | None]:
        """Return the link that limits one stream, if any."""
        rate = self.options.stream_bytes_per_second
        return [] if rate is None else [ConstantRateLink(rate)]


class _DfsFile:
    """A file of the distributed file system that is being written."""

    def __init__(self, dfs: DistributedFileSystem, name: Name, host: int) -> None:
        self.dfs = dfs
        self.name = name
        self.host = host
        self._created = False
        self._blocks = 0
        self._room_bytes = 0  # left in the current block

    def write(self, size_bytes: int) -> Work[None]:
        yield from self._create()
        while size_bytes > 0:
            if self._room_bytes == 0:
                yield from self.dfs.metadata.request("block", self.name, self._blocks)
                self._room_bytes, self._blocks = self.dfs.options.block_bytes, self._blocks + 1
            piece = min(size_bytes, self._room_bytes)
            yield from self.dfs.attempts.run_with_retries(
                lambda attempt, piece=piece: self.dfs.send(piece, self.name, self.host, self._blocks - 1, attempt)  # type: ignore[misc]
            )
            self._room_bytes -= piece
            size_bytes -= piece

    def close(self) -> Work[None]:
        yield from self._create()
        yield from self.dfs.metadata.request("close", self.name)

    def give_up(self) -> None:
        """Do nothing: blocks of the file are abandoned, and its lease expires."""

    def _create(self) -> Work[None]:
        """Process: send the request that creates the file, unless it was sent before."""
        if not self._created:
            self._created = True
            yield from self.dfs.metadata.request("create", self.name)


class _Node:
    """The links of one node: network input, network output and disk, each None if it is unlimited."""

    def __init__(self, options: Dfs, seed: int, node: int) -> None:
        self.arriving, self.leaving = (node_link(options.nic_bytes_per_second, None, seed, node) for _ in "io")
        self.disk = node_link(options.bytes_per_second, options.slow, seed, node)


DFS = MediumPlugin("dfs", DistributedFileSystem)
