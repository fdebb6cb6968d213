"""Scenarios of which many differ in their seed alone: these are kept once, with their seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from sim.model.scenario import Scenario

_NAMES = tuple(field.name for field in fields(Scenario))

SEED = "run.seed"
"""The axis that only repeats a run."""
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SeededScenarios(Sequence[Scenario]):
    """Scenarios in order; one is made when it is asked for."""

    different: tuple[Scenario, ...]  # with one seed of each
    of: Integers  # place -> the scenario that it comes from
    seeds: Integers

    @classmethod
    def as_given(cls, scenarios: Iterable[Scenario]) -> SeededScenarios:
        """Scenarios with the seed that they have."""
        different = tuple(_sharing_parts(scenarios))
        return cls(different, np.arange(len(different)), np.array([scenario.run.seed for scenario in different], dtype=np.int64))

    @classmethod
    def crossed(cls, scenarios: Iterable[Scenario], seeds: Sequence[int], blocks: Sequence[int]) -> SeededScenarios:
        """Every scenario with every seed.  `blocks`: so many scenarios come with one seed, before they come with the next."""
        ends = np.cumsum(blocks, dtype=np.int64)
        of = [np.tile(np.arange(end - size, end), len(seeds)) for end, size in zip(ends, blocks, strict=True)]
        own = [np.repeat(np.array(seeds, dtype=np.int64), size) for size in blocks]
        return cls(tuple(_sharing_parts(scenarios)), np.concatenate(of), np.concatenate(own))

    def __len__(self) -> int:
        return len(self.of)

    @overload
    def __getitem__(self, place: int) -> Scenario: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Scenario, ...]: ...
    def __getitem__(self, place: int | slice) -> Scenario | tuple[Scenario, ...]:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(len(self))[place])
        scenario, seed = self.different[int(self.of[place])], int(self.seeds[place])
        if scenario.run.seed == seed:
            return scenario
        axes = tuple((axis, str(seed) if axis == SEED else value) for axis, value in scenario.axes)
        return replace(scenario, run=replace(scenario.run, seed=seed), axes=axes)

    def __iter__(self) -> Iterator[Scenario]:
        return (self[i] for i in range(len(self)))

    def values(self) -> dict[str, set[str]]:
        """Axis -> the values that it takes."""
        found: dict[str, set[str]] = {}
        for scenario in self.different:
            for axis, value in scenario.axes:
                found.setdefault(axis, set()).add(value)
        if SEED in found:
            found[SEED] |= set(map(str, np.unique(self.seeds).tolist()))
        return found


def _sharing_parts(scenarios: Iterable[Scenario]) -> Iterator[Scenario]:
    """The scenarios; parts that are equal to those of the scenario before are the same objects: they are hashed once."""
    before: Scenario | None = None
    for scenario in scenarios:
        if before is not None:
            pairs = ((name, getattr(before, name), getattr(scenario, name)) for name in _NAMES)
            same = {name: known for name, known, part in pairs if known is not part and known == part}
            before = replace(scenario, **same)
        else:
            before = scenario
        yield before
