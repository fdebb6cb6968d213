"""Which tasks fail together."""

from sim.protocol.restart_strategy import regions, tasks_to_restart


def test_an_all_to_all_edge_makes_one_region():
    """Two writers, two readers, everybody connected."""
    assert (frozenset(range(4)),) == regions(4, [(0, 2), (0, 3), (1, 2), (1, 3)])


def test_pointwise_edges_leave_slices_apart():
    """A chain of forward edges per subtask; an unconnected task is a region of its own."""
    assert (frozenset({0, 2}), frozenset({1, 3}), frozenset({4})) == regions(5, [(0, 2), (1, 3)])


def test_a_later_edge_joins_what_earlier_ones_left_apart():
    assert (frozenset({0, 1, 2, 3}),) == regions(4, [(0, 2), (1, 3), (2, 3)])


def test_a_failure_restarts_its_whole_region_only():
    apart = regions(4, [(0, 2), (1, 3)])

    assert frozenset({1, 3}) == tasks_to_restart([3], apart)
    assert frozenset({0, 1, 2, 3}) == tasks_to_restart([0, 3], apart)
    assert frozenset() == tasks_to_restart([], apart)
