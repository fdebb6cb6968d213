"""Laws about two runs of one world: a few worlds of each, and breaks that they notice."""

import pytest

from sim.runtime.jobmanager.coordinator_host import CoordinatorHost
from tests.injections.catalogue import INJECTIONS
from tests.injections.in_flight import UNALIGNED
from tests.worlds.metamorphic import LAWS, Found, _faster, found_in, report

SPOKEN_OF = {
    "in flight written is read": [2, 10],
    "a run split by a savepoint comes to the same": [5, 8],
    "faster storage never lengthens an asynchronous part": [1, 5],
    "an unrelated vertex changes nothing": [9, 22],
    "all times scale": [0, 8],
}
"""Worlds that each law speaks of."""


@pytest.mark.slow
@pytest.mark.parametrize(("law", "seed"), [(law, seed) for law, seeds in SPOKEN_OF.items() for seed in seeds])
def test_a_law_holds(law, seed):
    ((_, _, broken),) = found_in(seed, [law])

    assert broken == ""


def test_every_law_has_its_worlds():
    assert list(LAWS) == list(SPOKEN_OF)


@pytest.mark.parametrize("name", ["half of the channel state is written", "channel state is not read"])
def test_in_flight_data_that_gets_lost_on_its_way_is_told(name):
    """In the file, or when it is read."""
    with INJECTIONS[name].applied():
        broken = LAWS["in flight written is read"](UNALIGNED)

    assert broken
    assert "bytes" in broken


def test_only_bandwidths_are_made_faster():
    storage = {"dfs": {"bandwidth": "4 MB/s", "nodes": 3, "requests": "300/s"}, "file-latency": "2 ms"}

    assert _faster(storage) == {
        "dfs": {"bandwidth": "16 MB/s", "nodes": 3, "requests": "300/s"},
        "file-latency": "2 ms",
    }


@pytest.mark.slow
def test_a_time_that_does_not_scale_is_told(monkeypatch):
    """Tasks that take half a millisecond more than a scenario says, for whatever it is scaled."""
    hear = CoordinatorHost._message

    def late(self, task, arrive, residual_ns=0):
        hear(self, task, arrive, residual_ns + 500_000)

    monkeypatch.setattr(CoordinatorHost, "_message", late)
    ((_, _, broken),) = found_in(0, ["all times scale"])

    assert "at twice" in broken


@pytest.mark.slow
def test_a_vertex_that_disturbs_others_is_told(monkeypatch):
    """Acknowledgements take longer, the more tasks there are."""
    hear = CoordinatorHost._message

    def late(self, task, arrive, residual_ns=0):
        hear(self, task, arrive, residual_ns + len(self.tasks) * 1_000_000)

    monkeypatch.setattr(CoordinatorHost, "_message", late)
    ((_, _, broken),) = found_in(
        SPOKEN_OF["an unrelated vertex changes nothing"][0], ["an unrelated vertex changes nothing"]
    )

    assert broken


def test_a_broken_law_is_told_by_its_seed(capsys):
    assert report([Found("in flight written is read", 3, "5 bytes in files, 6 captured")]) == 1
    assert "seed 3: in flight written is read: 5 bytes" in capsys.readouterr().out
    assert report([Found("in flight written is read", 3, "")]) == 0
