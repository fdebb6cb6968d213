"""``python -m benchmarks.flink``: a real job is imported, the other protocols predicted, the job switched to them, and both compared."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.flink.advised import carry_out
from benchmarks.flink.advised import text as advised_text
from benchmarks.flink.classes import MissingDependencyError
from benchmarks.flink.cluster import FlinkError
from benchmarks.flink.experiments import EXPERIMENTS
from benchmarks.flink.report import decision, table_text
from benchmarks.flink.switch import switch
from sim.model.schema.text import ScenarioError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flink", description=__doc__)
    parser.add_argument("experiment", nargs="?", default="shuffle", choices=EXPERIMENTS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="the whole table as a list of records")
    parser.add_argument("--scenario", type=Path, metavar="FILE", help="the scenario as it was imported")
    parser.add_argument(
        "--advised", action="store_true", help="ask `advise` to halve today's longest checkpoint; set what it prints"
    )
    parser.add_argument(
        "--nice", type=int, default=0, help="of the Java process: -15 keeps a busy machine out of the measurement"
    )
    chosen = parser.parse_args()
    begun = time.monotonic()

    def print_line(what: str) -> None:
        print(f"{time.monotonic() - begun:6.0f} s  {what}", file=sys.stderr, flush=True)

    experiment = EXPERIMENTS[chosen.experiment]
    first = experiment.protocols[0].name
    try:
        if chosen.advised:
            print(advised_text(carry_out(experiment, report=print_line, nice=chosen.nice)))
            return 0
        outcome = switch(experiment, report=print_line, nice=chosen.nice)
    except (FlinkError, MissingDependencyError, ScenarioError) as error:
        # the last: what was read makes no scenario with the answers
        print(error, file=sys.stderr)
        return 5 if isinstance(error, MissingDependencyError) else 4
    print_line("done")
    print(
        f"A real job on Flink ('{chosen.experiment}'), imported while it ran; every protocol predicted from that, then measured.\n"
    )
    print(table_text(outcome.table, first))
    print(f"\nMeasured (predicted):\n{decision(outcome.table, first)}")
    if chosen.scenario:
        chosen.scenario.write_text(outcome.scenario)
    if chosen.json:
        chosen.json.write_text(json.dumps(json.loads(outcome.table.to_json(orient="records")), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
