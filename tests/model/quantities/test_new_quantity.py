"""A quantity is added in one file: a record in the catalogue of a copy of the package.  Everything that compares has it then."""

import json
import os
import shutil

import pytest

from tests.places import ROOT, SIM
from tests.processes import run_python

RECORD = """\
        Quantity(
            "subtask_size", "bytes", "written by a subtask", "written for a completed checkpoint by a subtask", "subtask",
            column="checkpointed_size", history="subtask-written", repeats=0.01, in_envelope=True,
        ),
        Quantity(
            "latest_acknowledgement", "ms", "time of the last acknowledgement", "of a completed checkpoint, since the epoch", "checkpoint",
            column="latest_ack_timestamp",
        ),
"""
SCENARIO = """\
# Is it there?
job:
  source: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 10 us, parallelism: 2, state: {size: 1 MB}}
checkpoint: {interval: 100 ms}
storage: {bandwidth: 100 MB/s}
run: {duration: 1 s}
"""
PROGRAM = """\
import json, sys
from pathlib import Path
import sim
from sim.jobs.evidence.backtest import compare_quantities
from sim.jobs.evidence.backtest import checkpoints_of
from benchmarks.lab.envelope_build import QUANTITIES
from benchmarks.lab.orderings import repeated
from sim.jobs.evidence.prediction import predicted
from sim.jobs.evidence.prediction import join_observed_predicted
from sim.model.scenario import Backtest
from sim.jobs.evidence.prediction import observed
from sim.jobs.reading import read_source, read_any
from sim.app.report.figures import title
from sim.model.schema.study import loads
from sim.model.schema.text import write
from sim.model.schema.history_file import section_of
from sim.model.schema.text import compose
from sim.model.schema.text import Reading

recording, scenario = Path(sys.argv[1]), sys.argv[2]
(study,) = loads(scenario).scenarios
simulated = predicted(sim.simulate(study, engine="interpreted"))
truth = join_observed_predicted(simulated, simulated).assign(recording="r", family="f")
row = next(row for row in compare_quantities(simulated, simulated) if row.quantity == "subtask-written" and row.vertex == "sink")
text = write({**compose(scenario, Reading("")), "backtest": section_of(Backtest((row,)))}, "")
print(json.dumps({
    "observed": sorted(set(observed(read_any(recording))["quantity"])),
    "predicted": sorted(set(simulated["quantity"])),
    "errors": truth.loc[truth["quantity"] == "subtask_size", "relative_error"].tolist(),
    "section": [found.quantity for found in loads(text).backtest.compared],
    "title": title(row),
    "history": checkpoints_of(read_source([recording]))["units"],
    "envelope": list(QUANTITIES), "orderings": list(repeated()),
}))
"""
KNOWN = """        Quantity("failed", "count","""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What a copy of the package, with two records more in one file, makes of a recording and of a run."""
    place = tmp_path_factory.mktemp("copy")
    shutil.copytree(SIM, place / "sim", ignore=shutil.ignore_patterns("__pycache__"))
    catalogue = place / "sim" / "model" / "quantities.py"
    before, known, after = catalogue.read_text().partition(KNOWN)
    catalogue.write_text(f"{before}{RECORD}{known}{after}")
    recording = ROOT / "tests" / "data" / "rest" / "pressed.zip"
    done = run_python(
        "-c",
        PROGRAM,
        recording,
        SCENARIO,
        cwd=place,
        env=os.environ | {"PYTHONPATH": f"{place}{os.pathsep}{ROOT}"},
    )
    assert (done.returncode, bool(known)) == (0, True), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("side", ["observed", "predicted"])
def test_it_is_in_tables_of_recordings_and_of_runs(found, side):
    assert {"subtask_size", "latest_acknowledgement", "checkpointed_size"} <= set(found[side])


def test_it_has_errors(found):
    """A run agrees with itself."""
    assert {0.0} == set(found["errors"])


def test_a_backtest_has_it_and_a_file_says_it(found):
    assert found["section"] == ["subtask-written"]


def test_the_history_of_an_import_has_it(found):
    """A quantity of whole checkpoints; those of subtasks are too many."""
    assert found["history"]["latest_acknowledgement"] == "ms"
    assert "subtask_size" not in found["history"]


def test_pages_have_words_for_it(found):
    assert found["title"] == "Written by a subtask, sink"


def test_orderings_and_the_envelope_judge_it(found):
    assert "subtask_size" in found["orderings"]
    assert "subtask_size" in found["envelope"]
