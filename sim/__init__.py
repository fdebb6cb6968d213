"""ckptsim: predicts the effect of a checkpoint setting on a Flink job, before it touches production.

>>> import sim
>>> study = sim.load("scenarios/backpressured-shuffle.yaml")
>>> result = sim.simulate(study.scenarios[0])
>>> sim.compare("scenarios/backpressured-shuffle.yaml")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.runtime.run.result import Result
    from sim.runtime.run.simulate import simulate
    from sim.scenario import load
    from sim.sweeps.run import run_sweep

__all__ = ["Result", "compare", "load", "run_sweep", "simulate"]
__version__ = "0.1.0"

_HOME = {
    "load": "sim.scenario",
    "simulate": "sim.runtime.run.simulate",
    "Result": "sim.runtime.run.result",
    "compare": "sim.comparison.compare",
    "run_sweep": "sim.sweeps.run",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import sim` and `ckptsim --help` are quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
