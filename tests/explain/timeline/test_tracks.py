"""A timeline is JSON that viewers can draw: tracks with what belongs to them, slices that nest, arrows with two ends, counters."""

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from sim.explain.close_up import rerun_with_observers
from sim.explain.timeline import timeline
from sim.model.schema.study import loads

TEXT = """
version: 1
job:
  source: {source: {rate: unlimited, record: 1 kB}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 4 MB}, snapshot: {sync: 40 ms, pre-barrier: 30 ms}}
checkpoint: {interval: 1 s, barriers: [unaligned]}
storage: {dfs: {nodes: 3, bandwidth: 20 MB/s, replication: 2}}
run: {duration: 5 s}
"""


def drawn(begin_ns=0, end_ns=5_000_000_000, text=TEXT):
    """The events of the file."""
    (scenario,) = loads(text).scenarios
    shown = timeline(rerun_with_observers(scenario), begin_ns, end_ns)
    return json.loads(shown.document("aligned", scenario))["traceEvents"]


@pytest.fixture(scope="module")
def events():
    return drawn()


def tracks(events):
    """By (process, track): the slices in the order of their beginning."""
    found = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    return {track: sorted(slices) for track, slices in found.items()}


def titles(events, kind):
    return [event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == kind]


def test_every_actor_has_its_tracks(events):
    """Subtasks with snapshots and barriers; asynchronous threads, storage nodes, the coordinator."""
    assert titles(events, "process_name") == [
        "coordinator",
        "source",
        "sink",
        "asynchronous threads",
        "storage",
        "vertices",
    ]
    assert {"checkpoints", "sink[1] snapshots", "sink[1] barriers", "sink[1]"} <= set(titles(events, "thread_name"))
    assert {f"storage node {node}" for node in range(3)} <= set(titles(events, "thread_name"))


def test_slices_of_a_track_do_not_overlap(events):
    """So they nest, whatever a viewer does with them."""
    for slices in tracks(events).values():
        assert [(first, second) for first, second in pairwise(slices) if second[0] < first[1] - 1e-6] == []


def test_snapshots_show_what_was_planted(events):
    """Work of the sink that takes as long as it is said to."""
    before = [
        round(end - begin)
        for slices in tracks(events).values()
        for begin, end, name in slices
        if name == "before barrier 2"
    ]

    assert [took for took in before if took > 0] == [30_000, 30_000]


def test_arrows_lead_from_slice_to_slice(events):
    """A barrier that arrives has left before, and both moments are slices at the ends of the arrow."""
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    places = tracks(events)

    assert len(starts) > 0
    assert set(starts) == set(ends)
    for number, start in starts.items():
        assert start["ts"] <= ends[number]["ts"]
        for event, what in ((start, "leaves"), (ends[number], "arrives")):
            slices = places[event["pid"], event["tid"]]
            assert [f"{event['name']} {what}"] == [name for begin, end, name in slices if begin <= event["ts"] < end]


def test_counters_show_the_load(events):
    """A source that is back-pressured, and the queue in front of the sink."""
    counters = {event["name"]: event["args"] for event in events if event["ph"] == "C"}

    assert {f"{what} of {vertex}" for what in ("threads", "queues") for vertex in ("source", "sink")} == {
        name.rpartition(" [")[0] for name in counters
    }
    assert counters["threads of source [share of time]"]["back-pressured"] > 0.5
    assert counters["queues of sink [bytes]"]["input"] > 10_000


def test_a_window_holds_nothing_else():
    """Slices are cut at its edges."""
    events = [event for event in drawn(2_000_000_000, 3_000_000_000) if event["ph"] != "M"]

    assert len(events) > 0
    assert all(event["ts"] >= 2e6 and event["ts"] + event.get("dur", 0) <= 3e6 + 1e-6 for event in events)


def test_job_instances_have_tracks_of_their_own():
    chain = TEXT.replace("run: {duration: 5 s}", "rescale: [{at: 2.5 s, parallelism: {sink: 3}}]\nrun: {duration: 5 s}")
    names = titles(drawn(text=chain), "process_name")

    assert {"job 0: sink", "job 1: sink"} <= set(names)
