"""Assumptions that decide are said, and those that move nothing are not."""

import json
from dataclasses import replace

from sim.model.schema.study import loads
from sim.studies.compare import compare, comparison_json
from sim.studies.comparison import TIMEOUT, DecidingAssumption
from sim.studies.deciding import deciding, trials

JOB = """\
# How long does a checkpoint of 40 GB take?
version: 1
job:
  source: {source: {rate: 20/s, record: 400 B}, parallelism: 2}
  count: {input: {source: hash}, service: 1 ms, state: {size: 40 GB, backend: rocksdb, update: 10 %, value: 1 kB}, parallelism: 2}
checkpoint: {interval: 30 s, incremental: true, barriers: aligned}
storage: {bandwidth: 1 GB/s, file-latency: 10 ms}
cluster: {placement: spread}
run: {duration: 70 s}
"""


def compared(*changes, text=JOB):
    return compare(loads(text, overrides=list(changes)))


def sentences_about(comparison):
    return tuple(map(str, deciding(comparison, trials(comparison))))


def test_a_network_card_that_was_not_given():
    """40 GB in 5.9 s leave two task managers faster than a card of 10 Gbit/s allows, which takes 16 s for 20 GB."""
    (sentence,) = sentences_about(compared())

    assert sentence == (
        "Assumed: no network card limits what task managers write (storage.nic beside dfs or object-store): 6.8 GB/s leave 2 of them."
        " With 10 Gbit/s each, checkpoint 1 (aligned) takes more than 16 s instead of 5.9 s."
    )


def test_numbers_of_an_assumption_are_data():
    """Those of its sentence stand in what a folder keeps, which gives the same sentence back."""
    comparison = compared()
    (found,) = assumed = deciding(comparison, trials(comparison))
    (kept,) = json.loads(json.dumps(comparison_json(replace(comparison, deciding=assumed))))["assumptions"]

    assert found == DecidingAssumption(**kept)
    assert (
        round(kept["before_ms"] / 1e3, 1),
        round(kept["after_ms"] / 1e3),
        round(kept["bytes_per_second"] / 1e9, 1),
        kept["count"],
    ) == (5.9, 16, 6.8, 2)


def test_what_moves_nothing_is_not_said():
    """State is small, or storage is slower than any card; without a bandwidth the verdict says that writing takes no time."""
    for change in ("job.count.state.size=4 MB", "storage.bandwidth=20 MB/s", "storage.bandwidth=unlimited"):
        assert sentences_about(compared(change)) == ()


def test_files_without_a_latency_are_said():
    """Four files are on the path of the median checkpoint, one after the other."""
    text = """\
version: 1
job:
  source: {source: {rate: 20/s, record: 400 B}}
  sink: {input: {source: hash}, service: 1 ms, flush: {bytes: 40 MB, files: 4}}
checkpoint: {interval: 2 s, barriers: aligned}
storage: {bandwidth: 400 MB/s}
run: {duration: 10 s, warmup: 1 s}
"""

    (sentence,) = sentences_about(compared(text=text))

    assert sentence == (
        "Assumed: files have no latency (storage.file-latency), and 4 wait for each other."
        " With 40 ms, checkpoint 3 (aligned) takes more than 271 ms instead of 111 ms."
    )


def test_a_card_that_is_given_is_no_assumption():
    """A shared kind of storage has one; without it the card is said if it decides, with a time that the card itself needs."""
    storage = "storage: {object-store: {bandwidth: 4 GB/s, latency: 1 ms, part: 64 MiB}%s}"
    line = "storage: {bandwidth: 1 GB/s, file-latency: 10 ms}"
    given, left_out = (compared(text=JOB.replace(line, storage % nic)) for nic in (", nic: 1.25 GB/s", ""))

    (found,) = deciding(left_out, trials(left_out))
    (with_card,) = [line.singles.first_upload.duration_ms for line in given.strategies]
    assert sentences_about(given) == ()
    assert found.key == "storage.nic"
    assert found.before_ms < found.after_ms <= with_card < 1.1 * found.after_ms


def test_a_beginning_that_decides():
    """A queue that is there when the run begins, and no word about the warm-up."""
    text = """\
version: 1
job:
  source: {source: {rate: [{at: 0 s, rate: 1200/s}, {at: 10 s, rate: 200/s}], record: 1 kB}}
  sink: {input: {source: hash}, service: 1 ms}
checkpoint: {interval: 2 s, barriers: aligned}
run: {duration: 40 s}
"""
    sentences = sentences_about(compared(text=text))
    silent = sentences_about(compared("run.warmup=1 s", text=text))

    assert [line for line in silent if "run.warmup" in line] == []
    assert all("the median of aligned is" in line for line in sentences)


def test_without_a_checkpoint_nothing_is_tried():
    """None is over when the run ends."""
    assert sentences_about(compared("run.duration=20 s", "job.count.state.size=400 GB")) == ()


def test_a_longer_timeout_is_tried_where_checkpoints_expire():
    """400 MB at 40 MB/s take 10 s; 6 times 1 s are not enough, and 6 times 4 s are."""
    text = """\
version: 1
job:
  source: {source: {rate: 20/s, record: 400 B}}
  sink: {input: {source: hash}, service: 1 ms, flush: {bytes: 400 MB}}
checkpoint: {interval: 2 s, timeout: [1 s, 4 s], tolerable-failed: 100, barriers: aligned}
storage: {bandwidth: 40 MB/s}
run: {duration: 40 s}
"""
    sentences = sentences_about(compared(text=text))

    assert sentences[:2] == (
        "Checkpoint 1 (timeout 1 s) expires after 1 s; with checkpoint.timeout 6 s it is not complete after 6 s either.",
        "Checkpoint 1 (timeout 4 s) expires after 4 s; with checkpoint.timeout 24 s it completes after 10 s.",
    )
    assert trials(compared("checkpoint.timeout=20 s", text=text)) == []


def test_a_checkpoint_that_expires_just_before_it_would_complete():
    """Both durations are the same text."""
    found = DecidingAssumption(TIMEOUT, "", "checkpoint.timeout 12 min", "checkpoint 2", 120_003.0, 120_099.0)

    assert str(found) == "Checkpoint 2 expires after 2 min; with checkpoint.timeout 12 min it completes 96 ms later."
