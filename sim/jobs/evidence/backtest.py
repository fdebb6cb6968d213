"""Backtests: simulate an imported job, and compare the checkpoints with the history that it was inferred from."""

from __future__ import annotations

import math
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import bdtr

from sim.jobs.evidence.prediction import WHOLE_RUN, observed, predicted, scenario_of
from sim.jobs.infer.file_history import seconds_between
from sim.jobs.reading import recorded_job
from sim.model.quantities import QUANTITIES, Level, Quantity, of_history
from sim.model.scenario import (
    MAX_KEPT_DURATIONS,
    Backtest,
    ComparedQuantity,
    ObservedFailures,
    OtherSettings,
    Quantiles,
)
from sim.model.schema.history_file import contradiction, section_of
from sim.model.text import capitalised, one_line
from sim.model.units import MS, format_duration
from sim.plane import warm
from sim.results.formats import amount_text, change_text
from sim.runtime.simulate import simulate

if TYPE_CHECKING:
    from sim.jobs.reading import RecordingSource
    from sim.jobs.source.recorded_job import ImportedScenario, RecordedCheckpoint, RecordedJob
    from sim.model.scenario import Scenario
    from sim.model.schema.history_file import Checkpoints
    from sim.runtime.result import Result


# ---- Uncertainty of predictions, from the history: sampling error, differences between machines, deviation of the backtest.
#
# Quantiles of few checkpoints vary from one run to the next by chance.  Bootstrap samples of the history show how much.

MACHINE_FACTOR = 1.3
"""Factor between durations of one job on differently loaded machines, in addition to the sampling error."""
CONFIDENCE = 0.95
RESAMPLES = 1000
MAX_DRAWN_CHECKPOINTS = 2000
"""Maximum size of a bootstrap sample.  The sampling error of a larger one is negligible."""
LEVELS: dict[Level, float] = {"p50": 0.5, "p90": 0.9}


def other_settings(durations_ms: Sequence[float], row: ComparedQuantity | None) -> OtherSettings:
    """Return the factors within which p50 and p90 of a run with other settings are expected.

    Sampling error and differences between machines are independent.  Together, they are multiplied by the deviation of the
    backtest.  `row` is its comparison of end-to-end durations, or None.
    """
    factors = []
    for level, share in LEVELS.items():
        agreement = 1.0 if row is None else row.agreement(level)
        both = math.hypot(math.log(sampling_factor(durations_ms, share)), math.log(MACHINE_FACTOR))
        factors.append(math.exp(both) / agreement if agreement else math.inf)
    return OtherSettings(*factors)


def sampling_factor(durations_ms: Sequence[float], share: float) -> float:
    """Return the factor by which a quantile of two runs with these durations differs at most, with 95 % confidence.

    `share` is the quantile, for example 0.9.
    """
    random = np.random.default_rng(1)
    values = np.maximum(np.asarray(durations_ms, dtype=float), 1.0)
    shape = (RESAMPLES, min(len(values), MAX_DRAWN_CHECKPOINTS))
    first, second = (np.quantile(random.choice(values, shape), share, axis=1) for _ in range(2))
    return float(np.exp(np.quantile(np.abs(np.log(first / second)), CONFIDENCE)))


# ---- Compare observed and predicted quantiles of each quantity, and find those that differ more than repeated runs do.

MIN_CHECKPOINTS_FOR_TAIL = 100
"""Minimum number of checkpoints from which a tail that is shorter than predicted is inferred."""
_TAIL_PROBABILITY = 0.025
"""Probability on either side of a confidence interval."""

Numbers = npt.NDArray[np.float64]


def compare_quantities(observed: pd.DataFrame, predicted: pd.DataFrame) -> list[ComparedQuantity]:
    """Return a comparison per quantity and vertex, in the order of display, unless all values are 0."""
    comparisons = []
    for quantity in chain.from_iterable(of_history().values()):
        in_history, in_runs = (
            side[(side["quantity"] == quantity.name) & ~side["first"]] for side in (observed, predicted)
        )
        for vertex, rows in in_history.groupby("vertex", sort=False):
            recorded, simulated = (
                np.sort(side["value"].to_numpy(dtype=float)) for side in (rows, in_runs[in_runs["vertex"] == vertex])
            )
            if recorded.any() or simulated.any():
                # If there is a single value, such as a number about the whole history, only the p50 is compared.
                levels = [level for level in LEVELS if quantity.is_judged and (level == "p50" or len(recorded) > 1)]
                off = tuple(level for level in levels if _is_off(quantity, recorded, simulated, LEVELS[level]))
                sides = _quantiles(recorded), _quantiles(simulated)
                comparisons.append(ComparedQuantity(quantity.history, *sides, str(vertex), off))
    return comparisons


def row_per_quantity(rows: list[ComparedQuantity]) -> list[ComparedQuantity]:
    """Return one row per quantity: of the vertex with the largest deviation or, if none deviates, with the largest p90."""
    by_quantity = groupby(rows, key=lambda row: row.quantity)
    return [
        max(group, key=lambda row: (bool(row.off), _gap(row) if row.off else 0.0, row.observed.p90))
        for _, group in by_quantity
    ]


def tail_ratio(rows: list[ComparedQuantity]) -> float:
    """Return observed / predicted duration in the tail (p90 or longest), or 1 if the difference is not significant."""
    row = next((row for row in rows if row.quantity == "end-to-end"), None)
    if row is None or not row.predicted.count:
        return 1.0
    quantity = QUANTITIES["end_to_end_duration"]
    ratios = [row.observed.p90 / row.predicted.p90] if "p90" in row.off and row.predicted.p90 > 0 else []
    if _differs_significantly(quantity, row.observed.largest, row.predicted.largest) and row.predicted.largest > 0:
        ratios.append(row.observed.largest / row.predicted.largest)
    ratio = max(ratios, default=1.0)
    return ratio if ratio > 1 or row.observed.count >= MIN_CHECKPOINTS_FOR_TAIL else 1.0


def _quantiles(values: Numbers) -> Quantiles:
    if not len(values):
        return Quantiles()
    p50, p90, largest = np.quantile(values, [0.5, 0.9, 1.0])
    return Quantiles(float(p50), float(p90), float(largest), len(values))


def _is_off(quantity: Quantity, recorded: Numbers, simulated: Numbers, share: float) -> bool:
    """Return whether a predicted quantile is outside its confidence interval, and differs by more than repeated runs."""
    if not len(simulated):
        return True
    observed, predicted = (float(np.quantile(side, share)) for side in (recorded, simulated))
    low, high = _confidence_interval(recorded, share)
    return not low <= predicted <= high and _differs_significantly(quantity, observed, predicted)


def _differs_significantly(quantity: Quantity, observed: float, predicted: float) -> bool:
    """Return whether values differ by more than repeated runs, and by more than measurement noise."""
    if abs(predicted - observed) < quantity.noise:
        return False
    if quantity.factor is not None:
        return not observed / quantity.factor <= predicted <= observed * quantity.factor
    return abs(predicted - observed) > quantity.spread * observed


def _confidence_interval(values: Numbers, share: float) -> tuple[float, float]:
    """Return the distribution-free 95 % confidence interval of a quantile.  A single value is assumed to be exact."""
    count = len(values)
    if count == 1:
        return float(values[0]), float(values[0])
    below = bdtr(np.arange(count), count, share)  # probability that the quantile is below the next value
    low, high = (
        int(np.searchsorted(below, _TAIL_PROBABILITY, side="right")),
        int(np.searchsorted(below, 1 - _TAIL_PROBABILITY)),
    )
    return float(values[low - 1]) if low else -math.inf, float(values[high]) if high < count else math.inf


def _gap(row: ComparedQuantity) -> float:
    """Return the largest absolute deviation of a row, or infinity without predicted values."""
    return max(
        abs(row.observed.at(level) - row.predicted.at(level)) if row.predicted.count else math.inf for level in row.off
    )


# ---- Run the imported job, as long and as often as a budget of CPU time allows.

BUDGET_S = 6.0
"""Maximum CPU time of all runs."""
RUNS = 3
PROBE_CHECKPOINTS = 4
"""Checkpoints of the first, short run, which measures the speed of the simulation.  Queues are full from the second one."""
SPARE_CHECKPOINTS = 3
"""Checkpoints of a run in addition to the number in the history."""
MAX_CHANNELS = 200_000
"""Maximum channels of a job.  To set up a larger simulation would take too long for an import."""

Watch = Callable[[float], None]
"""A callback that receives the share of the work that is done."""


class TooLargeError(Exception):
    """The job is too large for the budget."""


@dataclass
class _CpuLimit:
    """Progress callback that stops the simulation when the CPU time is used up."""

    budget_s: float
    watch: Watch
    total_ns: int = 1
    before_ns: int = 0
    share: float = 0.0
    begun_s: float = 0.0

    def __post_init__(self) -> None:
        self.begun_s = time.process_time()

    @property
    def spent_s(self) -> float:
        return time.process_time() - self.begun_s

    def __call__(self, simulated_ns: int) -> None:
        self.share = max(self.share, min((self.before_ns + simulated_ns) / self.total_ns, 1.0))
        self.watch(self.share)
        if self.spent_s > self.budget_s:
            raise TooLargeError(f"{simulated_ns / 1e9:.0f} s of the job take more than {self.budget_s:g} s of CPU time")


def runs_within(
    scenario: Scenario, job: RecordedJob, *, budget_s: float = BUDGET_S, watch: Watch = lambda _: None
) -> list[Result]:
    """Simulate the scenario one to `RUNS` times, as the budget of CPU time allows.

    A run has `SPARE_CHECKPOINTS` more checkpoints than the history, unless the scenario or the budget makes it shorter.
    Raises `TooLargeError` if not even a short run fits the budget.
    """
    _check_channels(scenario)
    points = job.triggered
    period_ns = max(scenario.checkpoint.interval_ns or 0, round(1000 * seconds_between(points)) * MS)
    whole_ns = scenario.run.duration_ns
    full_ns = min(whole_ns, (len(points) + SPARE_CHECKPOINTS) * period_ns) or whole_ns
    probe_ns = min(full_ns, PROBE_CHECKPOINTS * period_ns or full_ns)
    clock = _CpuLimit(budget_s, watch, total_ns=RUNS * full_ns)
    probe = simulate(_with_length(scenario, probe_ns, 1), check=False, progress=clock)
    results = [probe] if probe_ns == full_ns else []
    left_s = (budget_s - clock.spent_s) / (RUNS - len(results))
    affordable_s = probe_ns / 1e9 * left_s / max(clock.spent_s, 1e-3)
    run_ns = min(full_ns, int(affordable_s) * 10**9)
    if run_ns < probe_ns:
        return [probe]
    try:
        while len(results) < RUNS:
            clock.before_ns = len(results) * run_ns
            run = simulate(_with_length(scenario, run_ns, len(results) + 1), check=False, progress=clock)
            results.append(run)
    except TooLargeError:
        return results or [probe]
    return results


def _with_length(scenario: Scenario, run_ns: int, seed: int) -> Scenario:
    return replace(scenario, run=replace(scenario.run, duration_ns=run_ns, seed=seed, warmup_ns=0))


def _check_channels(scenario: Scenario) -> None:
    """Raise `TooLargeError` if the job has too many channels."""
    width = {vertex.name: vertex.parallelism for vertex in scenario.job.vertices}
    channels = sum(
        width[inlet.upstream] * vertex.parallelism for vertex in scenario.job.vertices for inlet in vertex.inputs
    )
    if channels > MAX_CHANNELS:
        raise TooLargeError(f"the job has {channels:,} channels")


# ---- A backtest as text: a table and sentences, for the terminal and the head of a scenario file.

WIDTH = 78
"""Maximum line length.  The `# ` of a comment adds two columns."""
_NAME, _NUMBER = 19, 8


def backtest_lines(backtest: Backtest) -> list[str]:
    """Return a backtest as lines of text."""
    plural, durations = "s" if backtest.runs > 1 else "", backtest.of("end-to-end")
    count = f"{backtest.checkpoints} of its history (without the first)"
    beside = "" if durations is None else f": {durations.predicted.count} checkpoints, beside {count}"
    lines = _wrapped(
        f"Backtest: the job as it is, simulated {format_duration(backtest.simulated_ns)} in {backtest.runs} run{plural}{beside}."
    )
    if missed := contradiction(backtest):
        lines += _wrapped(f"{capitalised(missed)}.")
    if backtest.checkpoints:
        lines += [*_table(backtest), *_findings(backtest)]
    return lines


def _table(backtest: Backtest) -> Iterator[str]:
    levels = "".join(f"{level:>{_NUMBER}}" for level in ("p50", "p90", "max"))
    yield f"{'':{_NAME}}{'observed':>{3 * _NUMBER}} |{'predicted':>{3 * _NUMBER}}"
    yield f"{'':{_NAME}}{levels} |{levels}  off by"
    for row in backtest.compared:
        yield f"{row.quantity:{_NAME}}{_numbers(row, row.observed)} |{_numbers(row, row.predicted)}  {_off(row)}".rstrip()


def _numbers(row: ComparedQuantity, quantiles: Quantiles) -> str:
    kind = of_history()[row.quantity][0].kind
    values = (quantiles.p50, quantiles.p90, quantiles.largest)
    return "".join(f"{amount_text(value, kind):>{_NUMBER}}" for value in values)


def _off(row: ComparedQuantity) -> str:
    return _change(row, max(row.off, key=lambda level: -row.agreement(level))) if row.off else ""


def _change(row: ComparedQuantity, level: Level) -> str:
    change = row.change(level)
    return "not seen" if change is None else change_text(change)


def _findings(backtest: Backtest) -> Iterator[str]:
    if not backtest.off:
        yield f"Nothing{' else' * bool(contradiction(backtest))} is off by more than repetitions of one job are."
        return
    rows = []  # for example ``sync of sink (p50 +7 %, p90 -30 %)``
    for row in backtest.off:
        changes = ", ".join(f"{level} {_change(row, level)}" for level in row.off)
        rows.append(f"{row.quantity}{f' of {row.vertex}' if row.vertex else ''} ({changes})")
    yield from _wrapped(f"Off by more than repetitions of one job are: {', '.join(rows)}.")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=True)


# ---- The steps from a recorded job to its backtest.


class NoHistoryError(Exception):
    """The job has no completed or failed checkpoints to compare a simulation with."""


def backtest(job: RecordedJob, watch: Watch = lambda _: None) -> Backtest:
    """Simulate an imported job, and compare it with its history.

    Raises `NoHistoryError` if there are no checkpoints to compare, or `TooLargeError` if the simulation takes too long.
    """
    history = observed(job)
    durations = history[(history["quantity"] == "end_to_end_duration") & ~history["first"]]["value"]
    failed = [point for point in job.checkpoints.list if point.status == "FAILED" and not point.is_savepoint]
    if durations.empty and not failed:
        but = ", but for the first" if (history["quantity"] == "end_to_end_duration").any() else ""
        raise NoHistoryError(f"no completed checkpoint is known in detail{but}")
    scenario = scenario_of(job)
    results = runs_within(scenario, job, watch=watch)
    in_runs = pd.concat([predicted(result) for result in results], ignore_index=True)
    rows = compare_quantities(history, in_runs)
    longest = sorted(durations.tolist(), reverse=True)[:MAX_KEPT_DURATIONS]
    compared, length_ns = tuple(row_per_quantity(rows)), results[0].scenario.run.duration_ns
    duration = next((row for row in rows if row.quantity == "end-to-end"), None)
    others = None if durations.empty else other_settings(durations.tolist(), duration)
    failures = _backtest_failures(job, failed, history, in_runs) if failed or job.failures else None
    return Backtest(compared, tuple(longest), tail_ratio(rows), len(results), length_ns, others, failures)


def _backtest_failures(
    job: RecordedJob, failed: Sequence[RecordedCheckpoint], history: pd.DataFrame, in_runs: pd.DataFrame
) -> ObservedFailures:
    recorded, simulated = (table.groupby("quantity")["value"].sum() for table in (history, in_runs))
    newest = max((point.id for point in job.checkpoints.list if point.status == "COMPLETED"), default=-1)
    reasons = Counter(one_line(point.failure_message, 80) for point in failed if point.failure_message)
    return ObservedFailures(
        int(recorded.get("completed", 0)),
        len(failed),
        reasons.most_common(1)[0][0] if reasons else "",
        int(simulated.get("completed", 0)),
        int(simulated.get("failed", 0)),
        job.failures,
        round(job.ran_ms) * MS,
        sum(point.id > newest for point in failed),
    )


# ---- Add the backtest to an imported scenario, and list the checkpoints of its history file.

MAX_LISTED_CHECKPOINTS = 1000
"""Maximum checkpoints in a history file; the latest are used.  A log of a month has tens of thousands."""


def with_backtest(
    source: RecordingSource, imported: ImportedScenario, *, watch: Watch = lambda _: None
) -> tuple[ImportedScenario, list[str]]:
    """Return the import with the section `backtest` and its text at the head of the file, and the lines of that text.

    If the backtest fails, the import is unchanged, and the lines contain the reason.
    """
    try:
        warm()
        result = backtest(recorded_job(source), watch)
    except (NoHistoryError, TooLargeError) as reason:
        return imported, [f"no backtest: {reason}"]
    except Exception as error:  # noqa: BLE001 - a defect of the simulator must not lose the import
        return imported, [f"no backtest: the simulation broke: {type(error).__name__}: {error}"]
    lines = backtest_lines(result)
    comments = imported.comments | {"": "\n".join([imported.comments[""], "", *lines])}
    document = imported.document | {"backtest": section_of(result)}
    return replace(imported, document=document, comments=comments), lines


def checkpoints_of(source: RecordingSource) -> Checkpoints:
    """Return the completed checkpoints, without savepoints, as columns of a history file."""
    table = observed(recorded_job(source))
    rows = table[(table["checkpoint"] != WHOLE_RUN) & (table["vertex"] == "")]
    if rows.empty:
        return {}
    wide = rows.pivot(index="checkpoint", columns="quantity", values="value")  # noqa: PD010
    earlier, wide = max(len(wide) - MAX_LISTED_CHECKPOINTS, 0), wide[-MAX_LISTED_CHECKPOINTS:]
    columns = {name: [_known(value) for value in wide[name]] for name in QUANTITIES if name in wide}
    first = rows[rows["first"]]["checkpoint"].unique().tolist()
    units = {name: QUANTITIES[name].unit for name in columns}
    bounds = {"earlier": earlier} if earlier else {"first": first[0]} if first else {}
    return {"id": wide.index.tolist()} | bounds | {"units": units} | columns


def _known(value: float) -> float | None:
    """Return a value for JSON: an int if it is whole, None if unknown."""
    return None if math.isnan(value) or value < 0 else int(value) if value == int(value) else value
