"""`instances:` and `directories:`: jobs that begin from each other's snapshots, and where those lie; as written, and the model of it."""

from __future__ import annotations

from sim.model import directories, instances
from sim.scenario.grammar.fields import Axis, Positive
from sim.scenario.grammar.options import Options, built
from sim.scenario.text.problems import Reading


class Instances(Options, of=(instances.Instances,)):
    """The run's duration is divided among job instances; each begins from a snapshot of the one before it."""

    count: Axis[Positive]


class Directories(Options, of=(directories.Directories,)):
    """Where files of snapshots lie, and how metadata names them."""


def build_instances(
    given: Instances | None, reading: Reading, *, savepoints: bool, checkpoints: bool, rescaled: bool, changelog: bool
) -> instances.Instances:
    """What the rest of the scenario has: savepoints, checkpoints, a change of parallelism, a changelog."""
    jobs = built(instances.Instances, given, ("instances",), reading)
    if jobs.count == 1:
        return jobs
    if rescaled:
        reading.wrong(("instances", "count"), "rescaling makes job instances of its own: write one of instances and rescale")
    if jobs.start_from == "savepoint" and not savepoints:
        reading.wrong(("instances", "from"), "no action takes a savepoint: write actions: [{savepoint: native, at: 20 s}]")
    if jobs.start_from == "checkpoint" and not checkpoints:
        reading.wrong(("instances", "from"), "there are no checkpoints to start from: write an interval under checkpoint")
    if changelog and jobs.claim == "no-claim":
        wrong = "no-claim wants a full checkpoint, and Flink's changelog takes none (FLINK-38307): write claim or legacy"
        reading.wrong(("instances", "claim"), wrong)
    return jobs
