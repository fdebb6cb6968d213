"""Examples of `ckptsim init` are files that run as they are."""

import pytest

from sim.app.examples import EXAMPLES, contents, main_file, question
from sim.model.schema.study import load
from sim.studies.sweeps.sweep_file import define
from tests.places import ROOT

FOLDER = ROOT / "sim" / "app" / "examples"
MAX_LINE = 140


def test_every_folder_is_an_example():
    assert sorted(EXAMPLES) == sorted(
        path.name for path in FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_loads_without_a_warning(name, tmp_path):
    """Each of its files, from the folder that it is written to."""
    for file, text in contents(name).items():
        (tmp_path / file).write_text(text)
    verb, file = main_file(name)

    assert (load if verb == "run" else define)(tmp_path / file).warnings == ()
    assert question(name).endswith("?")


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_comments(name):
    """At least every third line of the file that is run has one."""
    lines = [line for line in contents(name)[f"{name}.yaml"].splitlines() if line.strip()]

    assert len(lines) <= 3 * sum("#" in line for line in lines)
    assert max(map(len, lines)) <= MAX_LINE
