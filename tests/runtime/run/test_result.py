"""A result in a folder, a run's identity, and what many runs in one process leave behind."""

import gc
import json
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import sim
from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.model.cluster import Cluster, Debloating, NetworkMemory
from sim.model.job import Distribution, Input, Job, Rate, Snapshot, Source, Vertex
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.state import State
from sim.model.storage import Storage
from sim.protocol.options import FailureReason
from sim.results.journal import Entry, EventType
from sim.runtime import result as room
from sim.runtime.result import identity
from sim.runtime.simulate import simulate
from tests.invariants.jobs.small_jobs import UNALIGNED, chain, scenario

# A result in a folder: every file whole, reread equal, never half written.


@pytest.fixture(scope="module")
def result():
    return simulate(scenario(chain(1), UNALIGNED, seconds=1))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_failed_write_leaves_what_was_there(result, tmp_path, monkeypatch):
    """The disk fills up in the middle of a table: the old file stays whole, nothing half written lies beside it."""

    def full(_self, path, **_options):
        Path(path).write_bytes(b"PAR1 half of")
        raise OSError("no space left on device")

    result.write(tmp_path)
    before = contents(tmp_path)
    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(OSError, match="no space left"):
        result.write(tmp_path)

    assert before == contents(tmp_path)


@pytest.mark.parametrize(
    ("actions", "rescales", "count"), [(1, [], 1), (0, [True], 1), (0, [False, True], 1), (0, [], 0), (0, [False], 0)]
)
def test_what_was_asked_in_vain_is_told_where_users_asked(result, actions, rescales, count):
    """Savepoints and stops, those of a rescale as well; a checkpoint that the coordinator skips was asked for by nobody."""
    reason = next(iter(FailureReason))
    wishes = SimpleNamespace(
        actions=("a savepoint",) * actions, rescale=[SimpleNamespace(savepoint=own) for own in rescales]
    )
    journal = [
        Entry(10**9, EventType.REFUSED, number=1, detail=reason.name),
        Entry(2 * 10**9, EventType.REFUSED, detail=reason.name),
    ]
    found = replace(result, scenario=wishes, journal=journal).refused

    assert count == len(found)
    assert all(reason.text.rstrip(".") in sentence for sentence in found)


# A run's identity: the same scenario the same, any other another; the engine is not in it.


SOURCE = Vertex("source", source=Source((Rate(0, Fraction(7, 3)),), total=5))
INLET = Input("source", "hash", (Fraction(1),), record_bytes=Distribution(100, "lognormal", 0.5))
MAP = Vertex("map", inputs=(INLET,), state=State(5), snapshot=Snapshot(sync_ns=3))


def manifest_scenario():
    """No field of any part is left out of the identity: this one has every part."""
    network = NetworkMemory(debloat=Debloating())
    options = CheckpointOptions(30, barriers=Barriers("aligned-timeout", 5), forced_aligned=(("source", "map"),))
    return Scenario(
        "?", "base", Job((SOURCE, MAP)), options, Run(100, seed=9), Cluster(network=network), Storage(), Overheads()
    )


def test_the_code_version_is_that_of_the_whole_package():
    """Not of one room of it."""
    assert Path(sim.__file__).parent == room._PACKAGE


SERIES = tuple(Rate(at, Fraction(at + 1, 3)) for at in range(room.SERIES_ITEMS))


def with_series(series):
    base = manifest_scenario()
    source = replace(SOURCE, source=replace(SOURCE.source, rates=series))
    return replace(base, job=replace(base.job, vertices=(source, *base.job.vertices[1:])))


def test_a_long_series_counts_by_what_is_in_it():
    """Equal series that are not the same object are the same run; one other value is another run."""
    other = (*SERIES[:-1], replace(SERIES[-1], per_second=Fraction(1)))

    assert identity(with_series(SERIES)) == identity(with_series((*SERIES,)))
    assert identity(with_series(SERIES)) != identity(with_series(other))
    assert identity(with_series(SERIES)) != identity(with_series(SERIES[::-1]))


def test_a_shared_series_is_read_once(monkeypatch):
    """All settings of a sweep have the series of the window: thousands of steps, and thousands of cells."""
    room._digest.cache_clear()
    texts = []
    monkeypatch.setattr(room, "_text", lambda plain: texts.append(plain) or json.dumps(plain, sort_keys=True))
    for seed in range(3):
        identity(replace(with_series(SERIES), run=Run(100, seed=seed)))

    assert sum(isinstance(plain, list) and len(plain) == len(SERIES) for plain in texts) == 1


# What many runs in one process leave behind.


@pytest.mark.slow
def test_runs_leave_no_memory_allocated(study):
    """Objects and arrays are counted, not pages of the process: what an allocator keeps is not ours."""
    bytes_per_run, runs = 1_000, 40

    def allocated_after(seeds):
        for seed in seeds:
            scenario = study.scenarios[seed % 2]
            simulate(replace(scenario, run=replace(scenario.run, seed=seed)))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = allocated_after(range(20))
        after = allocated_after(range(20, 20 + runs))
    finally:
        tracemalloc.stop()

    assert after - before < runs * bytes_per_run
