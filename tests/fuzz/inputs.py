"""What the program reads, and the commands that read it: for each kind of input a good one, and what damages it."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from functools import cache
from random import Random

from tests.fuzz.damage import HOSTILE, damaged_bytes, damaged_lines, damaged_tree, damaged_yaml
from tests.places import DATA

Arguments = list[str]

SCENARIO = b"""# Does this small job survive what is done to its file?
version: 1
job:
  src:  {source: {rate: [{at: 0 s, rate: 300/s}, {at: 2 s, rate: 500/s}], record: 400 B}, parallelism: 2}
  map:  {input: {src: hash}, service: {exponential: 1 ms}, state: {size: 100 kB, backend: rocksdb, update: 20 %}, parallelism: 2}
  side: {input: {src: {ship: broadcast, record: {uniform: 300 B}}}, async-io: {latency: 20 ms, capacity: 5}}
  sink:
    input: {map: rebalance, side: {ship: hash, weights: [1, 2]}}
    service: 500 us
    parallelism: 2
    commit: two-phase
    flush: {share: 20 %, files: 2}
checkpoint:
  interval: 700 ms
  barriers: [aligned, {aligned-timeout: 100 ms}]
  operator-io: async
  num-retained: 2
storage: {bandwidth: 20 MB/s, file-latency: 5 ms, retry: {attempts: 2, backoff: 10 ms}}
faults: [{kill: "map[1]", at: 1500 ms}, {storage: outage, at: 2500 ms, lasts: 200 ms}]
restart: {strategy: fixed-delay, delay: 50 ms}
actions: [{savepoint: canonical, at: 2 s}]
cluster: {placement: spread, latency: 200 us, network: {segment-size: 4 KiB}}
run: {duration: 4 s, seed: 3, warmup: 300 ms}
expect: {"checkpoints.end_to_end_duration.p99": "< 60 s"}
"""
SWEEP = b"""# How often should this small job take checkpoints?
scenario: job.yaml
vary: {checkpoint.interval: [400 ms, 900 ms]}
answer:
  show: [end_to_end_p99_ms, throughput]
  least: end_to_end_p99_ms
  limits: {end_to_end_p99_ms: < 60 s}
  against: {checkpoint.interval: 900 ms}
"""
TRACED = b"""# Does this job read its traces?
version: 1
job:
  src:  {source: {rate: {trace: rates.csv, column: rate}, record: 400 B}}
  sink: {input: {src: hash}, service: 500 us}
checkpoint: {interval: 700 ms}
run: {duration: 4 s}
"""
RATES = b"t,rate\n" + b"".join(b"%d,%d\n" % (t, 100 + 37 * t % 200) for t in range(8))


@cache
def _content(path):
    content = (DATA / path).read_bytes()
    return gzip.decompress(content) if path.endswith(".gz") else content


def _write(folder, name, content):
    (folder / name).write_bytes(content)
    return name


def _any(content, rng):
    return rng.choice([damaged_bytes, damaged_lines])(content, rng)


def _yaml(content, rng):
    return rng.choice([damaged_bytes, damaged_lines, damaged_yaml, damaged_yaml, damaged_yaml])(content, rng)


def _json(content, rng):
    if rng.random() < 0.3:
        return _any(content, rng)
    return json.dumps(damaged_tree(json.loads(content), rng)).encode("utf-8", "surrogatepass")


def _run(folder, content, *options):
    return ["run", _write(folder, "job.yaml", content), "--jobs", "1", "--out", "kept", *options]


def scenario(folder, rng):
    return _run(folder, _yaml(SCENARIO, rng))


def settings(folder, rng):
    """Good scenario, arbitrary `--set KEY=VALUE`."""
    keys = re.findall(rb"[a-z-]+(?=:)", SCENARIO)
    arguments = _run(folder, SCENARIO)
    for _ in range(rng.choice([1, 1, 2])):
        depth = rng.randint(1, 4)
        key = rng.choice([".".join(rng.choice(keys).decode() for _ in range(depth)), *_PATHS, *_PATHS])
        value = rng.choice(HOSTILE)
        text = value if isinstance(value, str) else json.dumps(value)
        arguments += ["--set", f"{key}={text}".replace("\x00", "").encode("utf-8", "replace").decode()]
    return arguments


_PATHS = (
    "run.duration",
    "run.seed",
    "checkpoint.interval",
    "checkpoint.barriers",
    "job.map.service",
    "job.src.source.rate",
    "storage.bandwidth",
    "job.sink.parallelism",
    "faults",
    "job",
    "faults.0.at",
    "cluster.network.segment-size",
    "checkpoint.max-concurrent",
    "flink",
    "overheads.restart",
    "environment",
    "run.warmup",
    "run.replications",
    "job.map.state.size",
)


def sweep(folder, rng):
    _write(folder, "job.yaml", SCENARIO.replace(b"4 s", b"2 s"))
    file = _write(folder, "sweep.yaml", _yaml(SWEEP, rng))
    return ["sweep", file, *["--jobs", "1", "--out", "kept", "--max-failures", "2"]]


def recording(folder, rng):
    """What the lab records: JSON, also compressed, damaged before or after compression."""
    name = rng.choice(["recordings/p2-severe-aligned.json.gz", "recordings/chain3-none-asyncflush500-aligned.json.gz"])
    content = _json(_content(name), rng)
    if rng.random() < 0.3:
        content = _any(gzip.compress(content, 1), rng)
        return ["import", _write(folder, "recording.json.gz", content), "-o", "job.yaml"]
    verb = rng.choice([["import"], ["calibrate"]])
    return [*verb, _write(folder, "recording.json", content), "-o", "job.yaml"]


def saved(folder, rng):
    """What `import --save` keeps, as a folder or a zip: one answer of it damaged."""
    with zipfile.ZipFile(io.BytesIO(_content(f"rest/{rng.choice(['pressed', 'keeping-up'])}.zip"))) as file:
        members = {info.filename: file.read(info) for info in file.infolist() if not info.is_dir()}
    for name in rng.sample(sorted(members), rng.choice([1, 1, 3])):
        change = _json if name.endswith(".json") else _any
        if rng.random() < 0.1:
            del members[name]
        else:
            members[name] = change(members[name], rng)
    if rng.random() < 0.5:
        for name, content in members.items():
            path = folder / "saved" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return ["import", "saved", "-o", "job.yaml"]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for i, (name, content) in enumerate(members.items()):
            file.writestr(
                name if rng.random() < 0.97 else rng.choice(["../x.json", "/abs.json", "a/../../y.json"]) + str(i),
                content,
            )
    content = _any(out.getvalue(), rng) if rng.random() < 0.3 else out.getvalue()
    return ["import", _write(folder, "saved.zip", content), "-o", "job.yaml"]


def archive(folder, rng):
    return ["import", _write(folder, "archive.json", _json(_content("rest/archive.json.gz"), rng)), "-o", "job.yaml"]


def log(folder, rng):
    return ["import", _write(folder, "jobmanager.log", _any(_content("rest/jobmanager.log"), rng)), "-o", "job.yaml"]


def table(folder, rng):
    """A trace of rates."""
    _write(folder, "rates.csv", _any(RATES, rng))
    return _run(folder, TRACED)


KINDS = {
    "scenario": scenario,
    "--set": settings,
    "sweep": sweep,
    "recording": recording,
    "saved answers": saved,
    "archive": archive,
    "log": log,
    "CSV": table,
}


def make(kind, seed, folder):
    """Write the damaged input of a seed into a folder; the command that reads it."""
    return KINDS[kind](folder, Random(f"{kind}/{seed}"))
