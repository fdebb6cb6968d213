"""Which checkpoints are explained, and what simulating a change says about the bound."""

import pytest

from sim.explain.close_up import rerun_with_observers
from sim.explain.explanation import NoCheckpointError, accounts, verified
from sim.model.schema.study import loads
from sim.runtime.simulate import simulate

TEXT = """
version: 1
job:
  source: {source: {rate: 400/s, record: 1 kB}}
  sink: {input: {source: hash}, service: 1 ms, state: {size: 4 MB}, snapshot: {sync: 300 ms, probability: 40 %}}
checkpoint: {interval: 1 s}
storage: {bandwidth: 100 MB/s}
run: {duration: 12 s, warmup: 2 s}
"""


@pytest.fixture(scope="module")
def run():
    return rerun_with_observers(loads(TEXT).scenarios[0])


def test_the_median_and_the_slowest_come_first(run):
    table = run.result.checkpoints
    counted = table[(table["status"] == "COMPLETED") & (table["trigger_timestamp"] >= 2000)]["end_to_end_duration"]
    median, slowest = accounts("it", run)

    assert counted.max() * 1e6 == pytest.approx(slowest.path.duration_ns)
    assert sorted(counted)[(len(counted) - 1) // 2] * 1e6 == pytest.approx(median.path.duration_ns)


def test_a_first_upload_has_an_account_of_its_own():
    """Warm-up or not; it is neither the median nor the slowest."""
    text = TEXT.replace(
        "state: {size: 4 MB}", "state: {size: 40 MB, backend: rocksdb, update: 10 %, lsm: {level0-files: 40}}"
    )
    text = text.replace("{interval: 1 s}", "{interval: 1 s, incremental: true}")
    found = accounts("it", rerun_with_observers(loads(text).scenarios[0]))

    assert found[0].stats.number == 1
    assert found[0].path.duration_ns > max(account.path.duration_ns for account in found[1:])
    assert 1 not in [account.stats.number for account in found[1:]]


def test_a_number_nobody_took_is_an_error_that_names_those_there_are(run):
    with pytest.raises(NoCheckpointError, match="it: no checkpoint 99: they are 1 to "):
        accounts("it", run, 99)


def test_without_checkpoints_there_is_nothing_to_explain():
    bare = rerun_with_observers(loads(TEXT.replace("{interval: 1 s}", "{interval: 1 h}")).scenarios[0])

    with pytest.raises(NoCheckpointError, match="run longer, or set an interval"):
        accounts("it", bare)


def test_a_simulated_change_is_no_shorter_than_its_bound(run):
    """What the path promises at best, and what the same checkpoint takes with the change."""
    slowest = accounts("it", run)[-1]
    bounds = {change.change: slowest.path.duration_ns - change.saved_ns for change in slowest.changes}
    simulated = verified(slowest)

    assert {"without the synchronous part", "with storage that takes no time"} == set(bounds) == set(simulated)
    assert all(took_ns is not None and bounds[change] <= took_ns for change, took_ns in simulated.items())
    assert simulated["without the synchronous part"] < slowest.path.duration_ns / 2
    (without,) = [change.scenario for change in slowest.changes if change.change == "without the synchronous part"]
    table = simulate(without).checkpoints.set_index("id")
    assert (
        round(1e6 * table.loc[slowest.stats.number, "end_to_end_duration"]) == simulated["without the synchronous part"]
    )
