"""The schema of sweep files, for editors: what it allows is what is read."""

import pytest
from ruamel.yaml import YAML

from sim.model.schema.reference import json_schema, schema_text
from sim.studies.sweeps.design import SweepDocument
from tests.places import ROOT

SWEEPS = ROOT / "scenarios" / "sweeps"
FILES = sorted(SWEEPS.glob("*.yaml"))


@pytest.fixture(scope="module")
def validator():
    return pytest.importorskip("jsonschema").Draft202012Validator(json_schema(SweepDocument, "ckptsim sweep"))


def test_the_committed_schema_of_sweeps_is_current():
    """Written by `ckptsim schema --sweep`; regenerate it when the document changes."""
    assert schema_text(SweepDocument, "ckptsim sweep") == (SWEEPS / "sweep.schema.json").read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_committed_sweep_meets_its_schema(file, validator):
    assert list(validator.iter_errors(YAML(typ="safe", pure=True).load(file))) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"vari": {"run.seed": [1]}},
        {"replications": 0},
        {"together": []},
        {"windows": {"source": "s", "trace": "t.csv", "column": "v", "length": 5, "every": "5 s"}},
        {"answer": {"show": []}},
    ],
)
def test_the_schema_refuses_what_is_refused_when_read(validator, wrong):
    sound = {"scenario": "job.yaml", "vary": {"run.seed": [1, 2]}}

    assert list(validator.iter_errors(sound)) == []
    assert list(validator.iter_errors(sound | wrong))
