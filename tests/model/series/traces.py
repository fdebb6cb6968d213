"""Answers of Prometheus, and loads read as `ckptsim traces read` does."""

import json

from sim.studies.traces.choices import Choices
from sim.studies.traces.conversion import convert_traces
from sim.studies.traces.listing import list_files


def answer(*series):
    """The text that Prometheus sends for a range query: (labels, values) of each series."""
    result = [{"metric": labels, "values": [[at, str(value)] for at, value in points]} for labels, points in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def read_here(path, tables, **choices):
    """How many rows of each kind are in a file or below a folder, or why it is refused."""
    return convert_traces(list_files(str(path)).files, str(tables), Choices(**choices), master="here")
