"""Max-min fair shares: known cases, and what defines them."""

from hypothesis import given
from hypothesis import strategies as st

from sim.storage.network import max_min


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
