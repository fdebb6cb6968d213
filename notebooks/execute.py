"""Write the executed .ipynb beside every notebook: `python notebooks/execute.py`.

The .py is what is written and reviewed, the .ipynb is for reading.  Nothing of the machine stays in it: no times, no paths.
"""

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
    return notebook


if __name__ == "__main__":
    for source in sorted(HERE.glob("[0-9]*.py")):
        nbformat.write(executed(source), source.with_suffix(".ipynb"))
        print(source.with_suffix(".ipynb").name)
