"""`ckptsim run`: table, sentence, folder; every mistake of a user is one clear line and a code."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pandas as pd
import pytest

from sim.model.files import LOCK, locked
from sim.runtime.result import Result
from tests.app.cli.conftest import without_axes
from tests.places import DATA


def test_table_sentence_and_folder(ckptsim, tiny, tmp_path):
    """Question, one row per strategy, the verdict on stdout; the folder's path on stderr."""
    done = ckptsim(f"run {tiny} --jobs 1")

    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert lines[0] == "Does it matter how barriers travel?"
    assert [line.split()[0] for line in lines[2:5]] == ["strategy", "aligned", "unaligned"]
    assert lines[-1].endswith(".")
    folder = tmp_path / without_axes(done).strip()
    assert folder.parent == tmp_path / "runs"
    assert folder.name.startswith("tiny-")
    assert {"aligned", "unaligned", "no-checkpoints"} == {path.name for path in folder.iterdir() if path.is_dir()}
    assert {"scenario.yaml", "comparison.parquet", "comparison.csv", "comparison.json"} == {
        path.name for path in folder.iterdir() if path.is_file()
    }
    assert tiny.read_text() == (folder / "scenario.yaml").read_text()
    assert list(pd.read_parquet(folder / "comparison.parquet")["strategy"]) == ["aligned", "unaligned"]
    assert pd.read_parquet(folder / "aligned" / "checkpoints.parquet")["status"].eq("COMPLETED").any()


def test_processes_give_the_same_bytes(ckptsim, tiny, tmp_path):
    """Side by side or one after the other."""
    for jobs in (1, 2):
        assert ckptsim(f"run {tiny} --jobs {jobs} --out {tmp_path}/out").exit_code == 0
        (tmp_path / "out").rename(tmp_path / str(jobs))

    names = sorted(
        path.relative_to(tmp_path / "1")
        for path in (tmp_path / "1").rglob("*")
        if path.is_file() and path.suffix != ".png"
    )
    assert len(names) >= 19
    assert [
        name for name in names if (tmp_path / "1" / name).read_bytes() != (tmp_path / "2" / name).read_bytes()
    ] == []


def test_values_can_be_set(ckptsim, tiny, tmp_path):
    """A set value replaces the file's, lists included."""
    done = ckptsim(
        f"run {tiny} --json --set checkpoint.barriers=aligned --set 'checkpoint.interval=[500 ms, 1 s]' --set run.seed=9"
    )

    output = json.loads(done.stdout)
    assert [row["strategy"] for row in output["strategies"]] == ["interval 500 ms", "interval 1 s"]
    assert json.loads((tmp_path / output["folder"] / "interval-1-s" / "manifest.json").read_text())["seed"] == 9


def test_several_scenarios_have_folders_of_their_own(ckptsim, tiny, tmp_path):
    """One JSON object per line."""
    other = tiny.with_name("other.yaml")
    other.write_text(tiny.read_text())

    done = ckptsim(f"run {tiny} {other} --json --jobs 1 --out {tmp_path}/out")

    assert [json.loads(line)["name"] for line in done.stdout.splitlines()] == ["tiny", "other"]
    assert len(list((tmp_path / "out").iterdir())) == 2


@pytest.mark.parametrize(("code", "condition"), [(0, "< 1 min"), (1, "< 1 us")])
def test_expectations(ckptsim, tiny, code, condition):
    """A failed one is told for each strategy."""
    tiny.write_text(tiny.read_text() + f'expect: {{checkpoints.end_to_end_duration.max: "{condition}"}}\n')

    done = ckptsim(f"run {tiny}")

    assert code == done.exit_code
    assert (2 if code else 0) == done.stdout.count("expectation failed")


def test_an_expectation_of_a_percentile_without_its_sample_fails_as_unknown(ckptsim, tiny):
    """Whatever the bound; what to do is said."""
    tiny.write_text(tiny.read_text() + 'expect: {checkpoints.end_to_end_duration.p99: "< 1 h"}\n')

    done = ckptsim(f"run {tiny}")
    (row, *_) = json.loads(ckptsim(f"run {tiny} --json").stdout)["expectations"]

    assert done.exit_code == 1
    assert "it is unknown: p99 needs 100 rows, there are" in " ".join(done.stdout.split())
    assert (row["value"], row["holds"]) == (None, False)
    assert 0 < row["n"] < 100


def test_an_unknown_metric_is_an_error_before_anything_runs(ckptsim, tiny, tmp_path):
    """Never a pass."""
    tiny.write_text(tiny.read_text() + 'expect: {checkpoints.duration.p99: "< 1 s"}\n')

    done = ckptsim(f"run {tiny}")

    assert done.exit_code == 3
    assert "unknown column 'duration'" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("message", "text"),
    [("job.sink.service", "1 parsec"), ("tiny.yaml:5", "1 parsec")],
)
def test_a_mistake_in_the_file_has_a_place(ckptsim, tiny, message, text):
    tiny.write_text(tiny.read_text().replace("1 ms", text))

    done = ckptsim(f"run {tiny}")

    assert done.exit_code == 3
    assert message in done.stderr
    assert len(without_axes(done).splitlines()) == 1


def test_a_missing_file(ckptsim, tmp_path):
    done = ckptsim(f"run {tmp_path}/none.yaml")

    assert done.exit_code == 3
    assert len(without_axes(done).splitlines()) == 1
    assert "none.yaml" in done.stderr


def test_no_yaml_at_all(ckptsim, tmp_path):
    (tmp_path / "bad.yaml").write_bytes(b"job: [\x00")

    done = ckptsim(f"run {tmp_path}/bad.yaml")

    assert done.exit_code == 3
    assert "bad.yaml" in done.stderr


def test_a_folder_that_cannot_be_made(ckptsim, tiny):
    """Noticed before anything runs."""
    done = ckptsim(f"run {tiny} --out {tiny}/below-a-file")

    assert done.exit_code == 2
    assert len(without_axes(done).splitlines()) == 1
    assert f"cannot be created: {tiny} is a file" in done.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk(ckptsim, tiny, monkeypatch, jobs):
    """One line, and no worker left waiting."""

    def full(self, folder):
        raise OSError(errno.ENOSPC, "No space left on device", str(folder / "checkpoints.parquet"))

    monkeypatch.setattr(Result, "write", full)

    done = ckptsim(f"run {tiny} --jobs {jobs}")

    assert done.exit_code == 4
    assert len(without_axes(done).splitlines()) == 1
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_that_fails_spares_the_others(ckptsim, tiny, monkeypatch, jobs):
    """It is named, the others have their rows, the code says so."""
    from sim.runtime import simulate as module

    real = module.simulate

    def broken(scenario, **options):
        if scenario.checkpoint.barriers.kind == "unaligned":
            raise RuntimeError("buffers went missing\nand more")
        return real(scenario, **options)

    monkeypatch.setattr(module, "simulate", broken)

    done = ckptsim(f"run {tiny} --jobs {jobs} --json")

    assert done.exit_code == 4
    ((strategy, error),) = json.loads(done.stdout)["errors"].items()
    assert (strategy, error.partition(" (")[0]) == ("unaligned", "RuntimeError: buffers went missing")
    assert [row["strategy"] for row in json.loads(done.stdout)["strategies"]] == ["aligned"]


@pytest.mark.parametrize(
    ("jobs", "number"), [(1, signal.SIGINT), (2, signal.SIGINT), (2, signal.SIGTERM), (2, signal.SIGHUP)]
)
def test_an_ending_signal_keeps_what_is_finished(tiny, tmp_path, jobs, number):
    """Exit 128 and the signal's number, no traceback, no half-written file, no process left behind; a second one changes nothing."""
    out = tmp_path / "out"
    endless = [
        "--set",
        "job.source.source.rate=[10/s, 900k/s]",
        "--set",
        "job.sink.service=1 us",
        "--set",
        "run.duration=10 min",
    ]
    command = [
        sys.executable,
        "-m",
        "sim",
        "run",
        tiny,
        "--out",
        out,
        "--jobs",
        str(jobs),
        *endless,
    ]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_until(lambda: running.poll() is not None or len(list(out.glob("unfinished/*/journal.jsonl"))) >= 2)
    os.kill(running.pid, number)
    time.sleep(0.1)  # of two that arrive together the smaller number comes first
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGINT)
    _, output = running.communicate(timeout=30)

    assert 128 + number == running.returncode
    assert "Traceback" not in output
    last = output.splitlines()[-1]  # above: nobody recorded such a job
    assert re.fullmatch(rf"interrupted: [23] of 6 runs are kept in {out}/unfinished", last)
    assert [path for path in out.rglob("*") if path.name.endswith(".tmp")] == []
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)


def test_two_commands_do_not_share_a_folder(ckptsim, tiny, tmp_path):
    """The second one says who is there, in one line, and touches nothing."""
    out = tmp_path / "out"
    out.mkdir()
    with locked(out, print):
        done = ckptsim(f"run {tiny} --out {out}")
        assert [path.name for path in out.iterdir()] == [LOCK]

    assert (done.exit_code, done.stdout) == (2, "")
    assert f"another command writes to {out} (process {os.getpid()} on " in done.stderr.splitlines()[-1]


def wait_until(happened):
    end = time.monotonic() + 60
    while not happened() and time.monotonic() < end:
        time.sleep(0.05)


def test_a_closed_pipe_is_no_error(tiny, tmp_path):
    """`ckptsim run ... | head -1` has read enough."""
    command = f"{sys.executable} -m sim run {tiny} --out {tmp_path / 'out'} --jobs 1 | true"

    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)

    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("options", ["--engine warp", "--jobs 0", "--nothing"])
def test_wrong_options_are_usage(ckptsim, tiny, options):
    assert ckptsim(f"run {tiny} {options}").exit_code == 2


def test_a_job_that_restarts_for_ever_is_told(ckptsim, tmp_path):
    """In the sentence and in the table; it is an answer, not a mistake."""
    world = DATA / "worlds" / "flush-never-ends.yaml"
    done = ckptsim(f"run {world} --jobs 1 --out {tmp_path}/out")

    assert done.exit_code == 0
    assert (
        "With aligned the job restarts forever: 29 times in a row from the beginning because of 'flush: no answer within"
        in done.stdout
    )
    assert "aligned   restarts forever        30" in done.stdout
    assert ", restarts forever " in done.stdout, "both tables use the same words"
    assert "job failed" not in done.stdout


def test_what_is_done_twice_as_asked_for_is_told_and_breaks_nothing(ckptsim, tmp_path):
    """At least once: a restart reads again what a full sink had read behind the barrier of one of its channels."""
    path = tmp_path / "twice.yaml"
    path.write_text(
        """# What does at-least-once do?
version: 1
job:
  src: {source: {rate: 480/s, record: 400 B}, parallelism: 4}
  sink: {input: {src: hash}, service: {exponential: 4 ms}, parallelism: 2}
checkpoint: {interval: 2 s, barriers: at-least-once}
faults: [{kill: "sink[0]", at: 25 s}]
restart: {strategy: fixed-delay, delay: 1 s}
run: {duration: 30 s}
"""
    )
    done = ckptsim(f"run {path} --jobs 1")

    assert done.exit_code == 0
    sentence = re.search(
        r"\nAt least once, as asked for: at-least-once: restart 1 from checkpoint \d+: (\d+) records? \((\d+) bytes\) (?:is|are) processed twice",
        done.stdout,
    )
    assert sentence
    assert int(sentence[2]) == 400 * int(sentence[1]) > 0
    assert "violation" not in done.stdout


def test_a_sweep_file_is_for_another_verb(ckptsim, tiny, tmp_path):
    """One line, which says which."""
    (tmp_path / "day.yaml").write_text(f"scenario: {tiny.name}\nvary: {{checkpoint.interval: [500 ms, 1 s]}}\n")
    done = ckptsim("run day.yaml")

    hint = "day.yaml: is a sweep file, which names a scenario and what varies: ckptsim sweep day.yaml\n"
    assert (3, hint) == (done.exit_code, without_axes(done))


def test_columns_are_chosen(ckptsim, tiny):
    """By their headings, in this order; a name that is none is told before anything runs."""
    done = ckptsim(f"run {tiny} --jobs 1 --columns 'max,p50, Completed'")
    head = next(line for line in done.stdout.splitlines() if line.startswith("strategy"))

    assert re.split(r" {2,}", head) == ["strategy", "max", "p50", "completed (n)"]
    wrong = ckptsim(f"run {tiny} --columns p51")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "--columns: no column 'p51': there are completed, p50, p90" in wrong.stderr


def test_first_uploads_stand_below_with_the_columns_that_they_have(ckptsim, tmp_path):
    (tmp_path / "job.yaml").write_text(UPLOADS)
    tables = ckptsim("run job.yaml --jobs 1 --no-assumptions").stdout.split("\n\n")
    strategies, rates, firsts = (table.splitlines() for table in tables[1:4])

    for table in (strategies, rates):
        assert [line.partition("  ")[0] for line in table] == ["strategy", "aligned", "unaligned"]
    assert [line.partition("  ")[0] for line in firsts] == [
        "strategy",
        "aligned: first upload",
        "unaligned: first upload",
    ]
    assert "throughput" in rates[0]
    assert "throughput" not in firsts[0]
    assert not any(" - " in f"{line} " for line in firsts[1:])


UPLOADS = """\
# What does the first upload take?
version: 1
job:
  src: {source: {rate: 200/s, record: 400 B}, parallelism: 2}
  map: {input: {src: hash}, service: 1 ms, state: {size: 400 MB, backend: rocksdb, update: 10 %}, parallelism: 2}
checkpoint: {interval: 2 s, incremental: true, barriers: [aligned, unaligned]}
storage: {bandwidth: 200 MB/s}
run: {duration: 12 s}
"""
