"""How much keyed state a subtask holds as records are served: always the same, more with each record, or keys that come and go."""

from __future__ import annotations

from fractions import Fraction

from sim.model.state import State
from sim.state.backend import Backend
from sim.state.expiry import Ages, Expiry


class Turnover:
    """The size of state that neither grows nor expires."""

    @property
    def ages(self) -> Ages:
        """The last writes of the keys that expire."""
        return ()

    def stand(self, ages: Ages, now_ns: int) -> None:
        """Take over the keys of a snapshot."""

    def resize(self, backend: Backend, served: int, records: int, rewritten: int, now_ns: int) -> None:
        """Tell the backend what it holds after `served` records in all, the last `records` since it was told."""


class Growing(Turnover):
    """The size of state to which records add keys that stay."""

    def __init__(self, state: State, begun_bytes: int, share: Fraction) -> None:
        self.state = state
        self.begun_bytes = begun_bytes
        self.share = share

    def resize(self, backend: Backend, served: int, records: int, rewritten: int, now_ns: int) -> None:  # noqa: ARG002
        backend.resize(self.begun_bytes + self.state.added_bytes(self.begun_bytes, served, self.share))


class Expiring(Turnover):
    """The size of state whose keys expire by the clock."""

    def __init__(self, state: State, expiry: Expiry) -> None:
        self.state = state
        self.expiry = expiry

    @property
    def ages(self) -> Ages:
        return self.expiry.ages

    def stand(self, ages: Ages, now_ns: int) -> None:
        self.expiry.stand(ages, now_ns)

    def resize(self, backend: Backend, served: int, records: int, rewritten: int, now_ns: int) -> None:  # noqa: ARG002
        turnover = self.expiry.advance(self.state.growth_bytes * records, rewritten, now_ns)
        backend.resize(turnover.live_bytes, turnover.expired_bytes, records)


def turnover(state: State, begun_bytes: int, share: Fraction) -> Turnover:
    """The turnover of a subtask that holds `share` of the key groups and begins with so many bytes."""
    if state.ttl is not None:
        return Expiring(state, Expiry(state.ttl.after_ns, begun_bytes, state.value_bytes))
    return Growing(state, begun_bytes, share) if state.turns_over else Turnover()
