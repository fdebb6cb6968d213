"""The metadata server (HDFS: NameNode): requests wait in line, so many small files slow all clients down."""

from __future__ import annotations

from sim.model.job import Distribution
from sim.storage.attempts import Attempts
from sim.storage.ledger import Name
from sim.storage.media.draws import drawn
from sim.storage.work import Work


class MetadataServer:
    """The metadata server: it serves one request at a time, first come, first served.

    The latency of the way there and back comes on top, and does not occupy the server.
    """

    def __init__(self, attempts: Attempts, latency: Distribution, service: Distribution | None, seed: int) -> None:
        self.attempts = attempts
        self.latency = latency
        self.service = service
        self.seed = seed
        self._free_ns = 0  # when all that has come so far is served

    def request(self, what: str, name: Name, number: int = 0) -> Work[None]:
        """Process: one request about a file; `number` tells the requests about one file apart.  Raises StorageFailed."""
        yield from self.attempts.insist(lambda attempt: self._once((what, *name, number, attempt)))

    def _once(self, key: Name) -> Work[None]:
        now = self.attempts.now
        if self.service is not None:
            self._free_ns = max(now, self._free_ns) + drawn(self.service, self.seed, "service", *key)
        spent_ns = max(0, self._free_ns - now) + drawn(self.latency, self.seed, "latency", *key)
        if spent_ns:
            yield self.attempts.wait(spent_ns)
