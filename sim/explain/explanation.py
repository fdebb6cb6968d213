"""Explanations of checkpoints: the selection of checkpoints, the account of their time, and its output as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from textwrap import fill
from typing import Any, NamedTuple

from sim.explain.causes import Causes, SlowPlace
from sim.explain.close_up import CloseUp, ObservedInstance
from sim.model.frozen import frozen
from sim.model.scenario import Scenario
from sim.model.text import PrintableError, capitalised, one_line
from sim.results.critical_path import PathKind, PathPart
from sim.results.formats import ms_text, share_text
from sim.results.side_by_side import median_index
from sim.results.summary import warm_up
from sim.results.tables import first_uploads, job_of

# ---- Changes that would shorten a critical path, with the time that they save.
#
# The saved time is only an estimate: after a change another path may be critical, and the rest of the path may be shorter,
# too.  Only a simulation gives the duration of the checkpoint.

_CHANGES = {
    PathKind.QUEUE: "with unaligned barriers",
    PathKind.TIMEOUT: "with unaligned barriers",
    PathKind.ALIGNMENT: "with unaligned barriers",
    PathKind.FLUSH: "with files written in the asynchronous part",
    PathKind.PRE_BARRIER: "without the work before the barrier",
    PathKind.SYNC: "without the synchronous part",
    PathKind.ASYNC_QUEUE: "without the asynchronous work",  # of older checkpoints
    PathKind.ASYNC_WORK: "without the asynchronous work",
    PathKind.UPLOAD: "with storage that takes no time",
    PathKind.CHANNEL_STATE: "with storage that takes no time",
    PathKind.COMMIT: "with a commit that takes no time",
}
"""Kind of wait -> the change that would avoid it.  Messages and work of the JobManager have none."""


class WhatIf(NamedTuple):
    """A change, and the time by which it shortens the critical path."""

    change: str  # "without ..." or "with ..."
    saved_ns: int


def what_if(kind: PathKind, spent_ns: int, *, is_unaligned: bool, slow: SlowPlace | None = None) -> WhatIf | None:
    """Return the change that would avoid a wait, or None if there is none.

    `spent_ns`: duration of the wait.  `is_unaligned`: barriers are unaligned already; they cannot overtake a thread that
    fires timers.  `slow`: slow part of storage that delayed it.
    """
    if slow is not None:
        place = "node" if "node" in slow.place else "stream"
        return WhatIf(f"without the slow {place}", int(spent_ns * (1 - 1 / slow.factor)))
    change = _CHANGES.get(kind, "")
    if not change or (is_unaligned and change == _CHANGES[PathKind.QUEUE]):
        return None
    return WhatIf(change, spent_ns)


# ---- Accounts: the critical path of a checkpoint. Each part has a place, a cause, and a change that would avoid it.

NOTABLE = 0.05
"""Minimum share of the duration from which a part gets a note, and a change is proposed."""


@frozen
class AccountLine:
    """A line of an account: consecutive parts of the same kind at the same place.  Times are ns since the trigger."""

    kind: PathKind
    begin_ns: int
    end_ns: int
    place: str
    cause: str
    what_if: WhatIf | None = None  # change that would avoid it; None if there is none

    @property
    def name(self) -> str:
        """Return the name of the kind of wait."""
        return self.kind.value

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


@frozen
class Account:
    """The explanation of one checkpoint, simulated or real: its critical path with causes."""

    strategy: str
    job: int  # number of the job instance; 0 if there is only one
    number: int  # id of the checkpoint
    status: str  # COMPLETED, FAILED or IN_PROGRESS
    failure: str  # reason; "" unless it failed
    savepoint: str  # format of a savepoint; "" for a checkpoint
    trigger_ns: int
    lines: tuple[AccountLine, ...]  # until the last acknowledgement, the failure, or the end of the run
    after: tuple[AccountLine, ...] = ()  # from the last acknowledgement to the last commit
    role: str = ""  # why this checkpoint is explained, e.g. "the slowest"; "" if the user names it

    @property
    def is_open(self) -> bool:
        """Return True if the checkpoint did not complete: the last part would have taken longer, by an unknown time."""
        return self.status != "COMPLETED"

    @property
    def duration_ns(self) -> int:
        """Return the duration of `lines`, which equals `end_to_end_duration` in the table of checkpoints."""
        return self.lines[-1].end_ns if self.lines else 0

    @property
    def longest(self) -> AccountLine:
        """Return the line that took longest."""
        return max(self.lines, key=lambda line: line.duration_ns)

    @property
    def changes(self) -> tuple[WhatIf, ...]:
        """Return the changes that would save a notable share of the duration, or () if the checkpoint did not complete."""
        saved: dict[str, WhatIf] = {}
        for line in self.lines:
            if (change := line.what_if) is not None:
                before_ns = saved[change.change].saved_ns if change.change in saved else 0
                saved[change.change] = change._replace(saved_ns=before_ns + change.saved_ns)
        min_ns = NOTABLE * self.duration_ns
        return () if self.is_open else tuple(change for change in saved.values() if change.saved_ns >= min_ns)


def account(strategy: str, job: int, instance: ObservedInstance, checkpoint: int) -> Account:
    """Return the account of a simulated checkpoint.

    `job`: number of the job instance.  `checkpoint`: its id.  Raises `KeyError` if there is no such checkpoint.
    """
    stats, path = instance.context.stats[checkpoint], instance.path_finder().of(checkpoint)
    causes = Causes(instance, checkpoint)
    is_unaligned = instance.context.scenario.checkpoint.barriers.kind == "unaligned"
    serialising = {
        part.task for part in path.parts if part.kind is PathKind.ASYNC_WORK and stats.savepoint_format == "canonical"
    }

    def lines(parts: tuple[PathPart, ...]) -> Iterator[AccountLine]:
        """Yield a line for consecutive parts of the same kind at the same place."""
        for (kind, _, _), group in groupby(parts, key=lambda part: (part.kind, part.task, part.channel)):
            consecutive = tuple(group)
            # an unaligned barrier would wait for the thread, too
            is_thread = kind is PathKind.QUEUE and causes.waits_for_thread(consecutive[0])
            # entries of a canonical savepoint are serialised while files are written, and the slower of both counts
            is_hidden = kind is PathKind.UPLOAD and consecutive[0].task in serialising
            begin_ns, end_ns = (at_ns - stats.trigger_ns for at_ns in (consecutive[0].begin_ns, consecutive[-1].end_ns))
            change = None
            if not is_thread and not is_hidden:
                change = what_if(kind, end_ns - begin_ns, is_unaligned=is_unaligned, slow=causes.slow(consecutive))
            yield AccountLine(kind, begin_ns, end_ns, causes.place(consecutive[0]), causes.text(consecutive), change)

    facts = stats.number, stats.status, stats.failure, stats.savepoint_format, stats.trigger_ns
    return Account(strategy, job, *facts, tuple(lines(path.parts)), tuple(lines(path.after)))


# ---- An account as text in 80 columns: a sentence, a waterfall chart, and notes about notable parts.

WIDTH = 80
_NAME, _PLACE, _TAKES = 20, 22, 7
_BAR = WIDTH - _NAME - _PLACE - _TAKES - 8


def text(account: Account) -> str:
    """Return an account as text."""
    if not account.lines:
        return fill(sentence(account), WIDTH)
    lines = (*account.lines, *account.after)
    rows = [_waterfall_row(number, line, lines[-1].end_ns) for number, line in enumerate(lines, 1)]
    total = f"     sum to {_ENDS[account.status]}"
    total = (
        f"{total:<{_NAME + _PLACE + 6}} {duration(account.duration_ns):>{_TAKES}} ({_exact_text(account.duration_ns)})"
    )
    rows.insert(len(account.lines), total)
    blocks = [
        fill(sentence(account), WIDTH),
        "\n".join(rows),
        "\n".join(_cause_lines(account)),
        "\n".join(_change_lines(account)),
    ]
    return "\n\n".join(block for block in blocks if block)


def _exact_text(duration_ns: int) -> str:
    """Return an exact duration in ms, for example ``1667.447 ms``.  Flink's statistics are in ms, simulated times in ns."""
    return f"{duration_ns / 10**6:.6f}".rstrip("0").rstrip(".") + " ms"


def title(account: Account) -> str:
    """Return the name of the checkpoint, e.g. ``checkpoint 7 of job 1 (aligned)``."""
    kind = f"{account.savepoint} savepoint" if account.savepoint else "checkpoint"
    job = f" of job {account.job}" if account.job else ""
    return f"{kind} {account.number}{job} ({one_line(account.strategy)})"


def sentence(account: Account) -> str:
    """Return the duration of the checkpoint, its longest part, and the cause of this part as sentences."""
    name = capitalised(title(account)) + (f", {account.role}," if account.role else "")
    if not account.lines:
        if account.status == "COMPLETED":
            return f"{name} took 0 ms: all tasks acknowledged it in the instant of its trigger."
        return f"{name} was still under way when the run ended."
    total = duration(account.duration_ns)
    failure = f" ({account.failure})" if account.status == "FAILED" else ""
    outcome = f"{_OUTCOMES[account.status]} {total}{failure}"
    longest = account.longest
    share = share_text(longest.duration_ns / account.duration_ns)
    return (
        f"{name} {outcome}. {share} of it, {duration(longest.duration_ns)}, {_waiting_text(longest)}: {longest.cause}."
    )


_OUTCOMES = {"IN_PROGRESS": "has been under way for", "FAILED": "was given up after", "COMPLETED": "took"}
_ENDS = {"IN_PROGRESS": "now", "FAILED": "the failure", "COMPLETED": "the last acknowledgement"}
"""Status -> name of the event with which the path ends."""


def _waiting_text(line: AccountLine) -> str:
    """Return a clause on what happens during a line."""
    reader, _, writer = line.place.partition(" < ")
    match line.kind:
        case PathKind.QUEUE:
            return f"its barrier is on the way from {writer} to {reader}"
        case PathKind.TIMEOUT:
            way = f"on the way from {writer} to {reader}" if writer else f"in the output of {reader}"
            return f"its barrier waits {way} until the alignment timeout"
        case PathKind.ALIGNMENT:
            return f"{reader} has its first barrier and waits for the last, from {writer}"
        case PathKind.TASK_THREAD:
            return f"the call waits for the task thread of {reader}"
        case PathKind.UNREPORTED:
            return f"{reader} does not acknowledge it"
        case PathKind.UPLOAD | PathKind.FLUSH:
            return f"{reader} waits for a file ({line.name})"
        case _:
            return f"is {line.name} of {reader}"


def duration(ns: int) -> str:
    """Format a duration: ``duration(5_743_200_000) == "5.7 s"``."""
    return ms_text(ns / 1e6)


def _waterfall_row(number: int, line: AccountLine, end_ns: int) -> str:
    """Return a row of the waterfall chart.  `end_ns`: end of its time axis."""
    span = max(1, end_ns)
    first = line.begin_ns * _BAR // span
    last = max(first + 1, -(-line.end_ns * _BAR // span))
    bar = " " * min(first, _BAR - 1) + "█" * (min(last, _BAR) - min(first, _BAR - 1))
    place = one_line(line.place, _PLACE)
    return f"{number:>3}  {line.name:<{_NAME}} {place:<{_PLACE}} {duration(line.duration_ns):>{_TAKES}} {bar}".rstrip()


def _cause_lines(account: Account) -> Iterator[str]:
    """Yield the causes of notable lines, with their numbers."""
    for number, line in enumerate((*account.lines, *account.after), 1):
        if line.duration_ns >= NOTABLE * account.duration_ns:
            note = f"{capitalised(line.cause)}."
            yield fill(note, WIDTH, initial_indent=f"{number:>3}  ", subsequent_indent="     ")


def _change_lines(account: Account) -> Iterator[str]:
    """Yield a line per change: the duration of the rest of the path."""
    now = duration(account.duration_ns)
    for change in account.changes:
        if (rest := duration(account.duration_ns - change.saved_ns)) != now:
            effect = f"{capitalised(change.change)}: the rest of this path takes {rest} of {now}; another one may take longer."
            yield fill(effect, WIDTH, subsequent_indent="  ")


# ---- An account as JSON-ready values. Times are in ns, so that sums are exact.


def record(account: Account) -> dict[str, Any]:
    """Return an account as JSON-ready values."""
    return {
        "strategy": account.strategy,
        "job": account.job,
        "checkpoint": account.number,
        "status": account.status,
        "failure": account.failure,
        "savepoint": account.savepoint,
        "trigger_ns": account.trigger_ns,
        "duration_ns": account.duration_ns,
        "sentence": sentence(account),
        "parts": [_line_json(line) for line in account.lines],
        "after": [_line_json(line) for line in account.after],
        "what_if": [
            {"change": change.change, "rest_of_path_ns": account.duration_ns - change.saved_ns}
            for change in account.changes
        ],
    }


def _line_json(line: AccountLine) -> dict[str, Any]:
    """Return a line as JSON-ready values."""
    return {
        "part": line.name,
        "place": line.place,
        "begin_ns": line.begin_ns,
        "duration_ns": line.duration_ns,
        "cause": line.cause,
    }


# ---- The selection of checkpoints to explain.


class NoCheckpointError(PrintableError, LookupError):
    """There is no checkpoint to explain."""

    exit_code = 2


def with_checkpoints(scenarios: Mapping[str, Scenario]) -> dict[str, Scenario]:
    """Return the strategies that take checkpoints."""
    return {
        name: scenario
        for name, scenario in scenarios.items()
        if scenario.checkpoint.interval_ns is not None or scenario.actions
    }


def accounts(strategy: str, run: CloseUp, checkpoint: int | None = None) -> list[Account]:
    """Return the accounts of a checkpoint, one per job instance that has a checkpoint with this id.

    Without `checkpoint`, returns the accounts of the first uploads, and of the median and the slowest later checkpoint.
    Raises `NoCheckpointError` if there is no such checkpoint.
    """
    if checkpoint is not None:
        numbers = [(job, number) for job, instance in enumerate(run.instances) for number in instance.context.stats]
        chosen = {(job, number): "" for job, number in numbers if number == checkpoint}
        if not chosen:
            ids = [number for _, number in numbers]
            there = f"ids are {min(ids)} to {max(ids)}" if ids else "the run has no checkpoints"
            raise NoCheckpointError(f"{strategy}: no checkpoint {checkpoint}: {there}")
    else:
        chosen = _default_checkpoints(run)
    roles = chosen.items()
    return [replace(account(strategy, job, run.instances[job], number), role=role) for (job, number), role in roles]


def _default_checkpoints(run: CloseUp) -> dict[tuple[int, int], str]:
    """Return {(job instance, id): role} of the checkpoints to explain by default.

    These are first uploads, and the median (`median_index`) and the slowest completed checkpoint after the warm-up.  If there are none, it
    is the last one that failed, or else the one that has been in progress for longest.  Raises `NoCheckpointError`.
    """
    warmup_ns, uploads = warm_up([run.result]).ns, _first_uploads(run)
    all_rows = [(job, row) for job, instance in enumerate(run.instances) for row in instance.context.stats.values()]
    rows = [(job, row) for job, row in all_rows if row.trigger_ns >= warmup_ns and (job, row.number) not in uploads]
    completed = sorted(
        (row.latest_ack_ns - row.trigger_ns, job, row.number, bool(row.savepoint_format))
        for job, row in rows
        if row.status == "COMPLETED"
    )
    periodic = [row for row in completed if not row[-1]] or completed
    if completed or uploads:
        roles = dict.fromkeys(uploads, "which uploads all state")
        middle, role = median_index([duration_ns for duration_ns, *_ in periodic]), "the median"
        if middle > (len(periodic) - 1) // 2:
            middle, role = (0, "the faster") if len(periodic) == 2 else (middle, "the slower of the middle two")
        chosen = (periodic, middle, role), (completed, -1, "the slowest")
        for rows_in_order, index, name in chosen if completed else ():
            roles[rows_in_order[index][1:3]] = "" if len(completed) == 1 else f"{name} of {len(rows_in_order)}"
        return roles
    failed = [(row.failed_ns, job, row.number) for job, row in rows if row.status == "FAILED"]
    under_way = [(row.trigger_ns, job, row.number) for job, row in all_rows if row.status == "IN_PROGRESS"]
    if not failed and not under_way:
        raise NoCheckpointError("no checkpoint was triggered after the warm-up: run longer, or set an interval")
    return {max(failed)[1:]: "the last that failed"} if failed else {min(under_way)[1:]: ""}


def _first_uploads(run: CloseUp) -> list[tuple[int, int]]:
    """Return (job instance, id) of the checkpoints that uploaded all state at the beginning."""
    rows = run.result.checkpoints
    uploads = rows[first_uploads(rows)]
    return list(zip(job_of(uploads).tolist(), uploads["id"].tolist(), strict=True))
