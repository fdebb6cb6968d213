"""The backend a vertex asks for."""

from __future__ import annotations

from collections.abc import Callable

from sim.model.state import State, StateOptions
from sim.state.backend import Backend
from sim.state.changelog import ChangelogBackend
from sim.state.compaction import CompactionThread
from sim.state.hashmap import Hashmap
from sim.state.rocksdb import RocksDb

Maker = Callable[[State, int, StateOptions, CompactionThread | None], Backend]
MAKERS: dict[str, Maker] = {
    "hashmap": lambda state, size_bytes, options, _: Hashmap(state, size_bytes, options),
    "rocksdb": RocksDb,
}
"""One for each name of BACKENDS."""


def backend(state: State, size_bytes: int, options: StateOptions, compaction: CompactionThread | None = None) -> Backend:
    """The keyed state of one subtask, `size_bytes` of it.  `compaction`: the thread of its task manager."""
    chosen = MAKERS[state.backend](state, size_bytes, options, compaction)
    if state.changelog is None:
        return chosen
    return ChangelogBackend(chosen, state, state.changelog, size_bytes, options.load_bytes_per_second)
