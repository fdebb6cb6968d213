"""Notebooks run as they are written, and what is committed for reading is what they are."""

import base64
import importlib.util
import json
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
SOURCES = sorted(NOTEBOOKS.glob("[0-9]*.py"))

SAYS = {"01-first-scenario": "Barriers wait behind", "02-kills-and-intervals": "Least caught_up_ms"}
"""What the first table of each is followed by."""

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("jupytext", "nbclient", "ipykernel")),
    reason="Jupyter is not installed: pip install -e '.[notebook]'",
)


def outputs(cells, kind):
    """Outputs of a MIME type."""
    return [output["data"][kind] for cell in cells for output in cell.get("outputs", ()) if kind in output.get("data", ())]


def committed(source):
    return json.loads(source.with_suffix(".ipynb").read_text())


@pytest.mark.extra
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_committed_notebook_is_the_reviewed_text(source):
    """`python notebooks/execute.py` after every change of the .py; nothing of a machine is in it."""
    import jupytext

    written = [(cell.cell_type, cell.source) for cell in jupytext.read(source).cells]

    assert written == [(cell["cell_type"], "".join(cell["source"])) for cell in committed(source)["cells"]]
    assert str(Path.home()) not in source.with_suffix(".ipynb").read_text()
    assert str(NOTEBOOKS.parent) not in source.with_suffix(".ipynb").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_notebook_runs(source, monkeypatch):
    """Top to bottom, with two figures, its tables and its sentence; the committed tables are those it gives now."""
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOKS.parent))
    spec = importlib.util.spec_from_file_location("execute", NOTEBOOKS / "execute.py")
    execute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(execute)

    cells = execute.executed(source).cells

    assert [] == [output for cell in cells for output in cell.get("outputs", ()) if output["output_type"] == "error"]
    assert 2 == sum(base64.b64decode(image).startswith(b"\x89PNG") for image in outputs(cells, "image/png"))
    tables = outputs(cells, "text/html")
    assert SAYS[source.stem] in tables[0]
    assert tables == ["".join(table) for table in outputs(committed(source)["cells"], "text/html")]
