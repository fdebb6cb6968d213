"""`ckptsim explain` of a job that really ran: a live one, what is left of one, and everything that may be wrong with either."""

import gzip
import json
import re

import pytest

from sim.jobs.source.saved import read_saved
from tests.places import REST


def one_line(done, code=3):
    assert (code, "") == (done.exit_code, done.stdout), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_live_job_and_its_saved_answers_say_the_same(ckptsim, fake_flink):
    """But for how long a checkpoint has been in progress: the clock of the live one goes on."""
    live, saved = ckptsim("explain", fake_flink().url), ckptsim(f"explain {REST}/pressed.zip")

    assert (live.exit_code, saved.exit_code) == (0, 0)
    live_text, saved_text = (
        re.sub(r", [\d.]+ m?s after its trigger", "", " ".join(done.stdout.split())) for done in (live, saved)
    )
    assert live_text == saved_text
    assert "sum to the last acknowledgement" in live.stdout
    assert "Where the time goes" in live.stdout


def test_one_checkpoint_and_json(ckptsim):
    data = json.loads(ckptsim(f"explain {REST}/pressed.zip --json").stdout)
    number = data["known"][-2]  # the last one has not ended
    (record,) = json.loads(ckptsim(f"explain {REST}/pressed.zip --json --checkpoint", number).stdout)["explained"]

    assert (number, "COMPLETED", "aligned") == (record["checkpoint"], record["status"], record["strategy"])
    assert record["duration_ns"] == sum(part["duration_ns"] for part in record["parts"])
    assert {"job", "median_ns", "slow", "failed", "where", "in_common", "not_told"} <= data.keys()


@pytest.mark.parametrize("file", ["keeping-up.zip", "archive.json.gz", "jobmanager.log"])
def test_everything_else_that_is_left_of_a_job(ckptsim, file):
    done = ckptsim(f"explain {REST}/{file}")
    assert (done.exit_code, re.sub("job: . known defects? may apply .*\n", "", done.stderr)) == (0, "")
    assert "checkpoints are known" in " ".join(done.stdout.split())


def test_one_answer_from_standard_input(ckptsim):
    """What people paste: the answer to /jobs/JOB/checkpoints, with the prompt."""
    snapshot = read_saved(REST / "pressed.zip")
    pasted = f"$ curl -s http://jm:8081/jobs/x/checkpoints\n{json.dumps(snapshot.of_job('/checkpoints'))}"
    done = ckptsim("explain -", given=pasted)

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("standard-input is the answer to /jobs/JOB/checkpoints.")


def test_one_that_has_not_ended_is_asked_for(ckptsim, fake_flink):
    """Import leaves it out; who asks why a checkpoint hangs wants just this one."""
    fake = fake_flink()
    about = f"/jobs/{fake.job}/checkpoints"
    newest, before = fake.answers[about]["history"][:2]
    assert newest["status"] == "IN_PROGRESS"
    number = newest["id"]
    for path in [path for path in fake.answers if f"/details/{before['id']}" in path]:
        moved = path.replace(f"/details/{before['id']}", f"/details/{number}")
        fake.answers[moved] = fake.answers[path] | (
            {"status": "IN_PROGRESS", "id": number} if "/subtasks/" not in path else {}
        )
    done = ckptsim(f"explain {fake.url}")

    assert done.exit_code == 0
    assert f"Checkpoint {number} (aligned) has been under way for" in done.stdout


def test_statistics_of_some_subtasks_are_missing(ckptsim, fake_flink):
    """The path is told of what there is; all statistics gone, the duration is what is left."""
    fake = fake_flink()
    for path in [path for path in fake.answers if "/subtasks/" in path]:
        del fake.answers[path]
    done = ckptsim(f"explain {fake.url}")

    assert done.exit_code == 0
    assert "Statistics of its subtasks are missing" in " ".join(done.stdout.split())


def test_mistakes_are_a_line_and_a_code(ckptsim, fake_flink, tmp_path, tiny):
    pressed = REST / "pressed.zip"
    (tmp_path / "page.json").write_text("<html>")
    (tmp_path / "cut.json.gz").write_bytes((REST / "archive.json.gz").read_bytes()[:3000])
    (tmp_path / "cut.json").write_text(gzip.decompress((REST / "archive.json.gz").read_bytes()).decode()[:5000])
    fake = fake_flink()
    empty = fake_flink()
    empty.answers = {path: answer for path, answer in empty.answers.items() if "/details/" not in path}
    about = f"/jobs/{empty.job}/checkpoints"
    empty.answers[about] = {"counts": {"total": 0, "completed": 0}, "history": []}
    cut = fake_flink()
    cut.faults[f"/jobs/{cut.job}"] = ["cut"] * 99
    for arguments, code, message in (
        ("http://127.0.0.1:1", 3, "cannot be reached"),
        (f"{fake.url} --job abc", 3, "has no job 'abc'"),
        (f"{fake.url} --header me", 2, "--header: write 'NAME: VALUE'"),
        (f"{fake.url} --deadline soon", 2, "--deadline"),
        (f"{empty.url}", 2, f"{empty.url}: the job has had no checkpoint yet"),
        (f"{cut.url} --deadline '2 s'", 3, cut.job),
        (f"{pressed} --checkpoint 99", 2, "pressed.zip: no checkpoint 99: there are"),
        (f"{pressed} --strategy aligned", 2, "--strategy: is for simulated runs"),
        (f"{pressed} --set a=b", 2, "--set: is for simulated runs"),
        (f"{pressed} --deadline '1 s'", 2, "--deadline: is for live jobs"),
        (f"{tiny} --job a", 2, "--job: is for real jobs"),
        (f"{tmp_path}/cut.json.gz", 3, "truncated"),
        (f"{tmp_path}/cut.json", 3, "is not JSON"),
        (f"{tmp_path}/nothing.zip", 3, "nothing.zip: no such file"),
    ):
        assert message in one_line(ckptsim(f"explain {arguments}"), code)
