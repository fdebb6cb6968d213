"""Recordings of jobs like users' jobs: what their own history says of the simulation."""

import pytest

from benchmarks.lab import read
from sim.app.verbs.advise import advise
from sim.app.verbs.run import origin_of, read_request, run
from sim.jobs.evidence import backtest as evidence_backtest
from sim.jobs.evidence.backtest import WIDTH, NoHistoryError, backtest, backtest_lines
from sim.jobs.reading import infer, read_any, read_source
from sim.model.scenario import Backtest, ComparedQuantity, ObservedFailures, Quantiles
from sim.model.schema.history_file import contradiction, section_of, verdict
from sim.model.schema.study import loads
from sim.model.schema.text import write
from tests.jobs.short_logs import log_of, written
from tests.places import RECORDINGS, REST, USERS


@pytest.mark.parametrize("name", ["J2-count-unaligned", "J4-pressed-unaligned-r1"])
def test_the_tail_of_the_history_is_simulated(name):
    """Single checkpoints take twice as long as the median, and others of the simulation do as well."""
    found = backtest(read_any(USERS / f"{name}.zip"))
    durations = found.of("end-to-end")

    assert durations.off == ()
    assert durations.predicted.p90 > 1.5 * durations.predicted.p50
    assert found.tail == 1.0
    assert "in-flight-persisted" not in {row.quantity for row in found.off}
    throughput = found.of("throughput")  # without CPU time, how long threads waited for cores is an estimate
    assert throughput.predicted.p50 == pytest.approx(throughput.observed.p50, rel=0.05)


def test_state_with_a_changelog_is_about_as_large_as_observed():
    """A materialisation holds what RocksDB has not merged, and the first half of this history fills the state: a fifth too large."""
    found = backtest(read_any(USERS / "R5-changelog-aligned.zip"))
    size, written = found.of("full-size"), found.of("checkpointed")

    assert size.observed.p50 == pytest.approx(size.predicted.p50, rel=0.25)
    assert written.observed.p50 == pytest.approx(written.predicted.p50, rel=0.05)


def test_a_job_of_paced_work_agrees_with_its_history():
    """Work that sleeps, storage in memory: nothing is off."""
    found = backtest(read(RECORDINGS / "p4-severe-aligned.json.gz"))

    assert found.off == ()
    lines = backtest_lines(found)
    assert "Nothing is off by more than repetitions of one job are." in lines


@pytest.mark.parametrize("name", ["J3-rocksdb-unaligned", "J4-pressed-timeout500-r1"])
def test_the_table_fits_a_terminal_and_a_comment(name):
    """A row per quantity, one sentence on what is off, no line longer than 80 columns with its comment sign."""
    found = backtest(read_any(USERS / f"{name}.zip"))
    lines = backtest_lines(found)

    assert max(map(len, lines)) <= WIDTH
    assert [row.quantity for row in found.compared] == [line.split()[0] for line in lines if "|" in line][2:]
    assert all(any(f"{row.quantity} " in line for line in lines[-3:]) for row in found.off)


def test_the_section_reads_back():
    """What later commands read is what was compared, to four digits."""
    section = section_of(backtest(read_any(USERS / "J4-pressed-unaligned-r1.zip")))
    job = {"source": {"source": {"rate": "1/s", "record": "1 B"}}}
    document = {"version": 1, "job": job, "checkpoint": {"interval": "1 s"}, "run": {"duration": "1 s"}}

    assert section_of(loads(write(document | {"backtest": section}, "?")).backtest) == section
    assert {"longest", "end-to-end", "async", "throughput"} <= section.keys()


def test_only_a_first_checkpoint_that_completed_is_named():
    job = read_any(REST / "pressed.zip")
    first = job.checkpoints.list[0].model_copy(update={"id": 1})
    for points, message in ((first,), "known in detail, but for the first"), ((), "known in detail"):
        history = job.checkpoints.model_copy(update={"list": points})
        with pytest.raises(NoHistoryError, match=rf"^no completed checkpoint is {message}$"):
            backtest(job.model_copy(update={"checkpoints": history}))


@pytest.fixture(scope="module")
def expiring(tmp_path_factory):
    """The import of a log whose checkpoints all expire after 5 min, with its backtest."""
    text = """
        00:00:00 Starting StandaloneSession (Version: 1.17.2, Scala: 2.12)
        00:16:40 CREATED -> RUNNING
        00:17:20 triggers 1
        00:22:20 expires 1
        FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold.
        00:22:20 RUNNING -> RESTARTING
        00:33:20 RESTARTING -> RUNNING
        00:34:15 triggers 2
        00:39:15 expires 2
        FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold.
        00:39:15 RUNNING -> RESTARTING
        """
    source = read_source([log_of(tmp_path_factory.mktemp("log"), written(text))])
    return evidence_backtest.with_backtest(source, infer(source))


def test_failures_that_the_simulation_does_not_show_are_said_first(expiring):
    draft, lines = expiring
    found = loads(draft.text).backtest
    said = "2 of 2 checkpoints of its history failed (expired), and the job failed 2 times; in the simulation 0 of"

    assert said in " ".join(lines)
    assert "agree" not in " ".join(lines)
    assert "Nothing is off" not in " ".join(lines)
    assert verdict(found).startswith(f"the simulation does not reproduce the failures of this job: {said}")
    assert (found.failures.job_failures, found.failures.mtbf_ms) == (2, 1355e9 / 2 / 1e6)


def test_a_log_that_begins_later_than_its_job(tmp_path):
    """It ran from the first line about it; one of two checkpoints failed, and with it the job."""
    text = """
        00:00:00 triggers 1
        00:00:00 completes 1
        00:05:00 triggers 2
        00:15:00 expires 2
        FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold.
        00:15:00 RUNNING -> RESTARTING
        00:15:01 RESTARTING -> RUNNING
        """
    source = read_source([log_of(tmp_path, written(text))])
    draft, lines = evidence_backtest.with_backtest(source, infer(source))
    failures = loads(draft.text).backtest.failures

    assert failures.mtbf_ms == 901_000
    assert "1 of 2 checkpoints of its history failed (expired), and the job failed once" in " ".join(lines)
    assert "Nothing is off" not in " ".join(lines)


@pytest.mark.parametrize("latest", [2, 4])
def test_a_job_that_completes_none_any_more_is_contradicted_by_simulated_ones(latest):
    """Many completed before: what counts is that the latest did not, three of them or more."""
    failures = ObservedFailures(90, 4, "expired", predicted_completed=30, latest_failed=latest)
    found = contradiction(Backtest((), failures=failures))

    assert found.startswith("the simulation does not") == (latest == 4)
    assert (" (expired), the latest 4 among them; in the simulation 0 of 30 failed" in found) == (latest == 4)


def test_nothing_is_advised_where_the_history_contradicts(expiring, tmp_path):
    draft, _ = expiring
    (tmp_path / "job.yaml").write_text(draft.text)
    advised = advise(tmp_path / "job.yaml", folder=tmp_path / "out")

    assert advised.setting is None
    assert advised.verdict.startswith("No advice: the simulation does not reproduce the failures of this job")
    assert "execution.checkpointing.timeout" in advised.parts[1]
    assert "tolerates 0 failed checkpoints" in advised.parts[1]
    assert advised.table.empty


def test_a_run_says_first_what_the_history_contradicts(expiring, tmp_path):
    draft, _ = expiring
    document = draft.document | {"run": {"duration": "2 min"}}
    (tmp_path / "job.yaml").write_text(write(document, draft.question, draft.comments))
    found = run(read_request(origin_of(tmp_path / "job.yaml")), jobs=1, try_assumptions=False)

    assert found.comparison.verdict.startswith("The simulation does not reproduce the failures of this job")
    assert any(line.startswith("warning: job: the simulation does not reproduce") for line in found.findings)


@pytest.mark.parametrize(("simulated", "is_contradicted"), [(0, True), (5, False)])
def test_a_simulation_in_which_none_completes_contradicts_a_history_in_which_some_do(simulated, is_contradicted):
    row = ComparedQuantity("end-to-end", Quantiles(1.0, 1.0, 1.0, 7), Quantiles(1.0, 1.0, 1.0, simulated))
    found = Backtest((row,), (1.0,), 1.0, 1, 10**9)

    assert is_contradicted == contradiction(found).startswith(
        "the simulation does not reproduce this job: 7 checkpoints of its history completed, and none does"
    )
