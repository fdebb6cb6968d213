"""`instances:` and `directories:` -> the model."""

from __future__ import annotations

from sim.model.directories import Directories
from sim.model.instances import Instances
from sim.scenario.instances import document as doc
from sim.scenario.text.problems import Reading

__all__ = ["build_directories", "build_instances"]


def build_instances(
    given: doc.Instances | None, reading: Reading, *, savepoints: bool, checkpoints: bool, rescaled: bool, changelog: bool
) -> Instances:
    """What the rest of the scenario has: savepoints, checkpoints, a change of parallelism, a changelog."""
    if given is None:
        return Instances()
    if given.count > 1 and rescaled:
        reading.wrong(("instances", "count"), "rescaling makes job instances of its own: write one of instances and rescale")
    start_from = given.from_ or "checkpoint"
    if given.count > 1 and start_from == "savepoint" and not savepoints:
        reading.wrong(("instances", "from"), "no action takes a savepoint: write actions: [{savepoint: native, at: 20 s}]")
    if given.count > 1 and start_from == "checkpoint" and not checkpoints:
        reading.wrong(("instances", "from"), "there are no checkpoints to start from: write an interval under checkpoint")
    if given.count > 1 and changelog and given.claim in (None, "no-claim"):
        wrong = "no-claim wants a full checkpoint, and Flink's changelog takes none (FLINK-38307): write claim or legacy"
        reading.wrong(("instances", "claim"), wrong)
    return Instances(given.count, given.claim or "no-claim", start_from, given.copied or "nothing")  # type: ignore[arg-type]  # checked words


def build_directories(given: doc.Directories | None) -> Directories:
    if given is None:
        return Directories()
    return Directories(
        given.paths or "absolute",  # type: ignore[arg-type]  # checked by the document
        create_subdir=given.create_subdir not in ("off", "false"),
        entropy=given.entropy in ("on", "true"),
    )
