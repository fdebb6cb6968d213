"""Settings as lines of a Flink configuration."""

import pytest
from ruamel.yaml import YAML

from sim.model.schema.option_values import configuration_text
from tests.scenarios import read_scenario

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
    scenario = read_scenario(BASE + given)
    pasted = "".join(f"  {line}\n" for line in configuration_text(scenario).splitlines())

    again = read_scenario(f"{BASE}flink:\n{pasted}")

    assert (scenario.checkpoint, scenario.cluster) == (again.checkpoint, again.cluster)
    assert set(YAML(typ="safe").load(configuration_text(scenario)))


def test_what_else_was_changed():
    """Said only where it is advised."""
    network = "cluster: {profile: 1.20, network: {segment-size: 8 KiB, floating-buffers-per-gate: 2}}"
    given = f"checkpoint: {{interval: 30 s, incremental: true, local-recovery: true, timeout: 2 min}}\n{network}"
    scenario = read_scenario(BASE + given)
    keys = [
        "checkpoint.incremental",
        "checkpoint.local-recovery",
        "checkpoint.max-concurrent",
        "cluster.network.segment-size",
        "cluster.network.floating-buffers-per-gate",
    ]
    pasted = "".join(f"  {line}\n" for line in configuration_text(scenario, keys).splitlines())

    again = read_scenario(f"{BASE}cluster: {{profile: 1.20}}\nflink:\n{pasted}")

    assert (scenario.checkpoint, scenario.cluster) == (again.checkpoint, again.cluster)
    assert "incremental" not in configuration_text(scenario)


def test_older_flinks_have_older_names():
    """Which every later one still reads."""
    text = "checkpoint: {interval: 30 s, barriers: unaligned, incremental: true, local-recovery: true}\ncluster: {profile: 1.15}"
    printed = configuration_text(read_scenario(BASE + text), ["checkpoint.incremental", "checkpoint.local-recovery"])

    assert "execution.checkpointing.unaligned: true\n" in printed
    assert "state.backend.incremental: true\n" in printed
    assert "state.backend.local-recovery: true\n" in printed
