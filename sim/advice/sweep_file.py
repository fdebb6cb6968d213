"""The trials of an advice as a sweep file, so that anybody can inspect and repeat them: ``ckptsim sweep sweep.yaml``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os.path import relpath
from pathlib import Path
from typing import Any

from sim.advice.trials import Bench, Trial
from sim.model.scenario import Scenario
from sim.units import format_duration, format_size
from sim.whole_file import replace_text

__all__ = ["write_sweep"]


def write_sweep(file: Path, bench: Bench, trials: Mapping[Trial, int], assumed: Mapping[str, Any]) -> None:
    """Write the file.  `trials`: the replications of each; `assumed`: present values of further keys that trials vary."""
    text = "".join(f"{line}\n" for line in _lines(file, bench, trials, assumed))
    replace_text(file, text)


def _lines(file: Path, bench: Bench, trials: Mapping[Trial, int], assumed: Mapping[str, Any]) -> list[str]:
    rows = [{**trial.point, "run.replications": count} for trial, count in trials.items()]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    now = {**_todays(bench.load(bench.common)), **assumed}
    head = [
        "# What was tried to advise on this job: every setting undisturbed, and with a failure late in an interval.",
        f"# Again: ckptsim sweep {file.name} --out .",
        f"scenario: {json.dumps(relpath(bench.file, file.parent))}",
        "together:",
    ]
    columns = []
    for i, key in enumerate(keys):
        values = ", ".join(json.dumps(row[key] if key in row else now[key]) for row in rows)
        columns.append(f"  {'- ' if not i else '  '}{json.dumps(key)}: [{values}]")
    return [*head, *columns]


def _todays(scenario: Scenario) -> dict[str, Any]:
    """The present values of the keys that a trial may leave unchanged."""
    options, network = scenario.checkpoint, scenario.cluster.network
    interval = "off" if options.interval_ns is None else format_duration(options.interval_ns)
    barriers: Any = options.barriers.kind
    if options.barriers.record.has_deadline:
        barriers = {barriers: format_duration(options.barriers.timeout_ns)}
    debloat: Any = "off"
    if network.debloat is not None:
        target, period = format_duration(network.debloat.target_ns), format_duration(network.debloat.period_ns)
        debloat = {
            "target": target, "period": period, "samples": network.debloat.samples,
            "threshold": f"{network.debloat.threshold_percent} %", "min": format_size(network.debloat.min_bytes),
        }  # fmt: skip
    return {
        "checkpoint.interval": interval, "checkpoint.barriers": barriers, "cluster.network.debloat": debloat,
        "checkpoint.timeout": format_duration(options.timeout_ns), "checkpoint.max-concurrent": options.max_concurrent,
        "checkpoint.incremental": options.state.incremental, "checkpoint.local-recovery": options.state.local_recovery,
        "checkpoint.operator-io": options.operator_io, "cluster.network.segment-size": format_size(network.segment_bytes),
        "cluster.network.floating-buffers-per-gate": network.floating_per_gate,
    }  # fmt: skip
