"""A run's identity: the same scenario the same, any other another; the engine is not in it."""

import dataclasses
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import sim
from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.model.cluster import Cluster, Debloating, NetworkMemory
from sim.model.job import Distribution, Input, Job, Rate, Snapshot, Source, Vertex
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.state import State
from sim.model.storage import Storage
from sim.runtime import manifest as room
from sim.runtime.manifest import identity

SOURCE = Vertex("source", source=Source((Rate(0, Fraction(7, 3)),), total=5))
INLET = Input("source", "hash", (Fraction(1),), record_bytes=Distribution(100, "lognormal", 0.5))
MAP = Vertex("map", inputs=(INLET,), state=State(5), snapshot=Snapshot(sync_ns=3))


def scenario():
    """No field of any part is left out of the identity: this one has every part."""
    network = NetworkMemory(debloat=Debloating())
    options = CheckpointOptions(30, Barriers("aligned-timeout", 5), forced_aligned=(("source", "map"),))
    return Scenario(
        "?", "base", Job((SOURCE, MAP)), options, Run(100, seed=9), Cluster(network=network), Storage(), Overheads()
    )


def variants(value):
    """Copies of a nested value with one leaf changed each, named by their path."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            for path, other in variants(getattr(value, field.name)):
                yield f".{field.name}{path}", replace(value, **{field.name: other})
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            for path, other in variants(item):
                yield f"[{i}]{path}", (*value[:i], other, *value[i + 1 :])
    elif isinstance(value, bool):
        yield "", not value
    elif isinstance(value, str):
        yield "", value + "x"
    elif value is None:
        yield "", 1
    else:
        yield "", value + 1


def test_the_code_version_is_that_of_the_whole_package():
    """Not of one room of it."""
    assert Path(sim.__file__).parent == room._PACKAGE


SERIES = tuple(Rate(at, Fraction(at + 1, 3)) for at in range(room.SERIES_ITEMS))


def with_series(series):
    base = scenario()
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
