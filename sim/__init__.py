"""ckptsim: predicts the effect of a checkpoint setting on a Flink job, before it touches production.

>>> import sim
>>> study = sim.load("scenarios/backpressured-shuffle.yaml")
>>> results = study.run()
>>> results.plot.durations()
>>> results.explain(3)
>>> sim.compare({"today": study["aligned"], "proposed": study["unaligned"].with_({"checkpoint.interval": "10 s"})})
"""

from __future__ import annotations

import typing as _typing

if _typing.TYPE_CHECKING:
    from sim.api.advice import Advice, advise
    from sim.api.compared import compare, simulate
    from sim.api.diffed import diff
    from sim.api.files import columns, read_traces, schema, trace_windows, write_report
    from sim.api.imported import ImportedJob, explain_job, import_job
    from sim.api.results import Results
    from sim.api.study import Study, load, loads
    from sim.api.swept import sweep
    from sim.api.validated import validate
    from sim.api.watched import watch
    from sim.runtime.run.result import Result
    from sim.scenario.reference import explain_key
    from sim.scenario.text.problems import ScenarioError
    from sim.verbs.diff import Diff
    from sim.verbs.display import Picture
    from sim.verbs.explanation import Explanation
    from sim.verbs.sweep import Sweep
    from sim.verbs.validate import Validation
    from sim.verbs.watch import Watched

__all__ = [
    "Advice", "Diff", "Explanation", "ImportedJob", "Picture", "Result", "Results", "ScenarioError", "Study", "Sweep",
    "Validation", "Watched",
    "advise", "columns", "compare", "diff", "explain_job", "explain_key", "import_job", "load", "loads",
    "read_traces", "schema", "simulate", "sweep", "trace_windows", "validate", "watch", "write_report",
]  # fmt: skip
__version__ = "0.1.0"

_HOME = {
    "load": "sim.api.study",
    "loads": "sim.api.study",
    "Study": "sim.api.study",
    "simulate": "sim.api.compared",
    "compare": "sim.api.compared",
    "Results": "sim.api.results",
    "Result": "sim.runtime.run.result",
    "Picture": "sim.verbs.display",
    "Explanation": "sim.verbs.explanation",
    "advise": "sim.api.advice",
    "Advice": "sim.api.advice",
    "import_job": "sim.api.imported",
    "explain_job": "sim.api.imported",
    "ImportedJob": "sim.api.imported",
    "diff": "sim.api.diffed",
    "Diff": "sim.verbs.diff",
    "sweep": "sim.api.swept",
    "Sweep": "sim.verbs.sweep",
    "read_traces": "sim.api.files",
    "trace_windows": "sim.api.files",
    "schema": "sim.api.files",
    "write_report": "sim.api.files",
    "columns": "sim.api.files",
    "explain_key": "sim.scenario.reference",
    "validate": "sim.api.validated",
    "Validation": "sim.verbs.validate",
    "watch": "sim.api.watched",
    "Watched": "sim.verbs.watch",
    "ScenarioError": "sim.scenario.text.problems",
}


def __getattr__(name: str) -> _typing.Any:
    """Import on first use, so that `import sim` and `ckptsim --help` are quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names; rooms that are loaded are none of them."""
    return [*__all__, "__version__"]
