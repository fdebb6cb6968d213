"""Notebooks run as they are written, and what is committed for reading is what they are."""

import base64
import importlib.util
import json
import os
import re
import time
from pathlib import Path

import pytest

import sim
from tests.places import ROOT

NOTEBOOKS = ROOT / "notebooks"
SOURCES = sorted(NOTEBOOKS.glob("[0-9]*.py"))

SAYS = {
    "01-first-scenario": "wait behind",
    "02-kills-and-intervals": "Least caught_up_ms",
    "03-slow-nodes-and-async-operate": "storage decides",
    "04-ending-a-bounded-job": "a run broke what checkpoints promise",
    "05-moving-and-deleting-checkpoints": "breaks if disposed of",
    "06-windows-and-timers": "tails are not",
    "07-choosing-an-interval": "Least completed",
    "08-how-true-is-it": "end_to_end_duration",
}
"""What some table of each is followed by, or holds."""
SECONDS = 360
"""For all of them together; each has its share."""

needs_jupyter = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("jupytext", "nbclient", "ipykernel")),
    reason="Jupyter is not installed: pip install -e '.[notebook]'",
)


def outputs(cells, kind):
    """Outputs of a MIME type."""
    return [
        output["data"][kind] for cell in cells for output in cell.get("outputs", ()) if kind in output.get("data", ())
    ]


def committed(source):
    return json.loads(source.with_suffix(".ipynb").read_text())


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_only_what_is_public_is_used(source):
    """What a notebook shows, everybody may do: `import sim`, and nothing from inside."""
    text = source.read_text()

    assert "import sim\n" in text
    assert re.findall(r"^.*(?:from|import) sim\..*$", text, re.MULTILINE) == []
    assert set() == set(re.findall(r"\bsim\.(\w+)", text)) - set(sim.__all__)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_it_goes_from_a_question_to_a_decision(source):
    text = source.read_text()

    assert "?" in text.partition("# %%\n")[0]
    assert "## The decision" in text


@needs_jupyter
@pytest.mark.extra
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_committed_notebook_is_the_reviewed_text(source):
    """`python notebooks/execute.py` after every change of the .py; nothing of a machine is in it."""
    import jupytext

    written = [(cell.cell_type, cell.source) for cell in jupytext.read(source).cells]

    assert written == [(cell["cell_type"], "".join(cell["source"])) for cell in committed(source)["cells"]]
    assert str(Path.home()) not in source.with_suffix(".ipynb").read_text()
    assert str(NOTEBOOKS.parent) not in source.with_suffix(".ipynb").read_text()


@needs_jupyter
@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_notebook_runs(source, monkeypatch):
    """Top to bottom, with a figure, its tables and its sentence, in time; the committed tables are those it gives now."""
    begun_s = time.process_time() + os.times().children_user
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOKS.parent))
    spec = importlib.util.spec_from_file_location("execute", NOTEBOOKS / "execute.py")
    execute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(execute)

    cells = execute.executed(source).cells

    assert [output for cell in cells for output in cell.get("outputs", ()) if output["output_type"] == "error"] == []
    assert outputs(cells, "image/png") or source.stem.startswith("08")
    assert all(base64.b64decode(image).startswith(b"\x89PNG") for image in outputs(cells, "image/png"))
    tables = outputs(cells, "text/html")
    assert SAYS[source.stem] in "".join(tables)
    assert time.process_time() + os.times().children_user - begun_s < SECONDS / len(SOURCES)
    assert tables == ["".join(table) for table in outputs(committed(source)["cells"], "text/html")]
