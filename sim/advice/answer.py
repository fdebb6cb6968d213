"""Build the report of `advise`: an overview that fits a terminal, full texts and tables, JSON data, and patches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from sim.advice.cautions import cautions, new_defects, sinks_without_unaligned, unsafe_defects
from sim.advice.configuration import diff_flink_keys, patch
from sim.advice.judgement import rows_of
from sim.advice.levers import SPARE
from sim.advice.situation import dominant, situation_of
from sim.advice.texts import (
    LIMITED,
    advised_scenario,
    condition_of,
    doubtful_cautions,
    equal_intervals,
    equal_text,
    file_cautions,
    file_text,
    firing_cautions,
    keeps_in_file,
    name_of,
    quantity_of,
    recovery_text,
    restart_cautions,
    value_text,
    value_text_apart_from,
)
from sim.advice.trials import FAILURE, TASK, UNDISTURBED, is_lost_silently
from sim.jobs.evidence.known_issues import issues_of
from sim.jobs.evidence.what_ifs import factors_of
from sim.model.faults import Restart
from sim.model.quantities import cost_text
from sim.model.text import one_line
from sim.model.units import format_duration, parse_duration
from sim.results.formats import TextTable, bytes_text, change_text, count_text, ms_text, per_second_text
from sim.results.stored import table_sinks
from sim.runtime.plane_spec import hosts

if TYPE_CHECKING:
    from sim.advice.candidates import CandidateSearch
    from sim.advice.judgement import Limits, Setting
    from sim.advice.settings import Candidate, Change
    from sim.jobs.evidence.what_ifs import Kind
    from sim.model.scenario import Backtest


# ---- What to know before and after a change: which failure is judged, what to watch, when to revert.

# ---- The failure by which recovery is judged.


def judged(search: CandidateSearch) -> str:
    """Return the label of the recovery that is judged."""
    if search.bench.failure == TASK:
        return "recovery, a task failing"
    return "recovery, machine silent" if is_lost_silently(search.scenario) else "recovery, task manager lost"


def slots_texts(search: CandidateSearch, chosen: Setting) -> tuple[str, str]:
    """Return (a line of the overview, a sentence) on when a lost TaskManager is replaced, or that its loss is not judged."""
    if search.bench.failure == TASK:
        return "a lost task manager is not judged (--failure task-manager)", (
            "Recovery is judged of a failing task, whose slots stay. How long it takes after a lost task manager is not judged; "
            "--failure task-manager does."
        )
    restart, slots_ms = (
        search.bench.with_setting(search.candidate_of(chosen.name)).restart,
        search.slots_ms(chosen.name),
    )
    if slots_ms is None:
        gives_up = "the restart strategy gives up before there are slots"
        return gives_up, f"Recovery is judged of a lost task manager: {gives_up}."
    after = " to ".join(dict.fromkeys(map(ms_text, slots_ms)))
    is_adaptive = restart.scheduler == "adaptive"
    short = f"{'all ' * is_adaptive}slots after {after}"
    sentence = f"Recovery is judged of a lost task manager: {after} until there are slots, as heartbeats happen to fall"
    sentence += f"{'; it goes on with those that are left' * is_adaptive}."
    if restart.replacement == Restart().replacement:  # the file does not say what replaces a lost one
        short += ", if one is spare"
        sentence += (
            " Assumed: another one has free slots (in a standalone cluster nobody starts one); restart.replacement says how long a new "
            "one takes to start."
        )
    return short, sentence


# ---- Predicted ranges to watch after a change, and bounds beyond which it should be reverted. The bounds allow for the error of
# predictions: a value within the error factor is not a reason to revert.

P50_ERROR_FACTOR = 1.6
"""Error factor of predicted p50 under other barriers, if a history does not give a better one: that of all 86 in what_ifs.csv."""
BACKEND_ERROR_FACTOR = 3.6
"""Error factor of predicted p50 and p90 after a change of the state backend or to the changelog (what_ifs.csv)."""
WATCHED_CHECKPOINTS = 10
"""Number of checkpoints to watch: enough for the median and the longest, not for a p99."""
MEDIAN_STANDARD_ERRORS = 2 * 1.2533 / math.sqrt(WATCHED_CHECKPOINTS) / 1.2816
"""Two standard errors of the median, as a multiple of the distance from p50 to p90, if logarithms are normally distributed."""
MAX_SHORTFALL = 0.05
"""Relative shortfall of throughput that is above the noise: repetitions of one job differ by 1.5 %."""
MAX_RESCALED_SHORTFALL = 0.15
"""SLOWER for a changed parallelism, because recordings of such changes were up to 13 % below their predictions."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Predicted ranges to watch after a change, and bounds beyond which the change should be reverted.

    Bounds are rounded away from the prediction, so that their text is never stricter than they are.
    """

    factor: float  # error factor of p50
    p50_ms: tuple[float, float]
    checkpointed_bytes: float  # NaN: unknown
    per_second: float
    roll_back_below_per_second: float
    roll_back_above_p50_ms: float
    roll_back_above_longest_ms: float | None  # at least the limit on checkpoints; None: there is no such limit
    checkpoints: int
    roll_back_only_if_lag_grows: bool  # the job serves all arrivals, so that throughput may decrease with them
    is_most: bool  # bytes are an upper bound, because the rate at which records rewrite state is unknown

    def watch_text(self) -> str:
        """Return what to watch, for the overview, e.g. ``p50 325 ms to 900 ms, 1.2 GB each, 10,000/s served``."""
        least, most = map(ms_text, self.p50_ms)
        size = f", {'up to ' if self.is_most else ''}{bytes_text(self.checkpointed_bytes)} each"
        known = size if math.isfinite(self.checkpointed_bytes) else ""
        return f"p50 {least} to {most}{known}, {per_second_text(self.per_second)} served"

    def roll_back_text(self, limit_ms: float | None = None) -> str:
        """Return when to revert the change, for the overview, e.g. ``p50 of 10 > 900 ms, or under 9,500/s and lag grows``.

        `limit_ms`: limit of checkpoints, which is named if the prediction may be off by so much that a longer one is no reason.
        """
        p50, longest_ms = ms_text(self.roll_back_above_p50_ms), self.roll_back_above_longest_ms
        longest = "" if longest_ms is None else f", longest > {ms_text(longest_ms)}"
        if limit_ms is not None and longest_ms is not None and longest_ms > limit_ms:
            longest += f" (the limit, {ms_text(limit_ms)}, is within the error of the prediction)"
        slow = f"under {per_second_text(self.roll_back_below_per_second)}"
        growing = " and lag grows" if self.roll_back_only_if_lag_grows else ""
        return f"p50 of {self.checkpoints} > {p50}{longest}, or {slow}{growing}"


def watch(
    chosen: Setting,
    limits: Limits,
    backtest: Backtest | None,
    kinds: Sequence[Kind] = (),
    *,
    keeps_up: bool = False,
    is_most: bool = False,
) -> Watch:
    """Return the ranges and bounds for the advised setting.

    `backtest`: determines the error factor of predictions, together with `kinds`, the kinds of changes.  `keeps_up`: the job
    serves all arrivals, so that a lower throughput may be due to a lower load.  `is_most`: bytes are an upper bound.
    """
    factors = None if backtest is None else factors_of(backtest, kinds)
    usual = BACKEND_ERROR_FACTOR if "backend" in kinds else P50_ERROR_FACTOR
    factor, tail_factor = (
        own if own is not None and math.isfinite(own) else usual
        for own in ((None, None) if factors is None else (factors.p50, factors.p90))
    )
    p50_ms, p90_ms = chosen.checkpoint_p50_ms, chosen.checkpoint_p90_ms
    spread = max(p90_ms / p50_ms, 1.0) if p50_ms > 0 and math.isfinite(p90_ms) else 1.0
    limit_ms, longest_ms = limits.checkpoint_ms, max(chosen.checkpoint_ms, chosen.longest_ms)
    slower = MAX_RESCALED_SHORTFALL if "parallelism" in kinds else MAX_SHORTFALL
    return Watch(
        factor,
        (p50_ms / factor, p50_ms * factor),
        chosen.checkpointed_bytes,
        chosen.per_second,
        _round_down(chosen.per_second * (1 - slower)),
        _round_up(p50_ms * factor * spread**MEDIAN_STANDARD_ERRORS),
        None if limit_ms is None else max(limit_ms, _round_up(longest_ms * tail_factor)),
        WATCHED_CHECKPOINTS,
        keeps_up,
        is_most,
    )


def _round_up(ms: float) -> float:
    """Return a duration rounded up until its text, which is rounded, is not shorter than the duration."""
    rounded_ms = ms
    while math.isfinite(ms) and parse_duration(ms_text(rounded_ms)) / 1e6 < ms:
        rounded_ms *= 1.003
    return rounded_ms


def _round_down(rate: float) -> float:
    """Return a rate rounded down to three digits."""
    digit = 10.0 ** (math.floor(math.log10(rate)) - 2) if rate > 0 else 1.0
    return math.floor(rate / digit + 1e-9) * digit


# ---- The overview: values and limits, costs, changed Flink keys, cautions, and what to watch. Together with the verdict above
# it, it has at most 20 lines of 80 characters, so that it fits a terminal. `--why` prints full tables and sentences below it.
#
# Labels of lines:
#
# * with an advised setting: `KEEPS`, `NEAR` or `OVER` for each limit, `expect` (values without a limit), `state` (that changes),
#   `today` (problems of today's setting), `costs`, `alike` (intervals that runs do not tell apart), `change` (Flink keys), `ask`
#   (questions and assumptions), `caution`, `watch` (expected values after the change), `back` (when to roll back), or `again`
#   (when to ask again) if nothing changes;
# * without one: `ask`, `closest` (the setting nearest to the limits), its limits, `state`, `time` (its longest phase), `fits`
#   (sufficient changes), `caution`.
#
# Ranks: 9 for limits, lost output, values that the user has to confirm, and the rollback (always shown); 8 for throughput,
# written bytes, known defects that come with the change, and recovery without a limit; 7 for commits, prices, values to watch,
# and checkpoints after a failure; 6 for the first caution; 5 for assumptions of levers; 4 and less for problems of today's
# setting, questions, other failures, and other cautions.

WIDTH, LINES = 80, 20
LABEL = 8
"""Width of the column of labels."""
MAX_TEXT_CHARS = 400
"""Characters after which a text is cut before it is fitted into a line."""
CHANGE_LINES = 4
"""Minimum lines reserved for changed keys."""
RANK_ALWAYS_SHOWN = 9
"""Rank of texts that are always shown."""
RANK_OF_TWO_LINES = 7
"""Lowest rank of texts that may take two lines: a comparison that is cut loses the advised value."""
KEEPS, NEAR, OVER = "✓ keeps", "~ near", "✗ over"
"""Labels of limits: kept; the range reaches beyond the limit, or trials do not show that it is kept; the value is beyond it."""
QUESTIONS = 2
CAUTIONS = 2
"""Maximum questions, and maximum cautions, in the overview."""


class Text(NamedTuple):
    """A line of the overview.  If there are too many, those with the lowest `rank` are dropped; full texts follow below it."""

    label: str
    text: str
    rank: int = RANK_ALWAYS_SHOWN

    @property
    def lines(self) -> list[str]:
        """Return the text in at most two lines, or in one if its rank is low.  What does not fit ends in ``...``."""
        line_count = 2 if self.rank >= RANK_OF_TWO_LINES else 1
        line = one_line(self.text, MAX_TEXT_CHARS)
        return wrap(line, WIDTH - LABEL, max_lines=line_count, placeholder="...", break_on_hyphens=False) or [""]


def lines_below(verdict: str) -> int:
    """Return the number of lines left for the overview on the screen, below the verdict and an empty line."""
    return LINES - 1 - len(wrap(verdict, WIDTH))


def overview(above: Sequence[Text], changes: Sequence[str], below: Sequence[Text], line_count: int) -> str:
    """Return the overview: the texts `above`, then the changed keys, then the texts `below`.

    The overview has about `line_count` lines.  If there are more, texts are dropped until `CHANGE_LINES` lines are free for changed
    keys: those with the lowest rank first, and of several with the same rank the last one.  Texts with `RANK_ALWAYS_SHOWN` stay.
    Changed keys that do not fit are replaced by a line with their number.
    """
    left = [*above, *below]
    while (height := sum(len(text.lines) for text in left)) > line_count - min(len(changes), CHANGE_LINES):
        lowest = min(reversed(left), key=lambda text: text.rank)
        if lowest.rank == RANK_ALWAYS_SHOWN:
            break
        left.remove(lowest)
    if len(changes) > max(line_count - height, 1):
        # at least one changed key is shown; the last line says how many are not
        kept = max(line_count - height, 2) - 1
        changes = [*changes[:kept], f"  ... {len(changes) - kept} more lines: see advised.yaml"]
    texts = [
        *(text for text in above if text in left),
        *(Text("change", line, 0) for line in changes),
        *(text for text in below if text in left),
    ]
    return "\n".join(_labelled(texts))


def _labelled(texts: Sequence[Text]) -> Iterator[str]:
    """Yield all lines; of several texts with one label only the first has it, unless it is that of a limit."""
    before = ""
    for text in texts:
        label = text.label if text.label != before or text.label in (KEEPS, NEAR, OVER) else ""
        for line in text.lines:
            yield f"{label:{LABEL}}{line}"
            label = ""
        before = text.label


def _limit_lines(search: CandidateSearch, setting: Setting, before: Setting | None = None) -> Iterator[Text]:
    """Yield a line for each limited value: that of `before`, the predicted one with its range, and the limit.

    For example ``longest of 306 checkpoints 21 s -> 540 ms (330 to 900 ms), limit 2 s``.  The label says whether the range is
    within the limit, reaches beyond it, or the predicted value itself does.  If the range is within the limit, but trials do not
    show that it is kept, the label is NEAR, and the line says why.
    """
    for column, bound in search.limits.bounds.items():
        value = setting.value(column)
        if math.isnan(value):
            continue
        needed = {tight.column: tight.needed for tight in setting.tight}
        off = needed[column] if column in needed else search.margins(setting.name, column)
        was_in_file = 0.0 if before is None else _value_in_file(search, before, column)
        is_own = before is not None and was_in_file > before.value(column)
        quantity = judged(search) if column == "recovery_ms" and not is_own else quantity_of(column, setting)
        why = f" ({setting.rare})" if setting.rare and column == "checkpoint_ms" else _range_text(column, value, off)
        if (in_file := _value_in_file(search, setting, column)) > value:
            value, quantity, why = in_file, LIMITED[column], f" ({search.file_runs[setting.name].event})"
        doubt = "" if value * (1 + off) > bound else _doubt(search, setting, column)
        label = OVER if not value <= bound else NEAR if value * (1 + off) > bound or doubt else KEEPS
        shown = (
            [(setting, value)]
            if before is None
            else [(before, max(before.value(column), was_in_file)), (setting, value)]
        )
        values = " -> ".join(
            (own.gives_up if column == "recovery_ms" else "") or value_text_apart_from(column, number, bound)
            for own, number in shown
        )
        rest = f"{why}, limit {value_text(column, bound)}{doubt and f'; {doubt}'}"
        yield Text(label, f"{quantity.removeprefix('the ')} {values}{rest}")


def _doubt(search: CandidateSearch, setting: Setting, column: str) -> str:
    """Return why trials do not show that a setting keeps a limit, though the range of its value is within it; "" if they do."""
    if column == "checkpoint_ms" and not setting.ran_long:
        return "too few checkpoints ran to show that it is kept"
    if column == "checkpoint_ms" and (unseen := firing_cautions(search, setting)):
        return unseen[0].short
    if column == "loss" and setting.name in search.behind:
        return "the job falls behind"
    if keeps_in_file(search, setting, column):
        return ""
    run = search.file_runs.get(setting.name)
    return f"as the file is, {file_text(search, run, column)}" if run else "not run with the events of the file"


def _value_in_file(search: CandidateSearch, setting: Setting, column: str) -> float:
    """Return a value from the run with the events in the file, or 0 if no such run shows it."""
    return search.file_runs[setting.name].limited.get(column, 0.0) if setting.name in search.file_runs else 0.0


def _range_text(column: str, value: float, off: float) -> str:
    """Return the range of a predicted value that may be off by a share of it, e.g. `` (330 to 900 ms)``; "" if it has none."""
    if not 0 < value < math.inf or not off:
        return ""
    least, most = value_text(column, value / (1 + off)), value_text(column, value * (1 + off))
    number, _, unit = least.partition(" ")
    return f" ({number if most.endswith(f' {unit}') else least} to {most})"


def _recovery_lines(search: CandidateSearch, chosen: Setting, slots: str) -> Iterator[Text]:
    """Yield the recovery that no limit is about, when there are slots, and the longest checkpoint until it is caught up."""
    has_limit, before = search.limits.recovery_ms is not None, search.replaced
    if not has_limit and not math.isnan(chosen.recovery_ms):
        values = [recovery_text(setting) for setting in (before, chosen) if setting is not None]
        if values[0].startswith("about "):  # of two extrapolated values, the first has it
            values[1:] = [value.removeprefix("about ") for value in values[1:]]
        yield Text("expect", f"{judged(search)} {' -> '.join(values)} (no limit given)", 8)
    if has_limit:
        yield Text("expect", slots, 6 if search.bench.failure == TASK else 2)
    failing_ms = rows_of(search.rows, chosen.name, FAILURE)["end_to_end_max_ms"].max()
    if failing_ms > (search.limits.checkpoint_ms or math.inf):
        yield Text("expect", f"until it has caught up, checkpoints of up to {ms_text(failing_ms)}", 7)


def _lines_on_today(search: CandidateSearch) -> Iterator[Text]:
    """Yield the state that changes until the horizon, if values are those of the job then; and whether today's setting loses output."""
    horizon = search.bench.horizon
    ahead_s = horizon.ahead_ns / 1e9
    for state in horizon.moved:
        sizes = f"{state.vertex} {bytes_text(state.now_bytes)} -> {bytes_text(state.after(ahead_s))}"
        yield Text("state", f"{sizes} in {ms_text(1e3 * ahead_s)}: all values are of the job then", 8)
    row = None if search.bench.backtest is None else search.bench.backtest.of("end-to-end")
    if horizon.moved and row is not None:
        yield Text("today", f"p50 {ms_text(row.observed.p50)}, longest {ms_text(row.observed.largest)} (history)", 8)
    if search.loses_today:
        yield Text("today", "its output is lost: transactions are open for longer than their timeout")
    if search.current_candidate is None:
        yield Text("today", "no checkpoints: after a failure the job starts from the beginning")


def _cost_lines(search: CandidateSearch, chosen: Setting, *, is_most: bool) -> Iterator[Text]:
    """Yield what the chosen setting costs: throughput, bytes written, commits, requests, and what was assumed.

    `is_most`: whether it is unknown how many records rewrite state (`update`).  Costs are then those of the largest share.
    """
    before, commits, prices = search.replaced, _commits_text(search, chosen), search.bench.prices
    by = "by checkpoints " if commits else ""  # the sinks write files as well, which are not counted
    written = f"{'up to ' if is_most else ''}{bytes_text(chosen.written_per_hour)} written {by}per hour"
    if math.isnan(chosen.written_per_hour):
        written = "bytes unknown, as its checkpoints differ and no run is long"
    elif before is not None and before.completed and math.isfinite(before.written_per_hour):
        setting = "today's setting" if search.bench.horizon.moved else "today"
        written += f" ({setting} {bytes_text(before.written_per_hour)})"
    yield Text("costs", f"throughput {change_text(-chosen.loss)}; {written}", 8)
    if commits:
        yield Text("costs", commits, 7)
    if math.isfinite(chosen.storage_cost):
        than = f" (today {cost_text(before.storage_cost)})" if before and math.isfinite(before.storage_cost) else ""
        uncounted = ", without the table's metadata" if table_sinks(search.scenario.job) else ""
        yield Text("costs", f"object store {prices.text(chosen.storage_cost)} a month{than}{uncounted}", 7)
    changes = search.candidate_of(chosen.name).changes
    spare = sum(change.lever is SPARE for change in changes)
    now, then = (len(set(hosts(scenario))) for scenario in (search.scenario, advised_scenario(search, chosen)))
    if now != then + spare:
        idle = ", one of them idle" * spare
        yield Text("costs", f"{count_text(then + spare)} TaskManagers (today {count_text(now)}){idle}", 7)
    for change in changes:
        if change.assumption:
            yield Text("costs", f"UNKNOWN, assumed: {change.assumption.partition(';')[0]}", 5)


def _commits_text(search: CandidateSearch, chosen: Setting) -> str:
    """Return how often sinks commit, e.g. ``up to 720 commits per hour ...``, or "" if no sink commits."""
    vertices = search.scenario.job.vertices
    behind = {vertex.committer_of for vertex in vertices}  # writers whose output is committed by a separate committer
    committers = sum(
        vertex.parallelism
        for vertex in vertices
        if vertex.committer_of or (vertex.commit is not None and vertex.name not in behind)
    )

    def per_hour(setting: Setting) -> str:
        """Return the commits per hour with a setting: each committer commits once per checkpoint."""
        return count_text(committers * 3600e9 / search.period_ns(setting))

    if not committers:
        return ""
    than = f" (today {per_hour(search.replaced)})" if search.replaced else ""
    return f"up to {per_hour(chosen)} commits per hour{than}, which no limit is about"


# ---- Building the report from the results of a search.

ADVISED, ROLLBACK = "advised.yaml", "rollback.yaml"


class AdviceAnswer(NamedTuple):
    """The answer of ``advise``, in all of its forms."""

    screen: str  # overview; with the verdict, at most 20 lines of 80 characters
    parts: list[str | TextTable]  # full texts and tables
    data: dict[str, Any]  # for JSON
    files: dict[str, str]  # patches: file name -> text


def no_answer(search: CandidateSearch, line_count: int, enough: Sequence[str], assumed: str) -> AdviceAnswer:
    """Return the report on a search in which no setting keeps the limits.

    The report names the setting that is nearest to the limits, the phase in which its checkpoints spend most of their time, and
    changes that would be sufficient.

    `line_count`: maximum lines of the overview.  `enough`: sentences on sufficient changes, from `sim.advice.requirements`.
    `assumed`: sentence on values that were assumed, or "".
    """
    refused = sinks_without_unaligned(search.scenario)
    near = search.nearest if search.settings else None
    time = "" if near is None else dominant(situation_of(search, near.name))
    lines = [
        *([Text("ask", assumed)] if assumed else []),
        *(Text("closest", line) for line in wrap(_closest_text(search), WIDTH - LABEL)),
        *(_limit_lines(search, near) if near is not None and near.completed else []),
        *_lines_on_today(search),
        *(
            Text(label, line)
            for label, texts in (
                ("time", [time]),
                ("fits", enough),
                ("caution", [caution.short for caution in refused]),
            )
            for text in texts
            for line in wrap(text, WIDTH - LABEL)
        ),
    ]
    data = {"dominates": time, "enough": list(enough), "cautions": [asdict(caution) for caution in refused]}
    parts: list[str | TextTable] = [
        *(_with_source(caution.sentence, caution.source) for caution in refused),
    ]
    return AdviceAnswer("\n".join(list(_labelled(lines))[:line_count]), parts, data, {})


def _closest_text(search: CandidateSearch) -> str:
    """Return the name of the setting that is nearest to the limits, and whether its checkpoints complete."""
    if not any(setting.completed for setting in search.settings):
        return "No checkpoint completes under any of them."
    near = search.nearest
    return name_of(near.name) if near.completed else f"{name_of(near.name)}: no checkpoint completes"


def _expired_texts(search: CandidateSearch, today: Setting) -> list[str]:
    """Return texts on checkpoints of today's setting that expire, and how the job reacts; [] if all complete."""
    options, restart = search.scenario.checkpoint, search.scenario.restart
    steady = rows_of(search.rows, today.name, UNDISTURBED)
    expired, completed = int((steady["failed"] - steady["interrupted"]).sum()), int(steady["completed"].sum())
    is_rare = bool(today.rare) and math.isinf(today.checkpoint_ms)
    if not (expired or is_rare):
        return [] if today.completed else ["no checkpoint completes within a trial"]
    tolerated, attempts = options.tolerable_failed, restart.max_restarts
    then = f"{tolerated + 1} that expire in a row restart the job" if tolerated else "each restarts the job"
    ends = restart.strategy == "fixed-delay" and attempts is not None
    after = format_duration(options.timeout_ns)
    full = situation_of(search, today.name).full
    works = [
        vertex.name for vertex in search.scenario.job.vertices if vertex.snapshot.pre_barrier_ns >= options.timeout_ns
    ]
    why = f" (work of '{works[0]}' before barriers)" if works else f" ('{full}' is full)" if full else ""
    first = f"no checkpoint completes: each expires after {after}{why}"
    if is_rare:
        first = f"{today.rare}: their checkpoints expire at {after}"
    elif completed:
        first = f"{expired} of {expired + completed} checkpoints expire after {after}{why}"
    return [
        first,
        f"{then}{f', and after {attempts} restarts it fails' if ends else ''}",
    ]


def answer(search: CandidateSearch, chosen: Setting, line_count: int, assumed: str) -> AdviceAnswer:
    """Return the report on the chosen setting.

    The data for JSON and the patches have all changes; the overview has those that fit.

    `line_count`: maximum lines of the overview.  `assumed`: sentence on values that were assumed, or "".
    """
    candidate, scenario, conf = search.candidate_of(chosen.name), advised_scenario(search, chosen), search.bench.conf
    # `today` is today's setting even if it is the chosen one; `search.replaced` is None then
    changes, refused, today = candidate.changes, sinks_without_unaligned(search.scenario), search.current
    warnings = [
        *doubtful_cautions(search, chosen),
        *cautions(search.scenario, candidate.barriers, changes),
        *firing_cautions(search, chosen),
        *restart_cautions(search, chosen),
        *new_defects(search.scenario, scenario),
        *unsafe_defects(scenario),
    ]
    key_changes, others = (
        diff_flink_keys(search.scenario, scenario, changes, conf),
        _changes_outside_configuration(candidate),
    )
    lines = [line for item in key_changes for line in item.lines()] + [
        f"+ {what}: {value}" for what, value in others.items()
    ]
    time = dominant(situation_of(search, today.name)) if today is not None else ""
    in_file = (
        [caution.short for caution in file_cautions(search, today)] if today is not None and today != chosen else []
    )
    lacking = in_file or ([] if today is None else _expired_texts(search, today))
    is_most, slots = bool(search.unasked_updates([candidate])), slots_texts(search, chosen)
    ranges = watch(
        chosen,
        search.limits,
        search.bench.backtest,
        search.kinds_of(chosen.name),
        keeps_up=not search.unlimited,
        is_most=is_most,
    )
    above = [
        *_limit_lines(search, chosen, search.replaced),
        *_recovery_lines(search, chosen, slots[0]),
        *_lines_on_today(search),
        # the parts are those of checkpoints that complete
        *([Text("then" if search.bench.horizon.moved else "today", time, 4)] if time and not lacking else []),
        *(Text("today", text, 8) for text in lacking),
        *_cost_lines(search, chosen, is_most=is_most),
        *([Text("alike", equal_text(ties), 7)] if (ties := equal_intervals(search, chosen)) else []),
    ]
    questions = [caution.short for caution in warnings if caution.is_question]
    defects = new_defects(search.scenario, scenario)
    statements = [own for own in (*refused, *warnings) if not (own.is_question or own in defects)]
    is_new = bool(key_changes or others)
    below = [
        *([Text("ask", "UNKNOWN: how often do records rewrite state (update)? Assumed: all do")] if is_most else []),
        *([Text("ask", assumed)] if assumed else []),
        *(Text("ask", question, 4 - number) for number, question in enumerate(questions[:QUESTIONS])),
        *(Text("caution", caution.short, 8) for caution in defects),
        *(
            Text("caution", caution.short, 1 if number or caution.is_known_defect else 6)
            for number, caution in enumerate(statements[:CAUTIONS])
        ),
        Text("watch", ranges.watch_text(), 7),
        Text(
            "back" if is_new else "again",
            f"{'' if is_new else 'if '}{ranges.roll_back_text(search.limits.checkpoint_ms)}",
        ),
    ]
    parts: list[str | TextTable] = [
        slots[1],
        *(["\n".join(["# against today; what is not set has Flink's default", *lines])] if lines else []),
        *(_with_source(caution.sentence, caution.source) for caution in (*refused, *warnings)),
        *_lever_sentences(changes),
    ]
    files = {}
    if key_changes:
        warned = [caution.sentence for caution in warnings]
        files[ADVISED] = patch(key_changes, back=False, others=others, warnings=warned, conf=conf)
        files[ROLLBACK] = patch(key_changes, back=True, others={}, conf=conf)
    data = {
        "dominates": time,
        "failure": search.bench.failure,
        "only_if": condition_of(search, chosen),
        "taken_for_granted": [change.assumption for change in changes if change.assumption],
        "levers": [
            {"name": change.name, "costs": change.lever.costs, "source": change.lever.source} for change in changes
        ],
        "difference": [asdict(item) for item in key_changes],
        "beside_flinks_keys": others,
        "cautions": [asdict(caution) for caution in (*refused, *warnings)],
        "known_issues": [issue.plain for issue in issues_of([scenario])],
        "watch": asdict(ranges),
        "patches": files,
    }
    return AdviceAnswer(overview(above, lines, below, line_count), parts, data, files)


def _changes_outside_configuration(candidate: Candidate) -> dict[str, str]:
    """Return {description: value} of the candidate's changes that are not made in Flink's configuration."""
    values = {}
    for change in candidate.changes:
        if not change.lever.is_configuration:
            keys = {key: value for key, value in change.point.items() if key in candidate.point}
            written = [f"{key} = {value}" for key, value in keys.items() if not isinstance(value, list)]
            values[change.lever.name] = ", ".join(written) or change.name
    return values


def _with_source(text: str, source: str) -> str:
    """Return a text followed by its source, or only the text if it names the source already."""
    is_said = all(part.strip() in text for part in source.replace(";", ",").split(","))
    return text if is_said else f"{text} Source: {source}."


def _lever_sentences(changes: Sequence[Change]) -> Iterator[str]:
    """Yield a sentence on the costs of each lever of the advised setting, and one on each assumption."""
    for change in changes:
        yield _with_source(f"Lever: {change.name}. It costs: {change.lever.costs}.", change.lever.source)
        if change.assumption:
            yield f"UNKNOWN, assumed: {change.assumption}. Throughput and recovery with {change.name} rest on it."
