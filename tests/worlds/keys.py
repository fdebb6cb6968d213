"""Which keys of the schema a scenario file sets, named by section: ``Retry.timeout``, ``Commit.emits``."""

from functools import cache

from sim.model.schema.reference import json_schema

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
    "Commit.gives-up": "an external system that fails: tests/model/schema/test_failed_commits.py",
    "Commit.retries": "the same",
    "Fault.commit": "the same",
    "Lsm.freeze": "a time besides files: tests/storage/state and tests/jobs/infer/test_recorded_truth.py",
    "Lsm.upload": "the same",
    "Cluster.barrier-wake-up": "tests/runtime/task/test_barrier_wake_up.py, in both engines",
    "Restart.state-start": "tests/runtime/jobmanager/test_starts_of_tasks.py, in both engines",
    "Run.cold-start": "tests/runtime/jobmanager/test_warm_up.py, in both engines",
    "Snapshot.after-in-flight": "tests/runtime/task/test_after_in_flight.py, in both engines",
    "Storage.read-latency": "file-latency is drawn, which it is by default; tests/storage/test_parallel.py",
    "Storage.in-flight-bandwidth": "tests/runtime/taskmanager/test_channel_state.py, in both engines",
}
"""Keys no random world sets -> why."""

DESCRIBING = {"backtest", "history"}
"""Sections that say where a scenario comes from, and change no run: no random world has one, nor what lies below."""


@cache
def _schema():
    return json_schema()


def all_keys():
    schema = _schema()
    below = set().union(*(_named_in(schema["properties"][name], schema["$defs"]) for name in DESCRIBING))
    sections = {name: section for name, section in schema["$defs"].items() if name not in below}
    keys = {f"{name}.{key}" for name, section in sections.items() for key in section.get("properties", {})}
    return keys | schema["properties"].keys() - DESCRIBING


def _named_in(node, sections):
    """The sections that a part of the schema refers to, directly or through others."""
    if isinstance(node, list):
        return set().union(*(_named_in(item, sections) for item in node))
    if not isinstance(node, dict):
        return set()
    named = {str(node["$ref"]).rsplit("/", 1)[-1]} if "$ref" in node else set()
    return named.union(
        *(_named_in(sections[name], sections) for name in named),
        *(_named_in(value, sections) for value in node.values()),
    )


def keys_of(document):
    schema = _schema()
    return set(_keys(document, schema, "", schema["$defs"]))


def _keys(value, node, section, sections):
    if isinstance(value, list):
        for item in value:
            for option in _options(node):
                yield from _keys(item, option.get("items", option), section, sections)
        return
    if not isinstance(value, dict):
        return
    for option in _options(node):
        if "$ref" in option:
            name = option["$ref"].rsplit("/", 1)[-1]
            if set(value) <= set(sections[name].get("properties", {})):
                yield from _keys(value, sections[name], name, sections)
            continue
        known = option.get("properties", {})
        for key, below in value.items():
            if key in known:
                yield f"{section}.{key}" if section else key
                yield from _keys(below, known[key], section, sections)
            elif isinstance(free := option.get("additionalProperties"), dict):
                yield from _keys(below, free, section, sections)


def _options(node):
    """What the value may be."""
    options = node.get("oneOf", node.get("anyOf"))
    if options is None:
        yield node
    else:
        for option in options:
            yield from _options(option)
