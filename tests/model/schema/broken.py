"""Scenarios with mistakes in them: name -> (what is wrong, what must be told, each with its line and column)."""

# rows of a table

BASE = """\
# What then?
version: 1
job:
  a: {source: {rate: 1k/s, record: 100 B}, parallelism: 2}
  b: {input: {a: hash}, service: 10 us, parallelism: 2}
checkpoint: {interval: 5 s}
run: {duration: 60 s}
"""


class Whole(str):
    """A text that is not added to BASE."""

    __slots__ = ()


def but(*changes):
    """BASE with some texts replaced."""
    text = BASE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return Whole(text)


def ending(lines):
    return Whole(BASE + lines)


def scenario(wrong):
    """BASE with `old => new` replaced or with more lines; a whole text as it is."""
    if isinstance(wrong, Whole):
        return wrong
    return but(tuple(wrong.split(" => "))) if " => " in wrong else ending(wrong)


def aliases():
    """Nine nested tens: a thousand million values in ten lines."""
    levels = ["x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]" for i in range(1, 9)]
    return ending("\n".join(levels))


BROKEN = {
    # keys
    "misspelt key": (
        "parallelism: 2}\n  b => paralelism: 2}\n  b",
        "s:4:44: job.a.paralelism: unknown key 'paralelism' (did you mean 'parallelism'?)",
    ),
    "duplicate key": ("run: {duration: 1 s}\n", "s:8:1: run: key is given twice; the first is on line 7"),
    "duplicate vertex": (
        "checkpoint: =>   a: {}\ncheckpoint:",
        "s:6:3: job.a: key is given twice; the first is on line 4",
    ),
    "key without a value": ("service: 10 us => service: null", "s:5:25: job.b.service: has no value"),
    "half a character": (
        '"\\ud83d": "\\udc00"\n',
        "s:8:1: holds half a character (a UTF-16 surrogate)",
        "s:8:1: ?: unknown key '?'",
        "s:8:11: ?: holds half a character",
    ),
    "record of many bytes": (
        "record: 100 B => record: 2 GiB",
        "s:4:28: job.a.source.record: a record of Flink has less than 2 GiB",
    ),
    "list as a key": ("? [a]\n: 1\n", "s:8:3: keys are plain words"),
    "merge key": ("checkpoint: { => checkpoint: {<<: {}, ", "s:6:14: checkpoint.<<: merge keys are not read"),
    "service inside source": (
        "record: 100 B} => record: 100 B, service: 1 us}",
        "s:4:43: job.a.source.service: unknown key 'service': write service in the vertex",
    ),
    # known, not modelled yet
    "flush of nothing": (
        "service: 10 us => flush: {files: 2}",
        "s:5:25: job.b.flush: write bytes: (per subtask and snapshot)",
    ),
    "timeout that loses all": (
        "service: 10 us => commit: {transaction-timeout: 0 s}",
        "s:5:34: job.b.commit.transaction-timeout: a timeout of 0 loses every transaction",
    ),
    "a file larger than its room": (
        but(
            ("service: 10 us", "flush: {bytes: 9 MiB, files: 2}"),
            ("interval: 5 s", "interval: 5 s, staging: {space: 4 MiB}"),
        ),
        "s:6:39: checkpoint.staging.space: is less than one file of b",
    ),
    "files of a source": (
        "parallelism: 2}\n  b => parallelism: 2, flush: {bytes: 1 MiB}}\n  b",
        "s:4:60: job.a.flush: a source does not write files",
    ),
    "commit of a source": (
        "parallelism: 2}\n  b => parallelism: 2, commit: two-phase}\n  b",
        "s:4:60: job.a.commit: a source does not commit",
    ),
    "name of a committer": (
        '  b: {input: {a: hash} =>   "b: committer": {input: {a: hash}}\n  b: {commit: {committer: global}, input: {a: hash}',
        "s:5:3: job.b: committer: is the name of the global committer of b",
    ),
    "two requests in one": (
        "actions: [{savepoint: native, stop: drain, at: 5 s}]\n",
        "s:8:11: actions[0]: write exactly one of savepoint, stop and checkpoint",
    ),
    "two formats": (
        "actions: [{savepoint: native, format: canonical, at: 5 s}]\n",
        "s:8:31: actions[0].format: needs stop: a savepoint says its format itself",
    ),
    "request of a job that has stopped": (
        "actions: [{stop: drain, at: 5 s}, {savepoint: native, at: 6 s}]\n",
        "s:8:11: actions[0]: the job has stopped before the other actions are due",
    ),
    # faults
    "two faults in one": (
        "faults:\n- {kill: b, slow: a, factor: 2, at: 5 s}\n",
        "s:9:3: faults[0]: write exactly one of kill, task-manager, job-manager, storage, network, slow and commit: there are kill and slow",
    ),
    "fault without a time": ("faults: [{kill: b}]\n", "s:8:10: faults[0]: write exactly one of at, every and trace"),
    "fault at two times": (
        "faults: [{kill: b, at: 5 s, every: 5 s}]\n",
        "s:8:10: faults[0]: write exactly one of at, every and trace",
    ),
    "fault in a vertex that is none": (
        "faults: [{kill: c, at: 5 s}]\n",
        "s:8:11: faults[0].kill: there is no vertex 'c'",
    ),
    "fault in a subtask that is none": (
        'faults: [{kill: "b[2]", at: 5 s}]\n',
        "s:8:11: faults[0].kill: 'b' has 2 subtasks, counted from 0: there is no b[2]",
    ),
    "no name of a task": ('faults: [{kill: "b[x]", at: 5 s}]\n', "s:8:11: faults[0].kill: 'b[x]' names no task"),
    "task manager that is none": (
        "faults: [{task-manager: 4, at: 5 s}]\n",
        "s:8:11: faults[0].task-manager: there is no task manager 4: the placement makes 2, counted from 0",
    ),
    "outage without an end": (
        "faults: [{storage: outage, at: 5 s}]\n",
        "s:8:10: faults[0]: write lasts: the duration of the storage outage",
    ),
    "outage of no time": ("faults: [{storage: outage, at: 5 s, lasts: 0 s}]\n", "s:8:37: faults[0].lasts: is 0"),
    "how slow": (
        "faults: [{slow: b, at: 5 s}]\n",
        "s:8:10: faults[0]: write factor: how many times as long services take",
    ),
    "job manager without a time": (
        "faults: [{job-manager: dead, at: 5 s}]\n",
        "s:8:11: faults[0].job-manager: expected 'down-for 30 s', not 'dead'",
    ),
    "faults without end": (
        "faults: [{kill: b, every: 0 s}]\n",
        "s:8:20: faults[0].every: must be more than 0: all faults would happen at once",
    ),
    "a distribution that faults do not have": (
        "faults: [{kill: b, every: {uniform: 5 s}}]\n",
        "faults[0].every.uniform: is not supported between faults: write a duration, exponential or lognormal",
    ),
    "fault trace that is not there": (
        "faults: [{kill: b, trace: none.csv, column: t}]\n",
        "s:8:20: faults[0].trace: no such file: none.csv",
    ),
    "rescaled vertex that is none": (
        "rescale: {at: 5 s, parallelism: {c: 3}}\n",
        "s:8:34: rescale.parallelism.c: there is no vertex 'c'",
    ),
    "rescaled beyond its key groups": (
        "rescale: [{at: 5 s, parallelism: {b: 129}}]\n",
        "s:8:35: rescale[0].parallelism.b: 129 is more than the max-parallelism, 128",
    ),
    "rescaled source": (
        "rescale: {at: 5 s, parallelism: {a: 3}}\n",
        "s:8:34: rescale.parallelism.a: a source keeps its parallelism",
    ),
    "faults at every moment": ("faults: [{kill: b, every: 1 ns}]\n", "s:8:20: faults[0].every: is less than 1 ms"),
    "slower than slow": (
        "faults: [{slow: b, factor: 2147483647, at: 5 s}]\n",
        "s:8:20: faults[0].factor: is 2147483647, more than 1000000",
    ),
    "unit of nothing": (
        "faults: [{kill: b, trace: none.csv, column: t, unit: 0 s}]\n",
        "s:8:20: faults[0].trace: no such file: none.csv",
        "s:8:48: faults[0].unit: is 0: all faults would happen at once",
    ),
    "delays that shrink": ("restart: {multiplier: 0.5}\n", "s:8:11: restart.multiplier: must be at least 1"),
    "longest delay below the first": (
        "restart: {initial: 10 s, max: 1 s}\n",
        "s:8:26: restart.max: is less than initial, 10 s",
    ),
    "failures within nothing": (
        "restart: {strategy: failure-rate, within: 0 s}\n",
        "s:8:35: restart.within: must be more than 0",
    ),
    "a cold task that stands still": (
        "restart: {warm-up: 1 s, warm-up-factor: 0.5}\n",
        "s:8:25: restart.warm-up-factor: must lie between 1 and 1000",
    ),
    "a timeout below the default interval": (
        "restart: {heartbeat-timeout: 8 s}\n",
        "s:8:11: restart.heartbeat-timeout: is less than heartbeat-interval, 10 s by default: Flink does not start; write both",
    ),
    "heartbeat of nothing": (
        "restart: {heartbeat-timeout: 0 s}\n",
        "s:8:11: restart.heartbeat-timeout: must be more than 0",
    ),
    "rescaled before it began": (
        "rescale: {at: 0 s, parallelism: {b: 3}}\n",
        "s:8:11: rescale.at: is 0: there is no checkpoint to restore yet",
    ),
    "rescaled from nothing": (
        Whole(but(("5 s}", "off}")) + "rescale: {at: 5 s, parallelism: {b: 3}}\n"),
        "s:8:1: rescale.from: there is no checkpoint to restore",
    ),
    "rescaled when stopped": (
        "actions: [{stop: drain, at: 5 s}]\nrescale: [{at: 15 s, parallelism: {b: 3}}]\n",
        "s:9:12: rescale[0].at: the job has been stopped before, at 5 s",
    ),
    "more nodes than anybody has": (
        "storage: {dfs: {nodes: 2147483647}}\n",
        "s:8:17: storage.dfs.nodes: is 2147483647: at most 100000",
    ),
    "more files than anybody writes": (
        "service: 10 us => flush: {bytes: 1 MB, files: 2147483647}",
        "s:5:46: job.b.flush.files: is 2147483647: at most 10000",
    ),
    "more tables than any memory holds": (
        "service: => state: {size: 100 TiB, backend: rocksdb}, service:",
        "s:5:33: job.b.state.size: is 1638400 tables of RocksDB: at most 1000000 are simulated",
    ),
    "more jobs than anybody starts": (
        "instances: {count: 2147483647}\n",
        "s:8:13: instances.count: is 2147483647: at most 1000",
    ),
    "more channels than any memory holds": (
        but(("parallelism: 2}", "parallelism: 15000}"), ("us, parallelism: 2}", "us, parallelism: 15000}")),
        "s:3:1: job: has 225000000 channels between subtasks, which take about 450 GB: at most 4000000 are simulated",
    ),
    "more channels after a rescale": (
        Whole(
            but(
                ("parallelism: 2}", "parallelism: 15000}"),
                ("us, parallelism: 2}", "us, parallelism: 2, max-parallelism: 15000}"),
            )
            + "rescale: {at: 5 s, parallelism: {b: 15000}}\n"
        ),
        "s:3:1: job: has 225000000 channels",
    ),
    "more subtasks than anybody runs": (
        but(
            ("hash", "forward"),
            (
                "parallelism: 2}\ncheck",
                "parallelism: 2}\n"
                + "".join(f"  v{i}: {{input: {{b: rescale}}, parallelism: 30000}}\n" for i in range(4))
                + "check",
            ),
        ),
        "s:3:1: job: has 120004 subtasks: at most 100000 are simulated",
    ),
    "more checkpoints than anybody keeps": (
        but(("interval: 5 s", "interval: 10 ms"), ("60 s", "30 d")),
        "s:6:14: checkpoint.interval: makes up to 1036800000 rows of subtasks and checkpoints in this run: at most 100000000 are kept",
    ),
    "longer than anybody waits": (
        but(("interval: 5 s", "interval: off"), ("60 s", "30000 d")),
        "s:7:7: run.duration: makes 5184000000 rows",
    ),
    "more replications than anybody needs": (
        "{duration: 60 s => {replications: 1000000000, duration: 60 s",
        "s:7:7: run.replications: asks for 1000000000 runs (combinations: 1, replications: 1000000000), at most 200000 are allowed",
    ),
    # required
    "no job": (
        "job: => jobs:",
        ": job: required key is missing",
        "s:3:1: jobs: unknown key 'jobs' (did you mean 'job'?)",
    ),
    "empty job": (Whole("job: {}\ncheckpoint: {interval: 5 s}\nrun: {duration: 1 s}\n"), "s:1:1: job: is empty"),
    "no interval": ("{interval: 5 s} => {timeout: 5 s}", "s:6:1: checkpoint.interval: required key is missing"),
    # shapes
    "text for a mapping": ("{interval: 5 s} => every 5 s", "s:6:1: checkpoint: expected a mapping, not 'every 5 s'"),
    "mapping for a scalar": (
        "5 s} => {at: 5 s}}",
        "s:6:14: checkpoint.interval: a duration was expected: write '30 s'",
    ),
    "input as text": ("{a: hash} => a", "s:5:7: job.b.input: expected a mapping, not 'a'"),
    "empty axis": ("5 s} => []}", "s:6:14: checkpoint.interval: is empty"),
    "axis within an axis": (
        "5 s} => 5 s, barriers: [aligned, {aligned-timeout: [1 s, 2 s]}]}",
        "s:6:50: checkpoint.barriers[1].aligned-timeout: is a list within a value of the axis checkpoint.barriers: write that value once for each",
    ),
    "axis that repeats itself": (
        "5 s} => [5 s, 5000 ms]}",
        "s:6:14: checkpoint.interval: value 2 of this axis repeats value 1",
    ),
    "mistake inside an axis": (
        "5 s} => [5 s, 10]}",
        "s:6:30: checkpoint.interval[1]: a duration needs a unit, '10' has none",
    ),
    "axis where none may be": ("60 s} => [60 s, 90 s]}", "s:7:7: run.duration: a duration was expected"),
    "too many combinations": (
        but(
            ("5 s}", f"[{', '.join(f'{i} s' for i in range(1, 201))}]}}"),
            ("run: {", f"run: {{seed: {list(range(201))}, "),
        ),
        "lists 40200 combinations, at most 20000 are allowed: checkpoint.interval (200), run.seed (201)",
    ),
    "too many runs": (
        but(("5 s}", f"[{', '.join(f'{i} s' for i in range(1, 21))}]}}"), ("run: {", "run: {replications: 100000, ")),
        "run.replications: asks for 2000000 runs (combinations: 20, replications: 100000), at most 200000 are allowed",
    ),
    # quantities
    "duration without a unit": (
        "5 s} => 5}",
        "s:6:14: checkpoint.interval: a duration needs a unit, '5' has none: write '30 s' or '100 ms'",
    ),
    "rate in a size field": (
        "100 B => 100 MB/s",
        "s:4:28: job.a.source.record: '100 MB/s' is a rate; a size was expected",
    ),
    "zero parallelism": (
        "parallelism: 2}\n  b => parallelism: 0}\n  b",
        "s:4:44: job.a.parallelism: 0 is out of range: expected 1 to 32768",
    ),
    "unknown barriers": (
        "5 s} => 5 s, barriers: alligned}",
        "s:6:29: checkpoint.barriers: expected aligned, unaligned or at-least-once, not 'alligned' (did you mean 'aligned'?)",
    ),
    "ship as programs call it": (
        "{a: hash} => {a: keyBy}",
        "s:5:15: job.b.input.a: expected forward, rescale, rebalance, hash, broadcast or global, not 'keyBy' (did you mean 'hash'?)",
    ),
    "row of a trace by a list": (
        "faults: [{kill: task-manager, trace: t.csv, column: at, where: {node: [1]}}]\n",
        "s:8:65: faults[0].where.node: expected a text or a number of the trace, not a list",
    ),
    # sources
    "uneven records": (
        "1k/s => 1k/s, records: 7",
        "s:4:28: job.a.source.records: 7 records do not divide by 2 subtasks",
    ),
    "steps out of order": (
        "1k/s => [{at: 5 s, rate: 1/s}, {at: 5 s, rate: 2/s}]",
        "s:4:46: job.a.source.rate[1].at: is not after the step before it",
    ),
    "missing trace": (
        "1k/s => {trace: none.csv, column: x}",
        "s:4:23: job.a.source.rate.trace: no such file: none.csv",
    ),
    # the graph
    "an edge from a vertex that is none": (
        "{a: hash} => {x: {from: aa, ship: hash}}",
        "s:5:19: job.b.input.x.from: there is no vertex 'aa' (did you mean 'a'?)",
    ),
    "an edge named like another vertex": (
        but(
            ("{a: hash}", "{a: hash, c: {from: a, ship: hash}}"),
            ("checkpoint:", "  c: {input: {b: hash}}\ncheckpoint:"),
        ),
        "s:5:24: job.b.input.c: reads 'a', but has the name of another vertex: choose another name",
    ),
    "a union that is torn apart": (
        but(
            ("{a: hash}", "{a: {ship: hash, union: x}, y: {from: a, ship: hash}, z: {from: a, ship: hash, union: x}}"),
            ("service: 10 us", "combine: join, service: 10 us"),
        ),
        "job.b.input.z.union: the inputs of 'x' do not follow each other: write them one after the other",
    ),
    "a side output that is none": (
        "{a: hash} => {a: {ship: hash, output: late}}",
        "s:5:31: job.b.input.a.output: 'a' has no side output 'late': write outputs: {late: {fan-out: 0.1}} there",
    ),
    "an edge of a side output with amounts of its own": (
        but(
            ("{a: hash}", "{a: {ship: hash, output: late, fan-out: 2}}"),
            ("parallelism: 2}", "parallelism: 2, outputs: {late: {fan-out: 1}}}"),
        ),
        "s:5:45: job.b.input.a.fan-out: belongs to outputs of 'a': the edges of an output carry the same records",
    ),
    "unknown upstream": (
        "{a: hash} => {aa: hash}",
        "s:5:15: job.b.input.aa: there is no vertex 'aa' (did you mean 'a'?)",
    ),
    "cycle": (
        "checkpoint: =>   c: {input: {d: hash}}\n  d: {input: {c: hash}}\ncheckpoint:",
        "s:6:3: job.c: is part of a cycle: c -> d -> c",
    ),
    "reads itself": ("{a: hash} => {b: hash}", "s:5:3: job.b: is part of a cycle: b -> b"),
    "no source": (
        "source: {rate: 1k/s, record: 100 B} => input: {b: hash}",
        "s:3:1: job: no vertex has a source",
        "s:4:3: job.a: is part of a cycle: a -> b -> a",
    ),
    "source with inputs": (
        "{source: => {input: {b: hash}, source:",
        "s:4:3: job.a: write exactly one of source (the log that it reads) and input",
        "s:4:3: job.a: is part of a cycle: a -> b -> a",
    ),
    "unequal weights": (
        "{a: hash} => {a: {ship: hash, weights: [1, 2, 3]}}",
        "s:5:31: job.b.input.a.weights: 3 weights for 2 subtasks: write one each",
    ),
    "weights without hash": (
        "{a: hash} => {a: {ship: rebalance, weights: [1, 2]}}",
        "s:5:36: job.b.input.a.weights: only hash has weights, not rebalance",
    ),
    "records of different sizes": (
        "checkpoint: =>   x: {source: {rate: 1/s, record: 7 B}}\n  j: {input: {x: hash, a: hash}}\n  k: {input: {j: hash}}\ncheckpoint:",
        "s:7:3: job.j: inputs have different record sizes: set record:",
    ),
    "two distributions": (
        "10 us => {exponential: 1 us, uniform: 1 us}",
        "s:5:25: job.b.service: write exactly one of",
    ),
    "erlang wider than exponential": (
        "10 us => {erlang: {mean: 1 us, cv: 2}}",
        "s:5:56: job.b.service.erlang.cv: must lie between 0 (excluded) and 1",
    ),
    # checkpoints
    "concurrent unaligned checkpoints": (
        "5 s} => 5 s, barriers: unaligned, max-concurrent: 2}",
        "s:6:50: checkpoint.max-concurrent: is 2, but Flink runs unaligned checkpoints one by one: write 1",
    ),
    "timeout of nothing": (
        "5 s} => 5 s, timeout: 0 s}",
        "s:6:29: checkpoint.timeout: is 0 s: Flink wants 10 ms or more",
    ),
    "timeout too short": (
        "5 s} => 5 s, timeout: 9 ms}",
        "s:6:29: checkpoint.timeout: is 9 ms: Flink wants 10 ms or more",
    ),
    "interval just too short": (
        "5 s} => 999999 ns}",
        "s:6:14: checkpoint.interval: is 999.999 us: Flink wants 10 ms or more",
    ),
    "interval too short": ("5 s} => 1 ns}", "s:6:14: checkpoint.interval: is 1 ns: Flink wants 10 ms or more"),
    "aligned timeout of nothing": (
        "5 s} => 5 s, barriers: {aligned-timeout: 0 s}}",
        "s:6:29: checkpoint.barriers: an aligned-timeout of 0 is unaligned from the start",
    ),
    "interval of nothing": (
        "5 s} => 0 s}",
        "s:6:14: checkpoint.interval: an interval of 0 is not possible: write 'off'",
    ),
    "forced edge that is none": (
        "5 s} => 5 s, forced-aligned: [b -> a]}",
        "s:6:46: checkpoint.forced-aligned[0]: there is no edge b -> a in the job",
    ),
    "warm-up as long as the run": ("60 s} => 60 s, warmup: 1 min}", "s:7:23: run.warmup: leaves nothing of the run"),
    "slots of nobody": (
        "cluster: {slots: 4, placement: single}\n",
        "s:8:11: cluster.slots: has no effect with placement: single",
    ),
    "odd segment size": (
        "cluster: {network: {segment-size: 10 kB}}\n",
        "s:8:21: cluster.network.segment-size: 10000 B: Flink wants a power of two",
    ),
    "flushes without end": (
        "cluster: {network: {buffer-timeout: 999 us}}\n",
        "s:8:21: cluster.network.buffer-timeout: is 999 us: Flink counts milliseconds, write 1 ms or more, or 0 s",
    ),
    "debloating without end": (
        "cluster: {network: {debloat: {period: 1 ns}}}\n",
        "s:8:31: cluster.network.debloat.period: is 1 ns: Flink counts milliseconds, write 1 ms or more",
    ),
    "channels without a buffer": (
        "cluster: {profile: 1.20, network: {buffers-per-channel: 0}}\n",
        "s:8:36: cluster.network.buffers-per-channel: is 0: a channel that begins without a buffer is not modelled",
    ),
    "condition without a comparison": (
        "expect: {checkpoints.failed: 0}\n",
        "s:8:10: expect.checkpoints.failed: '0' is not a condition: write '< 60 s'",
    ),
    # Flink's keys
    "unknown key of Flink": (
        "flink: {execution.checkpointing.intervall: 5s}\n",
        "s:8:9: flink.execution.checkpointing.intervall: unknown configuration key of Flink (did you mean 'execution.checkpointing.interval'?)",
    ),
    "a job that Flink does not start": (
        "flink: {execution.checkpointing.approximate-local-recovery: true}\n",
        "s:8:9: flink.execution.checkpointing.approximate-local-recovery: is true: Flink 1.20 to 2.3 does not start a job with approximate local",
    ),
    "given twice": (
        "flink: {execution.checkpointing.interval: 5s}\n",
        "s:8:9: flink.execution.checkpointing.interval: duplicates checkpoint.interval on line 6: remove one of them",
    ),
    "old and new name": (
        "flink: {execution.buffer-timeout: 5s, execution.buffer-timeout.interval: 5s}\n",
        "s:8:39: flink.execution.buffer-timeout.interval: duplicates execution.buffer-timeout, the same option",
    ),
    "no duration of Flink": (
        "flink: {execution.checkpointing.timeout: soon}\n",
        "s:8:9: flink.execution.checkpointing.timeout: 'soon' is not a duration as Flink reads it: write 30s",
    ),
    # no YAML, or hostile
    "unclosed brace": ("60 s} => 60 s", "s:8:1: is not YAML: "),
    "tabs": ("  b: => \tb:", "s:5:1: is not YAML: a line begins with a tab: indent it by spaces"),
    "two documents": ("---\nversion: 1\n", "s:8:1: is not YAML: but found another document"),
    "control character": ("name: \x07\n", "s: is not YAML: "),
    "tag": (
        "60 s} => !!python/object:os.system 60 s}",
        "s:7:17: run.duration: tag 'tag:yaml.org,2002:python/object:os.system' is not understood",
    ),
    "unknown alias": ("60 s} => *later}", "s:7:17: is not YAML: found undefined alias"),
    "alias bomb": (aliases(), "has more than 100000 values, aliases written out"),
    "alias of itself": ("x: &x [*x]\n", "s:8:4: is nested more than 40 levels deep"),
    "deep nesting": (Whole("[" * 20_000), "s: is nested more than 40 levels deep"),
    "moderate nesting": (Whole("x: " + "[" * 50 + "]" * 50), "is nested more than 40 levels deep"),
    "list": (Whole("- a\n- b\n"), "s: is not a mapping; a scenario begins with keys such as job:"),
    "plain text": (Whole("hello\n"), "s: is not a mapping"),
    "empty": (Whole(""), "s: is empty; a scenario has at least job:"),
    "only a question": (Whole("# Why?\n"), "s: is empty"),
}
"""At least one mistake each; the file is called s."""

MISTAKES = [
    ("service: 10 us => state: {size: 4 GiB, value: 0 B}", "s:5:46: job.b.state.value: an entry has at least 1 B"),
    (
        "service: 10 us => state: {size: 4 GiB, backend: rocksdb, lsm: {memtable: 0 B}}",
        "s:5:70: job.b.state.lsm.memtable: must be more than 0",
    ),
    (
        "service: 10 us => state: {size: 4 GiB, backend: rocksdb, lsm: {flush: unlimited}}",
        "s:5:70: job.b.state.lsm.flush: cannot be unlimited: write a rate",
    ),
    (
        "service: 10 us => state: {size: 4 GiB, backend: rocksdb, lsm: {multiplier: 1}}",
        "s:5:70: job.b.state.lsm.multiplier: is 1",
    ),
    (
        "service: 10 us => state: {size: 4 GiB, backend: rocksdb, lsm: {write-buffer: 1 MB}}",
        "s:5:70: job.b.state.lsm.write-buffer: unknown key 'write-buffer': did you mean memtable?",
    ),
    (
        "service: 10 us => state: {size: 4 GiB, changelog: {threshold: 0 B}}",
        "s:5:58: job.b.state.changelog.threshold: must be more than 0",
    ),
    (
        "service: 10 us => state: {size: 4 GiB, incremental: true}",
        "s:5:46: job.b.state.incremental: unknown key 'incremental': write incremental in checkpoint:",
    ),
    ("5 s} => 5 s, savepoint-cpu: 100 %}", "s:6:29: checkpoint.savepoint-cpu: leaves the task nothing to work with"),
    ("storage: {dfs: {nodes: 3, replication: 4}}\n", "s:8:27: storage.dfs.replication: is 4, but there are 3 nodes"),
    ("storage: {dfs: {nodes: 3, block: 0 B}}\n", "s:8:27: storage.dfs.block: must be more than 0"),
    ("storage: {dfs: {nodes: 3, requests: 30/h}}\n", "s:8:27: storage.dfs.requests: must be at least 1/s"),
    (
        "storage: {dfs: {nodes: 3}, bandwidth: 5 MB/s}\n",
        "s:8:28: storage.bandwidth: is a key of flat storage, which has no dfs: write dfs: {b",
    ),
    (
        "storage: {dfs: {nodes: 3}, slow: {share: 1 %, factor: 2}}\n",
        "s:8:28: storage.slow: is a key of flat storage, which has no dfs: write",
    ),
    (
        "storage: {object-store: {}, file-latency: 1 s}\n",
        "s:8:29: storage.file-latency: is a key of flat storage, which has no object-store",
    ),
    ("storage: {dfs: {nodes: 3}, object-store: {}}\n", "s:8:28: storage.object-store: storage is a dfs already"),
    ("storage: {nic: 1 GB/s}\n", "s:8:11: storage.nic: has no effect: the streams of flat storage share nothing"),
    ("storage: {object-store: {part: 0 B}}\n", "s:8:26: storage.object-store.part: must be more than 0"),
    (
        "storage: {object-store: {}, file-merging: on}\n",
        "s:8:29: storage.file-merging: needs files that can be appended to",
    ),
    (
        "storage: {file-merging: {max-file-size: 0 B}}\n",
        "s:8:26: storage.file-merging.max-file-size: must be more than 0",
    ),
    ("storage: {retry: {timeout: 0 s}}\n", "s:8:19: storage.retry.timeout: of 0 fails every attempt"),
    (
        "storage: {slow: {share: 1 %, factor: 2, lasts: 3 s}}\n",
        "s:8:41: storage.slow.lasts: unknown key 'lasts': write lasts in slow: of dfs:",
    ),
    (
        "storage: {dfs: {nodes: 3, slow: {share: 1 %, factor: 2, lasts: 0 s}}}\n",
        "s:8:57: storage.dfs.slow.lasts: must be more than 0",
    ),
    (
        "storage: {dfs: {nodes: 3, slow: {share: 1 %, factor: 2, lasts: 1 ns}}}\n",
        "s:8:57: storage.dfs.slow.lasts: is 1 ns: write an episode of 1 ms or more",
    ),
    (
        "storage: {dfs: {nodes: 3, slow: {trace: none.csv, column: v}}}\n",
        "s:8:34: storage.dfs.slow.trace: no such file: none.csv",
    ),
    ("storage: {nodes: 3}\n", "s:8:11: storage.nodes: unknown key 'nodes': write dfs: {nodes: 50}"),
    (
        "service: 10 us => async-io: {latency: 1 s}, commit: two-phase",
        "s:5:25: job.b.async-io: a vertex cannot have both async-io and commit",
    ),
    (
        "service: 10 us => window: {tumbling: 7 s, time: processing}, commit: two-phase",
        "s:5:25: job.b.window: a vertex cannot have both window and commit",
    ),
    (
        "service: 10 us => window: {tumbling: 7 s, time: processing}, commit: {emits: on-commit}",
        "s:5:25: job.b.window: a vertex cannot have both window and commit",
    ),
    (
        "service: 10 us => window: {tumbling: 7 s, time: processing}, async-io: {latency: 1 s}",
        "s:5:25: job.b.window: a vertex cannot have both window and async-io",
    ),
    (
        "service: 10 us => window: {tumbling: 500 us, time: processing}",
        "s:5:34: job.b.window.tumbling: is 500 us: Flink's windows have whole milliseconds, 1 ms or more",
    ),
    (
        "service: 10 us => window: {tumbling: 7 s, time: processing, phase: 7 s}",
        "s:5:67: job.b.window.phase: is 7 s, but a window of 7 s ends within 7 s",
    ),
    (
        "service: 10 us => window: {tumbling: 7 s, mini-batch: 1 s, time: event}",
        "s:5:25: job.b.window: write exactly one of tumbling, sliding, session and mini-batch: there are tumbling and mini-batch",
    ),
    (
        "service: 10 us => window: {sliding: 7 s, time: event}",
        "s:5:25: job.b.window.every: is missing: sliding windows need a slide, e.g. every: 1 s",
    ),
    (
        "service: 10 us => window: {sliding: 7 s, every: 8 s, time: event}",
        "s:5:48: job.b.window.every: is 8 s: write 1 ms or more, and no more than the size, 7 s",
    ),
    (
        "service: 10 us => window: {sliding: 7 s, every: 2 s, phase: 3 s, time: event}",
        "s:5:60: job.b.window.phase: is 3 s, but a window of 2 s ends within 2 s",
    ),
    (
        "service: 10 us => window: {tumbling: 7 s, time: event, api: datastream, flush: 1 us}",
        "s:5:79: job.b.window.flush: the WindowOperator does not buffer records",
    ),
    (
        "service: 10 us => commit: {emits: on-commit, committer: global}",
        "s:5:34: job.b.commit.emits: a global committer is not part of the vertex: only a chained one",
    ),
    (
        "service: 10 us => service: {shifted-exponential: {mean: 2 ms, cv: 1.5}}",
        "s:5:69: job.b.service.shifted-exponential.cv: must lie between 0 (excluded) and 1",
    ),
    (
        "100 B} => 100 B}, window: {tumbling: 7 s, time: processing}",
        "s:4:44: job.a.window: a source has no keyed state: only a window with stage: local can be chained to it",
    ),
    ("100 B} => 100 B}, async-io: {latency: 1 s}", "s:4:44: job.a.async-io: a source has no asynchronous I/O"),
    (
        "100 B} => 100 B, watermark: {interval: 0 s}}",
        "s:4:55: job.a.source.watermark.interval: is 0 s: a source looks for watermarks now and then",
    ),
    (
        "100 B} => 100 B, watermark: {interval: 1 ns}}",
        "s:4:55: job.a.source.watermark.interval: is 1 ns: Flink counts milliseconds, write 1 ms or more",
    ),
    (
        "100 B} => 100 B, silent: 2}",
        "s:4:43: job.a.source.silent: 2 of 2 subtasks are silent: at least one must emit records; to emit none, write rate: 0/s",
    ),
    (
        "5 s} => 5 s, interval-during-backlog: 1 s}",
        "s:6:29: checkpoint.interval-during-backlog: is 1 s, less than the interval, 5 s: write more, or off",
    ),
    (
        "100 B} => 100 B, records: 1k, backlog: {records: 2k}}",
        "s:4:66: job.a.source.backlog.records: is 2000, more than the source emits: 1000",
    ),
    (
        "rate: 1k/s, record: 100 B} => rate: unlimited, record: 100 B, backlog: {lag: 5 s}}",
        "s:4:58: job.a.source.backlog.lag: records of an unlimited source are never overdue",
    ),
    (
        "service: 10 us => service-factor: {2: 2}",
        "s:5:42: job.b.service-factor.2: there is no subtask '2' of b: write a number from 0 to 1",
    ),
    (
        "service: 10 us => service-factor: {1: 0}",
        "s:5:42: job.b.service-factor.1: is 0: a factor is between 0.01 and 100",
    ),
    (
        "service: 10 us => service-factor: {1: 101}",
        "s:5:42: job.b.service-factor.1: is 101: a factor is between 0.01 and 100",
    ),
    ("service: 10 us => service-factor: {}", "s:5:25: job.b.service-factor: is empty: write at least one value"),
    ("instances: {count: 2, from: savepoint}\n", "s:8:23: instances.from: no action takes a savepoint"),
    (
        "instances: {count: 2}\nrescale: [{at: 5 s, parallelism: {b: 3}}]\n",
        "s:8:13: instances.count: rescaling starts job instances itself: write either instances or rescale",
    ),
    ("service: 10 us => commit: as-connector", "s:5:25: job.b.commit: needs a connector"),
    ("service: 10 us => connector: jdbc, commit: two-phase", "s:5:42: job.b.commit: 'jdbc' commits nothing"),
    ("service: 10 us => connector: jdbc, commit: {time: 1 s}", "s:5:42: job.b.commit: 'jdbc' commits nothing"),
    (
        "service: 10 us => connector: iceberg-v3",
        "(did you mean 'iceberg-v",
    ),
    ("faults: [{commit: a, at: 1 s}]\n", "s:8:11: faults[0].commit: 'a' commits nothing"),
    ("faults: [{commit: bb, at: 1 s}]\n", "s:8:11: faults[0].commit: there is no vertex 'bb' (did you mean 'b'"),
    ("checkpoint: {interval: 5 s}\n => ", "s: checkpoint: required key is missing, e.g. checkpoint: {interval: 30 s}"),
    ("duration: 60 s => ", "s:7:1: run.duration: required key is missing, e.g. duration: 30 s"),
    (", record: 100 B => ", "s:4:7: job.a.source.record: required key is missing, e.g. record: 32 KiB"),
    ("{a: hash} => {a: {record: 9 B}}", "s:5:15: job.b.input.a.ship: required key is missing, e.g. ship: forward"),
]
"""(change, message) of further mistakes in one section."""
