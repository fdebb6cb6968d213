"""The trials of an advice as a sweep file, for users to inspect and repeat: ``ckptsim sweep sweep.yaml``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os.path import relpath
from pathlib import Path
from typing import Any

from sim.advice.trials import Bench, Trial
from sim.model.catalogs.option import Kind
from sim.model.scenario import Scenario
from sim.scenario.flink.text import option_values
from sim.scenario.overrides import path_of
from sim.scenario.text.plain import compose, read_text
from sim.scenario.text.problems import DocumentPath, Reading
from sim.units import format_duration, format_size
from sim.whole_file import replace_text


def write_sweep(file: Path, bench: Bench, trials: Mapping[Trial, int], assumed: Mapping[str, Any]) -> None:
    """Write the file.  `trials`: the replications of each; `assumed`: present values of further keys that trials vary."""
    text = "".join(f"{line}\n" for line in _lines(file, bench, trials, assumed))
    replace_text(file, text)


def _lines(file: Path, bench: Bench, trials: Mapping[Trial, int], assumed: Mapping[str, Any]) -> list[str]:
    rows = [{**trial.point, "run.replications": count} for trial, count in trials.items()]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    now = _Present(bench, {**_todays(bench.load(bench.common)), **assumed})
    head = [
        "# What was tried to advise on this job: every setting undisturbed, and with a failure late in an interval.",
        f"# Again: ckptsim sweep {file.name} --out .",
        f"scenario: {json.dumps(relpath(bench.file, file.parent))}",
        "together:",
    ]
    columns = []
    for i, key in enumerate(keys):
        values = ", ".join(json.dumps(row[key] if key in row else now.value(key), default=str) for row in rows)
        columns.append(f"  {'- ' if not i else '  '}{json.dumps(key)}: [{values}]")
    return [*head, *columns]


class _Present:
    """The present values of keys: of the setting, of the job's file, or the defaults."""

    def __init__(self, bench: Bench, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.plain = compose(read_text(bench.file), Reading(str(bench.file)))
        self.scenario = bench.load(bench.common)

    def value(self, key: str) -> Any:
        if key in self.settings:
            return self.settings[key]
        path = path_of(key)
        node = self.plain
        for step in path:
            node = node.get(step) if isinstance(node, Mapping) else None
        return self._default(path) if node is None else node

    def _default(self, path: DocumentPath) -> Any:
        if path[0] == "job":
            vertex = self.scenario.job.vertex(str(path[1]))
            defaults: dict[str, Any] = {"changelog": "off", "service": f"{vertex.service.mean} ns", "update": "0 %"}
            return defaults[str(path[-1])]
        raise KeyError(".".join(map(str, path)))


def _todays(scenario: Scenario) -> dict[str, Any]:
    """The present values of the keys that a trial may leave unchanged."""
    options, network, store = scenario.checkpoint, scenario.cluster.network, scenario.storage.object_store
    values = option_values(scenario, without_effect=True)
    present = {own.key: own.written(own.value) for own in values if own.option.record.kind is not Kind.OWN}
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
    return present | {
        "checkpoint.interval": interval, "checkpoint.barriers": barriers, "cluster.network.debloat": debloat,
        "checkpoint.operator-io": options.operator_io, "storage.file-merging": "off",
        "storage.object-store.prefixes": 1 if store is None else store.prefixes,
        "cluster.network.floating-buffers-per-gate": network.floating_per_gate,
    }  # fmt: skip
