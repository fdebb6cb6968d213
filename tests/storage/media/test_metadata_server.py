"""Requests to the metadata server wait in line, one is served at a time."""

from math import log
from statistics import fmean

import pytest

from sim.model.job import Distribution
from sim.model.randomness import draw, stream
from sim.storage.media.dfs import MetadataServer
from tests.storage.lab import MS, SECOND, Lab, dfs


def server(lab, *, service_ms=None, kind="constant", latency_ms=0):
    service = None if service_ms is None else Distribution(round(service_ms * MS), kind)
    return MetadataServer(lab.storage.attempts, Distribution(round(latency_ms * MS)), service, 1)


def test_one_after_the_other():
    """Three at once, 2 ms each, 5 ms there and back."""
    lab = Lab()
    names = server(lab, service_ms=2, latency_ms=5)
    for name in "abc":
        lab.start(name, names.request("create", (name,)))

    assert lab.run() == {"a": 7, "b": 9, "c": 11}


def test_without_a_rate_nobody_waits():
    lab = Lab()
    names = server(lab, latency_ms=5)
    for name in "abc":
        lab.start(name, names.request("create", (name,)))

    assert lab.run() == {"a": 5, "b": 5, "c": 5}


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_the_line_is_that_of_theory(load):
    """M/M/1: time in the system 1 / (mu - lambda); Poisson arrivals at `load` of 1000 requests/s, 15,000 of them, within 8 %."""
    lab = Lab()
    names = server(lab, service_ms=1, kind="exponential")
    stayed, at = [], 0

    def request(i):
        begun = lab.env.now
        yield from names.request("create", (i,))
        stayed.append((lab.env.now - begun) / MS)

    key = stream(7, "arrivals")
    for i in range(15_000):
        at += round(-log((draw(key, i) + 0.5) / 2**32) / load * MS)
        lab.env.timeout(at).callbacks.append(lambda _, i=i: lab.env.process(request(i)))
    lab.run()

    assert 1 / (1 - load) == pytest.approx(fmean(stayed), rel=0.08)


def test_a_flood_of_files_slows_everybody_down():
    """2000 small files at 1000 requests/s: who comes behind them waits for their 4000 requests."""
    lab = Lab(dfs(nodes=50, requests_per_second=1000, service="constant"))
    for i in range(2000):
        lab.start(i, lab.storage.write(1, "small", i))
    lab.start("late", lab.storage.write(1, "late"), at_ms=1)
    ended = lab.run()

    assert pytest.approx(ended["late"], abs=1) == 6003
    assert pytest.approx(max(ms for label, ms in ended.items() if label != "late"), abs=2) == 6 * SECOND // MS
