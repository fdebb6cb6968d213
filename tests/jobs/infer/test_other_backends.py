"""What an import of a job says of other state backends, held to the same job on those."""

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.runtime.simulate import simulate
from tests.places import DATA

BACKENDS = DATA / "backends"
PROFILE = 'job."profile+out-writer"'


def inferred(name):
    return infer_scenario(read_saved(BACKENDS / f"{name}.zip"))


def predicted(name, *overrides):
    """The subtasks of Profile, and the checkpoints."""
    found = inferred(name)
    text = found.text
    result = simulate(loads(text, overrides=["run.duration=2 min", *overrides]).scenarios[0], check=False)
    return result.subtasks[result.subtasks["vertex"] == "profile+out-writer"], result.checkpoints


def test_pauses_of_rocksdb_do_not_stay_on_the_heap():
    """Its sync takes 40 ms in the median and 98 ms at times; that of the heap none."""
    stays, _ = predicted("S-rocksdb")
    goes, _ = predicted("S-rocksdb", f"{PROFILE}.state.backend=hashmap")

    assert pytest.approx(stays["sync_duration"].median(), rel=0.15) == 40
    assert goes["sync_duration"].max() == 0
    assert pytest.approx(goes["async_duration"].median(), rel=0.4) == 22
