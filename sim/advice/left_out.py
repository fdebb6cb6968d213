"""What an advice did not run, and why: settings by their names, as far as they did not run for another reason."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sim.prose import listed
from sim.units import parse_duration

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Settings that did not run, and the reason.

    `settings`: (interval, protocol) of each; none: `what` names them.
    """

    reason: str
    settings: tuple[_Name, ...] = ()
    what: str = ""

    def sentence(self, ran: Collection[_Name]) -> str:
        """``every 3 min and 10 min: recovery takes too long``; empty: all of them have run since."""
        left = [name for name in self.settings if name not in ran]
        if self.settings and not left:
            return ""
        return f"{_every(left, self.settings, ran) if left else self.what}: {self.reason}"


def _every(left: Collection[_Name], all_of: Collection[_Name], ran: Collection[_Name]) -> str:
    """Intervals ascending; beside those that have rows in the table, which ones these are."""
    found = []
    for interval in sorted({interval for interval, _ in left}, key=parse_duration):
        missing, own = ({protocol for other, protocol in names if other == interval} for names in (left, all_of))
        others = {protocol for other, protocol in ran if other == interval}
        if done := own - missing:
            found.append(f"{interval} ({'only ' if len(done) < len(missing) else ''}{listed(sorted(done))} ran)")
        else:
            found.append(f"{interval} without levers" if others else interval)
    return f"every {listed(found)}"
