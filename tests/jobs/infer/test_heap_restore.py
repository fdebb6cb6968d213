"""How fast state is read into the heap: held to what the TaskManagers' logs say of it (`tests/data/heap-restores/README.md`)."""

from dataclasses import replace
from pathlib import Path

import pytest

from sim.jobs.infer.scenario import infer_scenario
from sim.jobs.source.saved import read_saved
from sim.model.schema.study import loads
from sim.model.schema.writer import write
from sim.model.units import parse_byte_rate
from sim.runtime.simulate import simulate

FOLDER = Path(__file__).parents[2] / "data" / "heap-restores"
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


def rate_of(inference):
    return parse_byte_rate(inference.document["checkpoint"]["restore-rate"])


@pytest.mark.parametrize("name", LOGGED)
def test_a_restore_in_the_history_tells_the_rate(name):
    size, *took_s = LOGGED[name]
    inference = inferred(name)

    assert rate_of(inference) == pytest.approx(size / (sum(took_s) / 2), rel=0.15)
    assert "began from checkpoint" in inference.comments["checkpoint.restore-rate"]
    assert not any("into the heap" in question for question in inference.unknown)


@pytest.mark.parametrize(
    ("name", "entry", "rate"), [("values-100", "1 kB", 235e6), ("values-1000", "410 B as the records", 121e6)]
)
def test_without_one_it_is_asked(name, entry, rate):
    """Entries are taken for as large as records, 2.8 us and 690 MB/s each; records that are not measured for 1 kB."""
    inference = inferred(name, latest={})

    assert rate_of(inference) == pytest.approx(rate, rel=0.02)
    assert entry in " ".join(inference.comments["checkpoint.restore-rate"].replace(",", "").split())
    assert any("into the heap" in question for question in inference.unknown)


def test_a_subtask_with_little_state_has_no_rate():
    """3 kB, and 3 MB after a restart."""
    calm = Path(__file__).parents[2] / "data" / "scaling" / "K3-scale-p2-aligned.zip"

    assert "restore-rate" not in infer_scenario(read_saved(calm)).document["checkpoint"]


def test_what_a_rescaled_job_read_is_not_known():
    """Its first restore had four subtasks: the sizes of two are no sizes of what each of them read."""
    snapshot = read_saved(FOLDER / "values-100.zip")
    path = next(path for path in snapshot.answers if "/details/10/subtasks/20ba6b65" in path)
    snapshot.answers[path]["subtasks"] += snapshot.answers[path]["subtasks"]

    assert "UNKNOWN" in infer_scenario(snapshot).comments["checkpoint.restore-rate"]


def test_a_simulated_recovery_takes_that_time():
    """The subtask that reads most decides when all tasks run."""
    document = inferred("values-100").document
    document["faults"] = [{"kill": f"{keyed(document)}[0]", "at": "45 s"}]
    (scenario,) = loads(write(document, "How long does it take?")).scenarios
    options = scenario.checkpoint
    at_once = replace(scenario, checkpoint=replace(options, state=replace(options.state, load_bytes_per_second=None)))
    result, without = simulate(scenario), simulate(at_once)
    read = result.subtasks[result.subtasks.id == result.recoveries.restored_checkpoint.iloc[0]].state_size.max()

    assert (result.recoveries.running - without.recoveries.running).item() == pytest.approx(
        read / 42.4e6 * 1000, rel=0.01
    )


def keyed(document):
    return next(name for name, vertex in document["job"].items() if "state" in vertex)
