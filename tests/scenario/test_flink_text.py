"""Settings as lines of a Flink configuration."""

import pytest
from ruamel.yaml import YAML

from sim.scenario import loads
from sim.scenario.flink_text import flink_text

BASE = """\
# What then?
job:
  a: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, service: 10 us, parallelism: 2}
run: {duration: 60 s}
"""


@pytest.mark.parametrize(
    "given",
    [
        "checkpoint: {interval: 30 s}",
        "checkpoint: {interval: 1500 ms, barriers: unaligned}",
        "checkpoint: {interval: 5 min, barriers: {aligned-timeout: 10 s}}\ncluster: {network: {debloat: on}}",
    ],
)
def test_what_is_written_is_read_again(given):
    """As the same settings, under `flink:`."""
    scenario = loads(BASE + given).scenarios[0]
    pasted = "".join(f"  {line}\n" for line in flink_text(scenario).splitlines())

    again = loads(f"{BASE}flink:\n{pasted}").scenarios[0]

    assert (scenario.checkpoint, scenario.cluster) == (again.checkpoint, again.cluster)
    assert set(YAML(typ="safe").load(flink_text(scenario)))
