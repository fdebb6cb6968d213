"""An account of a checkpoint in 80 columns: a sentence, a waterfall, and a note to every part that counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import fill

from sim.analysis.number_texts import ms_text, share_text
from sim.explain.account import NOTABLE, Account, AccountLine
from sim.foreign import one_line
from sim.metrics.critical_path import PathKind
from sim.prose import capitalised

WIDTH = 80
_NAME, _PLACE, _TAKES = 20, 22, 7
_BAR = WIDTH - _NAME - _PLACE - _TAKES - 8


def text(account: Account, simulated: Mapping[str, int | None] | None = None) -> str:
    """`simulated`: by change, how long the checkpoint takes with it [ns]; None: it does not complete."""
    if not account.lines:
        return fill(sentence(account), WIDTH)
    begin_ns, end_ns = account.path.begin_ns, _end_ns(account)
    rows = [_row(number, line, begin_ns, end_ns) for number, line in enumerate((*account.lines, *account.after), 1)]
    total = f"     sum to {_end_name(account)}"
    total = f"{total:<{_NAME + _PLACE + 6}} {duration(account.path.duration_ns):>{_TAKES}} ({_exact(account.path.duration_ns)})"
    rows.insert(len(account.lines), total)
    blocks = [fill(sentence(account), WIDTH), "\n".join(rows), "\n".join(_notes(account)), "\n".join(_effects(account, simulated or {}))]
    return "\n\n".join(block for block in blocks if block)


def _exact(duration_ns: int) -> str:
    """Flink's statistics are whole milliseconds, simulated times are nanoseconds."""
    return f"{duration_ns} ns" if duration_ns % 10**6 else f"{duration_ns // 10**6} ms"


def title(account: Account) -> str:
    """``checkpoint 7 (aligned)``"""
    kind = f"{account.stats.savepoint_format} savepoint" if account.stats.savepoint_format else "checkpoint"
    job = f" of job {account.job}" if account.job else ""
    return f"{kind} {account.stats.number}{job} ({one_line(account.strategy)})"


def sentence(account: Account) -> str:
    """What took longest, and why."""
    name = capitalised(title(account))
    if not account.lines:
        if account.stats.status == "COMPLETED":
            return f"{name} took 0 ms: all tasks acknowledged it in the instant of its trigger."
        return f"{name} was still under way when the run ended."
    total = duration(account.path.duration_ns)
    fate = _fate(account, total)
    longest = account.longest
    share = share_text(longest.duration_ns / account.path.duration_ns)
    return f"{name} {fate}. {share} of it, {duration(longest.duration_ns)}, {_passes(longest)}: {longest.cause}."


def _fate(account: Account, total: str) -> str:
    if account.stats.status == "IN_PROGRESS":
        return f"has been under way for {total}"
    return f"was given up after {total} ({account.stats.failure})" if account.path.is_open else f"took {total}"


def _end_name(account: Account) -> str:
    if account.stats.status == "IN_PROGRESS":
        return "now"
    return "the failure" if account.path.is_open else "the last acknowledgement"


def _passes(line: AccountLine) -> str:
    reader, _, writer = line.place.partition(" < ")
    match line.parts[0].kind:
        case PathKind.QUEUE:
            return f"its barrier is on the way from {writer} to {reader}"
        case PathKind.TIMEOUT:
            way = f"on the way from {writer} to {reader}" if writer else f"in the output of {reader}"
            return f"its barrier waits {way} until the alignment timeout"
        case PathKind.ALIGNMENT:
            return f"{reader} has its first barrier and waits for the last, from {writer}"
        case PathKind.TASK_THREAD:
            return f"the call waits for the task thread of {reader}"
        case PathKind.UPLOAD | PathKind.FLUSH:
            return f"{reader} waits for a file ({line.name})"
        case _:
            return f"is {line.name} of {reader}"


def duration(ns: int) -> str:
    """``duration(5_743_200_000) == "5.7 s"``."""
    return ms_text(ns / 1e6)


def _row(number: int, line: AccountLine, begin_ns: int, end_ns: int) -> str:
    span = max(1, end_ns - begin_ns)
    first = (line.begin_ns - begin_ns) * _BAR // span
    last = max(first + 1, -((begin_ns - line.begin_ns - line.duration_ns) * _BAR // span))
    bar = " " * min(first, _BAR - 1) + "█" * (min(last, _BAR) - min(first, _BAR - 1))
    place = one_line(line.place, _PLACE)
    return f"{number:>3}  {line.name:<{_NAME}} {place:<{_PLACE}} {duration(line.duration_ns):>{_TAKES}} {bar}".rstrip()


def _notes(account: Account) -> Iterator[str]:
    for number, line in enumerate((*account.lines, *account.after), 1):
        if line.duration_ns >= NOTABLE * account.path.duration_ns:
            note = f"{capitalised(line.cause)}."
            yield fill(note, WIDTH, initial_indent=f"{number:>3}  ", subsequent_indent="     ")


def _effects(account: Account, simulated: Mapping[str, int | None]) -> Iterator[str]:
    """What is left of the path; another way may be the longest then, and the rest may become shorter."""
    now = duration(account.path.duration_ns)
    for change in account.changes:
        if (rest := duration(account.path.duration_ns - change.saved_ns)) == now and change.change not in simulated:
            continue
        effect = f"{capitalised(change.change)}: the rest of the path takes {rest} of {now}"
        if change.change in simulated:
            took_ns = simulated[change.change]
            effect += "; simulated, it does not complete" if took_ns is None else f"; simulated, {duration(took_ns)}"
        yield fill(f"{effect}.", WIDTH, subsequent_indent="  ")


def _end_ns(account: Account) -> int:
    return (account.path.after or account.path.parts)[-1].end_ns
