"""Which part of a keyed edge each subtask reads, where it counts all its inputs in one number."""

from itertools import zip_longest

import pytest

from sim.jobs.source.rest_job import RestInput, RestVertex
from tests.jobs.infer.made_jobs import flowed, own, vertex, worked


def reader(*ships, parallelism=2):
    inputs = tuple(RestInput(f"in{i}", ship) for i, ship in enumerate(ships))
    return RestVertex("join", "join", ("join",), parallelism, 128, inputs)


def flow(*read, written=()):
    """Records per second of each subtask, of 100 B each."""
    return flowed(*(own(into, out) for into, out in zip_longest(read, written, fillvalue=0)))


def weights(ships, into, *writers):
    """Input -> weights, and what is unknown about them."""
    vertices = [
        *(vertex(f"in{i}", parallelism=len(flow.subtasks["elapsed_ms"])) for i, flow in enumerate(writers)),
        reader(*ships),
    ]
    draft = worked(vertices, {f"in{i}": flow for i, flow in enumerate(writers)} | {"join": into})
    inputs = draft.document["job"]["join"]["input"]
    found = {name: row.get("weights", {}).get("counted") for name, row in inputs.items() if isinstance(row, dict)}
    return found, [question for question in draft.unknown if "keys" in question]


def test_a_broadcast_comes_to_each_in_full():
    """986 and 2,141 a second of which 100 are broadcast: 886 and 2,041 have keys."""
    found, unknown = weights(["HASH", "BROADCAST"], flow(986, 2141), flow(written=(1463, 1464)), flow(written=(50, 50)))

    assert (found, unknown) == ({"in0": [303, 697]}, [])


def test_what_comes_in_equal_parts_is_taken_off():
    found, unknown = weights(["HASH", "REBALANCE"], flow(400, 800), flow(written=(400, 400)), flow(written=(200, 200)))

    assert (found, unknown) == ({"in0": [250, 750]}, [])


@pytest.mark.parametrize("ship", ["FORWARD", "GLOBAL"])
def test_no_shares_are_told_beside_an_input_whose_parts_differ(ship):
    assert weights(["HASH", ship], flow(400, 800), flow(written=(400, 400)), flow(written=(100, 300))) == ({}, [])


def test_two_keyed_inputs_are_asked_for():
    """Both get what the counters say together, and a question."""
    found, unknown = weights(["HASH", "HASH"], flow(1000, 500), flow(written=(500, 500)), flow(written=(250, 250)))

    assert found == {"in0": [667, 333], "in1": [667, 333]}
    assert unknown == ["join: Do the keys of its inputs have the same skew?"] * 2


def test_subtasks_that_differ_by_chance_need_no_weights():
    """1,000 records a second over 100 s differ by 3 in 1,000."""
    assert weights(["HASH", "BROADCAST"], flow(1100, 1099), flow(written=(1000, 999)), flow(written=(50, 50))) == (
        {},
        [],
    )
