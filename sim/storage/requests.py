"""The requests that an object store has answered, second by second: what its price list counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sim.storage.ledger import Name
from sim.units import SECOND

PRICED_AS = {
    "put": "put", "initiate": "put", "part": "put", "complete": "put", "list": "list", "get": "get", "head": "get", "exists": "get",
    "delete": "delete",
}  # fmt: skip
"""Request -> the class of the price list that it belongs to (S3: PUT, COPY, POST; LIST; GET and all others; DELETE is free)."""


@dataclass(slots=True)
class RequestSecond:
    """The requests of one second, and what the store held at its end."""

    time: int
    put: int = 0
    get: int = 0
    list: int = 0
    delete: int = 0
    written: int = 0
    read: int = 0
    stored: int = 0


class RequestLog:
    """Counts requests that were answered; one that is turned away (503) is not charged."""

    def __init__(self) -> None:
        self._seconds: list[RequestSecond] = []
        self._sizes: dict[Name, int] = {}  # objects that are there
        self._stored_bytes = 0

    def __iter__(self) -> Iterator[RequestSecond]:
        """Seconds without a request are left out."""
        return iter(self._seconds)

    def answered(self, what: str, now_ns: int, size_bytes: int) -> None:
        second, kind = self._at(now_ns), PRICED_AS[what]
        setattr(second, kind, getattr(second, kind) + 1)
        if kind == "put":
            second.written += size_bytes
        else:
            second.read += size_bytes

    def created(self, name: Name, size_bytes: int, now_ns: int) -> None:
        """An object is there, in place of an older one with its name."""
        self._stored_bytes += size_bytes - self._sizes.get(name, 0)
        self._sizes[name] = size_bytes
        self._at(now_ns).stored = self._stored_bytes

    def removed(self, name: Name, now_ns: int) -> None:
        self._stored_bytes -= self._sizes.pop(name, 0)
        self._at(now_ns).stored = self._stored_bytes

    def _at(self, now_ns: int) -> RequestSecond:
        time = now_ns // SECOND
        if not self._seconds or self._seconds[-1].time != time:
            self._seconds.append(RequestSecond(time, stored=self._stored_bytes))
        return self._seconds[-1]
