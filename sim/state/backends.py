"""The backend a vertex asks for."""

from __future__ import annotations

from collections.abc import Callable

from sim.model.state import State, StateOptions
from sim.state.backend import Backend
from sim.state.changelog import ChangelogBackend
from sim.state.hashmap import Hashmap
from sim.state.rocksdb import RocksDb

__all__ = ["backend"]

_BACKENDS: dict[str, Callable[[State, int, StateOptions], Backend]] = {"hashmap": Hashmap, "rocksdb": RocksDb}


def backend(state: State, size_bytes: int, options: StateOptions) -> Backend:
    """The keyed state of one subtask, `size_bytes` of it."""
    chosen = _BACKENDS[state.backend](state, size_bytes, options)
    if state.changelog is None:
        return chosen
    return ChangelogBackend(chosen, state, state.changelog, size_bytes, options.load_bytes_per_second)
