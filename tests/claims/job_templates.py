"""The sentences of `ckptsim explain` about a real job: a pattern each, and what it means, from Flink's answers or lines of its log."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from sim.jobs.history.history import History, subtasks_of
from sim.model.text import one_line
from sim.results.formats import bytes_text, share_text
from tests.claims.printed import Template, always, number, same_ms

SUB = r"[^\s,;:()]+\[\d+\]"


@dataclass
class ToldJob:
    """A history, and the checkpoint that the sentences are about; it is set when one is named as their subject."""

    history: History
    point: Any = None

    @property
    def done(self):
        return [
            point
            for point in self.history.checkpoints
            if point.status == "COMPLETED" and point.end_to_end_duration >= 0
        ]

    @property
    def usual(self):
        """Neither the first, which uploads everything, nor a savepoint; if there is nothing else, all."""
        return [point for point in self.done if point.id != 1 and not point.is_savepoint] or self.done

    @property
    def limit_ms(self):
        usual = median(point.end_to_end_duration for point in self.usual)
        return max(1.5 * usual, usual + 60)

    @property
    def slow(self):
        return [point for point in self.usual if point.end_to_end_duration > self.limit_ms]

    def key(self, name):
        """``vertex[0]``, or a long name as it is shortened."""
        vertex, _, index = name.rpartition("[")
        return next(each.name for each in self.history.vertices if vertex in (each.name, one_line(each.name, 24))), int(
            index.rstrip("]")
        )

    def of(self, name, point=None):
        """The statistics of ``vertex[0]`` in the checkpoint; None: Flink has none."""
        return subtasks_of(point or self.point).get(self.key(name))

    def all_of(self, name):
        """The statistics of a subtask in all other checkpoints."""
        rows = [self.of(name, point) for point in self.history.detailed if point.id != self.point.id]
        return [row for row in rows if row is not None and row.checkpoint.async_ >= 0]


def known(told, match):
    points, counted = told.history.checkpoints, told.history.counted
    detailed = sum(bool(point.tasks) for point in points)
    return (
        int(match["n"]) == len(points)
        and (int(match["of"]) == counted > len(points) if match["of"] else counted <= len(points))
        and (int(match["detailed"]) == detailed if match["detailed"] else detailed == len(points))
    )


def median_is(told, match):
    return same_ms(match["ms"], median(point.end_to_end_duration for point in told.usual))


def are_slow(told, match):
    return (
        int(match["n"]) == len(told.slow) > 0
        and int(match["of"]) == len(told.usual)
        and same_ms(match["limit"], told.limit_ms)
        and (match["write"] is None or written_is(told, match))
    )


def written_is(told, match):
    """Medians of what slow checkpoints and all others write, one at least twice the other."""
    slow, others = (
        median(
            point.checkpointed_size
            for point in told.usual
            if (point in told.slow) == is_slow and point.checkpointed_size >= 0
        )
        for is_slow in (True, False)
    )
    return (match["write"], match["rest"]) == (bytes_text(slow), bytes_text(others)) and slow >= 2 * others


def none_is_slow(told, match):
    longest = max(point.end_to_end_duration for point in told.usual)
    return (
        not told.slow
        and int(match["of"]) == len(told.usual)
        and same_ms(match["limit"], told.limit_ms)
        and same_ms(match["ms"], longest)
    )


def left_out(told, match):
    """With those that are counted, they are all that completed."""
    first = [point for point in told.done if point.id == 1 and not point.is_savepoint]
    savepoints = [point for point in told.done if point.is_savepoint]
    return (
        len(first) == bool(match["first"])
        and (not first or same_ms(match["first"], first[0].end_to_end_duration))
        and len(savepoints) == int(match["n"] or 0)
        and len(told.usual) + len(first) + len(savepoints) == len(told.done)
        and (not savepoints or same_ms(match["most"], max(point.end_to_end_duration for point in savepoints)))
    )


def slowest_outside(told, match):
    return same_ms(match["ms"], told.history.slowest_ms) and told.history.slowest_ms > max(
        point.end_to_end_duration for point in told.done
    )


def failed(told, match):
    parts = [int(count) for count in re.findall(r"(\d+) ended at", match["ends"] or "")]
    count = sum(point.status == "FAILED" for point in told.history.checkpoints)
    return int(match["n"]) == count >= sum(parts)


def under_way(told, match):
    return int(match["n"]) == sum(point.status == "IN_PROGRESS" for point in told.history.checkpoints)


def restored(told, match):
    return told.history.restored == int(match["n"] or 1)


def counted(told, match):
    """The checkpoints that are listed are known, and what Flink counted is more."""
    known = Counter(point.status for point in told.history.checkpoints)
    among = {None: 0, "none": 0}.get(match["among"], match["among"])
    failed = {"none": 0}.get(match["failed"], match["failed"])
    return int(match["of"]) == told.history.counted > int(match["n"]) <= known.total() and int(among) <= min(
        known["FAILED"], int(failed)
    )


def rises(told: ToldJob, match: re.Match[str]) -> bool:
    took = [point.end_to_end_duration for point in told.usual]
    n = int(match["n"])
    return same_ms(match["ms"], median(took[:n])) and same_ms(match["last"], median(took[-n:]))


def subject(told, match):
    """The checkpoint took, or has taken, so long, and its fate is as is said."""
    told.point = told.history.checkpoint(int(match["id"]))
    status = {"took": "COMPLETED", "was given up after": "FAILED", "has been under way for": "IN_PROGRESS"}[
        match["fate"]
    ]
    written = told.point.checkpointed_size
    size = match["size"] is None or (match["size"], match["written"]) == (
        bytes_text(told.point.state_size - max(told.point.persisted_data, 0)),
        f"{bytes_text(written)} written" if written >= 0 else "bytes written unknown",
    )
    return (
        told.point.status == status
        and same_ms(match["ms"], told.point.end_to_end_duration)
        and size
        and match["barriers"]
        == (told.history.strategy or ("unaligned" if overtook(told.point) else "barriers not known"))
    )


def overtook(point):
    return point.checkpoint_type == "UNALIGNED_CHECKPOINT" or point.persisted_data > 0


def in_flight(told, match):
    point = told.history.checkpoint(int(match["n"]))
    share = point.persisted_data / point.checkpointed_size
    return share >= 0.5 and (match["share"], match["size"]) == (share_text(share), bytes_text(point.persisted_data))


def held_by_savepoints(told, match):
    """They took so long, and the next trigger came when they had ended."""
    for identity, took in re.findall(r"(\d+) \(([^)]+)\)", match["ids"]):
        point = told.history.checkpoint(int(identity))
        ended = point.trigger_timestamp + point.end_to_end_duration
        if not point.is_savepoint or not same_ms(took, point.end_to_end_duration):
            return False
        if any(point.trigger_timestamp < other.trigger_timestamp < ended for other in told.history.checkpoints):
            return False
    return True


def no_end(told, match):
    told.point = told.history.checkpoint(int(match["id"]))
    passed_ms = told.point.end_to_end_duration
    return told.point.status == "IN_PROGRESS" and (match["ms"] is None or same_ms(match["ms"], passed_ms))


def part_of_it(told, match):
    share = number(match["ms"]) / told.point.end_to_end_duration
    return abs(share - int(match["share"]) / 100) <= 0.06


def earlier(told, match):
    """Some subtask of a vertex had its first barrier as much later than the median of the others."""
    gaps = []
    for task in told.point.tasks.values():
        delays = [row.start_delay for row in task.subtasks if row.start_delay >= 0]
        gaps += [delay - median(delays[:i] + delays[i + 1 :]) for i, delay in enumerate(delays) if len(delays) > 1]
        ends = [row.end_to_end_duration for row in task.subtasks]
        gaps += [end - delay for end in (*ends, told.point.end_to_end_duration) for delay in delays]
    return any(same_ms(match["ms"], gap) for gap in gaps)


def thread_is(told, match):
    """Shares of the time since the thread was started; the one that it waits for reads its output, or that of one behind it."""
    threads = told.history.threads
    if match["back"]:
        reached, front = set(), {told.key(match["waiting"])[0]}
        while front := {vertex.name for name in front for vertex in told.history.readers(name)} - reached:
            reached |= front
        is_pressed = share_text(threads[told.key(match["waiting"])].back_pressured) == match["back"]
        if not (is_pressed and told.key(match["name"])[0] in reached):
            return False
    return share_text(threads[told.key(match["name"])].busy) == match["busy"]


def share_read(told, match):
    shares = []
    for vertex in {name for name, _ in told.history.served}:
        counts = [count for (name, _), count in told.history.served.items() if name == vertex]
        shares += [share_text(count / sum(counts)) for count in counts if count > 1.2 * fmean(counts)]
    return match["share"] in shares


def other_checkpoints(told, match):
    """The medians of some subtask over so many others, and that it took longer here."""
    for name in (f"{vertex}[{index}]" for vertex, index in subtasks_of(told.point)):
        rows, own = told.all_of(name), told.of(name)
        if len(rows) == int(match["n"]) and same_ms(match["ms"], median(row.checkpoint.async_ for row in rows)):
            bytes_ = median(row.checkpointed_size for row in rows)
            if match["size"] == bytes_text(bytes_) and own.checkpoint.async_ >= 1.5 * median(
                row.checkpoint.async_ for row in rows
            ):
                return True
    return False


def bytes_do_not(told, match):
    """Some subtask took half as long again as usual, and wrote less than half more, or far longer than its bytes would elsewhere."""
    for name in (f"{vertex}[{index}]" for vertex, index in subtasks_of(told.point)):
        rows, own = told.all_of(name), told.of(name)
        if rows and own.checkpoint.async_ >= 1.5 * median(row.checkpoint.async_ for row in rows):
            usual = median(row.checkpointed_size for row in rows)
            rate, usually = (
                own.checkpointed_size / max(own.checkpoint.async_, 1),
                median(row.checkpointed_size / max(row.checkpoint.async_, 1) for row in rows),
            )
            if own.checkpointed_size <= 1.5 * usual or rate < usually / 1.5:
                return True
    return False


def wrote_as_quickly(told, match):
    row = told.of(match["name"])
    place = told.history.task_managers[told.key(match["name"])]
    return (
        match["size"] == bytes_text(row.checkpointed_size)
        and same_ms(match["ms"], row.checkpoint.async_)
        and match["there"] == place
        and match["here"] != place
    )


def writes(told, match):
    """Some subtask wrote so much."""
    return match["size"] in {bytes_text(row.checkpointed_size) for row in subtasks_of(told.point).values()}


def writes_in_flight(told, match):
    return match["size"] in {bytes_text(max(row.alignment.persisted, 0)) for row in subtasks_of(told.point).values()}


def reads(told, match):
    return match["size"] in {bytes_text(row.alignment.processed) for row in subtasks_of(told.point).values()}


def of_its_manager(told, match):
    own = [
        row for name, row in subtasks_of(told.point).items() if told.history.task_managers.get(name) == match["manager"]
    ]
    return match["size"] == bytes_text(sum(max(row.alignment.persisted, 0) for row in own))


def late(told):
    rows = subtasks_of(told.point)
    expected = {
        (vertex.name, i)
        for vertex in told.history.vertices
        if vertex.name in told.point.tasks
        for i in range(vertex.parallelism)
    }
    return {
        name for name in expected | set(rows) if not (row := rows.get(name)) or row.status != "completed" or row.aborted
    }


def not_acknowledged(told, match):
    named = {told.key(name) for name in re.findall(SUB, match["names"])}
    total = sum(vertex.parallelism for vertex in told.history.vertices if vertex.name in told.point.tasks)
    return (
        len(late(told)) == int(match["n"]) == len(named) + int(match["more"] or 0)
        and named <= late(told)
        and int(match["of"]) == total
    )


def some_acknowledged(told, match):
    """The counts that Flink reports of the checkpoint, and the time of the last acknowledgement."""
    point = told.point
    after_ms = point.latest_ack_timestamp - point.trigger_timestamp
    return (
        not point.tasks
        and (int(match["count"]), int(match["of"])) == (point.num_acknowledged_subtasks, point.num_subtasks)
        and int(match["n"]) == point.id
        and (match["ms"] is None or same_ms(match["ms"], after_ms))
    )


def had_first_barrier(told, match):
    return all(
        told.key(name) in late(told) and told.of(name).start_delay >= 0 for name in re.findall(SUB, match["names"])
    )


def did_not_complete(told, match):
    before = max((point for point in told.history.checkpoints if point.id < told.point.id), key=lambda point: point.id)
    return before.id == int(match["n"]) and before.status == "FAILED"


def had_failed(told, match):
    return any(same_ms(match["ms"], told.point.trigger_timestamp - at) for at in told.history.failures_ms)


def after_gap(told, match):
    before = told.history.checkpoint(told.point.id - 1)
    return same_ms(match["ms"], told.point.trigger_timestamp - before.trigger_timestamp) and number(
        match["ms"]
    ) > number(match["usual"])


def at_the_same_time(told, match):
    other, own = told.history.checkpoint(int(match["n"])), told.point
    first, second = sorted((other, own), key=lambda point: point.trigger_timestamp)
    return second.trigger_timestamp < first.trigger_timestamp + first.end_to_end_duration


def shortened(told, match):
    """It is less than the whole."""
    return number(match["least"]) < number(match["now"]) and same_ms(match["now"], told.point.end_to_end_duration)


def sample(told, match):
    """Checkpoints with statistics of their subtasks."""
    slow = sum(bool(point.tasks) for point in told.slow)
    return (
        int(match["slow"] or 0) == slow
        and int(match["others"]) == sum(bool(point.tasks) for point in told.usual) - slow
    )


def at_most_sample(told, match):
    """Those of the sample that have the value; at least one of each kind."""
    slow = sum(bool(point.tasks) for point in told.slow)
    return (
        0 < int(match["slow"]) <= slow
        and 0 < int(match["others"]) <= sum(bool(point.tasks) for point in told.usual) - slow
    )


def savepoint_before(told, match):
    """It is a savepoint that took so long and ended so long before."""
    before = told.history.checkpoint(int(match["n"]))
    gap = told.point.trigger_timestamp - before.trigger_timestamp - before.end_to_end_duration
    return before.is_savepoint and same_ms(match["took"], before.end_to_end_duration) and same_ms(match["ms"], gap)


def counts(told, match):
    slow = sum(bool(point.tasks) for point in told.slow)
    return int(match["a"]) <= int(match["slow"]) == slow and int(match["b"]) <= int(match["others"])


def medians_of_ids(told, match):
    detailed = [point for point in told.usual if point.tasks]
    slow = median(point.id for point in detailed if point in told.slow)
    others = median(point.id for point in detailed if point not in told.slow)
    return (f"{slow:.0f}", f"{others:.0f}") == (match["a"], match["b"]) and (slow < others) == (
        match["word"] == "earlier"
    )


def is_cold(told, match):
    """One of the first three is among the slow ones."""
    return min(point.id for point in told.slow if point.tasks) <= 3


def cores_are_scarce(told, match):
    """So many threads are busy, of one host or of all."""
    busy = sum(thread.busy for thread in told.history.threads.values())
    return float(match["n"]) <= 1.03 * busy and float(match["n"]) > 0.5 * int(match["cores"])


def collects(told, match):
    garbage = told.history.garbage[match["name"]]
    return same_ms(match["ms"], garbage.ms) and (not match["n"] or int(match["n"]) == garbage.collections)


def silent_times(told, match):
    return not told.history.threads


def without_statistics(told, match):
    return not told.history.detailed


@dataclass
class ToldLog(ToldJob):
    """A log of which it is known what was written: (second, kind, number or reason), oldest first."""

    written: tuple[tuple[int, str, Any], ...] = ()

    def since(self, kind):
        """What was written of this kind since the last completion."""
        last = max((at for at, own, _ in self.written if own == "completed"), default=-1)
        return [value for at, own, value in self.written if own == kind and at > last]


def silent_since(told, match):
    """The last completion, the first RUNNING, and the last line."""
    completed = [at for at, kind, _ in told.written if kind == "completed"]
    since = max(completed) if completed else next(at for at, kind, _ in told.written if kind == "running")
    lasts = told.written[-1][0] - since
    clock = f"{since // 3600:02}:{since // 60 % 60:02}:{since % 60:02}"
    return (
        match["at"].endswith(clock)
        and abs(number(match["lasts"]) / 1e3 - lasts) <= 0.01 * lasts
        and bool(match["begun"]) == (not completed)
        and (match["end"] == "job") == any(kind == "dead" for _, kind, _ in told.written)
    )


def all_silent_failures(told, match):
    reason = match["reason"].partition(" by a task on tm-0")[0]  # all tasks of these logs run there
    return int(match["n"]) == [*told.since("failed"), *told.since("stopped")].count(reason) > 0


def clock_of(at):
    return f"2026-03-09 {at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}"


def refused(told, match):
    """All of one reason, from the first to the last; a silence at the end tells of its own, and those before are told apart."""
    last = max((at for at, kind, _ in told.written if kind == "completed"), default=-1)
    is_silent = told.history.silence is not None
    over = [at for at, kind, value in told.written if (kind, value) == ("refused", match["reason"])]
    parts = [[at for at in over if at < last], [at for at in over if at > last]] if is_silent else [over]
    times = (int(match["n"]), match["at"], match["to"] or match["at"])
    return times in [(len(part), clock_of(part[0]), clock_of(part[-1])) for part in parts if part]


def not_compared(told, match):
    """Checkpoints, not savepoints, that ended with a run of the job, or that Flink's summary says so of."""
    number = sum(map(int, re.findall(r"\((\d+)\)", match["reasons"])))
    if isinstance(told, ToldLog):
        return number == sum(kind == "stopped" for _, kind, _ in told.written)
    ended = [point for point in told.history.checkpoints if point.status == "FAILED" and not point.is_savepoint]
    counted = ("expired before", "was declined.", "task checkpoint failed", "to finalize", "IO-problem")
    return number == sum(not any(words in point.failure_message for words in counted) for point in ended)


def lost_managers(told, match):
    lost = {name: clock_of(at) for at, kind, name in told.written if kind == "lost"}
    named = dict(re.findall(r"(tm-\d+) \(([\d :-]+)\)", match["names"]))
    return int(match["n"]) == len(lost) and named.items() <= lost.items() and len(named) == min(len(lost), 4)


def failed_for_good(told, match):
    kinds = [kind for _, kind, _ in told.written]
    restarts = kinds.count("restarted") - kinds.count("suspended")  # those of the restart strategy
    (at,) = (at for at, kind, _ in told.written if kind == "dead")
    return int(match["n"]) == restarts and match["at"] == clock_of(at)


def fresh_restarts(told, match):
    return int(match["n"]) == sum(kind == "fresh" for _, kind, _ in told.written)


def intolerable(told, match):
    """So many times as many failed in a row: one more than is tolerated."""
    counts, failed = [], 0
    for _, kind, _ in told.written:
        failed += kind == "failed"
        if kind == "intolerable":
            counts.append(failed)
        if kind in ("completed", "intolerable"):
            failed = 0
    tolerated = {max(count - 1, 0) for count in counts}
    return int(match["n"] or 1) == len(counts) and (
        {int(match["most"])} == tolerated if match["most"] else len({*counts}) > 1
    )


def went_back(told, match):
    """Each restart that restored a checkpoint: which, and the seconds from its trigger to the failure."""
    restores = [value for _, kind, value in told.written if kind == "restored"]
    ids, seconds = {identity for identity, _ in restores}, [passed for _, passed in restores]
    named = {int(identity) for identity in match["ids"].split(", ")}
    least, most = (number(text) / 1e3 for text in (match["least"], match["most"] or match["least"]))
    return (
        int(match["n"]) == len(restores)
        and named <= ids
        and len(ids) == len(named) + int(match["more"] or 0)
        and abs(least - min(seconds)) <= 0.01 * least
        and abs(most - max(seconds)) <= 0.01 * most
        and bool(match["between"]) == (len(restores) > len(ids) == 1)
    )


def longer_between(told, match):
    """The medians of the checkpoints in a run of the job, from one restart to the next, and of all others."""

    def second(clock):
        hours, minutes, seconds = map(int, clock.split(":"))
        return 3600 * hours + 60 * minutes + seconds

    restarts = [at for at, kind, _ in told.written if kind == "restarted"]
    begin = second(match["begin"] or match["after"] or "0:0:0")
    end = second(match["end"] or match["before"] or "24:0:0")
    took = {True: [], False: []}
    for point in told.usual:
        took[begin <= point.trigger_timestamp // 1000 % 86_400 < end].append(point.end_to_end_duration)
    return (
        {begin, end} <= {0, 86_400, *restarts}
        and not any(begin < at < end for at in restarts)
        and (int(match["n"]), int(match["others"])) == (len(took[True]), len(took[False]))
        and same_ms(match["inside"], median(took[True]))
        and same_ms(match["outside"], median(took[False]))
        and median(took[True]) > median(took[False])
    )


def was_terminated(told, match):
    return (match["name"], match["at"]) in {(name, clock_of(at)) for at, kind, name in told.written if kind == "lost"}


def one_cause(told, match):
    """So many checkpoints failed, and the history gives this reason for each of them, whatever numbers are in it."""
    points = [point for point in told.history.checkpoints if point.status == "FAILED" and not point.is_savepoint]
    return int(match["n"]) == len(points) and all(
        re.sub(r"\d", "", match["cause"].rstrip(".…")) in re.sub(r"\d", "", point.failure_message) for point in points
    )


def failures_apart(told, match):
    """Stretches of failed checkpoints without a completed one between them: how many fail in all, and which is the longest."""
    stretches, number = [[]], 0
    if isinstance(told, ToldLog):
        written = told.written
    else:
        over = sorted(told.history.checkpoints, key=lambda point: point.id)
        written = [
            (0, kind, point.id)
            for point in over
            if point.status == "COMPLETED" or not point.is_savepoint
            for kind in ("triggered", point.status.lower())
        ]
    for _, kind, value in written:
        number = value if kind == "triggered" else number
        if kind == "failed":
            stretches[-1].append(number)
        elif kind == "completed":
            stretches.append([])
    longest = max(stretches, key=len)
    ids = [int(match["first"]), int(match["last"] or match["first"])]
    return int(match["n"]) == sum(map(len, stretches)) > int(match["most"]) == len(longest) and ids == [
        longest[0],
        longest[-1],
    ]


def template(name, pattern, claim=always, when=always):
    return Template(name, pattern.replace("SUB", SUB), when, claim)


P = r"(?: \((?:clear|likely|a hint, may be chance): p = [\d.e-]+, [\d.e-]+\))?"
TEMPLATES = (
    template(
        "known",
        r".+?: (?P<n>\d+)(?: of (?P<of>\d+))? checkpoints? (?:is|are) known(?:, (?P<detailed>\d+) with statistics of their "
        r"subtasks)?, "
        r"[\d :-]+ to [\d :-]+ UTC",
        known,
    ),
    template("median", r"Median (?P<ms>MS)", median_is),
    template(
        "slow",
        r"(?P<n>\d+) of (?P<of>\d+) completed ones (?:is|are) slow \(over (?P<limit>MS)\)"
        r"(?:: they write (?P<write>SIZE), the others (?P<rest>SIZE) \(medians\))?",
        are_slow,
    ),
    template(
        "none is slow",
        r"(?:Before that, )?none of the (?P<of>\d+) completed ones is slow \(over (?P<limit>MS)\); the longest took "
        r"(?P<ms>MS)",
        none_is_slow,
    ),
    template(
        "not among them",
        r"Not counted: (?:the first \((?P<first>MS)\))?(?: and )?(?:(?P<n>\d+) savepoints? \(up to "
        r"(?P<most>MS)\))?",
        left_out,
    ),
    template(
        "slowest outside",
        r"The job's slowest checkpoint took (?P<ms>MS) according to Flink's summary; it is no longer in the history",
        slowest_outside,
    ),
    template(
        "did not complete", r"(?P<n>\d+) did not complete(?P<ends>: (?:\d+ ended at [\w ]+[^.;]*)+)?(?=\.)", failed
    ),
    template(
        "held by savepoints",
        r"No checkpoint was triggered during savepoints? (?P<ids>[^:]+): periodic ones wait for savepoints unless "
        r"max-concurrent-checkpoints is above 1",
        held_by_savepoints,
    ),
    template(
        "in-flight data",
        r"In-flight data that barriers overtook \(persisted_data\) is (?P<share>\d+ %) of what checkpoint (?P<n>\d+) wrote, "
        r"(?P<size>SIZE): it is part of both sizes, and increments do not make it smaller",
        in_flight,
    ),
    template(
        "counted",
        r"Of (?P<of>\d+) checkpoints that Flink has counted since the JobMaster of the job began (?P<failed>\w+) failed; "
        r"the answer lists (?P<n>\d+)(?:, and (?P<among>\w+) of them failed)?",
        counted,
    ),
    template(
        "no subtasks",
        r"Nothing tells of the subtasks of .*?: they had ended, or /jobs/JOB/\S+ of it is not in the answers",
    ),
    template("path goes on", r"Then the path may go on there"),
    template("under way", r"(?P<n>\d+) in progress", under_way),
    template("restored", r"The job was restored (?:once|(?P<n>\d+) times)", restored),
    template(
        "subject",
        r"(?:\w+ savepoint|Checkpoint) (?P<id>\d+) \((?P<barriers>[^)]*)\) (?P<fate>took|was given up after|has been "
        r"under way "
        r"for) (?P<ms>MS)(?:, with (?P<size>SIZE) of state \((?P<written>.*?)\))?(?: \(.*?\))?(?=\. |\.$)",
        subject,
    ),
    template(
        "no end",
        r"Checkpoint (?P<id>\d+) \((?P<barriers>[^)]*)\) was still in progress at the end of what was "
        r"read(?:, (?P<ms>MS) after its trigger)?(?P<size>)",
        no_end,
    ),
    template(
        "share",
        r"(?P<share>\d+) % of it, (?P<ms>MS), (?:its barrier is on the way from SUB to SUB|its barrier waits .*? until "
        r"the alignment "
        r"timeout|SUB has its first barrier and waits for the last, from SUB|the call waits for the task thread of SUB|SUB waits "
        r"for a "
        r"file \([\w ]+\)|SUB does not acknowledge it|is [\w ]+ of (?:SUB|coordinator)|its barrier is on the way from  to SUB)",
        part_of_it,
    ),
    template("trigger", r"the coordinator prepares the checkpoint, and its calls travel"),
    template(
        "task thread",
        r"the task thread was inside a record, back-pressured or at other work before it took the call"
        r"(?:, and (?:is not through yet|was not through when the checkpoint was given up))?",
    ),
    template("queue", r"it lay behind data that SUB had to take first \(Flink does not say how much\)"),
    template(
        "overtakes", r"it overtakes data, and waited for the thread of SUB", lambda told, _: told.history.overtakes
    ),
    template(
        "no acknowledgement",
        r"barriers may overtake data here, so it is its thread that is held up, or its files that are not written: Flink's statistics "
        r"have no times of it, and a thread dump tells",
        lambda told, _: told.point.status != "COMPLETED" and told.history.overtakes,
    ),
    template(
        "not arrived",
        r"its (?:first|last) barrier had not arrived(?: yet| when the checkpoint was given up)",
        lambda told, _: told.point.status != "COMPLETED",
    ),
    template("earlier", r"(?:the other subtask|other subtasks) had theirs (?P<ms>MS) earlier", earlier),
    template(
        "thread",
        r"(?P<waiting>SUB) is back-pressured (?P<back>\d+ %) of its time, by (?P<name>SUB), which is busy (?P<busy>\d+ %)",
        thread_is,
    ),
    template("busy", r"(?P<name>SUB)(?P<waiting>)(?P<back>) is busy (?P<busy>\d+ %) of its time", thread_is),
    template("us per record", r", needs [\d,]+ us per record, the other subtasks [\d,]+ us \(median\)"),
    template("share of records", r", and reads (?P<share>\d+ %) of the records of its vertex", share_read),
    template(
        "timeout",
        r"data was queued ahead of it; the barrier may overtake only (?P<ms>MS) after the trigger \(alignment timeout\)",
        lambda told, match: same_ms(match["ms"], told.history.aligned_for_ns / 1e6),
    ),
    template("last", r"this barrier is taken for the last, by when it set out|it is the last that was missing"),
    template("read meanwhile", r"(?P<size>SIZE) were read meanwhile", reads),
    template(
        "end of input",
        r"the statistics name no subtask whose barrier it could have waited for: its inputs may have "
        r"ended.*?(?=[.;])",
    ),
    template(
        "work before",
        r"prepareSnapshotPreBarrier: work of the operator on the task thread, before the barrier goes on",
    ),
    template("sync", r"the synchronous part of the snapshot, on the task thread"),
    template(
        "acknowledgement",
        r"none of Flink's statistics covers it: the acknowledgement travels and takes its turn in the "
        r"JobManager, or "
        r"the process stood still, or worked before the barrier went on",
    ),
    template(
        "metadata",
        r"the coordinator writes _metadata and completes the checkpoint.*?(?=[.;])",
        lambda told, _: not late(told),
    ),
    template(
        "still",
        r"nothing of task manager \S+ moved for MS(?:, while others did|, and none of the others did)?: its process stood "
        r"still or "
        r"had no core \(garbage collection(?: \(MS since it began\))?, a stopped or swapped process, a busy host\)",
    ),
    template(
        "declined",
        r"its asynchronous part failed, and it declined the checkpoint; the exception is in the log of (?:task manager "
        r"\S+|its "
        r"task manager), not in Flink's statistics",
        lambda told, _: told.point.status == "FAILED",
    ),
    template(
        "snapshot begun",
        r"its snapshot had begun, and was not acknowledged(?: yet| when the checkpoint was given up)",
        lambda told, _: told.point.status != "COMPLETED" and bool(late(told)),
    ),
    template("through later", r"it was (?:through MS later \((?P<size>SIZE) at SIZE/s\)|aborted after SIZE)"),
    template(
        "upload", r"(?P<size>SIZE) at SIZE/s, with serialising them and waiting for the asynchronous thread", writes
    ),
    template(
        "async work",
        r"work of the asynchronous part; it wrote (?:(?P<size>SIZE), too little for a file|no bytes)",
        lambda told, match: match["size"] is None or writes(told, match),
    ),
    template(
        "channel state", r"(?P<size>SIZE) of in-flight data are written to the file of channel state", writes_in_flight
    ),
    template(
        "of its manager", r"with those of its task manager, (?P<manager>[^,]+), (?P<size>SIZE): SIZE/s", of_its_manager
    ),
    template(
        "others wrote",
        r"in its other (?P<n>\d+) checkpoints (?P<ms>MS) for (?P<size>SIZE) \(median\)",
        other_checkpoints,
    ),
    template("bytes", r"bytes do not explain it", bytes_do_not),
    template("unknown why", r"the disk, the network, a pause or a shared file may"),
    template(
        "savepoint differs",
        r"a savepoint has a folder and a format of its own",
        lambda told, _: told.point.is_savepoint,
    ),
    template(
        "all end",
        r"those of all other subtasks (?:on all task managers|of the job) end with it: storage, the network or the "
        r"whole machine "
        r"kept them",
    ),
    template(
        "its manager ends",
        r"those of its task manager end with it and others earlier: that process, its disk or its file of channel "
        r"state kept them",
    ),
    template(
        "others through",
        r"the other subtasks of its task manager were through MS earlier: no pause of the process does",
    ),
    template(
        "quicker",
        r"(?P<name>SUB) wrote (?P<size>SIZE) in (?P<ms>MS) from task manager (?P<there>\S+): not all of the storage is "
        r"slow, but "
        r"the disk or network of (?P<here>\S+), or its process",
        wrote_as_quickly,
    ),
    template("JVM", r"the JVM of (?P<name>\S+) has spent (?P<ms>MS) in garbage collection(?P<n>)", collects),
    template(
        "not acknowledged",
        r"Not acknowledged by (?P<n>\d+) of (?P<of>\d+) subtasks: (?P<names>SUB(?:, SUB)*)(?: and "
        r"(?P<more>\d+) more)?",
        not_acknowledged,
    ),
    template(
        "first barrier",
        r"Of these, (?P<names>SUB(?:, SUB)*)(?: and \d+ more)? had received their first barrier",
        had_first_barrier,
    ),
    template(
        "nothing more",
        r"Flink reports nothing else about them; their progress is inferred from their upstream subtasks",
    ),
    template("all had", r"All subtasks with statistics had acknowledged", lambda told, _: not late(told)),
    template(
        "some acknowledged",
        r"(?P<count>\d+) of (?P<of>\d+) subtasks had acknowledged(?:, the last (?P<ms>MS) after the trigger)?\. "
        r"GET /jobs/JOB/checkpoints/details/(?P<n>\d+)/subtasks/VERTEX lists the others",
        some_acknowledged,
    ),
    template(
        "none acknowledged",
        r"None of its (?P<of>\d+) subtasks had acknowledged, not even one of a source, which waits for no barrier"
        r"(?P<look>: look at their threads, and at the storage that they write to)?",
        lambda told, match: (
            (told.point.num_acknowledged_subtasks, told.point.num_subtasks) == (0, int(match["of"]))
            and not told.point.tasks
        ),
    ),
    template(
        "untold",
        r"Statistics of its subtasks are missing(?:, so it is unknown where it spent its time)?",
        lambda told, _: not told.point.tasks,
    ),
    template(
        "first",
        r"It is the job's first: code is not compiled yet, files and connections are new, and no earlier file can be used "
        r"again",
        lambda told, _: told.point.id == 1,
    ),
    template(
        "savepoint",
        r"It is a savepoint: its barriers overtake no data, whatever is set for checkpoints, and all state is written "
        r"anew, to a folder and often in a format of its own, which may be slower",
        lambda told, _: told.point.is_savepoint,
    ),
    template("before it", r"Checkpoint (?P<n>\d+) before it did not complete", did_not_complete),
    template("had failed", r"Tasks of the job had failed (?P<ms>MS) before it was triggered", had_failed),
    template(
        "savepoint before",
        r"Savepoint (?P<n>\d+) had taken (?P<took>MS) until (?P<ms>MS) before it was triggered: periodic "
        r"checkpoints wait for savepoints",
        savepoint_before,
    ),
    template(
        "gap",
        r"It was triggered (?P<ms>MS) after the one before, usually (?P<usual>MS) pass: the job (?:may have been|was) restarted in "
        r"between",
        after_gap,
    ),
    template("same time", r"(?:Savepoint|Checkpoint) (?P<n>\d+) was under way at the same time", at_the_same_time),
    template(
        "change",
        r"With(?:out)? [\w _]+: the rest of this path takes (?P<least>MS) of (?P<now>MS); another one may take longer",
        shortened,
    ),
    template(
        "where",
        r"Where the time goes (?:checkpoint \d+ others|(?:(?P<slow>\d+) slow \(mean\) )?(?P<others>\d+) (?:others|checkpoints)) \(median\)",
        lambda told, match: match["others"] is None or sample(told, match),
    ),
    template(
        "too few",
        r"Associated with slow checkpoints: (?P<slow>\d+) slow and (?P<others>\d+) other checkpoints are too few to "
        r"rule out chance \(a feature of all slow checkpoints and no others would have p = [\d.]+\)",
        sample,
    ),
    template(
        "nothing in common",
        r"Associated with slow checkpoints: nothing that chance would not explain \((?P<slow>\d+) slow ones?, "
        r"(?P<others>\d+) others, \d+ features tested\)",
        sample,
    ),
    template(
        "in common",
        r"Associated with slow checkpoints \((?P<slow>\d+) slow ones?, (?P<others>\d+) others, \d+ features tested; "
        r"p-value, then p-value corrected for all tests\)",
        sample,
    ),
    template(
        "feature", r"- [^:]+: (?P<a>\d+) of (?P<slow>\d+) slow ones?, (?P<b>\d+) of (?P<others>\d+) others" + P, counts
    ),
    template(
        "more of",
        r"- more [\w -]+: \S+ \S+ in (?P<slow>\d+) slow ones, \S+ \S+ in (?P<others>\d+) others \(medians\)" + P,
        at_most_sample,
    ),
    template(
        "ids",
        r"- they are (?P<word>earlier|later) in the history: ids (?P<a>\d+) in \d+ slow ones, (?P<b>\d+) in \d+ others "
        r"\(medians\)" + P,
        medians_of_ids,
    ),
    template("cold", r"code may not be compiled yet, and files and connections are new" + P, is_cold),
    template(
        "longer ones",
        r"Associated with longer checkpoints \((?P<n>\d+) checkpoints; p-value, then p-value corrected for all tests\)",
        lambda told, match: int(match["n"]) == len(told.usual),
    ),
    template(
        "longer between restarts",
        r"- they are longer (?:before the restart at (?P<before>[\d:]+)|after the restart at (?P<after>[\d:]+)|between the restarts at "
        r"(?P<begin>[\d:]+) and (?P<end>[\d:]+)) UTC: (?P<inside>MS) in (?P<n>\d+), (?P<outside>MS) in (?P<others>\d+) others "
        r"\(medians\)" + P,
        longer_between,
    ),
    template(
        "longer later",
        r"- they are longer later in the history: (?P<ms>MS) in the first (?P<n>\d+), (?P<last>MS) in the last \d+ \(medians\)"
        + P,
        rises,
    ),
    template("the longer", r"- the longer a checkpoint, the (?:more|larger) .*? \([^()]*checkpoints\)" + P),
    template(
        "slow subtasks",
        r"Slow subtasks: .*? of its time\. How many records they get does not explain it: look at what these "
        r"records and "
        r"keys are, and at the process, disk and host",
    ),
    template(
        "cores",
        r"Cores are scarce: (?P<n>[\d.]+) threads of tasks are busy at once on the (?P<cores>\d+) cores?(?: of one "
        r"host)?, so records "
        r"take [\d.]+ times as long as on idle ones, and other work of the host waits as well",
        cores_are_scarce,
    ),
    template("asleep", r"It is not so if tasks block or sleep: Flink counts that as busy, too"),
    template(
        "garbage",
        r"(?:Garbage collection: )?(?P<name>\S+) has spent (?P<ms>MS) in (?P<n>\d+) collections(?:, \d+ of them full "
        r"\(MS\))?"
        r"(?:, \d+ % of the time that the job has run)?",
        collects,
    ),
    template("standing", r"Threads stand still meanwhile; Flink's answers do not say when that was"),
    template(
        "not told",
        r"Flink's statistics do not record the channel of the last barrier, the data queued before it, work before the "
        r"barrier, what the asynchronous phase waited for, and the time to write _metadata",
    ),
    template("no threads", r"This source has no times of the task threads", silent_times),
    template(
        "no places",
        r"This source does not say on which TaskManagers subtasks run",
        lambda told, _: not told.history.task_managers,
    ),
    template(
        "silent",
        r"No checkpoint has completed since (?P<begun>the job began to run at )?(?P<at>[\d :-]+): (?P<lasts>[\d.]+ "
        r"(?:d|h|min|s)) to "
        r"the end of the (?P<end>log|job)",
        silent_since,
    ),
    template(
        "refused",
        r"(?P<n>\d+) triggers? (?:was|were) refused (?:at|from) (?P<at>[\d :-]+?)(?: to (?P<to>[\d :-]+))?: (?P<reason>[^.]+)",
        refused,
    ),
    template(
        "finished tasks",
        r"Once tasks finish, checkpoints need execution\.checkpointing\.checkpoints-after-tasks-finish\.enabled "
        r"\(since 1\.14; true by default since 1\.15\)",
        lambda told, _: any(kind == "refused" and "finished" in value for _, kind, value in told.written),
    ),
    template(
        "not compared",
        r"Checkpoints ended for reasons that Flink does not compare with "
        r"execution\.checkpointing\.tolerable-failed-checkpoints: (?P<reasons>[^.]+)",
        not_compared,
    ),
    template(
        "lost managers",
        r"(?P<n>\d+) TaskManagers? did not answer heartbeats: (?P<names>[^.]+)\. Look at the log of each, and at what ended "
        r"or paused it \(memory limit, eviction, network\)",
        lost_managers,
    ),
    template(
        "terminated",
        r"TaskManager (?P<name>tm-\d+) was terminated at (?P<at>[\d :-]+): exitCode=137, reason=OOMKilled",
        was_terminated,
    ),
    template(
        "oversized",
        r"Messages were dropped that are larger than pekko.framesize \(akka.framesize before 1.18\), here 10485760b\. A checkpoint whose "
        r"acknowledgement is dropped expires, however long its timeout\. Set a larger framesize, or keep less state inside of "
        r"acknowledgements \(state.storage.fs.memory-threshold, operator state\)",
        lambda told, _: any(kind == "oversized" for _, kind, _ in told.written),
    ),
    template(
        "not canceled",
        r"A task did not stop within task.cancellation.timeout \((?P<s>\d+) s\), for which Flink ends its TaskManager: the restart waited "
        r"for that\. Look at what the task was doing then \(its stack trace is in the log of its TaskManager\)",
        lambda told, match: (90, "restarted", int(match["s"])) in {(90, *row[1:]) for row in told.written},
    ),
    template(
        "lost leadership",
        r"The JobManager lost its leadership, and the job restarted for that: no task and no checkpoint failed\. Look at what kept it from "
        r"renewing its lease \(the API server or ZooKeeper, high-availability.zookeeper.client.tolerate-suspended-connections, a pause of the "
        r"garbage collector\)",
        lambda told, _: any(kind == "suspended" for _, kind, _ in told.written),
    ),
    template(
        "failed for good",
        r"The job failed for good at (?P<at>[\d :-]+), after (?P<n>\d+) restarts?(?:; its restart strategy is [^.]+)?",
        failed_for_good,
    ),
    template(
        "exceptions",
        r"Look at the exceptions of the job",
        lambda told, _: any(kind in ("dead", "stopped") for _, kind, _ in told.written),
    ),
    template("silent failures", r"(?P<n>\d+) checkpoints? failed: (?P<reason>[^.]+)", all_silent_failures),
    template(
        "intolerable",
        r"The job failed (?:once|(?P<n>\d+) times): more checkpoints failed in a row than it tolerates"
        r"(?:, which is (?P<most>\d+) by the log \(execution.checkpointing.tolerable-failed-checkpoints\))?",
        intolerable,
    ),
    template(
        "went back",
        r"(?P<n>\d+) restarts? went back (?P<least>[\d.]+ (?:d|h|min|s))(?: to (?P<most>[\d.]+ (?:d|h|min|s)))?, to checkpoints? "
        r"(?P<ids>\d+(?:, \d+)*)(?: and (?P<more>\d+) more)?: sources read again from there"
        r"(?P<between>, and no checkpoint completed between them)?",
        went_back,
    ),
    template(
        "not all acknowledged",
        r"Not all tasks acknowledged within execution.checkpointing.timeout",
        lambda told, _: "expired" in told.since("failed"),
    ),
    template(
        "failures with one cause",
        r"All (?P<n>\d+) (?:of the listed )?checkpoints that failed have one cause, on [^:]+: (?P<cause>.+)",
        one_cause,
    ),
    template(
        "failures apart",
        r"(?P<n>\d+) (?:of the listed )?checkpoints failed, at most (?P<most>\d+) in a row \((?P<first>\d+)(?: to (?P<last>\d+))?\)\. "
        r"Flink compares the failures in a row with execution.checkpointing.tolerable-failed-checkpoints: a completed checkpoint sets "
        r"their count to 0",
        failures_apart,
    ),
    template(
        "fresh restarts",
        r"(?P<n>\d+) restarts? found no checkpoint to restore: the job began again with empty state, and its "
        r"sources where "
        r"they begin without a position\. Each time the records before are read again, and sinks that neither replace rows by key nor "
        r"commit with checkpoints get them once more",
        fresh_restarts,
    ),
    template(
        "look",
        r"Look at why tasks do not run \(slots, a restart loop, a long restore, their last exception\), not at checkpoints",
        lambda told, _: any(kind == "refused" and "running" in value for _, kind, value in told.written),
    ),
    template(
        "triggers that stopped",
        r"Nothing is triggered after checkpoint (?P<id>\d+) at (?P<at>[\d :-]+), although about (?P<n>\d+) more were due, and no trigger is "
        r"refused: the CheckpointCoordinator has stopped, and no timeout helps\. Restart the JobManager, and look for a defect of this release",
        lambda told, match: (
            int(match["id"]) == told.history.checkpoints[-1].id
            and not any(kind == "refused" and clock_of(at) > match["at"] for at, kind, _ in told.written)
        ),
    ),
    template(
        "declined by",
        r"A task declined: its exception, which the log of its TaskManager has too, says why",
        lambda told, _: "declined" in told.since("failed"),
    ),
    template(
        "no statistics",
        r"Without subtask statistics, critical paths are unknown\. Logs contain none; the JobManager keeps only "
        r"those of the latest checkpoints",
        without_statistics,
    ),
)


def sentences(text):
    """The printed answer without its tables, a paragraph or note each, on one line."""
    found = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if lines[0].startswith("Where the time goes"):
            found.append(" ".join(lines[0].split()))
            continue
        if "█" in block or re.match(r" +\d+  \d\d:\d\d:\d\d ", lines[0]):
            continue
        for line in lines:
            if (
                re.match(
                    r" {1,2}\d+  \S|(?:With|Without|Of these|Flink tells|Checkpoint \d+ before|Not ack|It |Tasks|Save)|  - ",
                    line,
                )
                or line is lines[0]
            ):
                found.append("")
            found[-1] += " " + line.strip()
    return [re.sub(r"(?<=\w)- (?=\w)", "-", re.sub(r"^ (?:\d+  )?", "", text)) for text in found]
