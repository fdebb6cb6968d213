"""Checkpoints that trials do not show, because windows rarely fire or files are rarely slow: their durations are on paper."""

import math

import pytest

from sim.advice.answer import _expired_texts
from sim.advice.candidates import CandidateSearch
from sim.advice.configuration import diff_flink_keys
from sim.advice.judgement import Limits
from sim.advice.situation import dominant, situation_of
from sim.advice.texts import advised_scenario, restart_cautions
from sim.advice.trials import Bench
from tests.advice.made_up import MadeUp, searched

JOB = """\
# Windows that fire for 12 s each minute: 200 records a second for 1 ms each.
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}, parallelism: 1}
  win: {input: {source: hash}, service: 1 ms, parallelism: 1, window: {tumbling: 1 min, time: processing, fire: 1 ms}}
  sink: {input: {win: rebalance}, service: 1 ms, parallelism: 1}
checkpoint: {interval: 30 s}
run: {duration: 3 s}
"""
SLOW = """\
# One in fifty of the files is slow.
version: 1
job:
  source: {source: {rate: 200/s, record: 100 B}, parallelism: 2}
  sink: {input: {source: hash}, service: 1 ms, parallelism: 2, state: {size: 10 MB}}
checkpoint: {interval: 30 s}
storage: {bandwidth: 80 MB/s, slow: {share: 2 %, factor: 30}}
run: {duration: 3 s}
"""


class Calm(MadeUp):
    """All checkpoints take 100 ms, most of it for files; a setting whose name has `small` in it writes small ones."""

    def __init__(self, small=""):
        super().__init__({})
        self.small = small

    def row(self, axes, k, more_ms):
        upload_ms = 5.0 if self.small and self.small in axes["protocol"] else 90.0
        self.duration = {axes["protocol"]: 100.0}
        own = super().row(axes, k, more_ms)
        return own | {"path_upload_ms": upload_ms, "tail_upload_ms": upload_ms, "tail_queue_ms": 2.0}


def test_windows_that_no_trial_shows_break_the_limit(job):
    """By 12 s and a p99 that leaves out 600 ms of each minute; no interval helps, and more subtasks do: not of the whole job."""
    job.write_text(JOB)
    found = searched(job, Calm(), checkpoint_ms=4000)
    today = found.setting(("30 s", "aligned"))

    assert [change.name for change in found.candidate_of(found.chosen.name).changes] == ["5 x parallelism of win"]
    assert (today.checkpoint_ms, today.breaks) == (11_400.0, ("checkpoint_ms",))
    assert today.rare == "windows of 'win' fire for 12 s"
    assert dominant(situation_of(found, today.name)) == "windows of 'win' fire for 12 s; the slowest tenth takes 92 ms"
    assert any(left.endswith("fire for 12 s, under any barriers and interval") for left in found.skipped_sentences)
    advised = found.bench.with_setting(found.candidate_of(found.chosen.name))
    assert "parallelism.default" not in {item.key for item in diff_flink_keys(found.scenario, advised)}


@pytest.mark.parametrize("limit_ms", [11_300.0, 11_600.0])
def test_one_in_a_hundred_counts(job, limit_ms):
    job.write_text(JOB)
    found = searched(job, Calm(), checkpoint_ms=limit_ms)

    assert bool(found.setting(("30 s", "aligned")).breaks) == (limit_ms < 11_400 / 1.01)


def test_files_that_are_slow_by_chance_break_the_limit(job):
    """Two files of 90 ms, one of them thirty times as slow in four of a hundred checkpoints; in RocksDB they are small."""
    job.write_text(SLOW)
    found = searched(job, Calm("RocksDB"), checkpoint_ms=1000)
    today = found.setting(("30 s", "aligned"))

    assert "RocksDB incremental" in found.chosen.protocol
    assert (today.checkpoint_ms, today.rare) == (2700.0, "2 % of files are slow (storage.slow)")
    job.write_text(SLOW.replace("2 %", "0.4 %"))
    assert searched(job, Calm(), checkpoint_ms=1000).chosen.name == ("30 s", "aligned")


def test_rare_checkpoints_that_expire_are_told(job):
    """2.7 s are longer than today's timeout; each that expires restarts the job, and time until it has caught up is lost."""
    job.write_text(SLOW.replace("{interval: 30 s}", "{interval: 30 s, timeout: 2 s}"))
    search = CandidateSearch(Bench(job, {}), Limits(checkpoint_ms=1000.0), 8.64e4, Calm(), 3)
    search.replicate([search.current_candidate], 1)

    assert (search.current.checkpoint_ms, search.current.breaks) == (math.inf, ("checkpoint_ms",))
    assert _expired_texts(search, search.current) == [
        "2 % of files are slow (storage.slow): their checkpoints expire at 2 s",
        "each restarts the job",
    ]
    expire = 1 - 0.98**2
    lost = expire / (30 + 2 * expire) * search.current.recovery_ms / 1e3
    assert search.current.restarting == pytest.approx(lost)
    assert restart_cautions(search, search.current)


def test_restarts_that_are_used_up_are_the_reason_for_more_of_them(job):
    """The advised setting comes with restarts without end, and why stands beside it."""
    job.write_text(SLOW + "restart: {strategy: fixed-delay, attempts: 3, delay: 10 s}\n")
    search = CandidateSearch(Bench(job, {}), Limits(checkpoint_ms=1000.0), 8.64e4, Calm(), 3)
    search.replicate([search.current_candidate], 1)

    (why,) = [caution for caution in restart_cautions(search, search.current) if "attempts" in caution.short]
    assert why.short == "today attempts are never reset: the job ends at failure 2 to 4, in about 48 h to 96 h"
    assert advised_scenario(search, search.current).restart.attempts == 2**31 - 1
