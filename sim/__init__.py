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
    from sim.app.verbs.advise import Advice, advise
    from sim.app.verbs.common import Picture
    from sim.app.verbs.diff import Diff, diff
    from sim.app.verbs.explain import Explanation, explain_job
    from sim.app.verbs.importing import ImportedJob, import_job
    from sim.app.verbs.pictures import write_report
    from sim.app.verbs.results import Results
    from sim.app.verbs.study import Study, compare, load, loads, simulate
    from sim.app.verbs.sweep import Sweep, sweep
    from sim.app.verbs.traces import read_traces, trace_windows
    from sim.app.verbs.validate import Validation, validate
    from sim.app.verbs.watch import WatchResult, watch
    from sim.model.schema.reference import explain_key
    from sim.model.schema.text import ScenarioError
    from sim.runtime.result import Result

__all__ = [
    "Advice",
    "Diff",
    "Explanation",
    "ImportedJob",
    "Picture",
    "Result",
    "Results",
    "ScenarioError",
    "Study",
    "Sweep",
    "Validation",
    "WatchResult",
    "advise",
    "compare",
    "diff",
    "explain_job",
    "explain_key",
    "import_job",
    "load",
    "loads",
    "read_traces",
    "simulate",
    "sweep",
    "trace_windows",
    "validate",
    "watch",
    "write_report",
]
__version__ = "0.1.0"

_HOME = {
    "load": "sim.app.verbs.study",
    "loads": "sim.app.verbs.study",
    "Study": "sim.app.verbs.study",
    "simulate": "sim.app.verbs.study",
    "compare": "sim.app.verbs.study",
    "Results": "sim.app.verbs.results",
    "Result": "sim.runtime.result",
    "Picture": "sim.app.verbs.common",
    "Explanation": "sim.app.verbs.explain",
    "advise": "sim.app.verbs.advise",
    "Advice": "sim.app.verbs.advise",
    "import_job": "sim.app.verbs.importing",
    "explain_job": "sim.app.verbs.explain",
    "ImportedJob": "sim.app.verbs.importing",
    "diff": "sim.app.verbs.diff",
    "Diff": "sim.app.verbs.diff",
    "sweep": "sim.app.verbs.sweep",
    "Sweep": "sim.app.verbs.sweep",
    "read_traces": "sim.app.verbs.traces",
    "trace_windows": "sim.app.verbs.traces",
    "write_report": "sim.app.verbs.pictures",
    "explain_key": "sim.model.schema.reference",
    "validate": "sim.app.verbs.validate",
    "Validation": "sim.app.verbs.validate",
    "watch": "sim.app.verbs.watch",
    "WatchResult": "sim.app.verbs.watch",
    "ScenarioError": "sim.model.schema.text",
}


def __getattr__(name: str) -> _typing.Any:
    """Import on first use, so that `import sim` and `ckptsim --help` are quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """The public names; packages that are loaded are none of them."""
    return [*__all__, "__version__"]
