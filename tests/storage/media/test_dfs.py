"""A distributed file system: blocks through pipelines, and its metadata server, where one request is served at a time."""

from dataclasses import replace
from math import comb, log
from statistics import fmean

import pytest

from sim.model.job import Distribution
from sim.model.randomness import draw, stream
from sim.model.storage import Dfs, Retry
from sim.storage.media.dfs import MetadataServer, replicas
from sim.storage.network import ConstantRateLink
from tests.storage.lab import MB, MS, SECOND, Lab, dfs, slow

# A distributed file system: blocks through pipelines, requests to one server, everything shared fairly.


def test_two_streams_share_the_card_of_their_task_manager():
    """100 MB/s for both, nodes to spare: twice as long; another task manager has a card of its own."""
    lab = Lab(dfs(nodes=50, rate=None, nic=100 * MB))
    for name in "ab":
        lab.start(name, lab.storage.write(50 * MB, name, host=0))
    lab.start("c", lab.storage.write(50 * MB, "c", host=1))

    assert lab.run() == {"a": 1000, "b": 1000, "c": 500}


def test_reading_takes_the_node_and_the_card():
    """One request, then 100 MB from one replica at 50 MB/s into the card of the reader."""
    lab = Lab(dfs(nic=50 * MB, latency_ms=10, replication=3))

    assert lab.took_ms(lab.storage.read(100 * MB, "a", host=2)) == 10 + 2000


def test_replicas_are_distinct_and_every_set_is_equally_likely():
    """All 20 sets of 3 out of 6 nodes within five standard deviations, none with a node twice."""
    sets = [frozenset(replicas(6, 3, 1, ("keyed", "map", i, n), 0)) for i in range(20) for n in range(200)]
    expected, deviation = 4000 / comb(6, 3), (4000 / 20 * 19 / 20) ** 0.5

    assert {3} == {len(nodes) for nodes in sets}
    assert comb(6, 3) == len(set(sets))
    assert all(abs(sets.count(nodes) - expected) < 5 * deviation for nodes in set(sets))


@pytest.mark.parametrize(("share", "writers", "blocks"), [("1/200", 20, 1), ("1/50", 8, 2)])
def test_how_often_some_block_meets_a_slow_node(share, writers, blocks):
    """P(any slow | m slow nodes) = 1 - (1 - q)^(nk) with q = 1 - C(N - m, 3) / C(N, 3), and m binomial: each node is slow on its own.

    Over 200 seeds, within four standard deviations.
    """
    kind = Dfs(100, 100 * MB, latency=Distribution(0), block_bytes=MB, slow=slow(share, 20, lasts_s=1800))
    hit = 0
    for seed in range(200):
        lab = Lab(replace(dfs(), dfs=kind), seed)
        for w in range(writers):
            lab.start(w, lab.storage.write(blocks * MB, "keyed", w, host=w))
        hit += max(lab.run().values()) > 100  # 10 ms a block; 20 times as long if slow, shared by a few at most
    f, n = float(kind.slow.share), kind.nodes
    binomial = [comb(n, m) * f**m * (1 - f) ** (n - m) for m in range(n + 1)]
    met = 1 - sum(p * (comb(n - m, 3) / comb(n, 3)) ** (writers * blocks) for m, p in enumerate(binomial))

    assert abs(hit - 200 * met) < 4 * (200 * met * (1 - met)) ** 0.5


def test_a_block_that_takes_too_long_goes_to_other_nodes():
    """One of two nodes is slow by 100; with a time limit no file waits for it: 100 ms limit, 50 ms pause, 10 ms on the other."""
    options = replace(
        dfs(nodes=2), retry=Retry(attempts=20, backoff_ns=50 * MS, max_backoff_ns=50 * MS, timeout_ns=100 * MS)
    )
    lab = Lab(options)
    lab.storage.medium._nodes[0].disk = ConstantRateLink(MB)
    took = [lab.took_ms(lab.storage.write(MB, name)) for name in "abcdefgh"]

    assert {10.0} < set(took)
    assert all(ms % 150 == 10 for ms in took)


def test_a_larger_factor_is_never_faster_in_the_mean():
    """Law 30: the mean time of 60 files over 12 seeds grows with the slow factor."""

    def mean_ms(factor):
        total = 0
        for seed in range(12):
            lab = Lab(dfs(nodes=20, replication=3, slow=slow("1/20", factor, lasts_s=30)), seed)
            for i in range(60):
                lab.start(str(i), lab.storage.write(20 * MB, "keyed", i, host=i % 4), at_ms=i * 100)
            total += sum(ms - i * 100 for i, ms in enumerate(map(lab.run().get, map(str, range(60)))))
        return total / 12 / 60

    times = [mean_ms(factor) for factor in (1, 2, 5, 20)]

    assert sorted(times) == times
    assert times[-1] > 1.5 * times[0]


@pytest.mark.parametrize("k", [2, 3, 7])
def test_all_times_by_k_and_bandwidths_by_one_kth_scale_all_durations(k):
    """Law 28, storage part: to the nanosecond rounding of each step."""

    def ended(k):
        kind = Dfs(
            10,
            840 * MB // k,
            replication=3,
            block_bytes=4 * MB,
            nic_bytes_per_second=2520 * MB // k,
            latency=Distribution(MS * k),
            requests_per_second=None,
        )
        lab = Lab(replace(dfs(), dfs=kind, nic_bytes_per_second=1260 * MB // k))
        for i in range(12):
            lab.start(i, lab.storage.write(10 * MB, "keyed", i, host=i % 3), at_ms=i * k)
        return [round(ms * MS) for _, ms in sorted(lab.run().items())]

    assert all(abs(k * once - scaled) <= 40 * k for once, scaled in zip(ended(1), ended(k), strict=True))


def test_what_is_interrupted_is_half_written():
    """Given up in the second block: the card is free for others, the file never becomes durable."""
    lab = Lab(dfs(block_bytes=10 * MB))
    lab.interrupt(150, lab.storage.write(100 * MB, "a"))
    lab.run()
    (stored,) = lab.storage.files

    assert (stored.complete, stored.durable_ns, stored.given_up_ns) == (False, None, 150 * MS)
    assert lab.took_ms(lab.storage.write(10 * MB, "b")) == 100


PIPELINE = {"nodes": 2, "rate": None, "replication": 2, "nic_bytes_per_second": 100 * MB, "local_first": True}


def test_the_own_node_is_read_if_it_holds_a_replica():
    """It takes no card, whatever the file."""
    lab = Lab(dfs(**PIPELINE))

    assert {0} == {lab.took_ms(lab.storage.read(50 * MB, "read", i, host=0)) for i in range(8)}


def test_every_block_is_read_where_it_was_written(monkeypatch):
    """Four blocks of one replica each on fifty nodes: the same nodes in the same order."""
    lab = Lab(dfs(nodes=50, block_bytes=4 * MB))
    medium, nodes = lab.storage.medium, []
    place = {id(node.disk): number for number, node in enumerate(medium._nodes)}
    true_transfer = medium.network.transfer

    def transfer(size_bytes, links):
        nodes.append(next(place[id(link)] for link in links if id(link) in place))
        return true_transfer(size_bytes, links)

    monkeypatch.setattr(medium.network, "transfer", transfer)
    lab.took_ms(lab.storage.write(16 * MB, "file"))
    written = list(nodes)
    nodes.clear()
    lab.took_ms(lab.storage.read(16 * MB, "file"))

    assert len(set(written)) > 1
    assert written == nodes


def test_a_last_block_of_one_byte_is_read():
    """Two blocks of one byte, at one byte per second."""
    lab = Lab(dfs(nodes=1, rate=1, block_bytes=1))

    assert [lab.took_ms(lab.storage.read(size, "a")) for size in (1, 2)] == [1000, 2000]


# Requests to the metadata server wait in line, one is served at a time.


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
