"""The restart strategies of Flink: one record each, with the facts that other rooms need.

What a strategy decides is a class of `sim.protocol.recovery.restart`; documents, Flink's keys and advice read the record.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.model.catalogs.catalog import Catalog


@dataclass(frozen=True, slots=True)
class RestartKind:
    """A restart strategy."""

    name: str  # as a scenario writes it
    limit: str = ""  # the option of `restart:` that says when it gives up; empty: it restarts nothing
    delays: tuple[str, ...] = ()  # options that say how long it waits, the longest first
    also: tuple[str, ...] = ()  # other words of Flink's for it (RestartStrategyOptions)

    @property
    def spellings(self) -> tuple[str, ...]:
        """What Flink's configuration may call it, with hyphens as underscores."""
        return tuple(dict.fromkeys((self.name.replace("-", ""), self.name.replace("-", "_"), *self.also)))


RESTARTS: Catalog[RestartKind] = Catalog(
    RestartKind("none", also=("off", "disable")),
    RestartKind("fixed-delay", "attempts", ("delay",)),
    RestartKind("exponential-delay", "attempts", ("max", "initial")),
    RestartKind("failure-rate", "rate", ("delay",)),
)
