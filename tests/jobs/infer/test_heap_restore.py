"""How fast state is read into the heap: held to what the TaskManagers' logs say of it (`tests/data/heap-restores/README.md`)."""

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved
from sim.model.units import parse_byte_rate
from tests.places import DATA

FOLDER = DATA / "heap-restores"
LOGGED = {
    "values-100": (41.73e6, 1.084, 0.885),
    "values-1000": (96.79e6, 0.396, 0.481),
    "values-10000": (226.8e6, 0.679, 0.503),
}


def inferred(name, **checkpoints):
    """The import of a run, with other answers to /checkpoints."""
    snapshot = read_saved(FOLDER / f"{name}.zip")
    path = next(path for path in snapshot.answers if path.endswith("/checkpoints"))
    snapshot.answers[path] |= checkpoints
    return infer_scenario(snapshot)


def heap_read_rate(inference):
    return parse_byte_rate(inference.document["checkpoint"]["restore-rate"])


@pytest.mark.parametrize("name", LOGGED)
def test_a_restore_in_the_history_tells_the_rate(name):
    size, *took_s = LOGGED[name]
    inference = inferred(name)

    assert heap_read_rate(inference) == pytest.approx(size / (sum(took_s) / 2), rel=0.15)
    assert "restored from checkpoint" in " ".join(inference.comments["checkpoint.restore-rate"].split())
    assert not any("into the heap" in question for question in inference.unknown)


def test_what_a_rescaled_job_read_is_not_known():
    """Its first restore had four subtasks: the sizes of two are no sizes of what each of them read."""
    snapshot = read_saved(FOLDER / "values-100.zip")
    path = next(path for path in snapshot.answers if "/details/10/subtasks/20ba6b65" in path)
    snapshot.answers[path]["subtasks"] += snapshot.answers[path]["subtasks"]

    assert "UNKNOWN" in infer_scenario(snapshot).comments["checkpoint.restore-rate"]
