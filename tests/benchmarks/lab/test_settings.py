"""A setting is what can be set on its own: two keys for one choice are one, the same change everywhere is one."""

import pytest

from benchmarks.lab.config import Configuration
from benchmarks.lab.orderings import differences
from benchmarks.lab.settings import run_name, settings_of
from sim.model.checkpoint import Barriers

OP = {"id": "op", "inputs": [{"from": "src"}]}


def settings(flink=None, version="2.3.0", parallelism=2, **op):
    nodes = [{"id": "src", "kind": "source", "parallelism": parallelism}, OP | {"parallelism": parallelism} | op]
    config = {"name": "any", "duration_s": 60, "flink": flink or {}, "nodes": nodes}
    return settings_of(Configuration.model_validate(config), version)


UNALIGNED = {"execution.checkpointing.unaligned.enabled": True}
TIMEOUT = UNALIGNED | {"execution.checkpointing.aligned-checkpoint-timeout": "1 s"}


@pytest.mark.parametrize(
    ("other", "changed"),
    [
        (settings(flink=UNALIGNED), ["barriers"]),
        (settings(flink=TIMEOUT), ["barriers"]),
        (settings(parallelism=4), ["parallelism"]),
        (settings(parallelism=4, serviceUs=5), ["parallelism", "service_us"]),
        (settings(version="2.3.1"), []),
        (settings(version="1.20.3"), ["version"]),
        (settings(prepareMs=500), ["work"]),
        (settings(out_weights=None), []),
    ],
)
def test_what_differs_from_a_plain_job(other, changed):
    assert changed == [setting for setting, _, _ in differences(settings(), other)]


# ---- What the name of a recorded run says.


@pytest.mark.parametrize(
    ("text", "job", "barriers"),
    [
        ("J2-count-aligned", "J2-count", Barriers("aligned")),
        ("J4-pressed-unaligned-r1", "J4-pressed", Barriers("unaligned")),
        ("R4-rocksdb-timeout300", "R4-rocksdb", Barriers("aligned-timeout", 300_000_000)),
        ("R3-firing-interruptible", "R3-firing", Barriers("unaligned")),
    ],
)
def test_job_and_barriers_of_a_name(text, job, barriers):
    name = run_name(text)

    assert (job, barriers) == (name.job, name.barriers)


def test_a_name_that_says_nothing_of_barriers_is_that_of_its_job():
    assert run_name("nightly-r2") == ("nightly-r2", "")
