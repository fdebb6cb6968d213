"""What each change of a scenario changes, and nothing else; where files are slow."""

from dataclasses import fields, is_dataclass
from fractions import Fraction
from types import SimpleNamespace

import pytest

from sim.explain.causes import SlowPlace, _slowest, slow_file
from sim.explain.close_up import rerun_with_observers
from sim.explain.what_if import bound, what_if
from sim.results.critical_path import PathKind, PathPart
from tests.scenarios import read_scenario

MS = 10**6
JOB = """
version: 1
job:
  source: {source: {rate: 400/s, record: 1 kB}}
  sink: {input: {source: hash}, service: 1 ms, snapshot: {pre-barrier: 5 ms, sync: 6 ms, async: 7 ms}, commit: {time: 9 ms},
         state: {size: 4 MB, backend: rocksdb, serialize: 300 MB/s, lsm: {freeze: 2 ms, upload: 3 ms}}}
checkpoint: {interval: 1 s, max-concurrent: 3, savepoint-rate: 10 MB/s}
storage: {bandwidth: 100 MB/s, metadata-latency: 20 ms, slow: {share: 10 %, factor: 20}}
run: {duration: 12 s}
"""
SINK = "job.vertices.1"
UNALIGNED = {"checkpoint.barriers.kind": "unaligned", "checkpoint.max_concurrent": 1}
NO_WORK = {
    "checkpoint.state.savepoint_bytes_per_second": None,
    f"{SINK}.snapshot.pre_barrier_ns": 0,
    f"{SINK}.snapshot.sync_ns": 0,
    f"{SINK}.snapshot.async_ns": 0,
    f"{SINK}.state.serialize_bytes_per_second": None,
    f"{SINK}.state.lsm.flush_bytes_per_second": 10**15,
    f"{SINK}.state.lsm.link_ns": 0,
}
NO_STORAGE = {
    "overheads.file_ns": 0,
    "storage.bytes_per_second": None,
    "storage.read_bytes_per_second": None,
    "storage.slow_probability": 0.0,
    "storage.slow_factor": 1,
}
CHANGES = {
    PathKind.TRIGGER: ("with a trigger that takes no time", {"overheads.trigger_ns": 0}),
    PathKind.QUEUE: ("with unaligned barriers", UNALIGNED),
    PathKind.TIMEOUT: ("with unaligned barriers", UNALIGNED),
    PathKind.ALIGNMENT: ("with unaligned barriers", UNALIGNED),
    PathKind.FLUSH: ("with files written in the asynchronous part", {"checkpoint.operator_io": "async"}),
    PathKind.PRE_BARRIER: ("without the work before the barrier", NO_WORK),
    PathKind.SYNC: ("without the synchronous part", NO_WORK | {f"{SINK}.state.lsm.freeze_ns": 0}),
    PathKind.ASYNC_QUEUE: ("without the asynchronous work", NO_WORK | {f"{SINK}.state.lsm.upload_ns": 0}),
    PathKind.ASYNC_WORK: ("without the asynchronous work", NO_WORK | {f"{SINK}.state.lsm.upload_ns": 0}),
    PathKind.UPLOAD: ("with storage that takes no time", NO_STORAGE),
    PathKind.CHANNEL_STATE: ("with storage that takes no time", NO_STORAGE),
    PathKind.ACKNOWLEDGEMENT: ("with acknowledgements that take no time", {"overheads.acknowledge_ns": 0}),
    PathKind.FINALISATION: (
        "with _metadata that takes no time",
        {"overheads.complete_ns": 0, "storage.metadata_ns": 0},
    ),
    PathKind.NOTIFICATION: ("with notifications that take no time", {"overheads.notify_ns": 0}),
    PathKind.COMMIT: ("with a commit that takes no time", {f"{SINK}.commit.time_ns": 0}),
}
MESSAGES = {PathKind.TRIGGER, PathKind.ACKNOWLEDGEMENT, PathKind.FINALISATION, PathKind.NOTIFICATION}
"""No setting of a real job spares them."""


def context_of(scenario):
    return SimpleNamespace(scenario=scenario, layout=SimpleNamespace(vertex=range(len(scenario.job.vertices))))


def change(kind, scenario, task=1, slow=None):
    parts = [PathPart(kind, 0, 60 * MS, task), PathPart(kind, 60 * MS, 100 * MS, task)]
    return what_if(kind, parts, slow, context_of(scenario))


def differences(before, after, place=""):
    """The values that differ, by their place."""
    if type(before) is type(after) and is_dataclass(before):
        pairs = [(field.name, getattr(before, field.name), getattr(after, field.name)) for field in fields(before)]
    elif isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        pairs = [(str(i), *pair) for i, pair in enumerate(zip(before, after, strict=True))]
    else:
        return {} if before == after else {place.removeprefix("."): after}
    return {key: value for name, *pair in pairs for key, value in differences(*pair, f"{place}.{name}").items()}


@pytest.fixture(scope="module")
def scenario():
    return read_scenario(JOB)


@pytest.mark.parametrize("kind", PathKind)
def test_what_a_change_changes(scenario, kind):
    """And that a part of a real job has a bound where a setting spares it; barriers that overtake gain nothing by unaligned ones."""
    found, (name, changed) = change(kind, scenario), CHANGES.get(kind, ("", {}))

    assert (found is not None) == (kind in CHANGES)
    if found is not None:
        assert (found.change, found.saved_ns, differences(scenario, found.scenario)) == (name, 100 * MS, changed)
    for overtakes in (False, True):
        limit = bound(kind, 7, overtakes=overtakes)
        is_spared = kind in CHANGES.keys() - MESSAGES and not (overtakes and changed is UNALIGNED)
        assert ((name, 7, None) if is_spared else None) == (limit and (limit.change, limit.saved_ns, limit.scenario))


def test_what_is_so_already_is_no_change(scenario):
    """The coordinator and a vertex without state or commits have nothing to spare either."""
    unaligned, behind = (change(kind, scenario).scenario for kind in (PathKind.QUEUE, PathKind.FLUSH))

    assert change(PathKind.QUEUE, unaligned) is None
    assert change(PathKind.FLUSH, behind).scenario is None
    assert change(PathKind.SYNC, scenario, task=-1).scenario is None
    assert [change(PathKind.COMMIT, scenario, task).scenario for task in (-1, 0)] == [None, None]
    assert differences(scenario, change(PathKind.SYNC, scenario, task=0).scenario) == {
        "checkpoint.state.savepoint_bytes_per_second": None
    }


@pytest.mark.parametrize(
    ("place", "name"),
    [("node 3 was slow", "without the slow node"), ("the stream was a slow one", "without the slow stream")],
)
def test_a_slow_place_costs_what_its_factor_says(scenario, place, name):
    """A twentieth of the bandwidth: without it 100 ms become 5 ms, and nothing is slow any more."""
    found = change(PathKind.UPLOAD, scenario, slow=SlowPlace(Fraction(20), place))

    assert (name, 95 * MS) == (found.change, found.saved_ns)
    assert differences(scenario, found.scenario) == {"storage.slow_probability": 0.0, "storage.slow_factor": 1}


def test_a_place_is_as_slow_as_at_its_slowest_moment(monkeypatch):
    """Nine moments from the beginning to the end of the file are looked at; of several places the first of the slowest is named."""
    seen = []

    def slowness(_slow, _seed, number):
        return SimpleNamespace(at=lambda at: (seen.append(at) or Fraction(number // 2 if at == 800 else 1), 0))

    monkeypatch.setattr("sim.explain.causes.slowness", slowness)
    file = SimpleNamespace(created_ns=0, durable_ns=800)

    assert (Fraction(3), "node 6 was slow") == _slowest(None, 1, {2, 7, 6, 3}, "node", file)
    assert [100 * i for i in range(9)] == sorted(set(seen))
    assert _slowest(None, 1, {2, 3}, "node", file) is None


STORAGE = "storage: {bandwidth: 100 MB/s, metadata-latency: 20 ms, slow: {share: 10 %, factor: 20}}"
PLACES = {
    "the stream": "{bandwidth: 100 MB/s, SLOW}",
    "node": "{dfs: {nodes: 4, bandwidth: 100 MB/s, replication: 2, SLOW}}",
    "prefix": "{object-store: {bandwidth: 100 MB/s, prefixes: 2, SLOW}}",
}


@pytest.mark.parametrize("title", PLACES)
@pytest.mark.parametrize("share", ["100 %", "0 %"])
def test_files_name_their_slow_place(title, share):
    """A factor of two is slow as well; a file within another one is as slow as that, and none on a disk is."""
    lasts = "" if title == "the stream" else ", lasts: 10 min"
    slow = f"slow: {{share: {share}, factor: 2{lasts}}}"
    document = JOB.replace(STORAGE, f"storage: {PLACES[title].replace('SLOW', slow)}").replace("12 s", "1500 ms")
    (instance,) = rerun_with_observers(read_scenario(document)).instances
    files = list(instance.context.storage.files)
    inside = SimpleNamespace(**{name: getattr(files[0], name) for name in ("name", "size_bytes", "host")}, disk=False)
    inside.inside, inside.created_ns, inside.durable_ns = 0, files[0].created_ns, files[0].durable_ns
    found = {slow_file(instance.context, file) for file in (*files, inside)}

    assert {(2, True) if share == "100 %" else None} == {
        place and (place.factor, place.place.startswith(title)) for place in found
    }
    assert slow_file(instance.context, SimpleNamespace(disk=True)) is None
