"""`compare` of the room: from a study, a file, or results."""

import math
import re

import pytest

from sim.model.schema.study import loads
from sim.results.formats import ms_text
from sim.runtime.simulate import simulate
from sim.studies.compare import compare, comparison_of
from sim.studies.comparison import label


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


def test_inputs_that_another_input_keeps_aligned_are_named():
    """Unaligned barriers gain nothing there; where no barrier overtakes, there is nothing to say."""
    text = (
        "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {source: {rate: 1/s, record: 1 kB}}, "
        "c: {input: {a: hash, b: broadcast}, service: 1 ms}}\n"
        "checkpoint: {interval: 1 s, barriers: BARRIERS}\nrun: {duration: 3 s}\n"
    )
    said = {
        barriers: compare(loads(text.replace("BARRIERS", barriers)), jobs=1).notes
        for barriers in ("aligned", "unaligned")
    }

    assert said == {
        "aligned": [],
        "unaligned": [
            (
                "No barrier overtakes data in front of 'c': its input 'b' (broadcast) cannot store in-flight data, "
                "and Flink then keeps all inputs of the vertex aligned."
            )
        ],
    }


def test_the_busiest_subtask_is_named_before_and_after_a_rescale():
    text = (
        "job: {a: {source: {rate: 100/s, record: 1 kB}}, b: {input: {a: {ship: hash, weights: {hot: 60 %}}}, "
        "service: 8 ms, parallelism: 2}}\ncheckpoint: {interval: 1 s}\n"
        "rescale: {at: 4 s, parallelism: {b: 4}}\nrun: {duration: 12 s}\n"
    )
    (sentence,) = [text for text in compare(loads(text), jobs=1).outcomes if "busiest" in text]

    assert re.fullmatch(r"The busiest subtask is b\[\d\] \d+ %, after the rescale b\[\d\] \d+ %\.", sentence), sentence
    without = "\n".join(line for line in text.splitlines() if not line.startswith("rescale"))
    assert not any("busiest" in text for text in compare(loads(without), jobs=1).outcomes)


def test_the_busiest_subtask_is_named_before_and_after_the_adaptive_scheduler_rescales():
    """The default scheduler waits with as many slots."""
    text = (
        "job: {a: {source: {rate: 300/s, record: 1 kB}, parallelism: 2}, b: {input: {a: hash}, service: 2 ms, parallelism: 2}}\n"
        "checkpoint: {interval: 5 s}\nfaults: [{task-manager: 0, at: 6 s}]\nrun: {duration: 60 s}\n"
        "restart: {scheduler: [default, adaptive], replacement: 40 s}\n"
    )
    (sentence,) = [text for text in compare(loads(text), jobs=1).outcomes if "busiest" in text]

    assert re.match(
        r"scheduler adaptive: The busiest subtask is b\[\d\] \d+ %, after the rescale b\[0\] \d+ %", sentence
    )


@pytest.mark.parametrize(("connector", "count"), [("file-sink-compaction", 1), ("file-sink", 0)])
def test_a_sink_that_commits_later_than_simulated_is_named(connector, count):
    text = (
        "job: {a: {source: {rate: 10/s, record: 1 kB}}, out: {input: {a: hash}, service: 1 ms, "
        f"connector: {connector}, commit: as-connector}}}}\ncheckpoint: {{interval: 1 s}}\nrun: {{duration: 3 s}}\n"
    )
    said = [text for text in compare(loads(text), jobs=1).outcomes if "one interval later than here" in text]

    assert len(said) == count


def test_a_job_of_forward_edges_overtakes_nothing():
    text = (
        "job: {a: {source: {rate: 10/s, record: 1 kB}}, b: {input: {a: forward}, service: 1 ms}}\n"
        "checkpoint: {interval: 1 s, barriers: unaligned}\nrun: {duration: 3 s}\n"
    )
    (sentence,) = compare(loads(text), jobs=1).notes

    assert sentence.startswith("No barrier overtakes data in this job: its edges are forward")


FAULTY = (
    "job: {a: {source: {rate: 100/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms, state: {size: 1 MB}}}\n"
    "checkpoint: {interval: 1 s}\nrun: {duration: 6 s}\nfaults: "
)


def test_checkpoints_under_way_during_a_fault_are_named():
    """A queue behind a fault of the scenario is no bottleneck of the job."""
    slow = compare(loads(FAULTY + "[{slow: b, factor: 3, at: 2500 ms, lasts: 1 s}]"), jobs=1)
    quick = compare(loads(FAULTY + "[{slow: b, factor: 3, at: 2500 ms, lasts: 1 ms}]"), jobs=1)

    assert slow.notes == ["During a slow task from 2.5 s to 3.5 s: checkpoint 4 (aligned)."]
    assert quick.notes == []


def test_restarts_without_a_checkpoint_are_counted():
    """What they restore is nothing: a real job would have lost its state."""
    early, late = (compare(loads(FAULTY + f"[{{kill: 'b[0]', at: {at}}}]"), jobs=1) for at in ("1 ms", "3500 ms"))

    begun = "1 restart before a checkpoint had completed"
    assert [any(text.startswith(begun) for text in found.outcomes) for found in (early, late)] == [True, False]


def test_windows_in_processing_time_lose_their_last_records():
    text = (
        "job: {a: {source: {rate: 100/s, record: 1 kB, records: 250}}, b: {input: {a: hash}, "
        "window: {tumbling: 1 s, time: [processing, event]}}, "
        "c: {input: {b: hash}, commit: two-phase}}\ncheckpoint: {interval: 1 s}\nrun: {duration: 9 s}\n"
    )
    both = compare(loads(text), jobs=1)
    event = compare(loads(text.replace("[processing, event]", "event")), jobs=1)

    assert (both.commits_less, event.commits_less) == (True, False)
    fires = "'b' fires nothing at the end of the data"
    assert [sum(fires in text for text in found.outcomes) for found in (both, event)] == [1, 0]


def test_a_job_that_stops_with_a_savepoint_is_away_from_its_trigger_on():
    """The downtime of the restart begins after the savepoint; sources have stopped before, and emit before all tasks run."""
    text = (
        "job: {a: {source: {rate: 100/s, record: 1 kB}}, b: {input: {a: hash}, service: 1 ms, state: {size: 40 MB}}}\n"
        "checkpoint: {interval: 1 min}\nstorage: {bandwidth: 20 MB/s}\nrun: {duration: 20 s}\n"
        "rescale: {at: 3 s, parallelism: {b: 2}, from: savepoint}\n"
    )
    slow, quick = (
        [said for said in compare(loads(text.replace("20 MB/s", rate)), jobs=1).outcomes if "tasks" in said]
        for rate in ("20 MB/s", "1 GB/s")
    )

    assert re.fullmatch(
        r"All tasks run again [\d.]+ s after the trigger of the savepoint that the job stops with, which takes 2 s\.",
        slow[0],
    )
    assert quick == []


@pytest.mark.parametrize(("during", "count"), [("off", 1), ("1 s", 0)])
def test_checkpoints_that_wait_for_the_end_of_a_backlog_are_told_of(during, count):
    text = (
        "job: {a: {source: {rate: 100/s, record: 1 kB, backlog: {records: 500}}}, b: {input: {a: hash}, service: 1 ms}}\n"
        f"checkpoint: {{interval: 1 s, interval-during-backlog: {during}}}\nrun: {{duration: 12 s}}\n"
    )
    found = compare(loads(text), jobs=1).outcomes

    assert count == sum(
        bool(re.match(r"No checkpoint is triggered between .* s: sources report a backlog", line)) for line in found
    )


@pytest.mark.parametrize(("frame", "beyond"), [("2 mb", "3 of 6"), ("10 mb", ""), ("rubbish", "")])
def test_acknowledgements_that_flink_drops_are_counted(frame, beyond):
    """A log in memory grows by 1 MB a second.  A value that the simulation does not use is not looked at."""
    found = compare(
        loads(
            f"version: 1\nflink: {{pekko.framesize: {frame}}}\njob:\n  src: {{source: {{rate: 2k/s, record: 500 B}}}}\n"
            "  op: {input: {src: hash}, service: 10 us, state: {size: 1 MB, backend: hashmap, update: 100 %, value: 500 B, "
            "changelog: {storage: memory, materialize: 1 min}}}\ncheckpoint: {interval: 1 s}\nrun: {duration: 6 s}\n"
        ),
        jobs=1,
        check=False,
    )

    said = [text for text in found.outcomes if "pekko.framesize" in text]
    assert [text.partition(" completed")[0] for text in said] == ([beyond] if beyond else [])


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


def test_a_stop_whose_savepoint_fails_is_told():
    """The task that writes it is killed meanwhile, and the job runs on."""
    text = (
        "version: 1\njob: {a: {source: {rate: 100/s, record: 1 kB}}, out: {input: {a: hash}, service: 1 ms, state: {size: 300 MB}}}\n"
        "checkpoint: {interval: 6 s}\nstorage: {bandwidth: 100 MB/s}\nactions: [{stop: no-drain, at: 10 s}]\n"
        "faults: [{kill: 'out[0]', at: 11 s}]\nrun: {duration: 20 s}\n"
    )
    found = compare(loads(text), jobs=1, check=False)

    assert [text for text in found.outcomes if "was to stop" in text] == [
        "Savepoint 3, which the job was to stop with, fails (CHECKPOINT_COORDINATOR_SUSPEND): the job does not stop then."
    ]


def test_a_savepoint_that_expires_keeps_checkpoints_waiting():
    text = (
        "version: 1\njob: {a: {source: {rate: 100/s, record: 1 kB}}, out: {input: {a: hash}, service: 1 ms, state: {size: 300 MB}}}\n"
        "checkpoint: {interval: 2 s, timeout: 8 s}\nactions: [{savepoint: canonical, at: 5 s}]\nrun: {duration: 30 s}\n"
    )

    verdict = compare(loads(text), jobs=1, check=False).verdict

    assert "Canonical savepoint 4 fails after 8 s, and no checkpoint is triggered meanwhile; " in verdict


@pytest.mark.parametrize(("parallelism", "is_enough"), [(1, False), (3, True)])
def test_a_rescale_that_leaves_a_job_too_small_is_told(parallelism, is_enough):
    """Each subtask serves 250/s, and 400/s come: samples of the second half say 249/s."""
    text = (
        "version: 1\njob:\n  src: {source: {rate: 400/s, record: 300 B}}\n  op: {input: {src: hash}, service: 4 ms, parallelism: 2}\n"
        f"checkpoint: {{interval: 4 s}}\nrescale: {{at: 10 s, parallelism: {{op: {parallelism}}}}}\nrun: {{duration: 60 s}}\n"
    )
    found = compare(loads(text), jobs=1, check=False)

    said = [text for text in found.outcomes if "planned restart sources" in text]
    assert said == (
        []
        if is_enough
        else ["After the planned restart sources emit 249/s of 400/s that are due, and their backlog grows."]
    )
