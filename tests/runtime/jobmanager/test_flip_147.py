"""The end of jobs (FLIP-147), to the digit; tasks that were restored as finished are finished in the snapshots that follow."""

from textwrap import dedent

import pytest

from sim.model.schema.study import load
from sim.runtime.simulate import simulate
from tests.places import ROOT
from tests.scenarios import read_scenario, run_scenario

# What the scenarios about the end of jobs answer, as tables: the claims of FLIP-147, to the digit.


SCENARIOS = ROOT / "scenarios"


def results(name):
    scenarios = load(SCENARIOS / f"flip-147-{name}.yaml").scenarios
    return [(", ".join(value for _, value in scenario.axes), simulate(scenario)) for scenario in scenarios]


def table(rows):
    """Columns as wide as their widest entry."""
    texts = [[str(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join(
        "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip() for row in texts
    )


def committed_twice(result):
    """Records that were committed more than once."""
    return sum(int(violation.fact.split()[0]) for violation in result.violations if "committed twice" in violation.fact)


def never_committed(result):
    return sum(int(violation.fact.split()[5]) for violation in result.violations if "never committed" in violation.fact)


def extra(result, end_ms):
    """Checkpoints that completed after the sources had ended."""
    done = result.checkpoints[result.checkpoints["status"] == "COMPLETED"]
    return int((done["latest_ack_timestamp"] > end_ms).sum())


@pytest.mark.parametrize(("version", "ends_s"), [("1.17.2", 7.7), ("1.18.1", 3)])
def test_before_1_18_the_final_checkpoint_is_the_next_periodic_one(version, ends_s):
    """Data ends at 3 s, and checkpoints are triggered at 2.7 s and 7.7 s (FLINK-28386)."""
    text = f"""
version: 1
job: {{a: {{source: {{rate: 100/s, record: 1 kB, records: 300}}}}, b: {{input: {{a: hash}}, service: 1 ms, commit: two-phase}}}}
checkpoint: {{interval: 5 s}}
cluster: {{version: {version}}}
run: {{duration: 20 s}}
"""
    result = simulate(read_scenario(text))

    assert (result.job_status, result.violations) == ("FINISHED", ())
    assert pytest.approx(ends_s, abs=0.2) == result.ended_ns / 1e9


LAST_RECORD_MS = 9599 / 300 * 1000
"""When the sources of the cascade emit their last one."""


@pytest.fixture(scope="module")
def cascaded():
    return results("cascaded-sinks")


def test_cascaded_sinks_end_with_one_checkpoint_or_with_one_each(cascaded):
    """Sources end at 32 s.  Flink: one checkpoint, 0.1 s.  Waiting one after the other: four, 18 s.  Before: none, and a lost tail."""
    rows = [["finish", "job", "over after", "extra checkpoints", "committed", "never committed"]]
    for finish, result in cascaded:
        over = f"{result.ended_ns / 1e6 - LAST_RECORD_MS:.0f} ms"
        committed = result.commits["records"].sum()
        rows.append(
            [finish, result.job_status, over, extra(result, LAST_RECORD_MS), committed, never_committed(result)]
        )

    assert table(rows) == dedent(
        """\
            finish            job       over after  extra checkpoints  committed  never committed
            flink             FINISHED  117 ms      1                  57600      0
            naive             FINISHED  18069 ms    4                  57600      0
            commit-at-finish  FINISHED  62 ms       0                  57600      0
            discard           FINISHED  62 ms       0                  54048      3552
            off               FINISHED  62 ms       0                  54048      3552
        """
    ).strip("\n")


def test_a_bounded_half_beside_an_unbounded_one():
    """Without checkpoints after its end a failure at 40 s replays everything since 8 s; what was committed at finish is committed twice."""
    rows = [["finish", "last checkpoint", "replayed", "read twice of history", "committed twice"]]
    for finish, result in results("bounded-beside-unbounded"):
        (recovery,) = result.recoveries.to_dict("records")
        history = int(result.tasks[result.tasks["vertex"] == "history"]["numRecordsIn"].sum()) - 20_000
        rows.append(
            [finish, recovery["restored_checkpoint"], recovery["replayed_records"], history, committed_twice(result)]
        )

    assert table(rows) == dedent(
        """\
            finish            last checkpoint  replayed  read twice of history  committed twice
            flink             10               1998      0                      0
            off               3                19950     3952                   0
            commit-at-finish  3                19950     3952                   3952
        """
    ).strip("\n")


def test_stopping_with_a_savepoint():
    """It is aligned under any barriers and commits; only finish() before it is held by it."""
    rows = [["stop", "checkpoints", "savepoint", "committed with it", "never committed"]]
    for name, result in results("drain-or-not"):
        savepoint = result.checkpoints[result.checkpoints["checkpoint_type"] == "SYNC_SAVEPOINT"].iloc[0]
        with_it = result.commits[result.commits["checkpoint"] == savepoint["id"]]["records"].sum()
        counts = " + ".join(
            f"{n} {status.lower()}" for status, n in result.checkpoints["status"].value_counts().items()
        )
        rows.append([name, counts, f"{savepoint['end_to_end_duration']:.0f} ms", with_it, never_committed(result)])

    assert table(rows) == dedent(
        """\
            stop                              checkpoints             savepoint  committed with it  never committed
            aligned, drain                    7 completed + 1 failed  676 ms     11916              0
            aligned, no-drain                 7 completed             676 ms     7916               0
            aligned, savepoint-then-finish    7 completed             676 ms     7916               4000
            unaligned, drain                  7 completed + 1 failed  676 ms     12082              0
            unaligned, no-drain               7 completed             676 ms     8082               0
            unaligned, savepoint-then-finish  7 completed             676 ms     8082               4000
        """
    ).strip("\n")


# A task that was restored as finished is finished in the snapshots that follow, and is restored as finished again.


WORLD = """# What becomes of a task that has finished when the job fails twice?
version: 1
job:
  short: {{source: {{rate-per-subtask: 100/s, record: 100 B, records-per-subtask: 5}}}}
  kept: {{input: {{short: forward}}, state: {{size: 20 kB{state}}}}}
  long: {{source: {{rate-per-subtask: 100/s, record: 100 B, records-per-subtask: 400}}, service: 1 ms}}
  sink: {{input: {{kept: hash, long: hash}}}}
checkpoint: {{interval: 100 ms, finish: {finish}}}
restart: {{strategy: fixed-delay, delay: 10 ms, attempts: 5, failover: full}}
faults: [{{kill: long, at: 1510 ms}}, {{kill: long, at: 1790 ms}}]
run: {{duration: 20 s}}
"""
STATES = ("", ", backend: rocksdb", ", ttl: 1 h", ", ttl: 1 h, changelog: {storage: memory}")


@pytest.mark.parametrize("finish", ["flink", "naive"])
@pytest.mark.parametrize("state", STATES)
def test_a_finished_task_has_no_state_behind_a_second_failure(state, finish):
    """The first checkpoint behind a restart waits for it: it has come to the end of its inputs only then."""
    result = run_scenario(WORLD.format(state=state, finish=finish))
    kept = result.subtasks[result.subtasks["vertex"] == "kept"].merge(
        result.checkpoints[["id", "trigger_timestamp"]], on="id"
    )
    begun, later = kept["trigger_timestamp"] < 100, kept["trigger_timestamp"] > 1790

    assert (result.job_status, len(result.recoveries), result.violations) == ("FINISHED", 2, ())
    assert kept[begun]["state_size"].sum() >= 20_000
    assert later.any()
    assert kept[later]["state_size"].sum() == 0
