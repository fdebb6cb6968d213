"""`ckptsim advise`: a job and its limits in, a setting out."""

import json
import re
from pathlib import Path
from textwrap import wrap

import pytest
from typer.testing import CliRunner

from sim.app.cli import app

JOB = """\
# Does it matter how barriers travel?
version: 1
job:
  source: {source: {rate: 100/s, record: 400 B}}
  sink: {input: {source: hash}, service: 1 ms}
checkpoint: {interval: 1 s, barriers: aligned}
storage:
  # UNKNOWN: How fast is it? Assumed: nothing.
  bandwidth: 1 MB/s
run: {duration: 3 s}
"""


@pytest.fixture(scope="module")
def advise(tmp_path_factory, short_trials):
    """`advise(options)` -> the finished command for a tiny job.  All calls share a folder and its rows."""
    folder = tmp_path_factory.mktemp("advised")
    (folder / "tiny.yaml").write_text(JOB)
    command = f"advise {folder}/tiny.yaml --jobs 1 --replications 4 --out {folder}/out"
    return lambda options, why=True: CliRunner().invoke(app, f"{command} {'--why ' * why}{options}")


def test_a_setting_and_what_to_paste(advise):
    """Everything within limits: the job stays as it is."""
    done = advise("--p99 '10 s' --recovery '1 min'")

    assert done.exit_code == 0, done.stderr
    stay = r"Keep the current setting, aligned, every 1 s\. It meets the limits \(recovery at most 60 s, checkpoints at most 10 s\)"
    assert re.search(stay, done.stdout)
    assert "execution.checkpointing.unaligned.enabled: false" in done.stdout
    assert "UNKNOWN: how often does the job fail?" in done.stdout
    assert "Not run: intervals under" not in done.stdout  # one second is the shortest there is
    assert "ask     UNKNOWN, assumed: storage bandwidth 1 MB/s, a failure every 24 h" in done.stdout.splitlines()
    assert "The answer rests on storage.bandwidth = 1 MB/s." in " ".join(done.stdout.split())


def test_the_answer_fits_a_terminal(advise):
    """24 lines of 80 columns: a line for each limit, with its mark, the predicted value with its range, and the limit."""
    limits = "--p99 '10 s' --recovery '1 min' --loss '5 %'"
    whole, screen = (advise(limits, why=why).stdout.splitlines() for why in (True, False))
    wrapped = [part for line in screen for part in (wrap(line, 80) or [""])]

    assert len(wrapped) <= 24
    assert screen[:-1] == whole[: len(screen) - 1]
    assert screen[-1].endswith("--why prints reasons and all settings tried")
    number = r"[\d.]+ (?:ms|s|min|%)"
    values = rf"{number}(?: \([\d.]+(?: \w+)? to {number}\))?, limit {number}"
    marks = [line for line in screen if re.fullmatch(f"✓ keeps .* {values}", line)]
    assert [line.rpartition("limit ")[2] for line in marks] == ["60 s", "10 s", "5 %"]


def test_a_second_call_runs_nothing(advise):
    """All rows are there, and say the same; for machines as well."""
    first = advise("--p99 '10 s' --recovery '1 min'")
    before = sorted(Path(first.stdout.rpartition("\n\n")[2].partition(":")[0], "cells").iterdir())
    data = json.loads(advise("--p99 '10 s' --recovery '1 min' --json").stdout)

    assert first.stdout == advise("--p99 '10 s' --recovery '1 min'").stdout
    assert before == sorted(before[0].parent.iterdir())
    assert (data["advised"]["interval"], data["advised"]["protocol"]) == ("1 s", "aligned")
    assert {"setting", "protocol"} == set(data["confidence"])
    assert data["marked_unknown"] == {"storage bandwidth": ["1 MB/s", "How fast is it?", "nothing."]}
    assert data["today"] == data["advised"]


def test_the_sweep_runs_again(advise):
    """Every trial is found; beside the long run of the choice stands one without checkpoints, as in every sweep."""
    out = advise("--p99 '10 s' --recovery '1 min'").stdout.rpartition("\n\n")[2].partition(":")[0]
    before = set(Path(out, "cells").iterdir())
    done = CliRunner().invoke(app, f"sweep {out}/sweep.yaml --out {out} --jobs 1")

    assert done.exit_code == 0, done.stderr
    counts = re.search(r"(\d+) of (\d+) cells have a row", done.stdout)
    assert counts[1] == counts[2]
    assert before < set(Path(out, "cells").iterdir())
    assert len(set(Path(out, "cells").iterdir()) - before) == 1


SEVEN_OF_14 = """\
backtest:
  runs: 3
  simulated: 70 s
  longest: [2.2 s, 2.18 s, 2.1 s, 1.9 s, 1.5 s, 1.2 s, 1.1 s, 140 ms, 130 ms, 120 ms, 110 ms, 110 ms, 100 ms, 100 ms]
  tail: 15.7
  end-to-end:
    observed: {p50: 620 ms, p90: 2.18 s, max: 2.2 s, count: 14}
    predicted: {p50: 110 ms, p90: 133 ms, max: 140 ms, count: 42}
    off: [p90]
"""


def test_a_history_that_breaks_the_limit_is_not_advised(advise, tmp_path):
    """Simulated, checkpoints take milliseconds; seven recorded ones took more than a second."""
    (tmp_path / "window.yaml").write_text(JOB + SEVEN_OF_14)
    command = f"advise {tmp_path}/window.yaml --jobs 1 --replications 4 --out {tmp_path}/o --why"
    done = CliRunner().invoke(app, f"{command} --p99 '1 s'")

    assert "Keep the current setting" not in done.stdout
    assert "7 of 14 recorded checkpoints took longer than 1 s, the longest 2.2 s" in done.stdout
    assert "warning: window: the simulation deviates from the history of 14 checkpoints" in done.stderr
    calm = CliRunner().invoke(app, f"{command} --p99 '1 min'")

    assert "Keep the current setting" in calm.stdout
    assert "Confidence: at most 6 %" in calm.stdout


def test_no_setting_will_do(advise):
    """Which one is nearest, what it breaks, and what would have to be otherwise."""
    done = advise("--p99 '1 us' --mtbf '1 h' --replications 1")

    assert done.exit_code == 1
    assert "No setting tried meets the limits (checkpoints at most 0 ms)" in done.stdout
    screen = " ".join(done.stdout.split())
    assert (
        len(
            re.findall(
                r"closest .*?, every \d s ✗ over longest of \d+ checkpoints [\d.]+ ms \([^)]*\), limit 0 ms", screen
            )
        )
        == 1
    )
    assert re.search(r"checkpoints [\d.]+ ms > 0 ms", done.stdout)
    assert re.search(r"Not enough for .*, every \d s: .*checkpoint storage 64 times as fast", screen)
    assert "how often does the job fail?" not in done.stdout


def test_an_answer_is_no_longer_unknown(advise):
    done = advise("--set 'storage.bandwidth=1 MB/s' --mtbf '1 d'")

    assert done.exit_code == 0, done.stderr
    assert "UNKNOWN" not in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("--p99 60", 2, "--p99: a duration needs a unit"),
        ("--p99 '0 s'", 2, "--p99: expected more than 0 s, not '0 s'"),
        ("--loss 3", 2, "--loss: "),
        ("--loss '130 %'", 2, "--loss: "),
        ("--mtbf '-1 h'", 2, "--mtbf: "),
        ("--jobs 2 --master 'local[2]'", 2, "--jobs and --master exclude each other"),
        ("", 3, "give the one that is set today, e.g. --set checkpoint.barriers=aligned"),
        ("--set checkpoint.barriers=aligned --load nothing.csv", 3, "no such file"),
        (
            "--set checkpoint.barriers=aligned --set 'instances={count: 2}'",
            3,
            "is about a chain of jobs: advice is about one",
        ),
    ],
)
def test_what_cannot_be_asked(ckptsim, tiny, options, code, message):
    done = ckptsim(f"advise {tiny} {options}")

    assert code == done.exit_code
    assert message in done.stderr


def test_what_is_no_job(ckptsim, tmp_path):
    """One line, whatever the file is."""
    (tmp_path / "notes.txt").write_text("Nothing of a job.\n")

    for source, code in (("notes.txt", 3), ("none.json.gz", 3), (".", 3)):
        done = ckptsim(f"advise {source}")
        assert code == done.exit_code
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_the_history_tells_how_often_the_job_fails(advise, tmp_path):
    """Three times in an hour; an option says otherwise."""
    failures = "{completed: 9, failed: 1, predicted-completed: 10, predicted-failed: 0, job-failures: 3, ran: 1 h}"
    (tmp_path / "tiny.yaml").write_text(f"{JOB}backtest: {{runs: 1, simulated: 3 s, failures: {failures}}}\n")
    command = f"advise {tmp_path}/tiny.yaml --jobs 1 --budget '2 s' --out {tmp_path}/out --why"
    seen, given = (CliRunner().invoke(app, f"{command} {more}").stdout for more in ("", "--mtbf '5 h'"))

    assert "The job failed 3 times in the 60 min of its history: a failure every 20 min." in " ".join(seen.split())
    assert "UNKNOWN: how often does the job fail?" not in seen
    assert "of its history" not in given
