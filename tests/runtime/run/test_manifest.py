"""A run's identity: the same scenario the same, any other another; the engine is not in it."""

import dataclasses
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import sim
from sim.model.checkpoint import Barriers, CheckpointOptions
from sim.model.cluster import Cluster, Debloating, NetworkMemory
from sim.model.job import Distribution, Input, Job, Rate, Snapshot, Source, Vertex
from sim.model.scenario import Overheads, Run, Scenario
from sim.model.state import State
from sim.model.storage import Storage
from sim.runtime import manifest as room
from sim.runtime.manifest import identity, manifest

SOURCE = Vertex("source", source=Source((Rate(0, Fraction(7, 3)),), total=5))
INLET = Input("source", "hash", (Fraction(1),), record_bytes=Distribution(100, "lognormal", 0.5))
MAP = Vertex("map", inputs=(INLET,), state=State(5), snapshot=Snapshot(sync_ns=3))


def scenario() -> Scenario:
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


def test_the_same_scenario_is_the_same_run():
    """Built twice, from equal parts that are not the same objects."""
    assert identity(scenario()) == identity(replace(scenario(), name="base"))
    assert manifest(scenario()) == manifest(scenario())


def test_any_change_is_another_run():
    """Field by field, through every part of the scenario but its name and its question."""
    described = (".question", ".name")
    names = {path: identity(other) for path, other in variants(scenario()) if path not in described}

    assert len(names) > 60
    assert identity(scenario()) not in names.values()
    assert len(names) == len(set(names.values()))


def test_what_a_run_is_called_does_not_matter():
    """A comment mended, an axis written in another way: nothing has to run again."""
    other = replace(scenario(), question="Why?", name="other", axes=(("a", "b"),), expect=(("c", "d"),))

    assert identity(scenario()) == identity(other)


def test_another_seed_is_another_run():
    base = scenario()

    assert identity(base) != identity(replace(base, run=replace(base.run, seed=2)))


def test_other_code_is_another_run(monkeypatch):
    """Results of an older version are never taken for those of this one."""
    before = identity(scenario())
    monkeypatch.setattr(room, "code_version", lambda: "another")

    assert before != identity(scenario())


def test_the_code_version_is_that_of_the_whole_package():
    """Not of one room of it."""
    assert Path(sim.__file__).parent == room._PACKAGE


def test_the_code_version_reads_every_file(tmp_path, monkeypatch):
    """A changed, added or renamed file of the package is another version."""
    (tmp_path / "one.py").write_text("x = 1\n")
    monkeypatch.setattr(room, "_PACKAGE", tmp_path)
    versions = [room.code_version.__wrapped__()]
    for name, text in (("one.py", "x = 2\n"), ("two.py", ""), ("three.txt", "no code")):
        (tmp_path / name).write_text(text)
        versions.append(room.code_version.__wrapped__())
    (tmp_path / "two.py").rename(tmp_path / "zwei.py")
    versions.append(room.code_version.__wrapped__())

    assert len(set(versions)) == 4
    assert versions[2] == versions[3], "what is no code is no version"


def test_a_manifest_is_plain_json():
    """Fractions as exact texts; what is read back is what was written."""
    plain = manifest(scenario())

    assert plain == json.loads(json.dumps(plain))
    assert plain["scenario"]["job"]["vertices"][0]["source"]["rates"][0]["per_second"] == "7/3"
    assert {"scenario", "seed", "code_version"} == set(plain)
    assert plain["seed"] == 9


@pytest.mark.parametrize("word", ["compiled", "interpreted"])
def test_the_engine_is_not_in_it(word):
    """All engines give the same bytes: a result may be reused whichever made it."""
    assert word not in json.dumps(manifest(scenario()))


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
