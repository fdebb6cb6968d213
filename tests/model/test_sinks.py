"""What jobs write to, and whether barriers may overtake data in front of it."""

import pytest

from sim.advice.settings import allowed_protocols, protocols, sinks_of
from sim.model.sinks import SINKS, recognised
from tests.scenarios import read_scenario

JOB = """\
# A job with a sink.
version: 1
job:
  source: {{source: {{rate: 1k/s, record: 100 B}}}}
  {name}: {{input: {{source: hash}}{connector}}}
checkpoint: {{interval: 10 s}}
run: {{duration: 1 min}}
"""


def job(name="sink", connector=""):
    return read_scenario(JOB.format(name=name, connector=f", connector: {connector}" if connector else ""))


def test_each_fact_has_its_source():
    """And a reason, wherever it forbids something."""
    assert all(kind.source and kind.at_checkpoint for kind in SINKS.values())
    assert all(kind.why and kind.instead for kind in SINKS.values() if kind.overtaking in ("loses", "refused"))
    assert {"iceberg-v1", "hudi"} == {kind.name for kind in SINKS.values() if kind.overtaking == "loses"}


@pytest.mark.parametrize(
    ("vertex", "name"), [("IcebergFilesCommitter", "iceberg-v1"), ("iceberg-stream-writer", "iceberg-v1")]
)
def test_a_sink_is_known_by_its_operators(vertex, name):
    assert name == recognised(vertex).name
    assert name == sinks_of(job(vertex))[vertex].name


def test_other_names_tell_nothing():
    assert recognised("out-writer") is None
    assert sinks_of(job("out-writer")) == {"out-writer": None}


def test_what_the_job_says_counts():
    assert sinks_of(job("icebergfilescommitter", "iceberg-v2"))["icebergfilescommitter"].name == "iceberg-v2"


@pytest.mark.parametrize("connector", ["iceberg-v1", "hudi", "paimon"])
def test_no_barrier_overtakes_in_front_of_a_sink_that_loses_records(connector):
    assert [protocol.name for protocol in protocols() if protocol.aligned] == [
        protocol.name for protocol in allowed_protocols(job("sink", connector))
    ]


@pytest.mark.parametrize("connector", ["", "kafka-exactly-once", "iceberg-v2"])
def test_any_barriers_in_front_of_others(connector):
    assert protocols() == allowed_protocols(job("sink", connector))
