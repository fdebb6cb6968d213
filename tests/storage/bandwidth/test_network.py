"""Max-min fair shares, and flows that share links through time."""

import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.model.storage import Retry
from sim.storage import network
from sim.storage.network import SCALE, ConstantRateLink, SharedNetwork, max_min
from sim.storage.requests import Attempts
from tests.storage.lab import MB, MS, SECOND

# Flows share links through time: who comes and goes changes what the others get, at once.


class Road:
    """A network and when each flow arrived [ms]."""

    def __init__(self):
        self.env = simpy.Environment()
        self.network = SharedNetwork(Attempts(self.env, Retry()))
        self.arrived = {}

    def send(self, label, size_bytes, *links, at_ms=0):
        def run():
            yield self.env.timeout(round(at_ms * MS))
            yield from self.network.transfer(size_bytes, links)
            self.arrived[label] = self.env.now / MS

        return self.env.process(run())

    def run(self):
        self.env.run()
        return self.arrived


def test_who_gives_up_leaves_the_link_to_the_others():
    """b is interrupted after 500 ms with 25 MB behind it; a has had 25 MB and 75 MB alone after that."""
    road, card = Road(), ConstantRateLink(100 * MB)
    road.send("a", 100 * MB, card)
    b = road.send("b", 100 * MB, card)
    b.callbacks.append(lambda event: setattr(event, "defused", True))
    road.env.timeout(500 * MS).callbacks.append(lambda _: b.interrupt())

    assert road.run() == {"a": 1250}


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 2000), st.integers(1, 200), st.sets(st.integers(0, 3), min_size=1)),
        min_size=1,
        max_size=7,
    )
)
def test_a_busy_link_carries_its_bandwidth(flows):
    """Work conservation through time: one link all flows cross is never idle while one of them is under way, and never carries more."""
    road, others, trunk = Road(), [ConstantRateLink(1000 * MB) for _ in range(4)], ConstantRateLink(10 * MB)
    for i, (at_ms, size, extra) in enumerate(flows):
        road.send(i, size * MB // 100, trunk, *(others[link] for link in sorted(extra)), at_ms=at_ms)
    arrived = road.run()
    free_ms = 0.0
    for at_ms, size, _ in sorted(flows, key=lambda flow: flow[0]):
        free_ms = max(free_ms, at_ms) + size

    assert abs(max(arrived.values()) - free_ms) < 0.001


def arrivals_of_all(flows, bandwidths):
    """When each flow arrives [ns] if all flows are shared anew at each event; a flow: (begin [ns], bytes, numbers of links)."""
    left = {number: size * SECOND * SCALE for number, (_, size, _) in enumerate(flows)}
    under_way, arrived, now, capacity = [], {}, 0, [rate * SCALE for rate in bandwidths]
    while len(arrived) < len(flows):
        under_way += [number for number, (begin, _, _) in enumerate(flows) if begin == now]
        rates = max_min([sorted(flows[number][2]) for number in under_way], capacity)
        ends = [now - left[number] // -rate for number, rate in zip(under_way, rates, strict=True)]
        following = min([*ends, *(begin for begin, _, _ in flows if begin > now)])
        for number, rate in zip(under_way, rates, strict=True):
            left[number] -= rate * (following - now)
        now = following
        arrived |= {number: now for number in under_way if left[number] <= 0}
        under_way = [number for number in under_way if left[number] > 0]
    return arrived


FLOW = st.tuples(
    st.integers(0, 4).map(lambda n: n * 100 * MS),
    st.integers(1, 50 * MB),
    st.sets(st.integers(0, 4), min_size=1, max_size=2),
)


@given(
    st.lists(FLOW, min_size=1, max_size=8),
    st.lists(st.integers(1, 9).map(lambda n: n * 10 * MB), min_size=5, max_size=5),
)
def test_groups_of_flows_arrive_as_if_all_were_shared_anew(flows, bandwidths):
    """To the nanosecond, whichever links they share: groups come together and fall apart."""
    road, links = Road(), [ConstantRateLink(rate) for rate in bandwidths]
    for number, (begin, size, crossed) in enumerate(flows):
        road.send(number, size, *(links[link] for link in sorted(crossed)), at_ms=begin // MS)

    assert arrivals_of_all(flows, bandwidths) == {number: round(at_ms * MS) for number, at_ms in road.run().items()}


def test_flows_elsewhere_are_not_looked_at(monkeypatch):
    """100 hosts send two files each, one after the other: no distribution has more than one flow."""
    road, sizes = Road(), []
    monkeypatch.setattr(
        network, "max_min", lambda paths, capacity: sizes.append(len(paths)) or max_min(paths, capacity)
    )
    for host in range(100):
        card = ConstantRateLink(100 * MB)
        road.send((host, 1), (host + 1) * MB, card)
        road.send((host, 2), (host + 1) * MB, card, at_ms=2000 + host)
    road.run()

    assert sizes == [1] * 200


# Max-min fair shares: known cases, and what defines them.


@st.composite
def worlds(draw):
    """(paths, capacity of the links)."""
    capacity = draw(st.lists(st.integers(0, 10**9), min_size=1, max_size=6))
    path = st.lists(st.sampled_from(range(len(capacity))), min_size=1, max_size=4, unique=True)
    return draw(st.lists(path, max_size=8)), capacity


def test_no_flows_no_rates():
    assert max_min([], [100]) == []


@given(worlds())
def test_no_link_carries_more_than_it_can(world):
    paths, capacity = world
    rates = max_min(paths, capacity)

    assert all(
        sum(r for r, path in zip(rates, paths, strict=True) if link in path) <= has for link, has in enumerate(capacity)
    )


@given(worlds())
def test_nobody_gains_unless_one_that_is_not_faster_loses(world):
    """Every flow crosses a full link (up to a unit per flow of rounding) on which no other flow is faster: work is conserved, too."""
    paths, capacity = world
    rates = max_min(paths, capacity)
    for rate, path in zip(rates, paths, strict=True):
        on = {link: [r for r, other in zip(rates, paths, strict=True) if link in other] for link in path}

        assert any(capacity[link] - sum(on[link]) < len(on[link]) and max(on[link]) <= rate + 1 for link in path)


@given(worlds(), st.randoms())
def test_the_order_of_flows_does_not_matter(world, random):
    """Up to the unit that rounding leaves over."""
    paths, capacity = world
    order = random.sample(range(len(paths)), len(paths))
    shuffled = max_min([paths[i] for i in order], capacity)
    rates = max_min(paths, capacity)

    assert all(abs(shuffled[at] - rates[i]) <= 1 for at, i in enumerate(order))


@given(worlds(), st.integers(2, 50))
def test_all_capacities_times_k_are_all_rates_times_k(world, k):
    """Dimensions: exactly, where nothing is rounded."""
    paths, capacity = world
    scaled = [c * 840 * 840 for c in capacity]  # divides by any number of flows, twice over
    slow, fast = max_min(paths, scaled), max_min(paths, [k * c for c in scaled])

    assert all(abs(k * a - b) <= k * 8 for a, b in zip(slow, fast, strict=True))
