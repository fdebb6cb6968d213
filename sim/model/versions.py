"""Versions of Flink and of its connectors, in their order.

A version is a span: 1.20.1 is one release, 1.20 and 2.x are all releases of a branch, and so is the build of a vendor (1.15.2-csa1),
who may have patched it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

OLDEST_PROFILE: Final = "1.15"

_Key = tuple[int, ...]
"""Four numbers, then 1 for a release, or 0 and a number for what came before it (1.1.0-rc2)."""

_FORM = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,3})(\.x)?(?:-?(rc|snapshot|alpha|beta)[-.]?(\d{0,9}))?(?:-[\d.]+)?([-+].*)?")
_LAST = (10**9,)


class Span(NamedTuple):
    """Versions from `low` up to `high`, which is not one of them."""

    low: _Key
    high: _Key

    def is_in(self, others: Sequence[Span]) -> bool | None:
        """Whether all of it is in one of the others; None: a part of it is."""
        touched = [other for other in others if self.low < other.high and other.low < self.high]
        return (any(other.low <= self.low and self.high <= other.high for other in touched) or None) if touched else False


def version_span(text: str) -> Span:
    """The versions that are meant by 1.20.1, 1.20, 2.x, 1.1.0-rc1, 2.3-SNAPSHOT or 3.2.0-1.19 (of a connector).  ValueError: none is."""
    match = _FORM.fullmatch(text.strip().lower().replace("_", "."))
    if match is None:
        raise ValueError(f"'{text[:40]}' is not a version: write 1.20.1, or 1.20 if the patch release is not known")
    given, branch_only, early, number, vendor = match.groups()
    numbers = tuple(map(int, given.split(".")))
    whole = (*numbers, 0, 0, 0)[:4]
    if early:
        return Span((*whole, 0, int(number or 0)), (*whole, 0, int(number or 0), 0))
    if len(numbers) > 2 and not branch_only and not vendor:
        return Span((*whole, 1), (*whole, 1, 0))
    return Span((*(*numbers[:2], 0, 0, 0)[:4], 1), _behind(numbers[:2]))


def spans_from(versions: Sequence[str]) -> list[Span]:
    """What has a change that came with each of these: the rest of its branch (1.19.3), and of the newest all later versions, too."""
    lows = sorted(version_span(text).low for text in versions)
    return [Span(low, _LAST if low == lows[-1] else _behind(low[:2])) for low in lows]


def _behind(branch: _Key) -> _Key:
    return (*branch[:-1], branch[-1] + 1)


def profile_of(version: str) -> str:
    """The profile of `cluster:` whose constants hold in a version of Flink."""
    low = version_span(version).low
    return "2.x" if low >= (2,) else "1.20" if low >= (1, 16) else OLDEST_PROFILE


class OlderDefault(NamedTuple):
    """The default of an option in releases before `since`, where it differs from the oldest profile's."""

    since: str
    section: str
    key: str
    value: str | int
    why: str


OLDER_DEFAULTS = (
    OlderDefault("1.15", "checkpoint", "finish", "off", "checkpoints after tasks finished, FLIP-147, are on since 1.15"),
    OlderDefault("1.14", "restart", "heartbeat-failures", 0, "refused heartbeats count since 1.14, FLINK-23209"),
)


def older_defaults(version: str) -> list[OlderDefault]:
    """Those that hold in all releases that the version can mean."""
    return [older for older in OLDER_DEFAULTS if version_span(version).high <= version_span(older.since).low]
