"""Which part of a keyed edge each subtask reads, where it counts all its inputs in one number."""

import pytest

from sim.jobs.infer.flows import Flow, Flows
from sim.jobs.source.rest_job import RestInput, RestVertex
from tests.jobs.infer.test_edges_counted import drafted, vertex

SECONDS = 100


def reader(*ships, parallelism=2):
    inputs = tuple(RestInput(f"in{i}", ship) for i, ship in enumerate(ships))
    return RestVertex("join", "join", ("join",), parallelism, 128, inputs)


def flow(*read, written=(), sizes=()):
    """Records per second of each subtask; bytes of each in the mean."""
    rows = []
    for i in range(max(len(read), len(written))):
        into, out = read[i] if read else 0, written[i] if written else 0
        size = sizes[i] if sizes else 100
        rows.append(
            Flow(
                1000.0 * SECONDS,
                SECONDS * into,
                SECONDS * out,
                SECONDS * into * size,
                SECONDS * out * (sizes[i] if sizes else 100),
            )
        )
    return Flows(tuple(rows), "metrics of 100 s")


def weights(ships, into, *writers):
    """Input -> weights, and what is unknown about them."""
    vertices = [*(vertex(f"in{i}", parallelism=len(own.subtasks)) for i, own in enumerate(writers)), reader(*ships)]
    draft = drafted(vertices, {f"in{i}": own for i, own in enumerate(writers)} | {"join": into})
    inputs = draft.document["job"]["join"]["input"]
    found = {name: row.get("weights", {}).get("counted") for name, row in inputs.items() if isinstance(row, dict)}
    return found, [question for question in draft.unknown if "keys" in question]


def test_a_broadcast_comes_to_each_in_full():
    """986 and 2,141 a second of which 100 are broadcast: 886 and 2,041 have keys."""
    found, unknown = weights(["HASH", "BROADCAST"], flow(986, 2141), flow(written=(1463, 1464)), flow(written=(50, 50)))

    assert (found, unknown) == ({"in0": [303, 697]}, [])


@pytest.mark.parametrize(
    ("ship", "written", "left"),
    [("REBALANCE", (200, 200), [250, 750]), ("FORWARD", (100, 300), [375, 625]), ("GLOBAL", (100, 0), [375, 625])],
)
def test_what_comes_without_keys_is_taken_off(ship, written, left):
    """In equal parts, as it is forwarded, or all of it to the first."""
    into = {"REBALANCE": (400, 800), "FORWARD": (400, 800), "GLOBAL": (400, 500)}[ship]
    keyed = sum(into) - sum(written)
    found, unknown = weights(["HASH", ship], flow(*into), flow(written=(keyed / 2, keyed / 2)), flow(written=written))

    assert ({"in0": left}, []) == (found, unknown)


def test_records_of_other_sizes_tell_two_keyed_inputs_apart():
    """100 B and 400 B: subtask 0 reads 900 small and 100 large ones, subtask 1 300 and 300."""
    into = flow(1000, 600, sizes=(130, 250))
    found, unknown = weights(
        ["HASH", "HASH"], into, flow(written=(600, 600)), flow(written=(200, 200), sizes=(400, 400))
    )

    assert (found, unknown) == ({"in0": [750, 250], "in1": [250, 750]}, [])


def test_two_keyed_inputs_of_equal_records_are_asked_for():
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
