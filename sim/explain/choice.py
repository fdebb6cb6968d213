"""Which checkpoints of a run are explained, and the runs that show what would be without a part of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.analysis.strategies.kinds_of_checkpoints import first_uploads
from sim.analysis.strategies.warm_up import warm_up
from sim.explain.account import Account, account
from sim.explain.close_up import CloseUp
from sim.foreign import Readable
from sim.runtime.run.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.model.scenario import Scenario
    from sim.plane import Engine


class NoCheckpointError(Readable, LookupError):
    """There is no checkpoint to explain."""


def with_checkpoints(scenarios: Mapping[str, Scenario]) -> dict[str, Scenario]:
    """The strategies that take checkpoints.  Raises NoCheckpointError if none does."""
    found = {name: scenario for name, scenario in scenarios.items() if scenario.checkpoint.interval_ns is not None or scenario.actions}
    if not found:
        raise NoCheckpointError("no strategy takes checkpoints")
    return found


def accounts(strategy: str, run: CloseUp, checkpoint: int | None = None) -> list[Account]:
    """The checkpoint of this number in every job instance that has it; None: first uploads, the median of the later ones, the slowest.

    Raises NoCheckpointError.
    """
    if checkpoint is not None:
        found = [(job, checkpoint) for job, instance in enumerate(run.instances) if checkpoint in instance.context.stats]
        if not found:
            known = [number for instance in run.instances for number in instance.context.stats]
            there = f"they are {min(known)} to {max(known)}" if known else "there is none"
            raise NoCheckpointError(f"{strategy}: no checkpoint {checkpoint}: {there}")
    else:
        found = _typical(run)
    return [account(strategy, job, run.instances[job], number) for job, number in found]


def verified(explained: Account, engine: Engine = "compiled") -> dict[str, int | None]:
    """By change: how long the checkpoint takes when it is simulated so [ns]; None: it does not complete."""
    return {change.change: _simulated(explained, change.scenario, engine) for change in explained.changes if change.scenario is not None}


def _simulated(explained: Account, scenario: Scenario, engine: Engine) -> int | None:
    table = simulate(scenario, engine=engine, check=False).checkpoints
    if "x_job" in table:
        table = table[table["x_job"] == explained.job]
    row = table[(table["id"] == explained.stats.number) & (table["status"] == "COMPLETED")]
    return None if row.empty else round(float(row["end_to_end_duration"].iloc[0]) * 1e6)


def _typical(run: CloseUp) -> list[tuple[int, int]]:
    """First uploads, and completed ones behind the warm-up; if there are none, the last that failed."""
    warmup_ns, uploads = warm_up([run.result]).ns, _first_uploads(run)
    rows = [
        (job, row)
        for job, instance in enumerate(run.instances)
        for row in instance.context.stats.values()
        if row.trigger_ns >= warmup_ns and (job, row.number) not in uploads
    ]
    done = sorted((row.latest_ack_ns - row.trigger_ns, job, row.number) for job, row in rows if row.status == "COMPLETED")
    if done or uploads:
        usual = [done[(len(done) - 1) // 2][1:], done[-1][1:]] if done else []
        return list(dict.fromkeys([*uploads, *usual]))
    failed = [(row.failed_ns, job, row.number) for job, row in rows if row.status == "FAILED"]
    if not failed:
        raise NoCheckpointError("no checkpoint was completed or failed after the warm-up: run longer, or set an interval")
    return [max(failed)[1:]]


def _first_uploads(run: CloseUp) -> list[tuple[int, int]]:
    """(job instance, id) of checkpoints that uploaded everything at the beginning."""
    rows = run.result.checkpoints
    found = rows[first_uploads(rows)]
    jobs = found["x_job"] if "x_job" in found else [0] * len(found)
    return [(int(job), int(number)) for job, number in zip(jobs, found["id"], strict=True)]
