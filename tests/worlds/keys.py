"""Which keys of the schema a scenario file sets, named by section: ``Retry.timeout``, ``Commit.emits``."""

from sim.model.schema.document import Document
from sim.model.schema.sections import keys_of as document_keys

EXCEPTIONS = {
    "Watermark.alignment": "is accepted and has no effect",
    "Window.mini-batch": "the same",
    "Window.size": "belongs to it",
    "expect": "judges results, changes none",
    "Run.until": "ends a run sooner; what worlds are held to is their end",
    "Run.replications": "more runs of the same world; every world is one run",
    "Trace.time-unit": "says how a file is read; the traces of worlds say it by themselves",
    "Trace.zone": "says how local times are read; the traces of worlds count seconds",
    "Commit.late": "another value than the default is Iceberg's FlinkSink, which loses records; tests/model/schema/test_connectors.py has it",
    "Vertex.connector": "names a sink for what advice says of it, and changes no run",
    "Connector.name": "the same",
    "Connector.version": "the same; sim/jobs/evidence reads it",
    "Cluster.version": "chooses the profile, which worlds write themselves",
    "flink-file": "is read into keys of the scenario, which worlds write themselves",
    "OfVertex.backend": "says of which backend residuals of an import are, and changes no run of another",
    "Checkpoint.region": "a proposal with known defects: worlds of their own, `python -m tests.worlds.regional`",
    "RegionalCheckpoints.enabled": "the same",
    "RegionalCheckpoints.max-failure-ratio": "the same",
    "RegionalCheckpoints.max-consecutive-failures": "the same",
    "RegionalCheckpoints.split-interval": "the same",
    "Commit.gives-up": "an external system that fails: tests/model/schema/test_connectors.py",
    "Commit.retries": "the same",
    "Fault.commit": "the same",
    "Lsm.freeze": "a time besides files: tests/storage/state and tests/jobs/infer/test_recorded_truth.py",
    "Lsm.upload": "the same",
    "NetworkMemory.adaptive-partitioner": "tests/plane, in both engines, and tests/runtime/setup/test_adaptive_partitioner.py",
    "AdaptivePartitioner.max-traverse-size": "the same",
    "Cluster.barrier-wake-up": "tests/runtime/task/test_task_thread.py, in both engines",
    "Restart.state-start": "tests/runtime/jobmanager/test_restarted_tasks.py, in both engines",
    "Restart.rescale-failures": "tests/runtime/jobmanager/test_adaptive_scheduler.py",
    "Action.checkpoint": "tests/runtime/jobmanager/test_changed_checkpoints.py",
    "CheckpointUpdate.interval": "the same",
    "CheckpointUpdate.timeout": "the same",
    "Checkpoint.ingest-db": "tests/storage/state/test_backends.py and tests/runtime/task/test_state_transfer.py",
    "Checkpoint.compact-after-rescale": "the same",
    "Checkpoint.delete-files-in-range": "the same",
    "Restart.rescale-checkpoint": "tests/runtime/jobmanager/test_adaptive_scheduler.py",
    "Restart.slot-timeout": "tests/protocol/recovery/test_slots.py",
    "Run.cold-start": "tests/runtime/jobmanager/test_restarted_tasks.py, in both engines",
    "Snapshot.after-in-flight": "tests/runtime/task/test_parts_of_a_task.py, in both engines",
    "Storage.read-latency": "file-latency is drawn, which it is by default; tests/storage/test_work.py",
    "Storage.in-flight-bandwidth": "tests/runtime/taskmanager/test_files_of_a_task_manager.py, in both engines",
}
"""Keys no random world sets -> why."""

DESCRIBING = {"backtest", "history"}
"""Sections that say where a scenario comes from, and change no run: no random world has one, nor what lies below."""


KEYS = {
    key.dotted: f"{key.section.__name__}.{key.path[-1]}".removeprefix("Document.")
    for key in document_keys(Document)
    if key.path[0] not in DESCRIBING
}
"""Path of a key, with VERTEX for the name of a vertex -> its name here."""


def all_keys():
    return set(KEYS.values())


def keys_of(document, at=""):
    """Those that a document sets; names of vertices, edges and the like are no keys."""
    if isinstance(document, list):
        return set().union(*(keys_of(item, at) for item in document))
    if not isinstance(document, dict):
        return set()
    found = set()
    for name, below in document.items():
        path = f"{at}.{name}".removeprefix(".")
        found |= {KEYS[path]} if path in KEYS else set()
        found |= keys_of(below, path if path in KEYS else f"{at}.VERTEX" if at == "job" else at)
    return found
