"""Loads read as `ckptsim traces read` does."""

from sim.studies.traces.anywhere import read_anywhere
from sim.studies.traces.choices import Choices
from sim.studies.traces.listing import list_files


def read_here(path, tables, **choices):
    """How many rows of each kind are in a file or below a folder, or why it is refused."""
    return read_anywhere(list_files(str(path)).files, str(tables), Choices(**choices), master="here")
