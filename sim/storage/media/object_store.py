"""An object store such as S3.  An object exists from its close on, and cannot be appended to.

Data is uploaded in parts, several at a time, each as soon as it is full.  The last part is sent on close.  A small file is
uploaded by a single request.  Each request has a latency in addition to its transfer.  Requests beyond the rate limit of a
prefix are rejected (503 Slow Down), and retried after a pause.

Sources: S3 user guide (multipart uploads, request rates); flink-s3-fs-base; for the additional requests of the Presto
client, PrestoS3FileSystem#create, #getFileStatus and #delete.
"""

from __future__ import annotations

from collections.abc import Callable

import simpy

from sim.model.storage import ObjectStore
from sim.model.units import SECOND
from sim.storage.ledger import Name, Refused, StorageFailed
from sim.storage.media.slow_nodes import SlowLink, sample_distribution, slowness, uniform
from sim.storage.medium import MediumPlugin
from sim.storage.network import ConstantRateLink, Link, NetworkInterfaces, SharedNetwork
from sim.storage.requests import Attempts, ImmediateEvent, RequestLog, Work


class RequestLimit:
    """A limit of requests per second and prefix, with a burst of one second (generic cell rate algorithm)."""

    def __init__(self, per_second: int) -> None:
        self.per_second = per_second
        self._spent_until: dict[int, int] = {}  # prefix -> theoretical arrival time [ns x per_second]

    def admits(self, prefix: int, now: int) -> bool:
        """Return True if a request is within the limit of its prefix, and count it in this case."""
        at = now * self.per_second
        until = max(at, self._spent_until.get(prefix, 0))
        if until + SECOND - at > self.per_second * SECOND:
            return False
        self._spent_until[prefix] = until + SECOND
        return True


class ObjectStorage:
    """The object store of one run."""

    def __init__(
        self, attempts: Attempts, network: SharedNetwork, cards: NetworkInterfaces, options: ObjectStore, seed: int
    ) -> None:
        self.attempts = attempts
        self.network = network
        self.cards = cards
        self.options = options
        self.seed = seed
        self.requests = RequestLog()
        # called with (request, file, whether the limit admits it) when it is sent, and with None when it is answered
        self.on_request: Callable[[str, Name, bool | None], None] = lambda *_: None
        self._limit = None if options.requests_per_second is None else RequestLimit(options.requests_per_second)
        slow = options.slow
        self._slowness = None if slow is None else [slowness(slow, seed, prefix) for prefix in range(options.prefixes)]

    def prefix(self, name: Name) -> int:
        """Return the number of the prefix of a file."""
        return uniform(self.options.prefixes, self.seed, "prefix", *name)

    def open(self, name: Name, host: int) -> _Object:
        return _Object(self, name, host)

    def read(self, size_bytes: int, name: Name, host: int) -> Work[None]:
        """Process: read an object by one request."""
        yield from self.request("get", name, size_bytes, self.cards.into(host))

    def remove(self, name: Name, size_bytes: int, host: int) -> Work[None]:
        """Process: delete an object by one request.  The Presto client looks it up before."""
        if self.options.client == "presto":
            yield from self.request("head", name)
        yield from self.request("delete", name)
        self.requests.removed(name, self.attempts.now)

    def look(self, name: Name) -> Work[None]:
        """Process: send the requests by which the Presto client checks whether a file or directory exists; others send none."""
        if self.options.client == "presto":
            yield from self.request("exists", name)
            yield from self.request("list", name)

    def request(
        self, what: str, name: Name, size_bytes: int = 0, card: Link | None = None, number: int = 0
    ) -> Work[None]:
        """Process: send a request about a file, and transfer its payload.  Raises StorageFailed.

        `what`: a key of `sim.storage.requests.PRICED_AS`.  `card`: network interface of the client, None if unlimited.
        `number`: number of the part.
        """
        yield from self.attempts.run_with_retries(
            lambda attempt: self._once((what, *name, number, attempt), name, size_bytes, card)
        )

    def _once(self, key: Name, name: Name, size_bytes: int, card: Link | None) -> Work[None]:
        latency_ns = sample_distribution(self.options.latency, self.seed, "latency", *key)
        prefix = self.prefix(name)
        admitted = self._limit is None or self._limit.admits(prefix, self.attempts.now)
        self.on_request(str(key[0]), name, admitted)
        if self._slowness is not None:
            factor, _ = self._slowness[prefix].at(self.attempts.now)
            latency_ns = latency_ns * factor.numerator // factor.denominator
        if latency_ns:
            yield self.attempts.wait(latency_ns)
        if not admitted:
            self.requests.refused(self.attempts.now)
            raise Refused("503 Slow Down")
        links = [card, self._stream(prefix)]
        yield from self.network.transfer(size_bytes, [link for link in links if link is not None])
        self.requests.answered(str(key[0]), self.attempts.now, size_bytes)
        self.on_request(str(key[0]), name, None)

    def _stream(self, prefix: int) -> Link | None:
        """Return the link that limits the bandwidth of one request, or None."""
        rate = self.options.bytes_per_second
        if rate is None:
            return None
        return ConstantRateLink(rate) if self._slowness is None else SlowLink(rate, self._slowness[prefix])


class _Object:
    """An object that is being written: its parts in transfer, and the bytes of an incomplete part."""

    def __init__(self, store: ObjectStorage, name: Name, host: int) -> None:
        self.store = store
        self.name = name
        self.host = host
        self._waiting_bytes = 0  # bytes of the incomplete part
        self._size_bytes = 0  # total
        self._parts = 0  # number of parts whose transfer has begun
        self._under_way: dict[int, simpy.Process] = {}  # number of a part in transfer -> its process
        self._failure: StorageFailed | None = None  # failure of a part
        self._next_end: ImmediateEvent | None = None  # fires when the transfer of a part ends
        self._busy = False  # a write or close is in progress
        self._given_up = False

    def write(self, size_bytes: int) -> Work[None]:
        """Process: append bytes.  It ends when the transfer of all full parts has begun."""
        yield from self._run_to_completion(self._write(size_bytes))

    def close(self) -> Work[None]:
        yield from self._run_to_completion(self._close())
        self.store.requests.created(self.name, self._size_bytes, self.store.attempts.now)

    def give_up(self) -> None:
        """Abandon the multipart upload.  (The abort request is not modelled.)

        A write in progress continues to its end, because the writing thread closes the client's stream.
        """
        self._given_up = True
        if not self._busy:
            self._stop()

    def _run_to_completion(self, work: Work[None]) -> Work[None]:
        """Process: run a write or close.  If the file is abandoned during it, stop the transfers of its parts at its end."""
        self._busy = True
        try:
            yield from work
        finally:
            self._busy = False
            if self._given_up:
                self._stop()

    def _stop(self) -> None:
        """Interrupt the transfers of all parts."""
        under_way, self._under_way = self._under_way, {}
        for process in under_way.values():
            process.interrupt()

    def _write(self, size_bytes: int) -> Work[None]:
        self._waiting_bytes += size_bytes
        self._size_bytes += size_bytes
        while self._waiting_bytes > self.store.options.part_bytes:
            yield from self._until_at_most(self.store.options.parallel_parts - 1)
            if self._parts == 0:
                yield from self.store.look(self.name)
                yield from self._request("initiate")
            self._send(self.store.options.part_bytes)
        self._reject()

    def _close(self) -> Work[None]:
        if self._parts == 0:
            yield from self.store.look(self.name)
            yield from self._request("put", self._waiting_bytes)
            return
        yield from self._until_at_most(self.store.options.parallel_parts - 1)
        self._send(self._waiting_bytes)
        yield from self._until_at_most(0)
        yield from self._request("complete")

    def _send(self, size_bytes: int) -> None:
        """Start the transfer of the next part."""
        self._waiting_bytes -= size_bytes
        number, self._parts = self._parts, self._parts + 1
        self._under_way[number] = self.store.attempts.env.process(self._part(number, size_bytes))

    def _part(self, number: int, size_bytes: int) -> Work[None]:
        """Process: transfer a part, and wake the writer at its end."""
        try:
            yield from self._request("part", size_bytes, number)
        except StorageFailed as failure:
            self._failure = failure
        except simpy.Interrupt:
            return
        if self._under_way.pop(number, None) is None:
            return  # stopped at the present time
        if self._next_end is not None:
            self.store.attempts.fire(self._next_end)

    def _until_at_most(self, parts: int) -> Work[None]:
        """Process: wait until at most this number of parts is in transfer.  Raises StorageFailed if a part has failed."""
        while len(self._under_way) > parts and self._failure is None:
            self._next_end = ImmediateEvent(self.store.attempts.env)
            yield self._next_end
        self._reject()

    def _request(self, what: str, size_bytes: int = 0, number: int = 0) -> Work[None]:
        yield from self.store.request(what, self.name, size_bytes, self.store.cards.out(self.host), number)

    def _reject(self) -> None:
        """Raise the failure of a part, if there is one."""
        if self._failure is not None:
            raise self._failure


OBJECT_STORE = MediumPlugin("object-store", ObjectStorage)
