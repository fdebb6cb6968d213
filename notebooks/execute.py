"""Write the executed .ipynb beside every notebook: `python notebooks/execute.py`, or `python notebooks/execute.py 03` for one.

The .py is what is written and reviewed, the .ipynb is for reading.  Nothing of the machine stays in it: no times, no paths.
"""

import sys
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def executed(source: Path) -> Any:
    """The notebook with its outputs; an error in a cell is raised."""
    notebook = jupytext.read(source)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # random otherwise
    NotebookClient(notebook, timeout=600, record_timing=False, resources={"metadata": {"path": str(HERE)}}).execute()
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:  # how far it was is of no interest, and depends on the machine
        cell["outputs"] = [
            output for output in cell.get("outputs", ()) if output.get("metadata", {}).get("ckptsim") != "progress"
        ]
        if cell.cell_type != "code":
            del cell["outputs"]
    return notebook


if __name__ == "__main__":
    beginnings = tuple(sys.argv[1:]) or ("",)
    for source in sorted(path for path in HERE.glob("[0-9]*.py") if path.name.startswith(beginnings)):
        nbformat.write(executed(source), source.with_suffix(".ipynb"))
        print(source.with_suffix(".ipynb").name)
