"""Cells as bytes, for Spark tasks.

task:     [(scenario, [(seed, id, replication), ...]), ...]    a scenario is sent once for all its seeds
scenario: pickled, with the digest in place of each long series, such as the rates of a trace
series:   a broadcast variable per digest, which executors fetch once; a day of rates has 1.4 MB
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from sim.model.packed_records import PackedRecords
from sim.studies.plan import Cell, CellPlan, with_run

MIN_SHARED_ITEMS = 1000
"""Minimum items of a series that is broadcast; shorter ones take less time as a part of their scenario."""


class CellPacker:
    """Packs the cells of a plan.  `broadcast`: returns the broadcast variable of a value."""

    def __init__(self, planned: CellPlan, broadcast: Callable[[bytes], Any]) -> None:
        self._planned, self._broadcast = planned, broadcast
        self._scenarios: dict[int, tuple[bytes, set[str]]] = {}  # scenario of the plan -> it packed, its digests
        self._digests: dict[int, tuple[Any, str]] = {}  # id of a series -> the series, its digest
        self._series: dict[str, Any] = {}  # digest -> broadcast variable

    def pack(self, tasks: Sequence[Sequence[int]]) -> tuple[list[bytes], dict[str, Any]]:
        """Return the packed tasks, given as indices of cells, and the broadcast variables that they need."""
        plan, used = self._planned, set[int]()

        def runs(cells: Iterator[int]) -> list[tuple[int, bytes, int]]:
            return [(int(plan.seed[i]), plan.ids[i], int(plan.replication[i])) for i in cells]

        packed = []
        for cells in tasks:
            groups = [(of, runs(same)) for of, same in groupby(cells, lambda i: int(plan.scenarios.of[i]))]
            used.update(of for of, _ in groups)
            packed.append(pickle.dumps([(self._scenario(of)[0], same) for of, same in groups]))
        digests = set[str]().union(*(self._scenario(of)[1] for of in used))
        return packed, {digest: self._series[digest] for digest in digests}

    def _scenario(self, of: int) -> tuple[bytes, set[str]]:
        if of not in self._scenarios:
            pickler = _Pickler(content := io.BytesIO(), self._digest)
            pickler.dump(self._planned.scenarios.different[of])
            self._scenarios[of] = content.getvalue(), pickler.digests
        return self._scenarios[of]

    def _digest(self, series: Any) -> str:
        """Return the digest of a series, and broadcast it the first time.  Scenarios share series, so each is hashed once."""
        if id(series) not in self._digests:
            content = pickle.dumps(series)
            digest = hashlib.blake2b(content, digest_size=16).hexdigest()
            self._digests[id(series)] = series, digest
            if digest not in self._series:
                self._series[digest] = self._broadcast(content)
        return self._digests[id(series)][1]


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, digest: Callable[[Any], str]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._digest, self.digests = digest, set[str]()

    def persistent_id(self, value: Any) -> str | None:
        if not (isinstance(value, tuple | PackedRecords) and len(value) >= MIN_SHARED_ITEMS):
            return None
        self.digests.add(digest := self._digest(value))
        return digest


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, series: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._series = series

    def persistent_load(self, digest: str) -> Any:
        return pickle.loads(self._series[digest].value)


def unpack(packed: bytes, series: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield the cells of a packed task.  `series`: the broadcast variables by digest."""
    for content, runs in pickle.loads(packed):
        scenario = _Unpickler(io.BytesIO(content), series).load()
        for seed, name, replication in runs:
            yield Cell(with_run(scenario, seed), name.decode(), replication)
