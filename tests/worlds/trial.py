"""One world through the front door, and what is wrong with how it went: violations, errors, engines that disagree, jobs without an end."""

from __future__ import annotations

import re
import signal
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sim.model.schema.text import ScenarioError, write
from sim.results.journal import EventType
from sim.results.tables import TIMED_OUT
from sim.runtime.result import NOT_STOPPED
from sim.runtime.simulate import simulate
from tests.oracle import oracle
from tests.scenarios import read_scenario
from tests.worlds.account import account, undisturbed
from tests.worlds.generator import FOLDER
from tests.worlds.limits import exceeded, lacks_room, lifted
from tests.worlds.rules import acting
from tests.worlds.wrong import EXPIRING_NS

STOPPED = "FAILED: stopped with a savepoint, then failed"  # to be restarted from the savepoint by hand
PATIENCE = 5  # times its duration, for a world that is only slow
LIFTED_PATIENCE = 20  # ... for one without limits, which may wait for slow storage for minutes
LAST_PATIENCE = 1000  # ... or for hours, if nothing else explains it
MOST_CPU_S = 60  # of one world


MET = {
    "a checkpoint is declined": lambda result: _failed(result, "CHECKPOINT_DECLINED"),
    "a checkpoint expires": lambda result: _failed(result, "CHECKPOINT_EXPIRED"),
    "storage fails a checkpoint": lambda result: _failed(
        result, "CHECKPOINT_ASYNC_EXCEPTION", "IO_EXCEPTION", "FINALIZE"
    ),
    "restarts are exhausted": lambda result: any(entry.event_type is EventType.GIVEN_UP for entry in result.journal),
}
"""What goes wrong as only a run says -> whether it happened in this one."""


def _failed(result, *reasons):
    """Whether a checkpoint failed for a reason that begins so."""
    return any(str(message).startswith(reasons) for message in result.checkpoints["failure_message"].dropna().unique())


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kind`: empty if all is well; else violated, crash, refused, differ, unaccounted, endless, failed or slow."""

    kind: str = ""
    fact: str = ""  # the first violation, or what else went wrong
    restarts: int = 0
    completed: int = 0  # checkpoints
    commits: int = 0
    simulated_ns: int = 0
    cpu_s: float = 0
    met: frozenset[str] = frozenset()  # what happened to it: kinds of `MET`
    rules: frozenset[str] = frozenset()  # that acted in it: rows of `ACTS`

    @property
    def finding(self):
        """What it comes down to: without numbers and names of vertices."""
        plain = re.sub(r"(record|byte|channel)s? (is|are)\b", r"\1s are", f"{self.kind} {self.fact}".strip())
        return re.sub(r"\b[smk][0-9k]\b", "V", re.sub(r"\d+(\.\d+)?", "N", plain)).replace("VN", "V")


def run_document(document, *, compare=False):
    return run_text(write(document, "A world."), compare=compare)


def run_text(text, *, compare=False):
    """`compare`: the reference engine must say the same as the compiled one, and every record must come as it does if nothing fails."""
    began = time.process_time()
    try:
        with limited_cpu(MOST_CPU_S):
            outcome = _run(read_scenario(text, folder=FOLDER), compare=compare, patience=PATIENCE)
    except ScenarioError as error:
        outcome = Outcome("refused", str(error).splitlines()[0].split(": ", 1)[-1])
    except TimeoutError as error:
        outcome = Outcome("slow", str(error))
    except Exception as error:  # noqa: BLE001 - it is a finding, told with its world
        outcome = Outcome("crash", _crash(error))
    return replace(outcome, cpu_s=time.process_time() - began)


def differences(first, second):
    """Names of tables, columns and other results that are not the same to the byte."""
    names = [name for name in ("job_status", "ended_ns", "violations") if getattr(first, name) != getattr(second, name)]
    if list(first.journal) != list(second.journal):
        names.append("journal")
    for name, table in first.tables.items():
        twin = second.tables[name]
        if len(table) != len(twin):
            names.append(f"{name} (rows)")
        elif not table.equals(twin):
            names += [
                f"{name}.{column}" for column in table if column not in twin or not table[column].equals(twin[column])
            ]
    return names


def _run(scenario, *, compare, patience):
    jobs = []
    result = simulate(scenario, attach=jobs.append)
    outcome = _judge_all(scenario, result, compare=compare, patience=patience)
    return replace(outcome, rules=acting(scenario, result, jobs))


def _judge_all(scenario, result, *, compare, patience):
    if compare and (names := differences(result, simulate(scenario, engine=oracle))):
        return Outcome("differ", f"reference and compiled: {', '.join(names[:3])}")
    if compare and result.job_status == "FINISHED" and not result.violations and (lines := account(scenario)):
        twin = undisturbed(scenario)
        alone = simulate(twin)
        # else there is no end to compare with
        if alone.job_status == "FINISHED" or _patiently(twin, alone, patience).kind:
            return Outcome("unaccounted", f"against the undisturbed run: {lines[0]}")
    return _patiently(scenario, result, patience)


def _patiently(scenario, result, patience):
    """A job may go on for ever if that is its world's doing: no checkpoint comes through, and nothing is lost.

    What is found out with the least work comes first.
    """
    first = LIFTED_PATIENCE if patience > 1 else patience
    outcome = _excused(scenario, result, first)
    if outcome.kind != "endless" or patience == 1:
        return outcome
    longer = simulate(_longer(scenario, patience))
    outcome = _excused(scenario, longer, first)
    return _excused(scenario, longer, LAST_PATIENCE) if outcome.kind == "endless" else outcome


def _excused(scenario, result, times):
    """`times`: for so many times its duration the world without limits may run."""
    outcome = _judged(scenario, result)
    if outcome.kind == "endless" and (_hangs(scenario, result) or _held_up(scenario, result, times)):
        return replace(outcome, kind="", fact="")
    return outcome


def _longer(scenario, times):
    return replace(scenario, run=replace(scenario.run, duration_ns=times * scenario.run.duration_ns))


def _held_up(scenario, result, times):
    """By limits of its world: `limits` says when they are the reason."""
    jobs = []
    free = simulate(_longer(lifted(scenario, result), times), attach=jobs.append)
    if _judged(scenario, free).kind == "endless" and lacks_room(scenario, free) and not lacks_room(scenario, result):
        return _held_up(scenario, free, times)  # its timeout came before the limits of its storage
    goes_on = _judged(scenario, free).kind == "" or _hangs(scenario, free)
    return goes_on and exceeded(scenario, result, free, _longest_write_ns(jobs))


def _longest_write_ns(jobs):
    """The time of the slowest file, whether a checkpoint writes it or a task at its end."""
    files = (file for job in jobs for file in job.context.storage.files)
    return max((file.durable_ns - file.created_ns for file in files if file.durable_ns is not None), default=0)


def broken_promises(result):
    """The violations, without the losses of a job whose transactions expire, which it says itself."""
    return tuple(row for row in (*result.violations, *result.repetitions) if not row.fact.endswith(TIMED_OUT))


def _judged(scenario, result):
    kind, fact, status = "", "", result.job_status
    wrongly = any(v.commit and v.commit.transaction_timeout_ns == EXPIRING_NS for v in scenario.job.vertices)
    if found := (*result.violations, *result.repetitions) if wrongly else broken_promises(result):
        kind, fact = "violated", str(found[0]).splitlines()[0]
    elif _unfinished(scenario, result):
        kind, fact = "endless", f"{status}, {_pace(result)}"
    elif status.startswith("RESTARTING"):
        kind, fact = "endless", status.splitlines()[0][:200]
    elif status.startswith("FAILED") and not (
        status.startswith(STOPPED) or "cannot start" in status or _may_fail(scenario)
    ):
        kind, fact = "failed", status.splitlines()[0][:200]
    completed = int((result.checkpoints["status"] == "COMPLETED").sum())
    met = frozenset(name for name, happened in MET.items() if happened(result))
    return Outcome(kind, fact, len(result.recoveries), completed, len(result.commits), result.ended_ns, met=met)


def _unfinished(scenario, result):
    """Its sources end, nobody waits for what is never said, nothing fails for ever, and yet it runs."""
    bounded = all(vertex.source is None or vertex.source.total is not None for vertex in scenario.job.vertices)
    goes_on = any(action.stop is not None for action in scenario.actions) or any(
        rescale.savepoint for rescale in scenario.rescale
    )
    waits = bool(scenario.checkpoint.lost_notifications) and goes_on  # as in Flink: what nobody hears of is waited for
    fails = any(fault.when.every is not None for fault in scenario.faults) and len(result.recoveries) > 0
    return bounded and not waits and not fails and (result.job_status == "RUNNING" or NOT_STOPPED in result.job_status)


def _may_fail(scenario):
    restart = scenario.restart
    return restart.strategy in ("none", "failure-rate") or restart.attempts is not None


def _hangs(scenario, result):
    """Its tasks wait for each other, as Flink's do where barriers that overtook meet others that are forced to align.

    With naive ends they also do so without a checkpoint.  A task that closes declines until its readers have read its
    last record.  A reader still aligns for a checkpoint that was declined: the barrier it needs is that of a task that
    waits for the next one.
    """
    if scenario.checkpoint.finish == "naive" and _pace(result) == "its late checkpoints are FAILED":
        return {"CHECKPOINT_DECLINED_TASK_CLOSING"} == set(_late(result)["failure_message"])
    unfinished = (result.checkpoints["status"] == "IN_PROGRESS") | (
        result.checkpoints["failure_message"] == "CHECKPOINT_EXPIRED"
    )
    return any(result.checkpoints.loc[unfinished, "x_standstill"].tail(1))


def _pace(result):
    """How a job spends its time that does not end."""
    restarts = len(result.recoveries)
    late = _late(result)
    if restarts > 20 and "COMPLETED" not in set(late["status"]):
        return "restarts again and again"
    if len(late) == 0:
        hangs = (result.checkpoints["status"] == "IN_PROGRESS").any()
        return "a checkpoint hangs" if hangs else "no checkpoint is triggered any more"
    return f"its late checkpoints are {', '.join(sorted(set(late['status'])))}"


def _late(result):
    """The checkpoints of its second half."""
    rows = result.checkpoints
    return rows[rows["trigger_timestamp"] > result.ended_ns / 2e6] if len(rows) else rows


def _crash(error):
    """Class, place and first line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/sim/" in frame.filename]
    place = f" in {frames[-1].filename.rsplit('/sim/', 1)[-1]}:{frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{place}: {error}".splitlines()[0][:200]


@contextmanager
def limited_cpu(cpu_s):
    """TimeoutError after so much processor time of this process."""

    def stop(_signal, _frame):
        raise TimeoutError(f"the run takes more than {cpu_s:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
