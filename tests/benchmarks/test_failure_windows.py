"""Windows of the ready sweeps around published failures."""

import pandas as pd
import pytest

from benchmarks import failure_windows as made
from benchmarks.published import khaos_data


@pytest.mark.parametrize("name", made.WRITTEN)
def test_the_committed_windows_are_current(name):
    """Written by `python -m benchmarks.failure_windows`."""
    rows = list(made.WRITTEN[name]())

    assert pd.DataFrame(rows, columns=list(made.COLUMNS[: len(rows[0])])).equals(pd.read_csv(made.OUT / f"{name}.csv"))


@pytest.mark.parametrize(
    ("name", "kind"), [("khaos-iot", made.IOT), ("khaos-ysb", made.YSB), ("demeter", made.DEMETER)]
)
def test_failures_come_at_any_moment_between_two_checkpoints(name, kind):
    """Each half of every interval gets about half of them, at low and at high load."""
    table = pd.read_csv(made.OUT / f"{name}.csv")
    at_s = table["faults.0.at"].str.removesuffix(" s").astype(int)

    assert at_s.between(kind.before_s, kind.before_s + kind.common_s).all()
    for _, moments in (at_s - kind.before_s).groupby(table["load"]):
        assert 0.3 <= (moments < kind.common_s / 2).mean() <= 0.7
        assert moments.sort_values().diff().max() <= 0.4 * kind.common_s


def test_the_failure_is_the_published_one():
    """Where a window says its failure is, the trace has its load and the experiment its kill."""
    table = pd.read_csv(made.OUT / "khaos-ysb.csv")
    at_s = table["from_s"] + table["faults.0.at"].str.removesuffix(" s").astype(int) + khaos_data.load("ysb").index[0]

    assert {
        failure.kill_epoch_s for failure in khaos_data.failures("ysb", all_of_them=True) if failure.interval_s == 60
    } == set(at_s)
    offered = khaos_data.load("ysb").loc[at_s].to_numpy() / 1000
    assert offered == pytest.approx(table["window"].str.partition("k/s")[0].astype(float).to_numpy(), rel=0.02)


def test_nothing_fails_in_quiet_windows():
    """Nor in the quarter of an hour before and after."""
    begins = khaos_data.load("iot").index[0]
    kills = [failure.kill_epoch_s - begins for failure in khaos_data.failures("iot", all_of_them=True)]

    for from_s in pd.read_csv(made.OUT / "khaos-iot-at-rest.csv")["from_s"]:
        assert not [kill for kill in kills if from_s - 900 < kill < from_s + made.REST_S + 900]
