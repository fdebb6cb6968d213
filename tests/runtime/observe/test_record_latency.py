"""Records are counted as the vertex at the end of their way counts them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sim.model.job import Input, Job, Source, Vertex
from sim.model.schema.study import loads
from sim.runtime.sampling import RecordLatency
from sim.runtime.simulate import simulate

MS = 1_000_000


def latency_histogram(*vertices):
    tasks, first = [], 0
    for vertex in vertices:
        tasks.append(np.arange(first, first + vertex.parallelism))
        first += vertex.parallelism
    return RecordLatency(Job(vertices), tasks, 0, np.zeros(first))


def test_copies_multiply_along_the_way():
    """Half of the records pass, each to both readers: four of the first source and two of the second make six at the end."""
    seen = latency_histogram(
        Vertex("a", source=Source()),
        Vertex("b", source=Source(), fan_out=Fraction(2)),
        Vertex("half", inputs=(Input("a"), Input("b")), fan_out=Fraction(1, 2)),
        Vertex("end", parallelism=2, inputs=(Input("half", ship="broadcast"),)),
    )
    positions = np.array([[4, 1, 6, 0, 0], *[[4, 1, 6, 3, 3]] * 3])
    means = seen.means_ms(np.array([10 * MS, 20 * MS, 30 * MS, 40 * MS]), positions, 2)

    # emitted between 0 and 10, served between 10 and 20
    assert {v: of_vertex.tolist() for v, of_vertex in means.items()} == {3: [10, -1]}


def test_a_committer_takes_no_records():
    """The vertex whose committables it reads is the end of the way."""
    seen = latency_histogram(
        Vertex("a", source=Source()),
        Vertex("sink", inputs=(Input("a"),)),
        Vertex("done", inputs=(Input("sink"),), committer_of="sink"),
    )

    assert {v: means.tolist() for v, means in seen.means_ms(np.array([10 * MS]), np.array([[4, 4, 0]]), 1).items()} == {
        1: [0]
    }


QUEUE = """
version: 1
job:
  src:  {source: {rate: unlimited, record: 1 kB}}
  sink: {input: {src: hash}, service: 10 ms}
checkpoint: {interval: off}
run: {duration: 40 s}
"""


def test_a_full_queue_is_as_long_as_it_takes_to_serve():
    """Behind an unlimited source a record waits for all before it, 100 a second: records on the way = rate * latency."""
    result = simulate(loads(QUEUE, name="queue").scenarios[0])
    last = result.series[result.series["vertex"] == "sink"].iloc[-20:]
    sources = result.series[result.series["vertex"] == "src"]
    on_the_way = (
        sources["numRecordsInPerSecond"].sum()
        - result.series[result.series["vertex"] == "sink"]["numRecordsInPerSecond"].sum()
    )

    assert last["x_latency"].mean() == pytest.approx(1000 * on_the_way / 100, rel=0.05)
    assert (last["inputQueueLength"] + sources["outputQueueLength"].iloc[-20:].to_numpy() >= 10).all()
    assert (sources["x_latency"] == -1).all()
