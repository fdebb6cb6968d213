"""The change to the advised setting: differences of its results, Flink keys that differ, patch and rollback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from sim.advice.judgement import MEASURED, Trials
from sim.advice.settings import Change, SettingName
from sim.model.quantities import cost_text
from sim.model.scenario import Scenario
from sim.model.schema.flink_file import FlinkFile
from sim.model.schema.flink_keys import current_names
from sim.model.schema.option_values import configuration_lines, key_in_release, non_default_keys
from sim.model.schema.text import DocumentPath
from sim.results.estimates import paired_change
from sim.results.formats import bytes_text, ms_text, per_second_text

# ---- Results of the current and the advised setting, as paired differences of runs with the same random numbers.

P99_LABEL = "checkpoint p99"
"""Label of `checkpoint_ms`.  With too few checkpoints for a p99, `sim.advice.texts` replaces it."""

_QUANTITIES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("per_second", "throughput", per_second_text),
    ("checkpoint_p50_ms", "checkpoint p50", ms_text),
    ("checkpoint_ms", P99_LABEL, ms_text),
    ("recovery_ms", "recovery", ms_text),
    ("written_per_hour", "written per hour", bytes_text),
    ("visible_ms", "output visible p99", ms_text),
    ("storage_cost", "object store, per month", cost_text),
)


def differences(trials: Trials, today: SettingName, advised: SettingName) -> tuple[list[list[str]], bool]:
    """Return a row per quantity, (name, today, advised, change), over the worlds in which both settings ran; and if runs are repeated.

    Quantities without a value on one side are left out.
    """
    shared = [world for world in trials[today] if world in trials[advised]]
    pairs = [pair for world in shared for pair in zip(trials[today][world], trials[advised][world], strict=False)]
    rows = []
    for column, quantity, text in _QUANTITIES if pairs else ():
        before, after = np.array(pairs, dtype=float)[:, :, MEASURED.index(column)].T
        if not (np.isnan(before).all() or np.isnan(after).all()):
            change = paired_change(before, after).text(text)
            rows.append([quantity, text(float(before.mean())), text(float(after.mean())), change])
    return rows, len(pairs) > 1


# ---- Changed keys, and merge patches of a FlinkDeployment: the recommendation and its rollback.

BACKEND = "state.backend.type"
PARALLELISM = "parallelism.default"
"""This key changes only if all vertices have one parallelism, because it is that of vertices without one of their own."""
MAX_COMMENT_CHARS = 100
"""Maximum line length of comments in a patch."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """The change of one Flink key.  A value of None means that the key is not set, and has the `default`, if that is known."""

    key: str
    today: str | None
    advised: str | None
    default: str = ""

    def lines(self) -> list[str]:
        """Return ``- key: old`` and ``+ key: new``.  A key that is not set any more has its default, one that was not set no first line."""
        default = f"{self.default} (default)" if self.default and self.advised is None else None
        sides = (("-", self.today), ("+", self.advised or default))
        return [f"{sign} {self.key}: {value}" for sign, value in sides if value is not None]


def diff_flink_keys(
    today: Scenario, advised: Scenario, changes: Sequence[Change] = (), conf: FlinkFile | None = None
) -> list[KeyChange]:
    """Return the Flink keys that differ between two scenarios, and further keys that the changes require.

    A key with Flink's default value counts as not set.  `conf`: the deployed configuration; keys and current values are quoted
    as written there.
    """
    current_keys, advised_keys = non_default_keys(today), non_default_keys(advised)
    if len({vertex.parallelism for vertex in advised.job.vertices}) > 1:
        advised_keys.pop(PARALLELISM, None)
    for change in changes:
        advised_keys |= {key_in_release(key, advised): value for key, value in change.lever.flink_keys.items()}
    keys = [
        key
        for key in dict.fromkeys((*advised_keys, *current_keys))
        if current_keys.get(key) != advised_keys.get(key) and (key != PARALLELISM or key in advised_keys)
    ]
    for key in keys:
        if conf is not None and (written := conf.keys.get(conf.written(key))) is not None:
            current_keys[key] = str(written[0]).lower() if isinstance(written[0], bool) else str(written[0])
    defaults = {
        key_in_release(line.name, advised): line.text for line in configuration_lines(advised) if line.is_default
    }
    return [
        KeyChange(
            conf.written(key) if conf else key, current_keys.get(key), advised_keys.get(key), defaults.get(key, "")
        )
        for key in keys
    ]


def patch(
    changes: list[KeyChange],
    *,
    back: bool,
    others: Mapping[str, Any],
    warnings: Sequence[str] = (),
    conf: FlinkFile | None = None,
) -> str:
    """Return a merge patch for a FlinkDeployment of the Kubernetes operator, in which null removes a key.

    `back`: return the rollback to current values.  `others`: {description: value} of changes that have no Flink key.
    `warnings`: written as comments, because the patch may be applied without the report.  `conf`: the deployed file; if it
    is a manifest, the patch uses its name and its spelling of keys.
    """
    manifest = (
        conf
        if conf is not None and conf.block[:1] == ("spec",)
        else FlinkFile("", "", block=("spec", "flinkConfiguration"))
    )
    lines = [
        f"# {line}"
        for warning in warnings
        for line in wrap(warning, MAX_COMMENT_CHARS, break_long_words=False, break_on_hyphens=False)
    ]
    resource = f"{manifest.kind.lower() or 'flinkdeployment'} {manifest.resource or 'NAME'}"
    file = "rollback.yaml" if back else "advised.yaml"
    lines.append(f"# kubectl patch {resource} --type merge --patch-file {file}")
    changes_backend = any(current_names().get(item.key, item.key) == BACKEND for item in changes)
    if changes_backend:
        lines.append(
            "# State moves to another backend: only a canonical savepoint can be read by both, a checkpoint cannot."
        )
    lines += [f"# Not in this patch, {change}: {value}" for change, value in others.items()]
    tree: dict[Any, Any] = {}
    spec = manifest.block[:-1]
    mode = (*spec, "job", "upgradeMode")
    if changes_backend or mode not in manifest.marks:
        _set(tree, mode, "savepoint" if changes_backend else "last-state")
    if changes_backend:
        _set(tree, manifest.place_of("kubernetes.operator.savepoint.format.type"), json.dumps("CANONICAL"))
    for item in changes:
        value, path = item.today if back else item.advised, manifest.place_of(item.key)
        # values of Flink keys are strings in YAML; fields of spec.job, such as parallelism, are not
        text = value if path[: len(spec) + 1] == mode[:-1] else json.dumps(value)
        _set(tree, path, "null" if value is None else str(text))
    return "".join(f"{line}\n" for line in (*lines, *_yaml(tree, "")))


def _set(tree: dict[Any, Any], path: DocumentPath, value: str) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value


def _yaml(tree: Mapping[Any, Any], indent: str) -> Iterator[str]:
    for key, value in tree.items():
        yield f"{indent}{key}:{'' if isinstance(value, dict) else f' {value}'}"
        yield from _yaml(value, f"{indent}  ") if isinstance(value, dict) else ()
