"""The accuracy of what-if predictions: the factors within which they hold, by the kinds of changes, and probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from sim.model.quantities import NEGLIGIBLE_MS
from sim.model.scenario import OtherSettings
from sim.model.schema.history_file import tail_sentence, verdict
from sim.results.formats import json_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sim.model.job import Job, Vertex
    from sim.model.scenario import Backtest, Scenario
    from sim.model.state import State


# ---- Kinds of what-ifs: what a scenario changes compared with the imported job.

Kind = Literal["barriers", "network", "interval", "parallelism", "load", "storage", "backend", "failure", "other"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds in the order of display.  `other` stands for all changes without a kind of their own."""
UNSEEN: frozenset[Kind] = frozenset({"backend", "failure", "other"})
"""Kinds that introduce behaviour that the imported job has never shown.  For example, checkpoints wait for RocksDB flushes
only without a changelog.  The accuracy of other kinds says nothing about these."""
AS_IT_IS: tuple[Kind, ...] = ()
"""The kinds of a scenario without changes."""

_FIELDS: dict[Kind, tuple[str, ...]] = {
    "barriers": (
        "checkpoint.barriers",
        "checkpoint.forced_aligned",
        "checkpoint.interruptible_timers",
        "checkpoint.recover_output_on_downstream",
        "checkpoint.during_recovery",
        "checkpoint.subtasks_per_channel_state_file",
    ),
    "network": (
        "cluster.network",
        "cluster.latency_ns",
        "cluster.nic_bytes_per_second",
        "cluster.barrier_wake_up_ns",
    ),
    "interval": (
        "checkpoint.interval_ns",
        "checkpoint.interval_during_backlog_ns",
        "checkpoint.min_pause_ns",
        "checkpoint.max_concurrent",
        "checkpoint.timeout_ns",
        "checkpoint.tolerable_failed",
        "checkpoint.num_retained",
    ),
    "parallelism": (
        "scenario.rescale",
        "cluster.placement",
        "cluster.slots",
        "cluster.cores",
        "cluster.hosts",
        "cluster.tasks_contend",
        "cluster.on_core_share",
        "vertex.parallelism",
        "vertex.max_parallelism",
    ),
    "load": (
        "vertex.source",
        "vertex.inputs",
        "vertex.service",
        "vertex.service_factors",
        "vertex.fan_out",
        "vertex.async_io",
        "vertex.window",
    ),
    "storage": (
        "scenario.storage",
        "scenario.instances",
        "scenario.directories",
        "checkpoint.state",
        "checkpoint.operator_io",
        "checkpoint.abort_policy",
        "checkpoint.upload_threads",
        "checkpoint.staging_bytes",
        "checkpoint.staging_full",
        "overheads.file_ns",
        "overheads.complete_ns",
        "vertex.state",
        "vertex.snapshot",
        "vertex.flush",
    ),
    "failure": ("scenario.faults", "scenario.restart", "checkpoint.lost_notifications"),
    "other": ("scenario.actions",),
}
"""The fields of each kind.  Other top-level fields, such as residuals, are not options of the job and are not compared.
Differences in all other fields are of kind `other`.
"""
KIND_OF_FIELD = {field: kind for kind, names in _FIELDS.items() for field in names}


def kinds_of(imported: Scenario, changed: Scenario) -> tuple[Kind, ...]:
    """Return the kinds of changes between two scenarios, in the order of `KINDS`.

    Length, seed and number of runs are not compared.
    """
    checkpoint, state = changed.checkpoint, imported.checkpoint.state
    same_backend = replace(checkpoint, state=replace(checkpoint.state, incremental=state.incremental))
    kinds: set[Kind] = {
        *_differing(imported, changed, "scenario"),
        *_differing(imported.checkpoint, same_backend, "checkpoint"),
        *_of_backends(imported, changed),
        *_differing(imported.cluster, changed.cluster, "cluster"),
        *_differing(imported.overheads, changed.overheads, "overheads"),
        *_of_jobs(imported.job, changed.job),
    }
    return tuple(kind for kind in KINDS if kind in kinds)


def _differing(before: Any, after: Any, section: str) -> Iterator[Kind]:
    """Yield the kind of each field that differs.  `section` is the prefix of the fields in `_FIELDS`."""
    for field in fields(before):
        kind = KIND_OF_FIELD.get(f"{section}.{field.name}", None if section == "scenario" else "other")
        if kind is not None and getattr(before, field.name) != getattr(after, field.name):
            yield kind


def _of_backends(before: Scenario, after: Scenario) -> Iterator[Kind]:
    """Yield `backend` if the state backend, the use of a changelog, or incremental snapshots differ."""
    states_after = {vertex.name: vertex.state for vertex in after.job.vertices}
    states = ((vertex.state, states_after.get(vertex.name)) for vertex in before.job.vertices)
    others = any(
        state_before and state_after and _backend(state_before) != _backend(state_after)
        for state_before, state_after in states
    )
    if others or before.checkpoint.state.incremental != after.checkpoint.state.incremental:
        yield "backend"


def _backend(state: State) -> tuple[str, bool]:
    return state.backend, state.changelog is not None


def _same_state_backend(before: Vertex, after: Vertex) -> Vertex:
    """Return `after` with the backend of `before`, so that the remaining differences are of kind `storage`."""
    state_before, state_after = before.state, after.state
    if state_before is None or state_after is None or _backend(state_before) == _backend(state_after):
        return after
    return replace(after, state=replace(state_after, backend=state_before.backend, changelog=state_before.changelog))


def _of_jobs(before: Job, after: Job) -> Iterator[Kind]:
    """Yield the kinds of changes of vertices, or `other` if the graphs differ."""
    if [vertex.name for vertex in before.vertices] != [
        vertex.name for vertex in after.vertices
    ] or before.edges != after.edges:
        yield "other"
    else:
        for vertex_before, vertex_after in zip(before.vertices, after.vertices, strict=True):
            pair = vertex_before, _same_state_backend(vertex_before, vertex_after)
            if vertex_before.parallelism != vertex_after.parallelism:
                pair = _of_all_subtasks(pair[0]), _of_all_subtasks(pair[1])
            yield from _differing(*pair, "vertex")


def _of_all_subtasks(vertex: Vertex) -> Vertex:
    """Return the vertex with rates per vertex instead of per subtask, and without weights of subtasks.

    These do not depend on the parallelism, so vertices of different parallelism can be compared.
    """
    source = vertex.source
    if source is not None:
        rates = tuple(replace(rate, per_second=rate.per_second * vertex.emitting) for rate in source.rates)
        source = replace(source, rates=rates, total=None if source.total is None else source.total * vertex.emitting)
    return replace(vertex, source=source, inputs=tuple(replace(inlet, weights=()) for inlet in vertex.inputs))


# ---- The factors within which durations are predicted, by the kinds of changes.
#
# `python -m benchmarks.lab.backtest_verdicts --write` computes `factors.json` from recordings.

FILE = Path(__file__).parent / "factors.json"
MISSED_SHARE = 0.1
"""Maximum share of predicted p50s, and of p90s, outside the factors, for a job that was not recorded."""
MIN_FAMILIES = 9
"""Minimum number of families of recordings for this share: 1 / `MISSED_SHARE` - 1."""
MIN_FACTOR = 1.1
"""Minimum factor: repeated runs of one job differ by as much."""
Pair = tuple[float, float]
"""Values for p50 and p90."""

_CHANGES: dict[Kind, str] = {
    "barriers": "other barriers",
    "network": "other buffers or network",
    "interval": "another interval",
    "parallelism": "another parallelism",
    "load": "another load",
    "storage": "other state or storage",
    "backend": "another state backend or changelog",
    "failure": "failures",
    "other": "another job",
}


@dataclass(frozen=True, slots=True)
class Learned:
    """The errors of predictions for one kind of what-if, learned from recordings."""

    settings: int  # number of recorded settings with this kind of change
    families: int  # number of families of recordings
    beyond: Pair  # factors in addition to those of the job's own history; infinite if unknown
    # share of settings within the factors that the other families give; None if they give no factor
    covered: Pair | None = None
    ratios: tuple[float, ...] = ()  # observed / predicted p90, equally likely; each family has the same weight

    @property
    def is_enough(self) -> bool:
        """Whether there are enough families of recordings for `MISSED_SHARE`."""
        return self.families >= MIN_FAMILIES


def combined(factors: Sequence[Pair]) -> Pair:
    """Return the factors of several changes together: the product of their factors, each at least 1."""
    return math.prod(max(p50, 1.0) for p50, _ in factors), math.prod(max(p90, 1.0) for _, p90 in factors)


@cache
def evidence() -> dict[tuple[Kind, ...], Learned]:
    """Return the evidence of this package (`factors.json`), by kinds of changes."""
    return read_factors(FILE.read_text(encoding="utf-8"))


def read_factors(text: str) -> dict[tuple[Kind, ...], Learned]:
    return {
        tuple(row["changes"]): Learned(
            row["settings"],
            row["families"],
            (_known(row["beyond"][0]), _known(row["beyond"][1])),
            None if row["covered"] is None else tuple(row["covered"]),
            tuple(row["ratios"]),
        )
        for row in json.loads(text)["what-ifs"]
    }


def _known(factor: float | None) -> float:
    """Return infinity for null, because JSON has no infinity."""
    return math.inf if factor is None else factor


def factors_of(backtest: Backtest, kinds: Sequence[Kind]) -> OtherSettings | None:
    """Return the factors within which p50 and p90 are predicted after changes of these kinds.

    Return None for files of older versions, which do not have the factors of the history.
    """
    history = backtest.other_settings
    if history is None:
        return None
    rows = [evidence()[(kind,)].beyond for kind in kinds] or [evidence()[AS_IT_IS].beyond]
    beyond = combined(rows) if len(rows) > 1 else rows[0]
    p50, p90 = max(history.p50 * beyond[0], MIN_FACTOR), max(history.p90 * beyond[1], MIN_FACTOR)
    row = backtest.of("end-to-end")
    if row is None:
        return OtherSettings(p50, p90)
    observed, predicted = row.observed, row.predicted
    return OtherSettings(
        _at_least_of_backtest(p50, observed.p50, predicted.p50), _at_least_of_backtest(p90, observed.p90, predicted.p90)
    )


def _at_least_of_backtest(learned: float, observed_ms: float, predicted_ms: float) -> float:
    """Return the learned factor, increased to the deviation of the backtest, and extended by the negligible duration.

    No what-if is more accurate than the backtest.  The negligible duration is added because it did not count as a
    difference when factors were learned.
    """
    low, high = sorted((max(observed_ms, 1.0), max(predicted_ms, 1.0)))
    return max(learned, high / low) + NEGLIGIBLE_MS / max(observed_ms, 1.0)


def sentences(backtest: Backtest, scenarios: Iterable[Scenario]) -> list[str]:
    """Return a sentence for each combination of changes among the scenarios.

    The list is empty for files of older versions, which lack the required values.
    """
    if backtest.imported is None or backtest.other_settings is None:
        return []
    combinations = dict.fromkeys(kinds_of(backtest.imported, scenario) for scenario in scenarios)
    return [_sentence(backtest, kinds) for kinds in combinations]


MAX_FACTOR = 10.0
"""Predictions that are further off decide nothing: the number is not printed."""


def what_if(kinds: Sequence[Kind]) -> str:
    """Return kinds of changes as text, for example ``other barriers and another interval``."""
    return _listed(kinds) or "the job as it is"


def _listed(kinds: Sequence[Kind]) -> str:
    return " and ".join(_CHANGES[kind] for kind in kinds)


def _sentence(backtest: Backtest, kinds: tuple[Kind, ...]) -> str:
    """Return a sentence with the factors, and how much evidence there is for such changes."""
    text = f"{what_if(kinds)}: checkpoints have {_factors_text(backtest, kinds)}"
    rows = {kind: evidence()[(kind,)] for kind in kinds}
    if none := [kind for kind, row in rows.items() if not row.settings]:
        return f"{what_if(kinds)}: how far checkpoints are off is not known, no recording of ours changes just that ({_listed(none)})"
    if alone := [kind for kind, row in rows.items() if kind in UNSEEN and row.families == 1]:
        return (
            f"{text}, as those of the one job recorded with {_listed(alone)}: it brings in what this job has never done"
        )
    if few := [kind for kind, row in rows.items() if not row.is_enough]:
        return f"{text}, as far as the worst change recorded: too few jobs were recorded with {_listed(few)}"
    return text


def _factors_text(backtest: Backtest, kinds: Sequence[Kind]) -> str:
    factors = factors_of(backtest, kinds)
    p50, p90 = (math.inf, math.inf) if factors is None else (factors.p50, factors.p90)
    return ", ".join(f"{name} {_factor_text(factor)}" for name, factor in (("p50", p50), ("p90", p90)))


def _factor_text(factor: float) -> str:
    if math.isinf(factor):
        return "unknown"
    return f"within a factor of {factor:.2g}" if factor <= MAX_FACTOR else f"not within a factor of {MAX_FACTOR:g}"


# ---- The p90 after a change, as a multiple of the predicted p90, from recordings of such changes.
#
# A factor that holds for all recordings is too large to decide by: one change in ten took twice as long as predicted.

LIKELY = 0.8
"""Minimum share of recorded changes within the margin of a prediction."""


def within(kinds: Sequence[Kind], share: float = LIKELY) -> float:
    """Return the multiple of the predicted p90 that is not exceeded in this share of such changes, infinity if unknown.

    The errors of several changes are assumed to be independent, and the tail beyond the worst recording is unknown.
    """
    ratios, levels = np.sort(_ratios(tuple(kinds))), len(evidence()[AS_IT_IS].ratios)
    covered_share = (levels / (levels + 1)) ** max(len(kinds), 1)
    rank = math.ceil(share / covered_share * len(ratios) - 1e-9)
    return float(ratios[rank - 1]) if rank <= len(ratios) else math.inf


@cache
def _ratios(kinds: tuple[Kind, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return equally likely values of observed / predicted p90, over all combinations of recorded ratios."""
    changes: list[tuple[Kind, ...]] = [(kind,) for kind in kinds] or [AS_IT_IS]
    products = np.ones(1)
    for change in changes:
        products = np.multiply.outer(products, np.array(evidence()[change].ratios, dtype=np.float64)).ravel()
    return products


# ---- The history of an imported job in results, as sentences and as values for JSON.


def history_sentences(backtest: Backtest | None, scenarios: Sequence[Scenario]) -> list[str]:
    """Return the verdict of the backtest, the accuracy of what-ifs, and the origin of residuals, as sentences."""
    lines = [] if backtest is None else [verdict(backtest), *sentences(backtest, scenarios)]
    return [*lines, *filter(None, dict.fromkeys(tail_sentence(scenario.residuals) for scenario in scenarios))]


def history_of(backtest: Backtest | None, scenarios: Sequence[Scenario]) -> dict[str, Any] | None:
    """Return the history of an imported file, or None if the file was not imported."""
    residuals = scenarios[0].residuals
    lines = history_sentences(backtest, scenarios)
    if not lines:
        return None
    off = [
        {
            "quantity": row.quantity,
            "vertex": row.vertex or None,
            "quantile": level,
            "observed": json_ready(row.observed.at(level)),
            "predicted": json_ready(row.predicted.at(level)),
        }
        for row in (() if backtest is None else backtest.off)
        for level in row.off
    ]
    counted = None if backtest is None else backtest.checkpoints
    return {
        "sentences": lines,
        "checkpoints": counted,
        "off": off,
        "tail_from_checkpoints": residuals.checkpoints or None,
    }
