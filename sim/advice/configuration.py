"""The change to the advised setting: differences of its results, Flink keys that differ, patch and rollback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.advice.judgement import MEASURED, Trials
from sim.advice.settings import Change, SettingName
from sim.model.quantities import cost_text
from sim.model.scenario import Scenario
from sim.model.schema.flink_file import FlinkFile, end_of, parse_flink_file
from sim.model.schema.flink_text import flink_key, flink_lines
from sim.model.schema.text import DocumentPath
from sim.results.estimates import PairedChange, paired_change
from sim.results.formats import bytes_text, ms_text, per_second_text

if TYPE_CHECKING:
    from sim.advice.candidates import CandidateSearch


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


@dataclass(frozen=True, slots=True)
class Difference:
    """The change of one quantity from the current to the advised setting."""

    quantity: str
    today: float
    advised: float
    change: PairedChange
    text: Callable[[float], str]  # formats a value

    def row(self) -> list[str]:
        return [self.quantity, self.text(self.today), self.text(self.advised), self.change.text(self.text)]

    def plain(self) -> dict[str, Any]:
        """Return the values for JSON."""
        change = {"change": self.change.value, "half_width": self.change.half_width}
        return {"quantity": self.quantity, "today": self.today, "advised": self.advised, **change}


def differences_to_current(race: CandidateSearch) -> list[Difference]:
    """Return the differences between the results of the current and the advised setting, or [] if nothing changes."""
    before, chosen = race.replaced, race.chosen
    return [] if before is None or chosen is None else differences(race.trials, before.name, chosen.name)


def differences(trials: Trials, today: SettingName, advised: SettingName) -> list[Difference]:
    """Return a Difference for each quantity, as a mean over the worlds in which both settings ran.

    Quantities without any value are left out.
    """
    shared = [world for world in trials[today] if world in trials[advised]]
    pairs = [pair for world in shared for pair in zip(trials[today][world], trials[advised][world], strict=False)]
    found = []
    for column, quantity, text in _QUANTITIES if pairs else ():
        before, after = np.array(pairs, dtype=float)[:, :, MEASURED.index(column)].T
        if not (np.isnan(before).all() and np.isnan(after).all()):
            found.append(
                Difference(quantity, float(before.mean()), float(after.mean()), paired_change(before, after), text)
            )
    return found


# ---- Changed keys, and merge patches of a FlinkDeployment: the recommendation and its rollback.

BACKEND = "state.backend.type"
PARALLELISM = "parallelism.default"
"""This key is not removed if the advised setting does not set it, because vertices without a parallelism of their own need it."""
MAX_COMMENT_CHARS = 100
"""Maximum line length of comments in a patch."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """The change of one Flink key.  A value of None means that the key is not set."""

    key: str
    today: str | None
    advised: str | None

    def lines(self) -> list[str]:
        """Return ``- key: old`` and ``+ key: new``, without the line of a side on which the key is not set."""
        sides = (("-", self.today), ("+", self.advised))
        return [f"{sign} {self.key}: {value}" for sign, value in sides if value is not None]


def diff_flink_keys(
    today: Scenario, advised: Scenario, changes: Sequence[Change] = (), conf: FlinkFile | None = None
) -> list[KeyChange]:
    """Return the Flink keys that differ between two scenarios, and further keys that the changes require.

    A key with Flink's default value counts as not set.  `conf`: the deployed configuration; current values are quoted as
    written there.
    """
    current_keys, advised_keys = flink_lines(today), flink_lines(advised)
    for change in changes:
        advised_keys |= {flink_key(key, advised): value for key, value in change.lever.flink_keys.items()}
    keys = [
        key
        for key in dict.fromkeys((*advised_keys, *current_keys))
        if current_keys.get(key) != advised_keys.get(key) and (key != PARALLELISM or key in advised_keys)
    ]
    for key in keys:
        if conf is not None and (given := conf.keys.get(conf.written(key))) is not None:
            current_keys[key] = str(given[0]).lower() if isinstance(given[0], bool) else str(given[0])
    return [KeyChange(key, current_keys.get(key), advised_keys.get(key)) for key in keys]


def patch(
    found: list[KeyChange],
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
    what = f"{manifest.kind.lower() or 'flinkdeployment'} {manifest.resource or 'NAME'}"
    file = "rollback.yaml" if back else "advised.yaml"
    lines.append(f"# kubectl patch {what} --type merge --patch-file {file}")
    changes_backend = any(item.key == BACKEND for item in found)
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
    for item in found:
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


# ---- A recommendation as a unified diff of the user's configuration file, in its spelling, and the patch that reverts it.

PATCH, PATCH_BACK = "flink.patch", "flink.rollback.patch"
_NOT_TEXT = re.compile(r"[-+.\d][-+.\deE_]*|true|false|yes|no|on|off|null|~", re.IGNORECASE)
"""Scalars that YAML would not read as strings; values of flinkConfiguration must be strings."""


def patches(found: Sequence[KeyChange], conf: FlinkFile) -> dict[str, str]:
    """Return {file name: unified diff} for ``patch FILE < NAME``, or {} if the file uses flow style (``{...}``).

    The rollback restores the file byte for byte.
    """
    lines = conf.text.splitlines()
    if any(
        lines[mark.line - 1][: mark.column - 1].strip()
        for path, mark in conf.marks.items()
        if path[: len(conf.block)] == conf.block
    ):
        return {}
    advised = conf
    for change in found:
        advised = parse_flink_file("".join(_with_change(change, advised)), conf.file, conf.resource)
    before, after, name = _lines(conf.text), _lines(advised.text), Path(conf.file).name
    forward, back = unified_diff(before, after, name, name), unified_diff(after, before, name, name)
    return {PATCH: "".join(forward), PATCH_BACK: "".join(back)}


def _lines(text: str) -> list[str]:
    """Return the lines with their line ends; a last line without one gets one, as patch(1) requires."""
    end = "\r\n" if "\r\n" in text else "\n"
    return [line if line.endswith("\n") else line + end for line in text.splitlines(keepends=True)]


def _with_change(change: KeyChange, conf: FlinkFile) -> list[str]:
    """Return the lines of the file with the new value of a key, or with the key added below its siblings."""
    lines, path, above = _lines(conf.text), conf.place_of(change.key), conf.place_of(change.key)[:-1]
    if path not in conf.marks and change.advised is None:
        return lines
    while change.advised is None and len(above) > len(conf.block) and len(conf.children(above)) == 1:
        path, above = above, above[:-1]  # a section is removed with its last key
    text = "" if change.advised is None else f"{path[-1]}: {_value(change.advised, conf)}"
    if path in conf.marks:
        start, column = conf.marks[path].line - 1, conf.marks[path].column - 1
        stop = end_of(lines, start + 1, column + 1)
        comment = re.search(r"(?:\s+#.*)?$", lines[start].rstrip())
        lines[start:stop] = [
            f"{' ' * column}{text}{comment[0] if comment else ''}{lines[start][len(lines[start].rstrip()) :]}"
        ] * bool(text)
        return lines
    section = "" if (siblings := conf.children(above)) else f"{above[-1]}:"
    first = (siblings or conf.children(above[:-1]))[0]
    place, indent = end_of(lines, first.line - 1, first.column - 1), " " * (first.column - 1)
    lines[place:place] = [
        f"{indent}{line}{lines[0][len(lines[0].rstrip()) :]}"
        for line in ([section, f"  {text}"] if section else [text])
    ]
    return lines


def _value(text: str, conf: FlinkFile) -> str:
    """Quote the value if YAML would read it as another type."""
    needs_quotes = re.search(r"[#{}\[\],&*?|<>=!%@`]|: ", text) or (conf.kind and _NOT_TEXT.fullmatch(text))
    return json.dumps(text) if needs_quotes else text
