"""Jobs with incremental state that begin from each other's snapshots: tiny, for tests."""

from dataclasses import replace
from fractions import Fraction

from sim.model.job import Job
from sim.model.scenario import Instances
from sim.model.state import Lsm, State
from sim.model.storage import Directories
from tests.invariants.jobs.small_jobs import ALIGNED, chain, scenario

LSM = Lsm(memtable_bytes=200_000, base_bytes=400_000, table_bytes=100_000)
STATE = State(2_000_000, "rocksdb", update_share=Fraction(1, 2), value_bytes=100, lsm=LSM)


def jobs(
    claim="claim",
    *,
    count=3,
    seconds=9,
    directories=Directories(),  # noqa: B008  # frozen
    actions=(),
    **chosen,
):
    """A chain of `count` jobs; the first begins with nothing."""
    source, stage, sink = chain(1).vertices
    base = scenario(Job((source, replace(stage, state=STATE), sink)), ALIGNED, seconds=seconds)
    options = replace(base.checkpoint, state=replace(base.checkpoint.state, incremental=True))
    instances = Instances(count, claim, **chosen)  # type: ignore[arg-type]
    return replace(base, checkpoint=options, instances=instances, directories=directories, actions=actions)
