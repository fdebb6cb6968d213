"""Does the copier of the protocol machines earn its place?  CPU time of runs with it and with `dataclasses.replace`.

    python -m benchmarks.bench_copier [--rounds N]

Machines are frozen values: every event makes a copy.  `sim.protocol.machine` writes one function per class for that.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.measure import interleaved, print_table
from sim.model.schema.study import load
from sim.protocol import machine
from sim.runtime.simulate import simulate

SCENARIOS = ("many-small-files", "p4-severe")


def measured(name: str, rounds: int) -> dict[str, float]:
    """Median CPU seconds with each copier."""
    scenario = load(f"scenarios/{name}.yaml").scenarios[0]
    own = machine._copier  # noqa: SLF001
    copiers: dict[str, Callable[[type], Callable[..., Any]]] = {"copier": own, "replace": lambda _: replace}

    def prepared(copier: str) -> Callable[[], Any]:
        machine._copier = copiers[copier]  # noqa: SLF001
        machine._COPIERS.clear()  # noqa: SLF001
        return lambda: simulate(scenario)

    try:
        return {
            copier: seconds
            for copier, (seconds, _) in interleaved({c: partial(prepared, c) for c in copiers}, rounds).items()
        }
    finally:
        prepared("copier")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows = []
    for name in SCENARIOS:
        seconds = measured(name, options.rounds)
        rows.append(
            (
                name,
                f"{seconds['copier']:.2f}",
                f"{seconds['replace']:.2f}",
                f"{seconds['replace'] / seconds['copier']:.2f}",
            )
        )
    print_table(("scenario", "copier [s]", "replace [s]", "ratio"), rows)


if __name__ == "__main__":
    main()
