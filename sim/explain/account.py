"""A critical path with its causes: each part with the place it is spent at, why, and what would be without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from sim.explain.causes import Causes
from sim.explain.what_if import WhatIf, what_if
from sim.metrics.critical_path import CriticalPath, PathPart
from sim.metrics.stats import CheckpointStats

if TYPE_CHECKING:
    from sim.explain.close_up import ObservedInstance

NOTABLE = 0.05
"""Parts with at least this share of the duration are spoken about."""


@dataclass(frozen=True, slots=True)
class AccountLine:
    """A line of an account: consecutive parts of one kind at one place."""

    parts: tuple[PathPart, ...]
    place: str
    cause: str
    what_if: WhatIf | None = None  # None: nothing of it can be spared, or too little

    @property
    def name(self) -> str:
        return self.parts[0].kind.value

    @property
    def begin_ns(self) -> int:
        return self.parts[0].begin_ns

    @property
    def duration_ns(self) -> int:
        return self.parts[-1].end_ns - self.parts[0].begin_ns


@dataclass(frozen=True, slots=True)
class Account:
    """The explanation of one checkpoint: its critical path with causes."""

    strategy: str
    job: int  # number of the job instance; 0 if there is only one
    stats: CheckpointStats
    path: CriticalPath
    lines: tuple[AccountLine, ...]  # up to the last acknowledgement, or the failure
    after: tuple[AccountLine, ...]  # up to the last commit

    @property
    def longest(self) -> AccountLine:
        return max(self.lines, key=lambda line: line.duration_ns)

    @property
    def changes(self) -> tuple[WhatIf, ...]:
        """The changes that would save a notable share of the duration; none for an aborted checkpoint."""
        saved: dict[str, WhatIf] = {}
        for line in self.lines:
            if (change := line.what_if) is not None:
                before_ns = saved[change.change].saved_ns if change.change in saved else 0
                saved[change.change] = replace(change, saved_ns=before_ns + change.saved_ns)
        least_ns = NOTABLE * self.path.duration_ns
        return () if self.path.is_open else tuple(change for change in saved.values() if change.saved_ns >= least_ns)


def account(strategy: str, job: int, instance: ObservedInstance, checkpoint: int) -> Account:
    """The account of a checkpoint.  KeyError: there is no such checkpoint."""
    stats, path = instance.context.stats[checkpoint], instance.path_finder().of(checkpoint)
    causes = Causes(instance, checkpoint)
    lines = tuple(_lines(path.parts, causes, instance))
    return Account(strategy, job, stats, path, lines, tuple(_lines(path.after, causes, instance)))


def _lines(parts: tuple[PathPart, ...], causes: Causes, instance: ObservedInstance) -> Iterator[AccountLine]:
    for (kind, _, _), group in groupby(parts, key=lambda part: (part.kind, part.task, part.channel)):
        alike = tuple(group)
        yield AccountLine(alike, causes.place(alike[0]), causes.text(alike), what_if(kind, alike, causes.slow(alike), instance.context))
