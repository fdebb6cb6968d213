"""Scenario files: YAML that a person can read aloud <-> the frozen model.

`load` and `loads` read, `write` writes, `json_schema` (or `schema`) is the JSON Schema for editors.
A mistake is a `ScenarioError` with the place of everything that is wrong, never a traceback.

The command, sweeps, advice and recordings call it.  It knows the model, and nothing of how a run goes.
"""

from __future__ import annotations

from sim.scenario.axes import Axis
from sim.scenario.schemas import json_schema
from sim.scenario.schemas import json_schema as schema
from sim.scenario.study import ScenarioFile, load, loads
from sim.scenario.text.problems import Problem, ScenarioError
from sim.scenario.text.writer import write

__all__ = ["Axis", "Problem", "ScenarioError", "ScenarioFile", "json_schema", "load", "loads", "schema", "write"]
