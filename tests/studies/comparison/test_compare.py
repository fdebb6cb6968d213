"""`compare` of the room: from a study, a file, or results."""

import math
import re

import pytest

from sim.model.schema.study import loads
from sim.results.formats import ms_text
from sim.runtime.simulate import simulate
from sim.studies.compare import compare, comparison_of
from sim.studies.plan import label


def test_a_study_compares_itself_with_no_checkpoints(study):
    """One row per strategy; results stay at hand by its label."""
    comparison = compare(study, jobs=1)

    assert list(comparison.table["strategy"]) == ["aligned", "unaligned"]
    assert (comparison.table["throughput_change"].abs() < 0.05).all()
    assert (comparison.table["completed"] >= 2).all()
    assert len(comparison.results["aligned"]) == 1


def test_results_compare_without_a_baseline(study):
    """As they are; nothing is run."""
    comparison = comparison_of([simulate(scenario) for scenario in study.scenarios])

    assert list(comparison.table["strategy"]) == ["aligned", "unaligned"]
    assert all(math.isnan(change) for change in comparison.table["throughput_change"])


def test_replications_are_pooled(study):
    """Twice the checkpoints, one row."""
    text = "version: 1\njob:\n  a: {source: {rate: 100/s, record: 100 B}}\n  b: {input: {a: hash}, service: {exponential: 1 ms}}\n"
    once, twice = (
        compare(loads(f"{text}checkpoint: {{interval: 1 s}}\nrun: {{duration: 3 s, replications: {n}}}\n"), jobs=1)
        for n in (1, 2)
    )

    assert [len(comparison.table) for comparison in (once, twice)] == [1, 1]
    assert 2 * once.table["completed"][0] == twice.table["completed"][0]
    assert len({result.scenario.run.seed for result in twice.results["aligned"]}) == 2


def test_labels(study):
    """Barriers need no name, other axes do."""
    text = "version: 1\njob:\n  a: {source: {rate: 100/s, record: 100 B}}\n  b: {input: {a: hash}, service: 1 ms}\nrun: {duration: 1 s}\n"
    both = loads(text + "checkpoint: {interval: [1 s, 2 s], barriers: [aligned, {aligned-timeout: 1 s}]}\n")

    labels = [label(scenario) for scenario in both.scenarios]

    assert labels[0] == "interval 1 s, aligned"
    assert labels[-1] == "interval 2 s, aligned-timeout 1 s"
    assert [label(scenario) for scenario in loads(text + "checkpoint: {interval: 1 s}\n").scenarios] == ["aligned"]


def test_a_job_without_periodic_checkpoints_is_an_answer():
    """Its baseline, which takes no savepoint either, is no replication of it."""
    text = "version: 1\njob:\n  a: {source: {rate: 100/s, record: 100 B}}\n  b: {input: {a: hash}}\ncheckpoint: {interval: off}\n"
    comparison = compare(loads(f"{text}actions: [{{savepoint: native, at: 1 s}}]\nrun: {{duration: 3 s}}\n"), jobs=1)
    (run,) = comparison.results["no checkpoints"]

    assert list(comparison.table["strategy"]) == ["no checkpoints"]
    assert run.checkpoints["checkpoint_type"].tolist() == ["SAVEPOINT"]
    assert list(compare(loads(f"{text}run: {{duration: 3 s}}\n"), jobs=1).table["strategy"]) == ["no checkpoints"]


INPUTS = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {source: {rate: 1/s, record: 1 kB}}, "
    "c: {input: {a: hash, b: broadcast}, service: 1 ms}}\n"
    "checkpoint: {interval: 1 s, barriers: unaligned}\nrun: {duration: 3 s}\n"
)
FORWARD = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: forward}, service: 1 ms}}\n"
    "checkpoint: {interval: 1 s, barriers: unaligned}\nrun: {duration: 3 s}\n"
)
LATE_FORWARD = FORWARD.replace(
    "forward}, service: 1 ms}}", "hash}, service: 1 ms}, c: {input: {b: forward}, service: 1 ms}}"
)
CONNECTORS = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: hash}, connector: [kafka-exactly-once, kafka-at-least-once]}}\n"
    "checkpoint: {interval: 1 s}\nrun: {duration: 4 s}\n"
)
RESCALE = (
    "job: {a: {source: {rate: unlimited, record: 1 kB}, parallelism: 2}, b: {input: {a: rescale}, service: 2 ms, parallelism: 4}, "
    "c: {input: {b: hash}, service: 200 us, parallelism: 4}}\n"
    "checkpoint: {interval: 5 s, barriers: unaligned}\nrun: {duration: 30 s}\n"
)
HANGS = (
    "job: {a: {source: {rate: 1k/s, record: 500 B}}, b: {input: {a: hash}, service: 200 us, snapshot: {sync: 30 s, probability: 30 %}}}\n"
    "checkpoint: {interval: 10 s, timeout: 20 s}\nrun: {duration: 3 min, seed: 1}\n"
)
CARDS = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms, state: {size: 40 MB}}}\ncluster: {slots: 1}\n"
    "checkpoint: {interval: 5 s}\nstorage: {object-store: {bandwidth: 90 MB/s}, nic: 20 MB/s}\nrun: {duration: 30 s}\n"
)
SURGE = (
    "job: {x: {source: {rate: [{at: 0 s, rate: 100/s}, {at: 10 s, rate: 900/s}], record: 1 kB}}, y: {source: {rate: 100/s, record: 1 kB}}, "
    "p: {input: {x: hash}, service: 5 ms}, c: {input: {p: hash, y: hash}, service: 100 us}}\n"
    "checkpoint: {interval: 5 s}\nrun: {duration: 40 s}\n"
)
UNIONS = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms, parallelism: 100, "
    "snapshot: {operator-state: 2 kB}, union-state: {clears: false}}}\ncheckpoint: {interval: 5 s}\nfaults: [{kill: 'b[0]', at: 12 s}, "
    "{kill: 'b[0]', at: 32 s}]\nrestart: {strategy: fixed-delay, delay: 1 s}\nrun: {duration: 60 s}\n"
)
BROADCAST = (
    "job: {a: {source: {rate: unlimited, record: 500 B}}, b: {source: {rate: 20/s, record: 500 B}}, "
    "c: {input: {a: hash, b: broadcast}, service: 2 ms}}\n"
    "checkpoint: {interval: 5 s, barriers: unaligned}\nrun: {duration: 40 s}\n"
)
SHARED = r"Async is [\d.]+ s, but \d+ ms on the critical path: .* \(checkpoint\.subtasks-per-channel-state-file\)\."
SLOW_FILES = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms, state: {size: 20 MB}}}\n"
    "checkpoint: {interval: 2 s}\nrun: {duration: 3 min}\nstorage: {bandwidth: 100 MB/s"
)
FIRST_UPLOAD = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms, state: {backend: rocksdb, size: 2 GB, update: 10 %, "
    "value: 100 B}}}\ncheckpoint: {interval: 2 s, incremental: true}\nrun: {duration: 14 s}\nstorage: {bandwidth: 100 MB/s}\n"
)
NATIVE = (
    "job:\n  a: {source: {rate: 10/s, record: 1 kB}, parallelism: 2}\n  b: {input: {a: hash}, service: 1 ms, parallelism: 2, "
    "state: {backend: rocksdb, size: 300 MB, update: 10 %, value: 100 B}}\ncheckpoint: {interval: 5 s, incremental: true}\n"
    "storage: {bandwidth: 30 MB/s}\nrescale: {at: 8 s, parallelism: {b: 3}, from: savepoint}\nrun: {duration: 40 s}\n"
)
RETAINED = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms, state: {size: 9 MB}}}\n"
    "checkpoint: {interval: 1 s, num-retained: [1, 3]}\nstorage: {object-store: {bandwidth: 100 MB/s}}\nrun: {duration: 8 s}\n"
)
HOT = (
    "job: {a: {source: {rate: 100/s, record: 1 kB}}, b: {input: {a: {ship: hash, weights: {hot: 60 %}}}, "
    "service: 8 ms, parallelism: 2}}\ncheckpoint: {interval: 1 s}\nrun: {duration: 12 s}\n"
)
ADAPTIVE = (
    "job: {a: {source: {rate: 300/s, record: 1 kB}, parallelism: 2}, b: {input: {a: hash}, service: 2 ms, parallelism: 2}}\n"
    "checkpoint: {interval: 5 s}\nfaults: [{task-manager: 0, at: 6 s}]\nrun: {duration: 60 s}\n"
    "restart: {scheduler: [default, adaptive], replacement: 40 s}\n"
)
SINK = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, out: {input: {a: hash}, service: 1 ms, "
    "connector: file-sink, commit: as-connector}}\ncheckpoint: {interval: 1 s}\nrun: {duration: 3 s}\n"
)
FAULTY = (
    "job: {a: {source: {rate: 100/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms, state: {size: 1 MB}}}\n"
    "checkpoint: {interval: 1 s}\nrun: {duration: 6 s}\nfaults: "
)
WINDOWS = (
    "job: {a: {source: {rate: 100/s, record: 1 kB, records: 250}}, b: {input: {a: hash}, "
    "window: {tumbling: 1 s, time: [processing, event]}}, "
    "c: {input: {b: hash}, commit: two-phase}}\ncheckpoint: {interval: 1 s}\nrun: {duration: 9 s}\n"
)
STOPS = (
    "job: {a: {source: {rate: 100/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms, state: {size: 40 MB}}}\n"
    "checkpoint: {interval: 1 min}\nstorage: {bandwidth: 20 MB/s}\nrun: {duration: 20 s}\n"
    "rescale: {at: 3 s, parallelism: {b: 2}, from: savepoint}\n"
)
BACKLOG = (
    "job: {a: {source: {rate: 100/s, record: 1 kB, backlog: {records: 500}}}, b: {input: {a: hash}, service: 1 ms}}\n"
    "checkpoint: {interval: 1 s, interval-during-backlog: off}\nrun: {duration: 12 s}\n"
)
MEMORY = (
    "flink: {pekko.framesize: 2 mb}\njob:\n  src: {source: {rate: 2k/s, record: 500 B}}\n"
    "  op: {input: {src: hash}, service: 10 us, state: {size: 1 MB, backend: hashmap, update: 100 %, value: 500 B, "
    "changelog: {storage: memory, materialize: 1 min}}}\ncheckpoint: {interval: 1 s}\nrun: {duration: 6 s}\n"
)
KILLED = (
    "job: {a: {source: {rate: 100/s, record: 1 kB}}, out: {input: {a: hash}, service: 1 ms, state: {size: 300 MB}}}\n"
    "checkpoint: {interval: 6 s}\nstorage: {bandwidth: 100 MB/s}\nactions: [{stop: no-drain, at: 10 s}]\n"
    "faults: [{kill: 'out[0]', at: 11 s}]\nrun: {duration: 20 s}\n"
)
EXPIRES = (
    "job: {a: {source: {rate: 100/s, record: 1 kB}}, out: {input: {a: hash}, service: 1 ms, state: {size: 300 MB}}}\n"
    "checkpoint: {interval: 2 s, timeout: 8 s}\nactions: [{savepoint: canonical, at: 5 s}]\nrun: {duration: 30 s}\n"
)
SMALL = (
    "job:\n  src: {source: {rate: 400/s, record: 300 B}}\n  op: {input: {src: hash}, service: 4 ms, parallelism: 2}\n"
    "checkpoint: {interval: 4 s}\nrescale: {at: 10 s, parallelism: {op: 1}}\nrun: {duration: 60 s}\n"
)
FULL = (
    "job:\n  src: {source: {rate: 400/s, record: 300 B}}\n  op: {input: {src: hash}, service: 6 ms, parallelism: 2}\n"
    "checkpoint: {interval: 4 s}\nfaults: [{kill: 'op[0]', at: 10 s}]\nrun: {duration: 120 s}\n"
)
BACKENDS = (
    "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: hash}, service: 2 ms, state: {size: 1 MB, "
    "backend: [hashmap, rocksdb]}}}\ncheckpoint: {interval: 1 s}\nrun: {duration: 3 s}\n"
)
ALIGNED = (
    r"No barrier overtakes data in front of 'c': its input 'b' \(broadcast\) cannot store in-flight data, "
    r"and Flink then keeps all inputs of the vertex aligned\."
)
SELDOM = (
    "job: {a: {source: {rate: 20/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms}}\n"
    "checkpoint: {interval: 5 s, barriers: at-least-once}\nrun: {duration: 12 s}\nfaults: [{kill: b, at: 8 s}]\n"
)
DRAINED = (
    "job:\n  a: {source: {rate: 100/s, record: 1 kB}}\n  b: {input: {a: hash}, window: {tumbling: 4 s, time: event}}\n"
    "checkpoint: {interval: 1 s}\nactions: [{stop: [drain, no-drain], at: 2 s}]\nrun: {duration: 4 s}\n"
)
UNION = (
    "job:\n  a: {source: {rate: unlimited, record: 1 kB, records: 4k}, service: 1 ms, service-factor: {1: 4}, parallelism: 2, "
    "union-state: true}\n  b: {input: {a: rebalance}}\ncheckpoint: {interval: 1 s}\nrun: {duration: 14 s}\n"
)
HOTTEST = r": it gets 40 % of the records of 'a', and the least \d+ %\."
GROUPS = (
    "job:\n  a: {source: {rate: 400/s, record: 30 kB}, parallelism: 4}\n  b: {input: {a: hash}, service: 12500 us, "
    "parallelism: 4, max-parallelism: 8}\ncheckpoint: {interval: 1 s}\nrescale: {at: 20 s, parallelism: {b: 6}}\n"
    "run: {duration: 40 s}\n"
)
BUSIEST = r"The busiest subtask is b\[\d\] \d+ %, after the rescale b\[\d\] \d+ %\."
LOST = "(?:time processing: )?'b' fires nothing at the end of the data: .*"
AWAY = (
    r"All tasks run again [\d.]+ s after the trigger of the savepoint that the job stops with, which takes [\d.]+ m?s\."
)
FRAME = r"(\d+ of \d+) completed .* more than pekko\.framesize .*"
STOP = r"Savepoint 3, which the job was to stop with, fails \(CHECKPOINT_COORDINATOR_SUSPEND\): the job does not stop then\."
TOO_SMALL = "After the planned restart sources emit 249/s of 400/s that are due, and their backlog grows."


@pytest.mark.parametrize(
    ("text", "sentence", "count"),
    [
        (INPUTS, ALIGNED, 1),
        (INPUTS.replace("barriers: unaligned", "barriers: aligned"), ALIGNED, 0),
        (CONNECTORS, ".*makes no difference here.*", 0),
        (RESCALE, r"Barriers of checkpoint \d+ wait behind .* of queued data in front of 'b'.*", 1),
        (HANGS, "Held up, not overloaded: .* before the first failure .*", 1),
        (CARDS, r"Writing .*: the network cards \(storage\.nic\) decide, not the barriers.*", 1),
        (CARDS.replace(", nic: 20 MB/s", ""), r".*network cards.*decide.*", 0),
        (SURGE, "The backlog of 'x', nearly all of that of the 2 sources, grows to .*", 1),
        (UNIONS, r"The full size goes from .*, and grows with each restart \(union-state\)\.", 1),
        (BROADCAST, SHARED, 1),
        (BROADCAST.replace("unaligned", "unaligned, subtasks-per-channel-state-file: 1"), SHARED, 0),
        (f"# What is p99?\nversion: 1\n{SELDOM}", "p99 needs 100 checkpoints, and some strategy has 2: set run.*", 1),
        (SELDOM, "p99 needs .*", 0),
        (
            SLOW_FILES.replace("interval: 2 s", "interval: 2 s, max-concurrent: 2")
            + ", slow: {share: 4 %, factor: 60}}\n",
            r".* up to [\d.]+ s apart instead of every 2 s \(a checkpoint waits for an older one, as max-concurrent is 2\).*",
            1,
        ),
        (
            NATIVE,
            r"All tasks run again .* in native format; in canonical format, .* 150 MB of a subtask take about 5 s \(checkpoint\.savepoint-rate\)\.",
            1,
        ),
        (NATIVE.replace("rocksdb", "hashmap").replace(", incremental: true", ""), ".* in native format.*", 0),
        (FIRST_UPLOAD, ".* apart instead of every 2 s.*", 0),
        (
            SELDOM + "restart: {strategy: failure-rate, rate: 3}\n",
            r"At most 1 failure comes within 60 s, of 3 that restart\.rate tolerates\.",
            1,
        ),
        (FORWARD, "No barrier overtakes data in this job: its edges are forward.*", 1),
        (LATE_FORWARD, r"No barrier overtakes data in front of 'c': its input 'b' \(forward\) cannot.*", 1),
        (LATE_FORWARD.replace("unaligned", "aligned"), "No barrier overtakes data.*", 0),
        (RETAINED, ".*makes no difference here.*", 0),
        (
            RETAINED.replace("object-store: {bandwidth: 100 MB/s}", "bandwidth: 100 MB/s"),
            ".*makes no difference here.*",
            1,
        ),
        (f"{HOT}rescale: {{at: 4 s, parallelism: {{b: 4}}}}\n", BUSIEST[:-2] + HOTTEST, 1),
        (
            SELDOM,
            r"At least once \(at-least-once\): in this run no record was between the barriers of a restored checkpoint; .*",
            1,
        ),
        (SELDOM.replace("at-least-once", "aligned"), "At least once .*", 0),
        (SELDOM.replace("faults:", "# faults:"), "At least once .*", 0),
        (DRAINED, r"Drain \(stop drain\) ends the windows of 'b' that are open: .*", 1),
        (DRAINED.replace("time: event", "time: processing"), "Drain .*", 0),
        (
            UNION,
            r"\d+ checkpoints are refused while only some subtasks of 'a' have finished, .* union list state .*",
            1,
        ),
        (UNION.replace(", union-state: true", ""), ".* union list state .*", 0),
        (GROUPS, BUSIEST[:-2] + r": it owns 2 of 8 key groups, and 4 of its 6 subtasks own 1 .*", 1),
        (
            GROUPS,
            r"Overloaded: .* before the first failure or stop \(20 s\), and their backlog grows; 'b\[\d\]' is busy 100 % until then\.",
            1,
        ),
        (GROUPS.replace("parallelism: {b: 6}", "parallelism: {b: 8}"), ".* after the rescale .*: it owns .*", 0),
        (HOT, BUSIEST, 0),
        (ADAPTIVE, f"scheduler adaptive: {BUSIEST}", 1),
        (ADAPTIVE, f"(scheduler default: )?{BUSIEST}", 0),
        (SINK.replace("file-sink", "file-sink-compaction"), ".*one interval later than here.*", 1),
        (SINK, ".*one interval later than here.*", 0),
        (
            FAULTY + "[{slow: b, factor: 3, at: 2500 ms, lasts: 1 s}]",
            r"During a slow task from 2\.5 s to 3\.5 s: checkpoint 4 \(aligned\)\.",
            1,
        ),
        (FAULTY + "[{slow: b, factor: 3, at: 2500 ms, lasts: 1 ms}]", "During.*", 0),
        (
            FAULTY + "[{storage: outage, at: 2500 ms, lasts: 1 s}]",
            r"During a storage outage from 2\.5 s to 3\.5 s: checkpoints? .*",
            1,
        ),
        (FAULTY + "[{kill: 'b[0]', at: 1 ms}]", "1 restart before a checkpoint had completed.*", 1),
        (FAULTY + "[{kill: 'b[0]', at: 3500 ms}]", ".* before a checkpoint had completed.*", 0),
        (WINDOWS, LOST, 1),
        (WINDOWS.replace("[processing, event]", "event"), LOST, 0),
        (STOPS, AWAY, 1),
        (STOPS.replace("20 MB/s", "1 GB/s"), AWAY, 0),
        (BACKLOG, "No checkpoint is triggered between .* s: sources report a backlog.*", 1),
        (BACKLOG.replace("off", "1 s"), "No checkpoint is triggered.*", 0),
        (MEMORY.replace("2 mb", "rubbish"), FRAME, 0),  # a value that the simulation does not use is not looked at
        (KILLED, STOP, 1),
        (EXPIRES, ".*Canonical savepoint 4 fails after 8 s, during which no checkpoint is triggered; .*", 1),
        (SMALL, re.escape(TOO_SMALL), 1),
        (SMALL.replace("op: 1", "op: 3"), "After the planned restart sources.*", 0),
        (
            BACKENDS,
            r"What RocksDB costs .* 'b' takes 2 ms with both backends, and 10 us are \+0\.5 %, 100 us \+5\.0 %\..*",
            1,
        ),
        (BACKENDS.replace("[hashmap, rocksdb]", "rocksdb"), "What RocksDB costs.*", 0),
        (FULL, "After the last restart sources emit .*, and their backlog grows.", 1),
        (FULL.replace("6 ms", "4 ms"), "After the last restart sources emit.*", 0),
    ],
)
def test_sentences_are_said_where_they_hold(text, sentence, count):
    """And not where a file differs in what they are about."""
    found = compare(loads(text if text.startswith("#") else f"version: 1\n{text}"), jobs=1, check=False)

    said = [line for line in (found.verdict, *found.notes, *found.outcomes) if re.fullmatch(sentence, line)]
    assert len(said) == count


def test_windows_in_processing_time_commit_less():
    both, event = (compare(loads(text), jobs=1) for text in (WINDOWS, WINDOWS.replace("[processing, event]", "event")))

    assert (both.commits_less, event.commits_less) == (True, False)


def test_output_that_is_replayed_waits_since_its_checkpoint():
    """Records of the checkpoint before the failure until the first commit after it; its transaction was opened at the restart."""
    text = (
        "version: 1\njob: {a: {source: {rate: 100/s, record: 1 kB}}, out: {input: {a: hash}, service: 1 ms, connector: kafka-exactly-once, "
        "commit: as-connector}}\ncheckpoint: {interval: 2 s}\nfaults: [{kill: 'out[0]', at: 7900 ms}]\nrun: {duration: 14 s}\n"
    )
    found = compare(loads(text), jobs=1, check=False)
    (run,) = next(iter(found.results.values()))
    (restored,) = run.recoveries["restored_checkpoint"]

    (failed_ms,) = run.recoveries["failed"]
    visible = run.commits[run.commits["commit_latency"] >= 0]
    triggered_ms = visible["commit_timestamp"] - visible["commit_latency"]
    first_ms = visible.loc[triggered_ms > failed_ms, "commit_timestamp"].min()
    wait_ms = first_ms - run.checkpoints.set_index("id")["trigger_timestamp"][restored]

    (said,) = [text for text in found.outcomes if text.startswith("What is replayed")]
    assert f" up to {ms_text(wait_ms)} after checkpoint {restored}, from which it is replayed" in said
    assert found.consequences["aligned"].visible_max_ms == pytest.approx(wait_ms)
    assert visible["visible_latency"].max() < wait_ms


@pytest.mark.parametrize(("failover", "again"), [("region", ["as"]), ("full", ["as", "bs"])])
def test_only_sinks_that_restart_write_again(failover, again):
    text = (
        "version: 1\njob:\n  a: {source: {rate: 100/s, record: 1 kB}}\n  as: {input: {a: hash}, service: 1 ms, connector: jdbc}\n"
        "  b: {source: {rate: 100/s, record: 1 kB}}\n  bs: {input: {b: hash}, service: 1 ms, connector: jdbc}\n"
        "checkpoint: {interval: 2 s}\nfaults: [{kill: 'as[0]', at: 5 s}]\nrun: {duration: 9 s}\n"
        f"restart: {{strategy: fixed-delay, delay: 1 s, attempts: 3, failover: {failover}}}\n"
    )
    said = " ".join(compare(loads(text), jobs=1, check=False).outcomes)

    assert [name for name in ("as", "bs") if f"'{name}' writes at once" in said] == again


@pytest.mark.parametrize(("disk", "is_free"), [("", True), (", disk: {bandwidth: 200 MB/s}", False)])
def test_local_copies_take_no_time_on_a_disk_without_a_bandwidth(disk, is_free):
    text = (
        "version: 1\njob:\n  a: {source: {rate: 100/s, record: 1 kB}}\n  b: {input: {a: hash}, service: 1 ms, state: {size: 10 MB}}\n"
        "checkpoint: {interval: 2 s, local-recovery: true}\nfaults: [{kill: 'b[0]', at: 5 s}]\nrun: {duration: 9 s}\n"
        f"storage: {{bandwidth: 50 MB/s{disk}}}\nrestart: {{strategy: fixed-delay, delay: 1 s, attempts: 3}}\n"
    )
    (said,) = [line for line in compare(loads(text), jobs=1, check=False).outcomes if "read no state" in line]

    assert ("take no time to read (storage.disk.bandwidth)" in said) == is_free


@pytest.mark.parametrize("rates", ["[unlimited, 200/s]", "[200/s, unlimited]"])
def test_a_source_without_a_rate_has_no_lag_to_compare(rates):
    """Its records are never due; the other strategy lags by more than a second."""
    text = (
        f"version: 1\njob:\n  hot: {{source: {{rate: {rates}, record: 400 B}}}}\n"
        "  cold: {source: {rate: 0.4/s, record: 400 B, waits: poll}, parallelism: 2}\n"
        "  join: {input: {hot: hash, cold: hash}, service: 300 us}\ncheckpoint: {interval: 9 s}\nrun: {duration: 60 s}\n"
    )
    comparison = compare(loads(text), jobs=1, check=False)
    lags_s = [runs[0].series.query("vertex == 'hot'")["lag"].max() for runs in comparison.results.values()]

    assert sorted(lag >= 1 for lag in lags_s) == [False, True]
    assert "are read up to" not in " ".join(comparison.remarks)
