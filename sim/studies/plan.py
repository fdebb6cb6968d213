"""The plan of a study: its cells (single runs) with their seeds, ids, and baselines (the same runs without checkpoints)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from sim.model.checkpoint import CheckpointOptions
from sim.model.faults import Fault, JobManagerDown, Kill, NetworkOutage, TaskManagerLost
from sim.model.frozen import frozen
from sim.model.scenario import Instances, Overheads, Scenario
from sim.model.storage import Directories, Storage
from sim.runtime.result import content, identity_of

# ---- Scenarios that differ only in their seed are stored once, with an array of seeds.

_NAMES = tuple(field.name for field in fields(Scenario))

SEED = "run.seed"
"""The axis of seeds.  Its values repeat a run with other random numbers."""
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SeededScenarios(Sequence[Scenario]):
    """A sequence of scenarios, stored as distinct scenarios and seeds.  An item is created when it is accessed."""

    different: tuple[Scenario, ...]  # scenarios that differ in more than their seed, each with one of its seeds
    of: Integers  # of[i]: index in `different` of item i
    seeds: Integers  # seeds[i]: seed of item i

    @classmethod
    def as_given(cls, scenarios: Iterable[Scenario]) -> SeededScenarios:
        """Return the scenarios with their own seeds."""
        different = tuple(_sharing_parts(scenarios))
        return cls(
            different,
            np.arange(len(different)),
            np.array([scenario.run.seed for scenario in different], dtype=np.int64),
        )

    @classmethod
    def crossed(cls, scenarios: Iterable[Scenario], seeds: Sequence[int]) -> SeededScenarios:
        """Return every scenario with every seed, ordered by scenario."""
        different = tuple(_sharing_parts(scenarios))
        of = np.repeat(np.arange(len(different)), len(seeds))
        return cls(different, of, np.tile(np.array(seeds, dtype=np.int64), len(different)))

    def __len__(self) -> int:
        return len(self.of)

    @overload
    def __getitem__(self, i: int) -> Scenario: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[Scenario, ...]: ...
    def __getitem__(self, i: int | slice) -> Scenario | tuple[Scenario, ...]:
        if isinstance(i, slice):
            return tuple(self[j] for j in range(len(self))[i])
        scenario, seed = self.different[int(self.of[i])], int(self.seeds[i])
        if scenario.run.seed == seed:
            return scenario
        axes = tuple((axis, str(seed) if axis == SEED else value) for axis, value in scenario.axes)
        return replace(scenario, run=replace(scenario.run, seed=seed), axes=axes)

    def values(self) -> dict[str, set[str]]:
        """Return the set of values of each axis, as text."""
        values: dict[str, set[str]] = {}
        for scenario in self.different:
            for axis, value in scenario.axes:
                values.setdefault(axis, set()).add(value)
        if SEED in values:
            values[SEED] |= set(map(str, np.unique(self.seeds).tolist()))
        return values


def _sharing_parts(scenarios: Iterable[Scenario]) -> Iterator[Scenario]:
    """Yield the scenarios.  Parts that equal those of the previous scenario become the same objects, so that they are hashed once."""
    before: Scenario | None = None
    for scenario in scenarios:
        if before is not None:
            pairs = ((name, getattr(before, name), getattr(scenario, name)) for name in _NAMES)
            equal = {name: shared for name, shared, part in pairs if shared is not part and shared == part}
            before = replace(scenario, **equal)
        else:
            before = scenario
        yield before


# ---- Cells: single runs, identified by a hash of their content. Replications differ in their seed.

Ids: TypeAlias = NDArray[np.bytes_]
"""Ids of runs, 20 characters each."""

_NO_CHECKPOINTS, _NOTHING_WRITTEN, _OVERHEADS = CheckpointOptions(interval_ns=None), Storage(), Overheads()
_INSTANCES, _DIRECTORIES = Instances(), Directories()


@frozen
class Cell:
    """A single run.  Runs with the same id have the same outcome, on any engine, process or cluster."""

    scenario: Scenario  # with `run.replications` 1
    id: str  # hash of the effective scenario, the seed and the code version
    replication: int = 0

    @property
    def is_baseline(self) -> bool:
        """Return True if the run has no checkpoints."""
        return _is_without_checkpoints(self.scenario)


@dataclass(frozen=True, eq=False)
class CellPlan(Sequence[Cell]):
    """A sequence of cells, stored as columns of 64 bytes per cell in total.  A cell is created when it is accessed."""

    scenarios: SeededScenarios  # scenario of each cell, with the seed of replication 0
    seed: Integers  # seed of the cell
    replication: Integers
    ids: Ids
    checkpointless_ids: Ids  # ids of the same runs without checkpoints (baselines)

    def __len__(self) -> int:
        return len(self.seed)

    @overload
    def __getitem__(self, i: int) -> Cell: ...
    @overload
    def __getitem__(self, i: slice) -> CellPlan: ...
    def __getitem__(self, i: int | slice) -> Cell | CellPlan:
        if isinstance(i, slice):
            return self.take(np.arange(len(self))[i])
        return Cell(with_run(self.scenarios[i], int(self.seed[i])), self.ids[i].decode(), int(self.replication[i]))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def take(self, places: Integers) -> CellPlan:
        """Return the cells at these positions.  All cells in order give self, so that large columns are not copied."""
        if len(places) == len(self) and np.array_equal(places, np.arange(len(self))):
            return self
        return self.with_columns(lambda column: column[places])

    def per_scenario(self, value: Callable[[Scenario], object]) -> NDArray[np.object_]:
        """Return `value` of each cell's scenario.  It is computed once per scenario, so it must not depend on the seed."""
        values = np.empty(len(self.scenarios.different), dtype=object)
        values[:] = list(map(value, self.scenarios.different))
        return values[self.scenarios.of]

    @property
    def is_without_checkpoints(self) -> NDArray[np.bool_]:
        """Return, for each cell, whether it has no checkpoints."""
        return self.per_scenario(_is_without_checkpoints).astype(bool)

    def simulated_ns(self) -> int:
        """Return the total simulated time of all cells [ns]."""
        return int(self.per_scenario(lambda scenario: scenario.run.duration_ns).sum())

    def axis(self, name: str) -> NDArray[np.object_]:
        """Return the value of an axis for each cell, as text; None for cells without this axis."""
        values = self.per_scenario(lambda scenario: dict(scenario.axes).get(name))
        if name == SEED:
            written = self.per_scenario(lambda scenario: scenario.run.seed)
            others = (self.scenarios.seeds != written) & (values != None)  # noqa: E711 - elementwise
            values[others] = [str(seed) for seed in self.scenarios.seeds[others].tolist()]
        return values

    def with_columns(self, changed: Callable[[NDArray[Any]], NDArray[Any]]) -> CellPlan:
        """Return the plan with `changed` applied to each column.  If all replications are the first ones, the seeds stay one array."""
        seeds = changed(self.scenarios.seeds)
        return CellPlan(
            SeededScenarios(self.scenarios.different, changed(self.scenarios.of), seeds),
            seeds if self.seed is self.scenarios.seeds else changed(self.seed),
            *map(changed, (self.replication, self.ids, self.checkpointless_ids)),
        )


def cells(scenarios: Iterable[Scenario]) -> CellPlan:
    """Return the cells of all replications of all scenarios, in the given order.  Equal runs have the same id."""
    return (
        _cells(scenarios)
        if isinstance(scenarios, SeededScenarios)
        else _cells.__wrapped__(SeededScenarios.as_given(scenarios))
    )


@lru_cache(maxsize=1)
def _cells(scenarios: SeededScenarios) -> CellPlan:
    """Compute the cells.  The result is cached, because it is needed to describe, to name and to run a sweep."""
    counts = np.array([scenario.run.replications for scenario in scenarios.different], dtype=np.int64)[scenarios.of]
    replication = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    of, first_seed = np.repeat(scenarios.of, counts), np.repeat(scenarios.seeds, counts)
    is_later = replication > 0
    seed = first_seed.copy() if is_later.any() else first_seed
    pairs = zip(first_seed[is_later].tolist(), replication[is_later].tolist(), strict=True)
    seed[is_later] = [_seed(*pair) for pair in pairs]
    return _with_ids(SeededScenarios(scenarios.different, of, first_seed), seed, replication)


def planned_of(cells: Sequence[Cell]) -> CellPlan:
    """Return the cells as a plan; a plan is returned unchanged."""
    if isinstance(cells, CellPlan):
        return cells
    seed = np.array([cell.scenario.run.seed for cell in cells], dtype=np.int64)
    replication = np.array([cell.replication for cell in cells], dtype=np.int64)
    scenarios = SeededScenarios(tuple(cell.scenario for cell in cells), np.arange(len(cells)), seed)
    return _with_ids(scenarios, seed, replication)


def distinct(planned: Sequence[Cell]) -> CellPlan:
    """Return the first cell with each id, in the order of the plan."""
    plan = planned_of(planned)
    return plan.take(np.sort(np.unique(plan.ids, return_index=True)[1]))


def baseline(scenario: Scenario) -> Scenario:
    """Return the same job and workload without checkpoints, the baseline of all strategies of that workload."""
    # stops end a job; savepoints are left out, because they cost time
    stops = tuple(action for action in scenario.actions if action.stop is not None)
    return replace(
        scenario,
        checkpoint=_NO_CHECKPOINTS,
        storage=_NOTHING_WRITTEN,
        overheads=_OVERHEADS,
        actions=stops,
        instances=_INSTANCES,
        directories=_DIRECTORIES,
        expect=(),
        axes=(),
        # as of a job without checkpoints, so that one is its own baseline; what cannot fail is not restarted
        restart=scenario.restart if scenario.faults else replace(scenario.restart, strategy="none"),
    )


def with_baselines(planned: Sequence[Cell]) -> CellPlan:
    """Return the plan with each missing baseline inserted before the first cell that is compared with it.

    Scenarios with a fault that restarts the job get no baseline: without checkpoints the job would read all records again,
    which would count as throughput.
    """
    plan = planned_of(planned)
    needs = ~plan.per_scenario(_restarts_for_sure).astype(bool) & ~np.isin(
        plan.checkpointless_ids, plan.ids[plan.is_without_checkpoints]
    )
    places = np.flatnonzero(needs)
    first = np.sort(places[np.unique(plan.checkpointless_ids[places], return_index=True)[1]])
    different, of = plan.scenarios.different, plan.scenarios.of
    bases = np.unique(of[first])  # scenarios that need a baseline
    bare = tuple(baseline(different[base]) for base in bases.tolist())
    joined = plan.with_columns(lambda column: np.insert(column, first, column[first]))
    at = first + np.arange(len(first))  # positions of the baselines in the new plan
    joined.scenarios.of[at] = len(different) + np.searchsorted(bases, of[first])
    joined.ids[at] = joined.checkpointless_ids[at]
    return replace(joined, scenarios=replace(joined.scenarios, different=(*different, *bare)))


def _with_ids(scenarios: SeededScenarios, seed: Integers, replication: Integers) -> CellPlan:
    """Return the plan with these columns, and compute the ids of its cells and of their baselines."""
    single = [with_run(scenario, scenario.run.seed) for scenario in scenarios.different]
    ids = _identities([content(scenario) for scenario in single], scenarios.of, seed)
    checkpointless_ids = _identities([content(baseline(scenario)) for scenario in single], scenarios.of, seed)
    return CellPlan(scenarios, seed, replication, ids, checkpointless_ids)


def _identities(contents: Sequence[bytes], of: Integers, seeds: Integers) -> Ids:
    """Return the id of each cell.  Each pair of content and seed is hashed once."""
    numbers = {run: i for i, run in enumerate(dict.fromkeys(contents))}
    number_of = np.array([numbers[run] for run in contents], dtype=np.int64)
    distinct_seeds, seed_of = np.unique(seeds, return_inverse=True)
    pairs, pair_of = np.unique(number_of[of] * len(distinct_seeds) + seed_of, return_inverse=True)
    runs, seed_list = list(numbers), distinct_seeds.tolist()
    names = (identity_of(runs[pair // len(seed_list)], seed_list[pair % len(seed_list)]) for pair in pairs.tolist())
    return np.fromiter(names, dtype="S20", count=len(pairs))[pair_of]


def with_run(scenario: Scenario, seed: int) -> Scenario:
    """Return the scenario with this seed and a single replication."""
    if (scenario.run.seed, scenario.run.replications) == (seed, 1):
        return scenario
    return replace(scenario, run=replace(scenario.run, seed=seed, replications=1))


def _is_without_checkpoints(scenario: Scenario) -> bool:
    return scenario.checkpoint.interval_ns is None


def _restarts_for_sure(scenario: Scenario) -> bool:
    """Return True if a planned fault certainly restarts the job during the run."""

    def restarts(fault: Fault) -> bool:
        if isinstance(fault.what, NetworkOutage):
            return fault.what.lasts_ns >= scenario.restart.heartbeat_timeout_ns
        return isinstance(fault.what, Kill | TaskManagerLost | JobManagerDown)

    return any(
        at_ns < scenario.run.duration_ns for fault in scenario.faults if restarts(fault) for at_ns in fault.when.at_ns
    )


def _seed(seed: int, replication: int) -> int:
    """Return the seed of a replication: the scenario's seed for replication 0, and a hash of both for others.

    It is not seed + replication, because that may be the seed of another scenario, whose runs would then be correlated.
    """
    if replication == 0:
        return seed
    return (
        int.from_bytes(
            hashlib.blake2b(repr((seed, "replication", replication)).encode(), digest_size=4).digest(), "little"
        )
        >> 1
    )


# ---- Names of results folders.


def run_folder(name: str, scenarios: Iterable[Scenario]) -> str:
    """Return the folder name ``<name>-<hash>``, which is the same for the same study and code version."""
    return f"{slug(name)}-{hashlib.blake2b(cells(scenarios).ids.tobytes(), digest_size=4).hexdigest()}"


def slug(text: str) -> str:
    """Return a text as lower-case words joined by hyphens, for the name of a folder; ``run`` if no word is left."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "run"


def is_of_workload(axis: str) -> bool:
    """Return True if an axis belongs to the workload or the environment, and not to the strategy."""
    return axis.startswith(("job.", "storage.", "cluster.", "faults", "run.", "overheads."))


def label(scenario: Scenario, is_chosen: Callable[[str], bool] = lambda _: True) -> str:
    """Return the label of a strategy: name and value of each axis for which `is_chosen` is True; barrier modes have no name.

    Without axes, the label is the barrier mode, or ``no checkpoints``.
    """
    if not scenario.axes:
        return "no checkpoints" if scenario.checkpoint.interval_ns is None else str(scenario.checkpoint.barriers)
    axes = [(axis, value) for axis, value in scenario.axes if is_chosen(axis)]
    names = _short_names([axis for axis, _ in scenario.axes])
    return ", ".join(
        value if axis.endswith("barriers") or not axis else f"{names[axis]} {value}" for axis, value in axes
    )


def _short_names(axes: Sequence[str]) -> dict[str, str]:
    """Return the last part of the key of each axis, with the first part that differs from another axis of the same name."""
    names = {}
    for axis in axes:
        *parts, name = axis.split(".")
        others = [other.split(".")[:-1] for other in axes if other != axis and other.rpartition(".")[2] == name]
        differing = (part for part, *same in zip(parts, *others) if set(same) != {part})  # noqa: B905 - of any length
        names[axis] = f"{next(differing, '')} {name}".strip() if others else name
    return names
