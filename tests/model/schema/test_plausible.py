"""What has no effect in this scenario is said, whichever keys it takes to see it (mistakes: see broken.py)."""

import pytest

from sim.model.schema.study import loads

BASE = """\
# What then?
job:
  a: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, service: 10 us, parallelism: 2}
checkpoint: {interval: 5 s}
run: {duration: 60 s}
"""


def warnings(text):
    return [str(warning) for warning in loads(BASE + text, "s").warnings]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("faults: [{kill: b, at: 60 s}]\n", "s:7:20: faults[0].at: has no effect: the run ends at 1 min"),
        ("actions: [{savepoint: native, at: 61 s}]\n", "s:7:31: actions[0].at: has no effect: the run ends at 1 min"),
        ("rescale: {at: 2 min, parallelism: {b: 3}}\n", "s:7:11: rescale.at: has no effect: the run ends at 1 min"),
        (
            "restart: {strategy: fixed-delay, initial: 5 s}\n",
            "s:7:34: restart.initial: has no effect: exponential-delay reads it, not fixed-delay",
        ),
        (
            "restart: {delay: 5 s}\n",
            "s:7:11: restart.delay: has no effect: fixed-delay and failure-rate read it, not exponential-delay",
        ),
        (
            "restart: {strategy: none, attempts: 3}\n",
            "s:7:27: restart.attempts: has no effect: fixed-delay and exponential-delay read it, not none",
        ),
    ],
)
def test_what_has_no_effect_is_said(text, message):
    assert [message] == warnings(text)


@pytest.mark.parametrize(
    ("state", "incremental", "is_said"),
    [("", "true", True), (", update: 0 %", "true", False), (", growth: 10 B", "true", False), ("", "false", False)],
)
def test_state_that_never_changes_is_said_where_that_decides(state, incremental, is_said):
    """Incremental checkpoints of RocksDB without `update:` wrote nothing, without a word."""
    text = BASE.replace("service: 10 us", f"service: 10 us, state: {{size: 1 MB, backend: rocksdb{state}}}")
    found = loads(text.replace("interval: 5 s", f"interval: 5 s, incremental: {incremental}"), "s").warnings

    assert is_said == any(
        "never changes, so incremental checkpoints write nothing" in str(warning) for warning in found
    )


@pytest.mark.parametrize(
    ("state", "is_said"), [("", True), (", ttl: 0 s", False), (", growth: 1 B", False), (", update: 5 %", False)]
)
def test_state_that_only_expires_is_said(state, is_said):
    """Nothing keeps its keys coming, so snapshots would be empty after one time to live."""
    ttl = "" if "ttl" in state else ", ttl: 1 min"
    found = loads(BASE.replace("service: 10 us", f"service: 10 us, state: {{size: 1 MB{ttl}{state}}}"), "s").warnings

    assert is_said == any("no record writes to this state, so all of it expires" in str(warning) for warning in found)


@pytest.mark.parametrize(("services", "is_said"), [("", True), (", services: side-by-side", False)])
def test_cores_of_an_import_are_not_called_useless(services, is_said):
    """An import writes cores beside `services: side-by-side` where tasks sleep: that is what it found, and no mistake of the author."""
    found = loads(f"{BASE}cluster: {{cores: 2{services}}}\n", "s").warnings

    assert is_said == any("no snapshot takes processor time" in str(warning) for warning in found)


@pytest.mark.parametrize(
    ("state", "rest", "is_said"),
    [
        ("", "", True),
        (", serialize: 100 MB/s", "", False),
        ("", "actions: [{savepoint: canonical, at: 20 s}]\n", False),
    ],
)
def test_cores_that_nobody_waits_for_are_said(state, rest, is_said):
    text = BASE.replace("service: 10 us", f"service: 10 us, state: {{size: 1 MB{state}}}")
    found = loads(f"{text}cluster: {{cores: 2}}\n{rest}", "s").warnings

    assert is_said == any("no snapshot takes processor time" in str(warning) for warning in found)
