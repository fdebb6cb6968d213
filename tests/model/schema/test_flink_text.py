"""Settings as lines of a Flink configuration, and read again."""

from random import Random

import pytest
from ruamel.yaml import YAML

from sim.model.schema.flink_keys import current_names, has_key, listed_keys, modelled_keys
from sim.model.schema.option_values import configuration_text, key_in_release, non_default_keys
from sim.model.schema.study import loads
from sim.model.value_types import BUFFER_TIMEOUT
from tests.scenarios import read_scenario

# Settings as lines of a Flink configuration.


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


# Every option with a key of Flink: written as a line of Flink's configuration, and read again, it is the same scenario.


ROUND_TRIP = """\
job:
  a: {{source: {{rate: 1k/s, record: 100 B}}}}
  b: {{input: {{a: hash}}, service: 10 us, state: {{size: 1 GB, growth: 10 B}}}}
cluster: {{profile: {profile}}}
run: {{duration: 60 s}}
{rest}
"""
WITH = {
    "job.VERTEX.state.lsm": ["job.b.state.backend=rocksdb"],
    "job.VERTEX.state.changelog": ["job.b.state.changelog=on"],
    "cluster.network.debloat": ["cluster.network.debloat=on"],
    "cluster.network.adaptive-partitioner": ["cluster.network.adaptive-partitioner=on"],
    "storage.file-merging": ["storage.file-merging=on"],
}
"""What an option below a section needs beside itself."""
IN_THE_FILE = {"storage.object-store": "storage: {object-store: {latency: 20 ms, bandwidth: 100 MB/s}}\n"}
"""What no key of Flink says."""
OWN = {
    "checkpoint.barriers": ["aligned", "unaligned", "at-least-once", "{aligned-timeout: 7 s}"],
    "cluster.network.debloat": ["on", "off"],
    "cluster.network.adaptive-partitioner": ["on", "off"],
    "job.VERTEX.state.changelog": ["on", "off"],
    "storage.file-merging": ["on", "off"],
    "job.VERTEX.state.ttl": ["70 s"],
    "checkpoint.finish": ["flink", "off"],  # Flink has no other
    "cluster.network.segment-size": ["64 KiB"],
    "cluster.network.starting-segment-size": ["2 KiB", "4 KiB"],
    "restart.heartbeat-interval": ["3 s"],
    "restart.multiplier": ["1.25"],
    "checkpoint.interval-during-backlog": ["80 s", "off"],
}
CASES = sorted(
    {(".".join(key.path), "2.x") for key in modelled_keys().values()}
    | {
        (".".join(key.path), old)
        for key in modelled_keys().values()
        for old in ("1.15", "1.20")
        if key.flink.older or key.flink.last
    }
)
"""Only some keys have other names in older versions."""


def drawn(path):
    """Two values that the option takes."""
    record = next(key.record for key in modelled_keys().values() if ".".join(key.path) == path)
    if path in OWN:
        return OWN[path]
    chance = Random(path)
    if words := list(record.choices()):
        return words
    if record.leaf.flink == "boolean":
        return ["true", "false"]
    number = [chance.randrange(2, 90), chance.randrange(90, 400)]
    if record.leaf is BUFFER_TIMEOUT:
        return [f"{amount} ms" for amount in number] + ["never", "0 s"]
    form, extra = record.leaf.flink, ["off"] if record.leaf.flink == "interval" else []
    if form in ("percent", "share"):
        return [f"{min(amount, 99)} %" for amount in number]
    unit = {"duration": " s", "interval": " ms", "size": " KiB"}.get(form, "")
    return [f"{amount}{unit}" for amount in number] + extra


def companions(path):
    """The strategies of restarts, or the scheduler, with which alone an option counts."""
    needs = next(key.record.needs for key in modelled_keys().values() if ".".join(key.path) == path)
    if path == "cluster.slots":
        return [["cluster.placement=spread"]]
    return [[]] if needs is None else [[f"restart.{needs[0]}={value}"] for value in needs[1]]


@pytest.mark.parametrize(("path", "profile"), CASES)
def test_each_option_is_read_again(path, profile):
    keys = [key.flink for key in modelled_keys().values() if ".".join(key.path) == path]
    if not any(has_key(profile, name) for key in keys for name in (key.name, *key.older)):
        pytest.skip(f"{profile} has no such key")
    above = next((section for section in (*WITH, *IN_THE_FILE) if path.startswith(f"{section}.")), "")
    text = ROUND_TRIP.format(profile=profile, rest=IN_THE_FILE.get(above, ""))
    vertices = (
        ("a", "b")
        if path.startswith(("job.VERTEX.parallelism", "job.VERTEX.max"))
        else ("a",)
        if "source" in path
        else ("b",)
    )
    for companion in companions(path):
        for value in drawn(path):
            if (value, profile) == ("never", "1.15"):  # written -1 there, which is not a duration
                continue
            changes = [f"{path.replace('VERTEX', vertex)}={value}" for vertex in vertices]
            interval = [] if path == "checkpoint.interval" else ["checkpoint.interval=9 s"]
            changes += [*WITH.get(above, []), *interval, *companion]
            (given,) = loads(text, overrides=changes).scenarios
            lines = non_default_keys(given)
            pasted = "".join(f"  {name}: {line}\n" for name, line in lines.items())
            off = "checkpoint: {interval: off}\n" if "execution.checkpointing.interval" not in lines else ""
            found = loads(f"{text}flink:\n{pasted}{off}" if pasted else f"{text}{off}")

            assert given == found.scenarios[0], lines
            assert [problem for problem in map(str, found.warnings) if "has no effect with" in problem] == []


def test_an_older_flink_gets_the_names_that_it_knows():
    """Every name that is written for a version is one that this version reads."""
    old = read_scenario(ROUND_TRIP.format(profile="1.15", rest="checkpoint: {interval: 9 s}"))
    new = read_scenario(ROUND_TRIP.format(profile="2.x", rest="checkpoint: {interval: 9 s}"))

    for older, name in current_names().items():
        assert name == key_in_release(name, new)
        known = [own for own in (name, older) if "1.15" in listed_keys().get(own, ())]
        assert not known or "1.15" in listed_keys()[key_in_release(name, old)], older
    assert key_in_release("state.backend.type", old) == "state.backend"
    assert key_in_release("execution.state-recovery.claim-mode", old) == "execution.savepoint-restore-mode"
