"""A bad world becomes small, and still shows what it showed."""

from sim.model.schema.study import loads
from sim.model.schema.text import ScenarioError
from sim.model.schema.writer import write
from tests.worlds.findings import keep, small
from tests.worlds.generator import FOLDER, document
from tests.worlds.shrinker import shrink
from tests.worlds.trial import Outcome


def joined(world):
    return any(len(vertex.get("input", {})) > 1 for vertex in world["job"].values()) and "faults" in world


def valid(world):
    try:
        loads(write(world, "?"), folder=FOLDER)
    except ScenarioError:
        return False
    return True


def test_only_what_matters_is_left():
    """The world is bad whenever a vertex has two inputs and something is to fail."""
    world = next(
        candidate for candidate in map(document, range(100)) if joined(candidate) and len(candidate["job"]) > 5
    )
    least = shrink(world, lambda candidate: joined(candidate) and valid(candidate))

    assert joined(least)
    assert {"version", "job", "checkpoint", "run", "faults"} == set(least) - {"flink"}, (
        "the interval may stand in `flink:`"
    )
    assert len(least["job"]) <= 4
    assert len(write(least, "?").splitlines()) <= 12


def test_the_same_kind_of_finding_remains():
    """A smaller world in which something else happens is none."""
    world = next(candidate for candidate in map(document, range(100)) if "faults" in candidate)

    def judge(candidate):
        return Outcome("violated", "3 records are lost") if "faults" in candidate else Outcome("crash", "KeyError")

    text = small(world, Outcome("violated", "12 records are lost"), 5, judge)

    assert text.splitlines()[1] == "# violated: 3 records are lost (seed 5)"
    assert "faults:" in text


def test_the_search_is_bounded():
    attempts = []
    shrink(document(3), lambda candidate: attempts.append(candidate) or False, most_tries=7)

    assert len(attempts) == 7


def test_the_traces_of_a_world_are_kept_with_it(tmp_path):
    keep(tmp_path / "kept", "world-1", "rate: {trace: load.csv, column: per_second}\n")

    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["load.csv", "world-1.yaml"]
